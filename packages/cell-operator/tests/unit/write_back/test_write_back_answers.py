"""What the hub is asked before a copy is written, and how long its answers serve."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from types import MappingProxyType

import pytest

from compute_cell_operator.kinds import DEPLOYMENT, INSTANCE, NAMESPACE
from compute_cell_operator.plane_names import CELL, HUB
from compute_cell_operator.write_back.hub_answers import PRUNED_FROM, HubAnswers
from compute_cell_operator.write_back.observe import Document, Seen
from compute_operator_kit.errors import UnavailableError
from compute_operator_kit.keys import ObjectKey, Uid
from compute_operator_kit.objects import Absent, Metadata, Snapshot
from compute_operator_kit.testing import FakeClock, a_snapshot

NS = "ns-6a1f1c1e-3f6c-4a44-9a52-0c2f9f3b7a10"
NAMESPACE_KEY = ObjectKey(HUB, NAMESPACE, "", NS)
DEPLOYMENT_KEY = ObjectKey(HUB, DEPLOYMENT, NS, "web")
COPY_KEY = ObjectKey(HUB, INSTANCE, NS, "web-0")


class FakeHub:
    """Has these objects, and remembers what it was asked for."""

    def __init__(self, *keys: ObjectKey) -> None:
        self.found = {key: a_snapshot(key) for key in keys}
        self.asked: Counter[ObjectKey] = Counter()
        self.next_error: UnavailableError | None = None

    async def get(self, key: ObjectKey) -> Snapshot | Absent:
        self.asked[key] += 1
        if self.next_error is not None:
            raise self.next_error
        return self.found.get(key, Absent())


def a_seen(namespace: str = NS) -> Seen:
    labels = {"compute.datumapis.com/workload-deployment-name": "web"}
    metadata = Metadata("web-0", namespace, Uid("i"), "1", labels=MappingProxyType(labels))
    return Seen(
        cell="dfw-1",
        copy_key=ObjectKey(HUB, INSTANCE, namespace, "web-0"),
        instance=Document(ObjectKey(CELL, INSTANCE, namespace, "web-0"), metadata, {}, {}),
        namespace=Absent(),
        deployment_uid="",
        copy=Absent(),
    )


async def test_a_create_asks_for_everything_each_time() -> None:
    hub, clock = FakeHub(NAMESPACE_KEY, DEPLOYMENT_KEY), FakeClock()
    answers = HubAnswers(lambda: hub, clock)
    await answers.ask(a_seen(), is_create=True)
    found = await answers.ask(a_seen(), is_create=True)
    assert isinstance(found.namespace, Metadata)
    assert isinstance(found.deployment, Metadata)
    assert found.copy is None
    assert hub.asked == {NAMESPACE_KEY: 2, DEPLOYMENT_KEY: 2}


async def test_where_a_name_was_taken_the_copy_is_asked_for_each_time() -> None:
    hub, clock = FakeHub(NAMESPACE_KEY, DEPLOYMENT_KEY), FakeClock()
    answers = HubAnswers(lambda: hub, clock)
    for _ in range(2):
        found = await answers.ask(a_seen(), is_create=True, is_taken=True)
        assert found.copy == Absent()
    assert hub.asked[COPY_KEY] == 2


async def test_an_answer_serves_later_writes_for_ten_seconds() -> None:
    hub, clock = FakeHub(NAMESPACE_KEY, DEPLOYMENT_KEY), FakeClock()
    answers = HubAnswers(lambda: hub, clock)
    first = await answers.ask(a_seen(), is_create=False)
    clock.pass_time(timedelta(seconds=10))
    assert await answers.ask(a_seen(), is_create=False) == first
    assert hub.asked == {NAMESPACE_KEY: 1, DEPLOYMENT_KEY: 1}
    clock.pass_time(timedelta(milliseconds=1))
    await answers.ask(a_seen(), is_create=False)
    assert hub.asked == {NAMESPACE_KEY: 2, DEPLOYMENT_KEY: 2}


async def test_a_copy_that_is_there_is_read_whole() -> None:
    hub = FakeHub(COPY_KEY)
    answers = HubAnswers(lambda: hub, FakeClock())
    found = await answers.ask(a_seen(), is_create=True, is_taken=True)
    assert isinstance(found.copy, Document)
    assert (found.namespace, found.deployment) == (Absent(), Absent())


async def test_a_hub_that_does_not_answer_is_not_an_absent_owner() -> None:
    hub = FakeHub()
    hub.next_error = UnavailableError("Away", "asking the hub: away", plane=HUB)
    answers = HubAnswers(lambda: hub, FakeClock())
    with pytest.raises(ExceptionGroup) as raised:
        await answers.ask(a_seen(), is_create=False)
    assert all(isinstance(error, UnavailableError) for error in raised.value.exceptions)
    assert len(answers) == 0


async def test_answers_of_many_namespaces_do_not_pile_up() -> None:
    hub, clock = FakeHub(), FakeClock()
    answers = HubAnswers(lambda: hub, clock)
    for number in range(2 * PRUNED_FROM):
        await answers.ask(a_seen(f"ns-{number}"), is_create=False)
        clock.pass_time(timedelta(seconds=1))
    assert len(answers) <= PRUNED_FROM
