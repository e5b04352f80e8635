from __future__ import annotations

from collections import Counter
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from compute_operator_kit.controller.workqueue import FairQueue, Priority

KEYS = st.integers(0, 11)
LIMIT = 2


def share_of(key: int) -> str:
    return f"share-{key % 3}"


class QueueAgainstASimpleModel(RuleBasedStateMachine):
    """Sets of ready, waiting and working keys must be what a queue without any order would hold."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: FairQueue[int] = FairQueue()
        self.now = timedelta()
        self.ready: set[int] = set()
        self.waiting: dict[int, timedelta] = {}
        self.working: set[int] = set()
        self.again: set[int] = set()

    @rule(key=KEYS, priority=st.sampled_from(Priority))
    def add(self, key: int, priority: Priority) -> None:
        self.queue.add(key, share_of(key), now=self.now, priority=priority)
        (self.again if key in self.working else self.ready).add(key)

    @rule(key=KEYS, delay=st.integers(0, 5))
    def add_at(self, key: int, delay: int) -> None:
        due = self.now + timedelta(seconds=delay)
        self.queue.add_at(key, share_of(key), due=due)
        self.waiting[key] = min(due, self.waiting.get(key, due))

    @rule(length=st.integers(1, 3))
    def pass_time(self, length: int) -> None:
        self.now += timedelta(seconds=length)

    @rule()
    def take(self) -> None:
        for key in [key for key, due in self.waiting.items() if due <= self.now]:
            del self.waiting[key]
            (self.again if key in self.working else self.ready).add(key)
        busy = Counter(map(share_of, self.working))
        free = {key for key in self.ready if busy[share_of(key)] < LIMIT}
        taken = self.queue.get(self.now, lambda share: busy[share] < LIMIT)
        if taken is None:
            assert not free
            return
        assert taken.key in free
        self.ready.discard(taken.key)
        self.waiting.pop(taken.key, None)
        self.working.add(taken.key)

    @precondition(lambda self: bool(self.working))
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.working)))
        self.queue.done(key, now=self.now)
        self.working.discard(key)
        if key in self.again:
            self.again.discard(key)
            self.ready.add(key)

    @rule(gone=st.frozensets(KEYS))
    def forget(self, gone: frozenset[int]) -> None:
        self.queue.forget(gone.__contains__)
        self.ready -= gone
        self.again -= gone
        for key in gone:
            self.waiting.pop(key, None)

    @invariant()
    def nothing_is_lost_or_doubled(self) -> None:
        assert len(self.queue) == len(self.ready)
        assert {key for key, _ in self.queue.processing()} == self.working
        due = min(self.waiting.values(), default=None)
        assert self.queue.next_due() == due


TestQueueAgainstASimpleModel = QueueAgainstASimpleModel.TestCase
TestQueueAgainstASimpleModel.settings = settings(max_examples=60, deadline=None)


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 30), min_size=1))
def test_a_share_never_waits_for_more_than_one_key_of_each_other(sizes: dict[str, int]) -> None:
    queue: FairQueue[tuple[str, int]] = FairQueue()
    for share, size in sizes.items():
        for number in range(size):
            queue.add((share, number), share, now=timedelta())
    served: list[str] = []
    while (taken := queue.get(timedelta(), lambda _: True)) is not None:
        served.append(taken.fairness_key)
    left = Counter(sizes)
    while served:
        waiting = {share for share, size in left.items() if size}
        turn, served = served[: len(waiting)], served[len(waiting) :]
        assert set(turn) == waiting
        left.subtract(turn)
