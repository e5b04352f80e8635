from __future__ import annotations

from datetime import timedelta

from compute_operator_kit.controller.workqueue import MOST_URGENT_IN_A_ROW, FairQueue, Priority

NOW = timedelta()


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def take(queue: FairQueue[str], now: timedelta = NOW) -> str | None:
    taken = queue.get(now, lambda _: True)
    return taken.key if taken else None


def test_a_key_added_twice_is_taken_once() -> None:
    queue: FairQueue[str] = FairQueue()
    assert queue.add("a", "s", now=NOW)
    assert not queue.add("a", "s", now=NOW)
    assert take(queue) == "a"
    assert take(queue) is None


def test_a_key_in_work_is_not_handed_out_again_until_it_is_done() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.add("a", "s", now=NOW)
    assert take(queue) == "a"
    queue.add("a", "s", now=NOW)
    assert take(queue) is None
    queue.done("a", now=NOW)
    assert take(queue) == "a"


def test_a_key_that_was_not_added_meanwhile_is_forgotten_when_done() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.add("a", "s", now=NOW)
    take(queue)
    queue.done("a", now=NOW)
    assert take(queue) is None
    assert len(queue) == 0


def test_fairness_keys_take_turns_however_many_keys_each_has() -> None:
    queue: FairQueue[str] = FairQueue()
    for number in range(100):
        queue.add(f"noisy-{number}", "noisy", now=NOW)
    queue.add("quiet", "quiet", now=NOW)
    assert [take(queue) for _ in range(3)] == ["noisy-0", "quiet", "noisy-1"]


def test_a_fairness_key_at_its_limit_is_passed_over_and_keeps_its_turn() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.add("a1", "a", now=NOW)
    queue.add("b1", "b", now=NOW)
    taken = queue.get(NOW, lambda fairness_key: fairness_key != "a")
    assert taken is not None
    assert taken.key == "b1"
    assert take(queue) == "a1"


def test_fresh_edits_overtake_the_initial_list() -> None:
    queue: FairQueue[str] = FairQueue()
    for name in ("old-1", "old-2", "edited"):
        queue.add(name, "s", now=NOW, priority=Priority.LOW)
    queue.add("edited", "s", now=NOW)
    queue.add("fresh", "s", now=NOW)
    assert [take(queue) for _ in range(4)] == ["edited", "fresh", "old-1", "old-2"]


def test_a_key_keeps_the_more_urgent_of_two_priorities() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.add("first", "s", now=NOW)
    queue.add("a", "s", now=NOW)
    queue.add("a", "s", now=NOW, priority=Priority.LOW)
    queue.add("b", "s", now=NOW, priority=Priority.LOW)
    assert [take(queue) for _ in range(3)] == ["first", "a", "b"]


def test_a_key_is_ready_with_its_priority_and_less_urgent_ones() -> None:
    queue: FairQueue[str] = FairQueue()
    assert not queue.is_ready("a", Priority.LOW)
    queue.add("a", "s", now=NOW, priority=Priority.OUT_OF_DATE)
    ready = [queue.is_ready("a", priority) for priority in Priority]
    assert ready == [False, True, True]
    take(queue)
    queue.add("a", "s", now=NOW)
    assert not queue.is_ready("a", Priority.HIGH)


def test_a_key_in_work_comes_back_with_the_most_urgent_priority() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.add("a", "s", now=NOW)
    take(queue)
    queue.add("a", "s", now=NOW, priority=Priority.LOW)
    queue.add("a", "s", now=NOW)
    queue.add("b", "s", now=NOW, priority=Priority.LOW)
    queue.done("a", now=NOW)
    assert [take(queue), take(queue)] == ["a", "b"]


def test_a_timer_makes_a_key_ready_when_it_is_due() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.add_at("a", "s", due=seconds(5))
    assert queue.next_due() == seconds(5)
    assert take(queue, seconds(4.9)) is None
    assert take(queue, seconds(5)) == "a"
    assert queue.next_due() is None


def test_the_earlier_of_two_timers_counts() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.add_at("a", "s", due=seconds(5))
    queue.add_at("a", "s", due=seconds(2))
    queue.add_at("a", "s", due=seconds(9))
    assert queue.next_due() == seconds(2)
    assert take(queue, seconds(2)) == "a"
    queue.done("a", now=seconds(2))
    assert take(queue, seconds(60)) is None


def test_taking_a_key_drops_its_timer_because_the_reconcile_decides_anew() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.add_at("a", "s", due=seconds(5))
    queue.add("a", "s", now=NOW)
    assert take(queue) == "a"
    queue.done("a", now=NOW)
    assert queue.next_due() is None
    assert take(queue, seconds(10)) is None


def test_a_key_edited_all_day_does_not_pile_up_timers() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.add_at("early", "s", due=seconds(1))  # superseded ones lie below it and are not seen
    for round_ in range(10_000):
        queue.add("a", "s", now=NOW)
        take(queue)
        queue.done("a", now=NOW)
        queue.add_at("a", "s", due=seconds(1800 + round_))
    assert queue.timers < 200


def test_what_is_gone_is_forgotten_wherever_it_is() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.add("gone-ready", "s", now=NOW)
    queue.add_at("gone-waiting", "s", due=seconds(1))
    queue.add("gone-working", "t", now=NOW)
    queue.add("kept", "s", now=NOW)
    assert take(queue) == "gone-ready"
    assert take(queue) == "gone-working"
    queue.add("gone-working", "t", now=NOW)
    queue.add("gone-ready", "s", now=NOW)
    queue.forget(lambda key: key.startswith("gone"))
    queue.done("gone-working", now=NOW)
    queue.done("gone-ready", now=NOW)
    assert take(queue, seconds(60)) == "kept"
    assert take(queue, seconds(60)) is None


def test_forgetting_the_last_ready_key_of_a_fairness_key_forgets_the_fairness_key() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.add("gone", "s", now=NOW)
    queue.forget(lambda key: key == "gone")
    assert take(queue) is None
    queue.add("back", "s", now=NOW)
    assert take(queue) == "back"


def test_the_time_that_a_key_waited_is_measured() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.add("a", "s", now=seconds(1))
    taken = queue.get(seconds(3), lambda _: True)
    assert taken is not None
    assert taken.waited == seconds(2)
    assert list(queue.processing()) == [("a", seconds(3))]


def test_out_of_date_keys_go_after_fresh_edits_and_before_the_rest_of_every_fairness_key() -> None:
    queue: FairQueue[str] = FairQueue()
    for fairness_key in "st":
        queue.add(f"rest-{fairness_key}", fairness_key, now=NOW, priority=Priority.LOW)
        queue.add(f"late-{fairness_key}", fairness_key, now=NOW, priority=Priority.LOW)
        assert queue.is_low_priority(f"late-{fairness_key}")
        queue.add(f"late-{fairness_key}", fairness_key, now=NOW, priority=Priority.OUT_OF_DATE)
        assert not queue.is_low_priority(f"late-{fairness_key}")
    queue.add("edited-s", "s", now=NOW)
    assert queue.low_priority_keys() == ("rest-s", "rest-t")
    expected = ["edited-s", "late-t", "late-s", "rest-s", "rest-t"]
    assert [take(queue) for _ in range(5)] == expected


def test_fresh_edits_cannot_keep_the_initial_list_waiting_for_good() -> None:
    queue: FairQueue[str] = FairQueue()
    for number in range(3):
        queue.add(f"old-{number}", "quiet", now=NOW, priority=Priority.LOW)
    served: list[str | None] = []
    for number in range(30):
        queue.add(f"edit-{number}", "noisy", now=NOW)
        served.append(take(queue))
    turns = [place for place, key in enumerate(served) if key is not None and "old" in key]
    every = MOST_URGENT_IN_A_ROW + 1
    assert turns == [every - 1, 2 * every - 1, 3 * every - 1]


def test_urgent_keys_that_may_not_run_do_not_hold_up_the_rest_of_another_fairness_key() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.add("edited", "busy", now=NOW)
    queue.add("old", "free", now=NOW, priority=Priority.LOW)
    taken = queue.get(NOW, lambda fairness_key: fairness_key != "busy")
    assert taken is not None
    assert taken.key == "old"
