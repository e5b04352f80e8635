"""Which changes a slot's claim is looked at for, and that waiting for one costs nothing."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from typing_extensions import override

from compute_cell_operator.kinds import INSTANCE
from compute_cell_operator.plane_names import CELL
from compute_cell_operator.quota_gate.runner import AT_ONCE, Runner
from compute_cell_operator.quota_gate.waking import QUOTA, index_by_quota, is_alike
from compute_cell_operator.quota_gate.worker import is_repeated
from compute_operator_kit.cache import Change
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.objects import Delivered, Snapshot
from compute_operator_kit.reconcile import Result
from compute_operator_kit.system_clock import SystemClock
from compute_operator_kit.testing import FixedRandom, a_snapshot, a_store
from compute_operator_kit.wire import Json, JsonMapping
from compute_quota_client import Absent, judge
from compute_quota_client.testing import a_found_claim

NS = "ns-6a1f1c1e-3f6c-4a44-9a52-0c2f9f3b7a10"
KEY = ObjectKey(CELL, INSTANCE, NS, "web-0")


def an_instance(
    version: str = "1",
    *,
    quota: str = "True",
    gates: tuple[str, ...] = (),
    metadata: JsonMapping | None = None,
    ready: str = "False",
) -> Snapshot:
    named: list[Json] = [{"name": gate} for gate in gates]
    told: list[Json] = [
        {"type": "QuotaGranted", "status": quota, "reason": "QuotaAvailable"},
        {"type": "Ready", "status": ready, "reason": "Pending"},
    ]
    return a_snapshot(
        KEY,
        {"resourceVersion": version, **(metadata or {})},
        spec={"controller": {"schedulingGates": named}},
        status={"conditions": told},
    )


def change(before: Snapshot, after: Snapshot) -> Change:
    store = a_store(CELL, INSTANCE, (before,), indexes={QUOTA: index_by_quota})
    found = store.put(Delivered(after))
    assert found is not None
    return found


def test_what_a_provider_says_is_nothing_to_a_claim() -> None:
    assert is_alike(change(an_instance(), an_instance("2", ready="True")))
    finalizers: JsonMapping = {"finalizers": ["provider/finalizer"]}
    assert is_alike(change(an_instance(), an_instance("2", metadata=finalizers)))


def test_behind_its_gate_what_was_found_out_is_no_news() -> None:
    before = an_instance(quota="Unknown", gates=("Quota",))
    assert is_alike(change(before, an_instance("2", gates=("Quota",))))


@pytest.mark.parametrize(
    "after",
    [
        an_instance("2", quota="False"),
        an_instance("2", metadata={"generation": 2}),
        an_instance("2", metadata={"uid": "another"}),
        an_instance("2", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
    ],
    ids=["verdict", "spec", "another", "going"],
)
def test_whatever_a_look_reads_leads_to_one(after: Snapshot) -> None:
    assert not is_alike(change(an_instance(), after))


def test_an_instance_that_comes_or_goes_leads_to_a_look() -> None:
    found = change(an_instance(), an_instance("2"))
    assert not is_alike(Change(None, found.after))
    assert not is_alike(Change(found.before, None))


def test_a_claim_that_is_written_again_and_not_decided_is_no_news() -> None:
    pending = a_found_claim(state="pending")
    before = judge(pending)
    again = replace(pending, resource_version="99", allocations=a_found_claim().allocations)
    assert is_repeated(before, before)
    assert is_repeated(before, judge(again))
    assert not is_repeated(None, before)
    assert not is_repeated(before, Absent())
    assert not is_repeated(before, judge(replace(again, uid="another")))
    assert not is_repeated(before, judge(replace(again, annotations={"a": "b"})))
    granted = judge(a_found_claim())
    assert not is_repeated(before, granted)
    assert is_repeated(granted, granted)
    assert not is_repeated(granted, judge(replace(a_found_claim(), resource_version="99")))


class BusyClock(SystemClock):
    """Counts who asks for the time."""

    asked = 0

    @override
    def monotonic(self) -> timedelta:
        self.asked += 1
        return super().monotonic()


async def test_a_slot_that_is_due_waits_quietly_while_every_worker_is_busy() -> None:
    clock, go = BusyClock(), asyncio.Event()
    due = ObjectKey(CELL, INSTANCE, NS, "due")
    looked_at: list[str] = []

    async def look(key: ObjectKey) -> Result:
        looked_at.append(key.name)
        if key == due:
            return Result(timedelta(milliseconds=20))
        await go.wait()
        return Result()

    runner = Runner(
        look, lambda key: key.name, clock, FixedRandom(0.5), deadline=timedelta(seconds=30)
    )
    runner.add(due)
    running = asyncio.create_task(runner.run())
    await asyncio.sleep(0)
    for number in range(AT_ONCE):
        runner.add(ObjectKey(CELL, INSTANCE, NS, f"busy-{number}"))
    await asyncio.sleep(0.1)
    asked = clock.asked
    await asyncio.sleep(0.1)
    assert clock.asked - asked < 10
    assert looked_at.count("due") == 1
    go.set()
    await asyncio.sleep(0.1)
    assert looked_at.count("due") > 1
    running.cancel()
    await asyncio.wait({running})
