"""Live reads of the hub before a copy is written, and how long they serve."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from types import MappingProxyType

import pytest

from compute_cell_operator.planes import CELL, DEPLOYMENT, HUB, INSTANCE, NAMESPACE
from compute_cell_operator.write_back.hub_reads import PRUNED_FROM, HubReads
from compute_cell_operator.write_back.observe import InstanceDocument, ObservedCopy
from compute_operator_kit.core.errors import UnavailableError
from compute_operator_kit.core.keys import ObjectKey, Uid
from compute_operator_kit.core.objects import Absent, Metadata, Snapshot
from compute_operator_kit.testing.fakes import FakeClock, a_snapshot

NS = "ns-6a1f1c1e-3f6c-4a44-9a52-0c2f9f3b7a10"
NAMESPACE_KEY = ObjectKey(HUB, NAMESPACE, "", NS)
DEPLOYMENT_KEY = ObjectKey(HUB, DEPLOYMENT, NS, "web")
COPY_KEY = ObjectKey(HUB, INSTANCE, NS, "web-0")


class FakeHub:
    """A hub with these objects; counts the requests."""

    def __init__(self, *keys: ObjectKey) -> None:
        self.objects = {key: a_snapshot(key) for key in keys}
        self.asked: Counter[ObjectKey] = Counter()
        self.next_error: UnavailableError | None = None

    async def get(self, key: ObjectKey) -> Snapshot | Absent:
        self.asked[key] += 1
        if self.next_error is not None:
            raise self.next_error
        return self.objects.get(key, Absent())


def a_seen(namespace: str = NS) -> ObservedCopy:
    labels = {"compute.datumapis.com/workload-deployment-name": "web"}
    metadata = Metadata("web-0", namespace, Uid("i"), "1", labels=MappingProxyType(labels))
    return ObservedCopy(
        cell="dfw-1",
        copy_key=ObjectKey(HUB, INSTANCE, namespace, "web-0"),
        instance=InstanceDocument(ObjectKey(CELL, INSTANCE, namespace, "web-0"), metadata, {}, {}),
        namespace=Absent(),
        deployment_uid="",
        copy=Absent(),
    )


async def test_a_create_asks_for_everything_each_time() -> None:
    hub, clock = FakeHub(NAMESPACE_KEY, DEPLOYMENT_KEY), FakeClock()
    reads = HubReads(lambda: hub, clock)
    await reads.read(a_seen(), is_create=True)
    facts = await reads.read(a_seen(), is_create=True)
    assert isinstance(facts.namespace, Metadata)
    assert isinstance(facts.deployment, Metadata)
    assert facts.copy is None
    assert hub.asked == {NAMESPACE_KEY: 2, DEPLOYMENT_KEY: 2}


async def test_where_a_name_was_taken_the_copy_is_asked_for_each_time() -> None:
    hub, clock = FakeHub(NAMESPACE_KEY, DEPLOYMENT_KEY), FakeClock()
    reads = HubReads(lambda: hub, clock)
    for _ in range(2):
        facts = await reads.read(a_seen(), is_create=True, is_taken=True)
        assert facts.copy == Absent()
    assert hub.asked[COPY_KEY] == 2


async def test_a_read_serves_later_writes_for_ten_seconds() -> None:
    hub, clock = FakeHub(NAMESPACE_KEY, DEPLOYMENT_KEY), FakeClock()
    reads = HubReads(lambda: hub, clock)
    first = await reads.read(a_seen(), is_create=False)
    clock.pass_time(timedelta(seconds=10))
    assert await reads.read(a_seen(), is_create=False) == first
    assert hub.asked == {NAMESPACE_KEY: 1, DEPLOYMENT_KEY: 1}
    clock.pass_time(timedelta(milliseconds=1))
    await reads.read(a_seen(), is_create=False)
    assert hub.asked == {NAMESPACE_KEY: 2, DEPLOYMENT_KEY: 2}


async def test_a_copy_that_is_there_is_read_whole() -> None:
    hub = FakeHub(COPY_KEY)
    reads = HubReads(lambda: hub, FakeClock())
    facts = await reads.read(a_seen(), is_create=True, is_taken=True)
    assert isinstance(facts.copy, InstanceDocument)
    assert (facts.namespace, facts.deployment) == (Absent(), Absent())


async def test_a_hub_that_does_not_answer_is_not_an_absent_owner() -> None:
    hub = FakeHub()
    hub.next_error = UnavailableError("Away", "asking the hub: away", plane=HUB)
    reads = HubReads(lambda: hub, FakeClock())
    with pytest.raises(ExceptionGroup) as raised:
        await reads.read(a_seen(), is_create=False)
    assert all(isinstance(error, UnavailableError) for error in raised.value.exceptions)
    assert len(reads) == 0


async def test_reads_of_many_namespaces_do_not_pile_up() -> None:
    hub, clock = FakeHub(), FakeClock()
    reads = HubReads(lambda: hub, clock)
    for number in range(2 * PRUNED_FROM):
        await reads.read(a_seen(f"ns-{number}"), is_create=False)
        clock.pass_time(timedelta(seconds=1))
    assert len(reads) <= PRUNED_FROM
