from datetime import timedelta

import pytest

from compute_quota_client._circuit import Admission, Circuit

START = timedelta(seconds=1000)


def opened(chance: float = 0.5) -> Circuit:
    circuit = Circuit(lambda: chance)
    for _ in range(5):
        assert circuit.admit(START) is Admission.ORDINARY
        circuit.record_failure(Admission.ORDINARY, START)
    return circuit


@pytest.mark.spec("Q-12")
def test_five_failures_in_a_row_open_it_and_four_do_not() -> None:
    circuit = Circuit(lambda: 0.5)
    for _ in range(4):
        circuit.record_failure(Admission.ORDINARY, START)
    assert not circuit.is_open
    circuit.record_failure(Admission.ORDINARY, START)
    assert circuit.is_open
    assert circuit.admit(START) is None


@pytest.mark.spec("Q-12")
def test_a_success_in_between_begins_the_count_again() -> None:
    circuit = Circuit(lambda: 0.5)
    for _ in range(4):
        circuit.record_failure(Admission.ORDINARY, START)
    circuit.record_success()
    for _ in range(4):
        circuit.record_failure(Admission.ORDINARY, START)
    assert not circuit.is_open


@pytest.mark.spec("Q-12")
def test_one_probe_is_let_through_when_its_time_comes() -> None:
    circuit = opened()
    assert circuit.admit(START + timedelta(seconds=0.99)) is None
    assert circuit.admit(START + timedelta(seconds=1)) is Admission.PROBE
    assert circuit.admit(START + timedelta(seconds=1)) is None


@pytest.mark.spec("Q-12")
def test_a_probe_that_succeeds_closes_it() -> None:
    circuit = opened()
    assert circuit.admit(START + timedelta(seconds=1)) is Admission.PROBE
    circuit.record_success()
    assert circuit.admit(START) is Admission.ORDINARY


@pytest.mark.spec("Q-12")
@pytest.mark.parametrize(("chance", "factor"), [(0, 0.8), (0.5, 1), (1, 1.2)])
def test_probes_are_1_second_apart_doubling_to_30_give_or_take_a_fifth(
    chance: float, factor: float
) -> None:
    circuit, now = opened(chance), START
    for seconds in (1, 2, 4, 8, 16, 30, 30):
        wait = timedelta(seconds=seconds * factor)
        assert wait <= timedelta(seconds=36)
        assert circuit.admit(now + wait - timedelta(milliseconds=1)) is None
        now += wait
        assert circuit.admit(now) is Admission.PROBE
        circuit.record_failure(Admission.PROBE, now)


@pytest.mark.spec("Q-12")
def test_requests_that_were_under_way_when_it_opened_do_not_put_off_the_probe() -> None:
    circuit = opened()
    late = START + timedelta(seconds=0.9)
    for _ in range(20):
        circuit.record_failure(Admission.ORDINARY, late)
    assert circuit.admit(START + timedelta(seconds=1)) is Admission.PROBE


@pytest.mark.spec("Q-12")
def test_one_that_was_under_way_does_not_end_the_probe() -> None:
    circuit = opened()
    probing = START + timedelta(seconds=1)
    assert circuit.admit(probing) is Admission.PROBE
    circuit.record_failure(Admission.ORDINARY, probing)
    circuit.record_nothing(Admission.ORDINARY)
    assert circuit.admit(probing) is None


@pytest.mark.spec("Q-12")
def test_a_probe_given_up_makes_room_for_the_next() -> None:
    circuit = opened()
    assert circuit.admit(START + timedelta(seconds=1)) is Admission.PROBE
    circuit.record_nothing(Admission.PROBE)
    assert circuit.is_open
    assert circuit.admit(START + timedelta(seconds=1)) is Admission.PROBE
