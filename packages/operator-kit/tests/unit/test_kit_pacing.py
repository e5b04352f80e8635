from __future__ import annotations

from datetime import timedelta

from compute_operator_kit.pacing import FORGETTING_FROM, Pace, Tempo
from compute_operator_kit.workqueue import FairQueue, Priority

NOW = timedelta()
SECOND = timedelta(seconds=1)
FIRST = timedelta(milliseconds=125)
TEMPO = Tempo(at_once=3, first=FIRST, longest=SECOND)
SLOW = Tempo(at_once=1, first=SECOND, longest=SECOND)


def waits(pace: Pace[str], passes: int) -> list[timedelta]:
    """How long each pass had to wait for the one before it, where nobody rests."""
    now, waited = NOW, list[timedelta]()
    for _ in range(passes):
        due = pace.find_due("a", now) or now
        waited.append(due - now)
        now = due
        pace.book("a", now)
    return waited


def test_a_key_has_its_passes_at_once_and_then_waits_twice_as_long_each_time() -> None:
    found = waits(Pace(TEMPO), 12)
    assert found[:3] == [NOW, NOW, NOW]
    assert FIRST / 2 <= found[3] <= FIRST
    assert found[3:] == sorted(found[3:])
    assert found[4] > 1.5 * found[3]
    assert max(found) <= SECOND
    assert found[-1] > SECOND / 4


def test_nobody_waits_longer_than_the_longest_however_often_it_was_looked_at() -> None:
    pace: Pace[str] = Pace(TEMPO)
    for _ in range(2000):
        pace.book("a", NOW)
    due = pace.find_due("a", NOW)
    assert due is not None
    assert SECOND / 2 <= due <= SECOND


def test_keys_that_became_hot_together_do_not_stay_together() -> None:
    pace: Pace[str] = Pace(TEMPO)
    keys = [f"w-{number}" for number in range(20)]
    for key in keys * 20:
        pace.book(key, NOW)
    assert len({pace.find_due(key, NOW) for key in keys}) > 15


def test_other_keys_do_not_wait() -> None:
    pace: Pace[str] = Pace(TEMPO)
    waits(pace, 12)
    assert pace.find_due("b", NOW) is None


def test_a_key_that_rested_has_all_its_passes_again() -> None:
    pace: Pace[str] = Pace(TEMPO)
    for _ in range(2000):
        pace.book("a", NOW)
    rested = 10 * SECOND
    for _ in range(3):
        assert pace.find_due("a", rested) is None
        pace.book("a", rested)
    due = pace.find_due("a", rested)
    assert due is not None
    assert rested < due <= rested + FIRST


def test_keys_that_rest_are_forgotten() -> None:
    pace: Pace[int] = Pace(TEMPO)
    for key in range(10 * FORGETTING_FROM):
        pace.book(key, key * SECOND)
    assert len(pace) <= FORGETTING_FROM + 1


def test_a_key_that_is_gone_is_forgotten_at_once() -> None:
    pace: Pace[str] = Pace(TEMPO)
    pace.book("a", NOW)
    pace.book("b", NOW)
    pace.forget(lambda key: key == "a")
    assert len(pace) == 1


# --- in a queue -----------------------------------------------------------------------------------


def look_at(queue: FairQueue[str], now: timedelta) -> str | None:
    taken = queue.take(now, lambda _: True)
    if taken is None:
        return None
    queue.done(taken.key, now=now)
    return taken.key


def test_a_key_woken_without_end_is_looked_at_at_its_tempo_and_others_at_once() -> None:
    queue: FairQueue[str] = FairQueue(TEMPO)
    passes = 0
    for tenth in range(101):  # ten seconds, ten edits each
        now = tenth * SECOND / 10
        queue.add("hot", "s", now=now)
        passes += look_at(queue, now) == "hot"
        queue.add(f"cold-{tenth}", "s", now=now)
        assert look_at(queue, now) == f"cold-{tenth}"
    assert 10 <= passes <= 30  # one or two a second, and a few more at first


def test_an_edit_that_came_too_soon_is_looked_at_when_its_moment_comes() -> None:
    queue: FairQueue[str] = FairQueue(TEMPO)
    for _ in range(3):
        queue.add("hot", "s", now=NOW)
        assert look_at(queue, NOW) == "hot"
    queue.add("hot", "s", now=NOW)
    assert look_at(queue, NOW) is None
    assert look_at(queue, FIRST / 4) is None
    assert look_at(queue, FIRST) == "hot"
    assert queue.next_due() is None


def test_an_edit_during_a_pass_waits_for_its_moment_too() -> None:
    queue: FairQueue[str] = FairQueue(SLOW)
    queue.add("hot", "s", now=NOW)
    assert queue.take(NOW, lambda _: True) is not None
    queue.add("hot", "s", now=NOW)
    queue.done("hot", now=NOW)
    assert look_at(queue, SECOND / 4) is None
    assert look_at(queue, SECOND) == "hot"


def test_a_key_that_was_taken_and_put_aside_was_not_looked_at() -> None:
    queue: FairQueue[str] = FairQueue(SLOW)
    for _ in range(5):
        queue.add("held", "s", now=NOW)
        assert queue.take(NOW, lambda _: True) is not None
        queue.done("held", now=NOW, was_looked_at=False)
    queue.add("held", "s", now=NOW)
    assert look_at(queue, NOW) == "held"


def test_a_fresh_edit_makes_an_earlier_timer_urgent() -> None:
    queue: FairQueue[str] = FairQueue(SLOW)
    queue.add("hot", "s", now=NOW)
    look_at(queue, NOW)
    queue.add_at("hot", "s", due=SECOND / 2, priority=Priority.BACKGROUND)
    queue.add("hot", "s", now=NOW)
    queue.add("old", "s", now=NOW, priority=Priority.BACKGROUND)
    assert queue.take(SECOND, lambda share: share == "nobody") is None
    assert [look_at(queue, SECOND), look_at(queue, SECOND)] == ["hot", "old"]


def test_forgetting_a_key_forgets_how_often_it_was_looked_at() -> None:
    queue: FairQueue[str] = FairQueue(SLOW)
    queue.add("hot", "s", now=NOW)
    look_at(queue, NOW)
    queue.forget(lambda key: key == "hot")
    queue.add("hot", "s", now=NOW)
    assert look_at(queue, NOW) == "hot"
