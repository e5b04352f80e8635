from __future__ import annotations

from datetime import timedelta

from compute_operator_kit.controller.key_rate_limiter import (
    FORGET_FROM,
    KeyRateLimit,
    KeyRateLimiter,
)
from compute_operator_kit.controller.workqueue import FairQueue, Priority

NOW = timedelta()
SECOND = timedelta(seconds=1)
FIRST = timedelta(milliseconds=125)
LIMIT = KeyRateLimit(at_once=3, first=FIRST, longest=SECOND)
SLOW = KeyRateLimit(at_once=1, first=SECOND, longest=SECOND)


def waits(limiter: KeyRateLimiter[str], reconciles: int) -> list[timedelta]:
    """The wait of each reconcile after the one before it, if the key is never idle."""
    now, waited = NOW, list[timedelta]()
    for _ in range(reconciles):
        due = limiter.find_due("a", now) or now
        waited.append(due - now)
        now = due
        limiter.record("a", now)
    return waited


def test_a_key_has_its_reconciles_at_once_and_then_waits_twice_as_long_each_time() -> None:
    waited = waits(KeyRateLimiter(LIMIT), 12)
    assert waited[:3] == [NOW, NOW, NOW]
    assert FIRST / 2 <= waited[3] <= FIRST
    assert waited[3:] == sorted(waited[3:])
    assert waited[4] > 1.5 * waited[3]
    assert max(waited) <= SECOND
    assert waited[-1] > SECOND / 4


def test_no_key_waits_longer_than_the_longest_however_often_it_was_reconciled() -> None:
    limiter: KeyRateLimiter[str] = KeyRateLimiter(LIMIT)
    for _ in range(2000):
        limiter.record("a", NOW)
    due = limiter.find_due("a", NOW)
    assert due is not None
    assert SECOND / 2 <= due <= SECOND


def test_keys_that_became_hot_together_do_not_stay_together() -> None:
    limiter: KeyRateLimiter[str] = KeyRateLimiter(LIMIT)
    keys = [f"w-{number}" for number in range(20)]
    for key in keys * 20:
        limiter.record(key, NOW)
    assert len({limiter.find_due(key, NOW) for key in keys}) > 15


def test_other_keys_do_not_wait() -> None:
    limiter: KeyRateLimiter[str] = KeyRateLimiter(LIMIT)
    waits(limiter, 12)
    assert limiter.find_due("b", NOW) is None


def test_a_key_that_was_idle_has_all_its_reconciles_again() -> None:
    limiter: KeyRateLimiter[str] = KeyRateLimiter(LIMIT)
    for _ in range(2000):
        limiter.record("a", NOW)
    later = 10 * SECOND
    for _ in range(3):
        assert limiter.find_due("a", later) is None
        limiter.record("a", later)
    due = limiter.find_due("a", later)
    assert due is not None
    assert later < due <= later + FIRST


def test_idle_keys_are_forgotten() -> None:
    limiter: KeyRateLimiter[int] = KeyRateLimiter(LIMIT)
    for key in range(10 * FORGET_FROM):
        limiter.record(key, key * SECOND)
    assert len(limiter) <= FORGET_FROM + 1


def test_a_key_that_is_gone_is_forgotten_at_once() -> None:
    limiter: KeyRateLimiter[str] = KeyRateLimiter(LIMIT)
    limiter.record("a", NOW)
    limiter.record("b", NOW)
    limiter.forget(lambda key: key == "a")
    assert len(limiter) == 1


# --- in a queue -----------------------------------------------------------------------------------


def reconcile(queue: FairQueue[str], now: timedelta) -> str | None:
    taken = queue.get(now, lambda _: True)
    if taken is None:
        return None
    queue.done(taken.key, now=now)
    return taken.key


def test_a_key_enqueued_without_end_is_reconciled_at_its_limit_and_others_at_once() -> None:
    queue: FairQueue[str] = FairQueue(LIMIT)
    reconciles = 0
    for tenth in range(101):  # ten seconds, ten edits each
        now = tenth * SECOND / 10
        queue.add("hot", "s", now=now)
        reconciles += reconcile(queue, now) == "hot"
        queue.add(f"cold-{tenth}", "s", now=now)
        assert reconcile(queue, now) == f"cold-{tenth}"
    assert 10 <= reconciles <= 30  # one or two a second, and a few more at first


def test_an_edit_that_came_too_soon_is_reconciled_when_it_is_due() -> None:
    queue: FairQueue[str] = FairQueue(LIMIT)
    for _ in range(3):
        queue.add("hot", "s", now=NOW)
        assert reconcile(queue, NOW) == "hot"
    queue.add("hot", "s", now=NOW)
    assert reconcile(queue, NOW) is None
    assert reconcile(queue, FIRST / 4) is None
    assert reconcile(queue, FIRST) == "hot"
    assert queue.next_due() is None


def test_an_edit_during_a_reconcile_waits_until_it_is_due_too() -> None:
    queue: FairQueue[str] = FairQueue(SLOW)
    queue.add("hot", "s", now=NOW)
    assert queue.get(NOW, lambda _: True) is not None
    queue.add("hot", "s", now=NOW)
    queue.done("hot", now=NOW)
    assert reconcile(queue, SECOND / 4) is None
    assert reconcile(queue, SECOND) == "hot"


def test_a_key_that_was_taken_and_blocked_was_not_reconciled() -> None:
    queue: FairQueue[str] = FairQueue(SLOW)
    for _ in range(5):
        queue.add("held", "s", now=NOW)
        assert queue.get(NOW, lambda _: True) is not None
        queue.done("held", now=NOW, was_reconciled=False)
    queue.add("held", "s", now=NOW)
    assert reconcile(queue, NOW) == "held"


def test_a_fresh_edit_makes_an_earlier_timer_urgent() -> None:
    queue: FairQueue[str] = FairQueue(SLOW)
    queue.add("hot", "s", now=NOW)
    reconcile(queue, NOW)
    queue.add_at("hot", "s", due=SECOND / 2, priority=Priority.LOW)
    queue.add("hot", "s", now=NOW)
    queue.add("old", "s", now=NOW, priority=Priority.LOW)
    assert queue.get(SECOND, lambda fairness_key: fairness_key == "none") is None
    assert [reconcile(queue, SECOND), reconcile(queue, SECOND)] == ["hot", "old"]


def test_forgetting_a_key_forgets_how_often_it_was_reconciled() -> None:
    queue: FairQueue[str] = FairQueue(SLOW)
    queue.add("hot", "s", now=NOW)
    reconcile(queue, NOW)
    queue.forget(lambda key: key == "hot")
    queue.add("hot", "s", now=NOW)
    assert reconcile(queue, NOW) == "hot"
