"""Intents carried out on a simulated API server: what is sent, what is refused, what is
left alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest

from compute_operator_kit.apply.applier import Applier, Session
from compute_operator_kit.apply.context import ApplyDeps
from compute_operator_kit.apply.write_expectations import WriteExpectations
from compute_operator_kit.client.flow_control import FlowControl
from compute_operator_kit.client.http_client import HttpKubeClient
from compute_operator_kit.client.interface import FieldOwner, KubeClient, Preconditions
from compute_operator_kit.client.rest import RestConfig
from compute_operator_kit.core.errors import (
    ConflictError,
    ForbiddenError,
    InvalidSpecError,
    OutcomeUnknownError,
    TransientError,
)
from compute_operator_kit.core.json import JsonObject, JsonValue, member_object
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Role, Uid
from compute_operator_kit.core.objects import Absent, OwnerReference, Snapshot
from compute_operator_kit.intents.intents import (
    AddFinalizer,
    Delete,
    Ensure,
    Intent,
    OwnedFields,
    Plan,
    RecordEvent,
    RemoveFinalizer,
    RemoveGate,
    RequeueAfter,
    RequireExists,
    RequireGone,
    RequireNone,
    RequireUnchanged,
    SetStatus,
)
from compute_operator_kit.intents.outcomes import Effect, Outcome
from compute_operator_kit.planes.engaged_plane import CachedKind, Plane
from compute_operator_kit.planes.registry import Planes, RegistryDeps
from compute_operator_kit.testing.fakes import FakeEventRecorder, FakeLeadership
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.plane import Plane as SimulatedPlane
from compute_sim_planes.api_server.plane import PlaneParts
from compute_sim_planes.faults.injection import FaultyTransport, Injector
from compute_sim_planes.faults.plans import Action, Fault, Parameters, Point
from compute_sim_planes.history import History, RecordingTransport, Request
from compute_sim_planes.time.clock import VirtualClock, run

HUB = PlaneName("hub")
THING = Kind("example.datumapis.com", "v1", "things", "Thing")
PRUNED = Kind("example.datumapis.com", "v1", "pruneds", "Pruned")
ROOT = ObjectKey(HUB, THING, "default", "root")
KEY = ObjectKey(HUB, THING, "default", "web")
SECOND = timedelta(seconds=1)


def definition(kind: Kind, spec: JsonObject) -> JsonObject:
    schema: JsonObject = {
        "type": "object",
        "properties": {
            "spec": spec,
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    version: JsonObject = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {"plural": kind.plural, "singular": kind.kind.lower(), "kind": kind.kind},
            "versions": [version],
        },
    }


ANYTHING: JsonObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
ONLY_TEXT: JsonObject = {"type": "object", "properties": {"text": {"type": "string"}}}


class Workshop:
    """One plane with our applier and another writer."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.history = History(clock)
        self.injector = Injector((), clock, self.history)
        parts = PlaneParts(clock=clock, identities=clock.identities)
        self.server = SimulatedPlane("hub", parts)
        self.leadership = FakeLeadership()
        self.recorder = FakeEventRecorder()
        watched = [CachedKind(Role.HUB, THING), CachedKind(Role.HUB, PRUNED)]
        setting = RegistryDeps(clock=clock, random=clock.random("workshop"))
        self.planes = Planes(self._connect, watched, setting)
        self.gate = WriteExpectations(self.planes.find_store)
        means = ApplyDeps(
            planes=self.planes,
            clock=clock,
            leadership=self.leadership,
            recorder=self.recorder,
        )
        self.applier = Applier(means, FieldOwner("maker", "compute-maker"), self.gate)

    def _connect(self, plane: Plane, lane: FlowControl) -> KubeClient:
        faulty = FaultyTransport(self.server.connect(), self.injector, plane="hub", kinds=_kinds)
        transport = RecordingTransport(
            faulty, self.history, plane="hub", identity="maker", kinds=_kinds
        )
        return HttpKubeClient(
            RestConfig(plane.name, plane.role, transport, lane), FieldOwner("x", "x")
        )

    @property
    def stranger(self) -> KubeClient:
        lane = FlowControl(HUB, self.clock)
        connection = RestConfig(HUB, Role.HUB, self.server.connect(), lane)
        return HttpKubeClient(connection, FieldOwner("stranger", "stranger"))

    async def open(self) -> None:
        manifests = [definition(THING, ANYTHING), definition(PRUNED, ONLY_TEXT)]
        await apply_manifests(self.server.connect(), manifests)
        self.planes.engage(Plane(HUB, Role.HUB))
        await self.catch_up()

    async def close(self) -> None:
        await self.planes.close()
        await self.server.close()

    async def catch_up(self) -> None:
        """Waits until the caches have seen all events."""
        await self.clock.sleep(SECOND)

    def begin(self) -> Session:
        return self.applier.begin(ROOT)

    async def carry_out(self, *intents: Intent) -> tuple[Outcome, ...]:
        return (await self.begin().apply(Plan.of(*intents))).outcomes

    async def carry_out_one(self, intent: Intent) -> Outcome:
        (outcome,) = await self.carry_out(intent)
        return outcome

    async def make(self, key: ObjectKey = KEY, **members: JsonValue) -> Snapshot:
        """By the stranger, seen by our caches."""
        metadata: dict[str, JsonValue] = {"name": key.name, "namespace": "default"}
        given = members.pop("metadata", {})
        assert isinstance(given, dict)
        body: dict[str, JsonValue] = {
            "apiVersion": key.kind.api_version,
            "kind": key.kind.kind,
            "metadata": {**metadata, **given},
            **members,
        }
        made = await self.stranger.create(key, body)
        assert isinstance(made, Snapshot)
        await self.catch_up()
        return made

    async def read(self, key: ObjectKey = KEY) -> JsonObject | None:
        existing = await self.stranger.get(key)
        return None if isinstance(existing, Absent) else existing.decode()

    def strike(self, action: Action, at: Point, status: int = 503, reason: str = "") -> None:
        self.injector.arm(Fault("C", action, at, Parameters(status=status, reason=reason)))

    def sent(self) -> list[str]:
        return [
            request.address.verb
            for request in self.history.of(Request)
            if request.address.is_write and request.caller.identity == "maker"
        ]

    def reads(self, key: ObjectKey) -> int:
        """How often our writer asked for one object."""
        asked = [request.address for request in self.history.of(Request)]
        return sum(one.verb == "get" and one.name == key.name for one in asked)


def _kinds(group: str, version: str, resource: str) -> str:
    del group, version
    return {"things": "Thing", "pruneds": "Pruned"}.get(resource, "")


def play(scenario: Callable[[Workshop], Awaitable[None]]) -> None:
    async def main(clock: VirtualClock) -> None:
        workshop = Workshop(clock)
        await workshop.open()
        try:
            await scenario(workshop)
        finally:
            await workshop.close()

    run(main, seed=1, start=datetime(2026, 1, 1, tzinfo=UTC))


def wanted(text: str = "hi", **labels: str) -> OwnedFields:
    return OwnedFields(labels=labels, replace={"spec": {"text": text}})


# Ensure ----------------------------------------------------------------------------------------


def test_what_is_missing_is_created_with_what_it_is_born_with() -> None:
    async def scenario(workshop: Workshop) -> None:
        intent = Ensure(
            KEY,
            OwnedFields(labels={"a": "1"}, merge={"spec": {"text": "hi"}}),
            "Missing",
            initial={"spec": {"size": 3}},
        )
        assert (await workshop.carry_out_one(intent)).effect is Effect.WRITTEN
        stored = await workshop.read()
        assert stored is not None
        assert stored["spec"] == {"text": "hi", "size": 3}

    play(scenario)


def test_what_is_as_wanted_gets_no_request() -> None:
    async def scenario(workshop: Workshop) -> None:
        made = await workshop.make(spec={"text": "hi"})
        intent = Ensure(KEY, wanted(), "Drifted", uid=made.metadata.uid)
        assert (await workshop.carry_out_one(intent)).effect is Effect.EQUAL
        assert workshop.sent() == []

    play(scenario)


@pytest.mark.fault("C2")
def test_an_update_changes_our_fields_and_keeps_what_others_wrote_meanwhile() -> None:
    async def scenario(workshop: Workshop) -> None:
        made = await workshop.make(
            spec={"text": "old"}, metadata={"labels": {"b": "2"}}, status={"phase": "x"}
        )
        patch: JsonObject = {"metadata": {"labels": {"late": "1"}}, "status": {"phase": "y"}}
        await workshop.stranger.patch_merge(KEY, patch)
        intent = Ensure(KEY, wanted(a="1"), "Drifted", uid=made.metadata.uid)
        assert (await workshop.carry_out_one(intent)).effect is Effect.WRITTEN
        stored = await workshop.read()
        assert stored is not None
        assert stored["spec"] == {"text": "hi"}
        labels = member_object(stored, "metadata")["labels"]
        assert labels == {"a": "1", "b": "2", "late": "1"}

    play(scenario)


def test_a_first_label_map_is_never_set_over_one_that_came_meanwhile() -> None:
    async def scenario(workshop: Workshop) -> None:
        made = await workshop.make(spec={"text": "hi"})
        await workshop.stranger.patch_merge(KEY, {"metadata": {"labels": {"late": "1"}}})
        intent = Ensure(KEY, wanted(a="1"), "Drifted", uid=made.metadata.uid)
        outcome = await workshop.carry_out_one(intent)
        assert isinstance(outcome.error, ConflictError)
        await workshop.catch_up()
        assert (await workshop.carry_out_one(intent)).effect is Effect.WRITTEN
        stored = await workshop.read()
        assert stored is not None
        assert member_object(stored, "metadata")["labels"] == {"a": "1", "late": "1"}

    play(scenario)


@pytest.mark.fault("B5")
def test_an_update_meant_for_another_uid_is_not_sent() -> None:
    async def scenario(workshop: Workshop) -> None:
        await workshop.make(spec={"text": "old"})
        intent = Ensure(KEY, wanted(), "Drifted", uid=Uid("of-the-former-one"))
        assert isinstance((await workshop.carry_out_one(intent)).error, ConflictError)
        missing = Ensure(ROOT, wanted(), "Drifted", uid=Uid("u"))
        assert isinstance((await workshop.carry_out_one(missing)).error, ConflictError)
        assert workshop.sent() == []

    play(scenario)


@pytest.mark.fault("B5")
def test_an_update_of_an_object_replaced_behind_the_cache_is_refused_by_the_server() -> None:
    async def scenario(workshop: Workshop) -> None:
        made = await workshop.make(spec={"text": "old"})
        intent = Ensure(KEY, wanted(), "Drifted", uid=made.metadata.uid)
        await workshop.stranger.delete(KEY, preconditions=Preconditions(made.metadata.uid))
        again: JsonObject = {
            "apiVersion": THING.api_version,
            "kind": "Thing",
            "spec": {"text": "other"},
        }
        await workshop.stranger.create(KEY, {**again, "metadata": {"name": "web"}})
        assert isinstance((await workshop.carry_out_one(intent)).error, ConflictError)
        stored = await workshop.read()
        assert stored is not None
        assert stored["spec"] == {"text": "other"}

    play(scenario)


def test_a_version_given_is_a_version_tested() -> None:
    async def scenario(workshop: Workshop) -> None:
        made = await workshop.make(spec={"text": "old"}, metadata={"labels": {"x": "y"}})
        await workshop.stranger.patch_merge(KEY, {"metadata": {"labels": {"late": "1"}}})
        intent = Ensure(
            KEY,
            wanted(),
            "Drifted",
            uid=made.metadata.uid,
            resource_version=made.metadata.resource_version,
        )
        assert isinstance((await workshop.carry_out_one(intent)).error, ConflictError)

    play(scenario)


def test_a_name_taken_by_a_stranger_is_never_adopted() -> None:
    async def scenario(workshop: Workshop) -> None:
        await workshop.make(spec={"text": "theirs"})
        outcome = await workshop.carry_out_one(Ensure(KEY, wanted(), "Missing"))
        assert isinstance(outcome.error, ConflictError)
        assert outcome.reason == "AlreadyExists"
        stored = await workshop.read()
        assert stored is not None
        assert stored["spec"] == {"text": "theirs"}

    play(scenario)


@pytest.mark.fault("B5")
def test_a_name_taken_behind_the_cache_holds_the_key_until_the_cache_has_seen_it() -> None:
    async def scenario(workshop: Workshop) -> None:
        theirs: JsonObject = {
            "apiVersion": THING.api_version,
            "kind": "Thing",
            "metadata": {"name": "web"},
        }
        await workshop.stranger.create(KEY, theirs)
        outcome = await workshop.carry_out_one(Ensure(KEY, wanted(), "Missing"))
        assert isinstance(outcome.error, ConflictError)
        assert workshop.gate.find_unmet(ROOT) is not None
        await workshop.catch_up()
        assert workshop.gate.find_unmet(ROOT) is None

    play(scenario)


def test_a_name_taken_by_what_we_wanted_to_make_is_success() -> None:
    async def scenario(workshop: Workshop) -> None:
        await workshop.make(spec={"text": "hi"})
        outcome = await workshop.carry_out_one(Ensure(KEY, wanted(), "Missing"))
        assert outcome.effect is Effect.EQUAL
        assert workshop.sent() == []

    play(scenario)


@pytest.mark.fault("E5")
def test_a_field_that_the_server_prunes_is_sent_once_per_change_and_not_at_rest() -> None:
    async def scenario(workshop: Workshop) -> None:
        key = ObjectKey(HUB, PRUNED, "default", "old")
        made = await workshop.make(key, spec={"text": "hi"})

        async def ensure(spec: JsonObject) -> Effect:
            intent = Ensure(
                key, OwnedFields(replace={"spec": spec}), "Drifted", uid=made.metadata.uid
            )
            outcome = await workshop.carry_out_one(intent)
            await workshop.catch_up()
            return outcome.effect

        newer: JsonObject = {"text": "hi", "size": 3}
        assert await ensure(newer) is Effect.WRITTEN
        assert [await ensure(newer) for _ in range(3)] == [Effect.EQUAL] * 3
        assert await ensure({"text": "hi", "size": 4}) is Effect.WRITTEN
        await workshop.stranger.patch_merge(key, {"spec": {"text": "forged"}})
        await workshop.catch_up()
        assert await ensure({"text": "hi", "size": 4}) is Effect.WRITTEN
        assert await ensure({"text": "hi"}) is Effect.EQUAL

    play(scenario)


def test_a_provisional_difference_waits_for_its_moment_and_no_longer() -> None:
    async def scenario(workshop: Workshop) -> None:
        made = await workshop.make(spec={"text": "old"})

        async def ensure(text: str, *, provisional: bool) -> Outcome:
            intent = Ensure(
                KEY, wanted(text), "Drifted", uid=made.metadata.uid, may_defer=provisional
            )
            return await workshop.carry_out_one(intent)

        held = await ensure("one", provisional=True)
        assert (held.effect, held.wait) == (Effect.HELD, timedelta(milliseconds=200))
        await workshop.clock.sleep(timedelta(milliseconds=150))
        held = await ensure("two", provisional=True)
        assert (held.effect, held.wait) == (Effect.HELD, timedelta(milliseconds=50))
        await workshop.clock.sleep(timedelta(milliseconds=50))
        assert (await ensure("three", provisional=True)).effect is Effect.WRITTEN
        assert workshop.sent() == ["patch"]

    play(scenario)


def test_what_is_not_provisional_goes_out_at_once() -> None:
    async def scenario(workshop: Workshop) -> None:
        made = await workshop.make(spec={"text": "old"})
        first = Ensure(KEY, wanted("one"), "Drifted", uid=made.metadata.uid, may_defer=True)
        assert (await workshop.carry_out_one(first)).effect is Effect.HELD
        final = Ensure(KEY, wanted("two"), "Drifted", uid=made.metadata.uid)
        assert (await workshop.carry_out_one(final)).effect is Effect.WRITTEN

    play(scenario)


def test_a_create_may_be_provisional_with_a_moment_of_its_own() -> None:
    async def scenario(workshop: Workshop) -> None:
        gather = timedelta(milliseconds=100)
        intent = Ensure(KEY, wanted(), "Missing", may_defer=True, defer_for=gather)
        assert (await workshop.carry_out_one(intent)).wait == gather
        await workshop.clock.sleep(gather)
        assert (await workshop.carry_out_one(intent)).effect is Effect.WRITTEN

    play(scenario)


# guards ----------------------------------------------------------------------------------------


def test_a_child_is_made_only_under_a_live_parent() -> None:
    async def scenario(workshop: Workshop) -> None:
        under = RequireExists(ROOT, lock=ROOT)
        intent = Ensure(KEY, wanted(), "Missing", requires=under)
        refused = await workshop.carry_out_one(intent)
        assert (refused.effect, refused.wait) == (Effect.REFUSED, SECOND)
        assert "is absent" in refused.reason
        parent = await workshop.make(ROOT, metadata={"finalizers": ["f/g"]})
        await workshop.stranger.delete(ROOT, preconditions=Preconditions(parent.metadata.uid))
        # The cache has not seen the delete yet; the guard asks the plane.
        assert "is being deleted" in (await workshop.carry_out_one(intent)).reason
        await workshop.stranger.patch_merge(ROOT, {"metadata": {"finalizers": None}})
        await workshop.make(ROOT)
        assert (await workshop.carry_out_one(intent)).effect is Effect.WRITTEN

    play(scenario)


def test_children_that_come_together_ask_for_their_parent_once() -> None:
    async def scenario(workshop: Workshop) -> None:
        parent = await workshop.make(ROOT)
        under = RequireExists(ROOT, lock=ROOT)
        for number in range(5):
            key = ObjectKey(KEY.plane, KEY.kind, KEY.namespace, f"child-{number}")
            child = Ensure(key, wanted(), "Missing", requires=under)
            assert (await workshop.carry_out_one(child)).effect is Effect.WRITTEN
        assert workshop.reads(ROOT) == 1
        # A delete under that lock counts at once, although no cache has seen it yet.
        none = RequireNone(HUB, THING, {"of": "root"}, lock=ROOT)
        removed = Delete(ROOT, parent.metadata.uid, "Unused", require_none=none)
        assert (await workshop.carry_out_one(removed)).effect is Effect.WRITTEN
        late = Ensure(KEY, wanted(), "Missing", requires=under)
        assert "is absent" in (await workshop.carry_out_one(late)).reason

    play(scenario)


@pytest.mark.spec("FS-01")
def test_a_child_of_one_parent_is_not_made_under_another_of_its_name() -> None:
    async def scenario(workshop: Workshop) -> None:
        parent = await workshop.make(ROOT)
        under = RequireExists(ROOT, lock=ROOT, uid=parent.metadata.uid)
        other = RequireExists(ROOT, lock=ROOT, uid=Uid("of-another"))
        # The read of one parent does not count for the other.
        first = ObjectKey(KEY.plane, KEY.kind, KEY.namespace, "first")
        made = await workshop.carry_out_one(Ensure(first, wanted(), "Missing", requires=under))
        assert made.effect is Effect.WRITTEN
        refused = await workshop.carry_out_one(Ensure(KEY, wanted(), "Missing", requires=other))
        assert refused.effect is Effect.REFUSED
        assert "is another object" in refused.reason

    play(scenario)


@pytest.mark.spec("FS-01")
@pytest.mark.parametrize("is_going", [False, True])
def test_a_root_that_its_child_is_refused_under_waits_until_the_cache_has_seen_it_go(
    *, is_going: bool
) -> None:
    async def scenario(workshop: Workshop) -> None:
        finalizers: list[JsonValue] = ["f/g"] if is_going else []
        root = await workshop.make(ROOT, metadata={"finalizers": finalizers})
        uid = root.metadata.uid
        await workshop.stranger.delete(ROOT, preconditions=Preconditions(uid))
        child = Ensure(KEY, wanted(), "Missing", requires=RequireExists(ROOT, lock=ROOT, uid=uid))
        assert (await workshop.carry_out_one(child)).effect is Effect.REFUSED
        assert workshop.gate.find_unmet(ROOT) is not None
        await workshop.catch_up()
        assert workshop.gate.find_unmet(ROOT) is None

    play(scenario)


def test_a_parent_that_is_not_the_root_holds_nothing_back() -> None:
    async def scenario(workshop: Workshop) -> None:
        other = ObjectKey(KEY.plane, KEY.kind, KEY.namespace, "other")
        parent = await workshop.make(other)
        uid = parent.metadata.uid
        await workshop.stranger.delete(other, preconditions=Preconditions(uid))
        child = Ensure(KEY, wanted(), "Missing", requires=RequireExists(other, lock=other, uid=uid))
        assert (await workshop.carry_out_one(child)).effect is Effect.REFUSED
        assert workshop.gate.find_unmet(ROOT) is None

    play(scenario)


@pytest.mark.spec("FS-01")
def test_a_root_that_is_gone_for_its_status_waits_until_the_cache_has_seen_it() -> None:
    async def scenario(workshop: Workshop) -> None:
        root = await workshop.make(ROOT)
        metadata = root.metadata
        await workshop.stranger.delete(ROOT, preconditions=Preconditions(metadata.uid))
        status = SetStatus(ROOT, metadata.uid, metadata.resource_version, {"a": 1}, "Reported")
        assert (await workshop.carry_out_one(status)).effect is Effect.SKIPPED
        assert workshop.gate.find_unmet(ROOT) is not None
        await workshop.catch_up()
        assert workshop.gate.find_unmet(ROOT) is None

    play(scenario)


@pytest.mark.parametrize("counts_deleting", [False, True])
def test_a_parent_goes_only_when_no_child_is_left(*, counts_deleting: bool) -> None:
    async def scenario(workshop: Workshop) -> None:
        parent = await workshop.make(ROOT)
        metadata: JsonObject = {"labels": {"of": "root"}, "finalizers": ["f/g"]}
        child = await workshop.make(KEY, metadata=metadata)
        none = RequireNone(
            HUB,
            THING,
            {"of": "root"},
            namespace="default",
            counts_deleting=counts_deleting,
            lock=ROOT,
        )
        intent = Delete(ROOT, parent.metadata.uid, "Unused", require_none=none)
        assert (await workshop.carry_out_one(intent)).effect is Effect.REFUSED
        await workshop.stranger.delete(KEY, preconditions=Preconditions(child.metadata.uid))
        expected = Effect.REFUSED if counts_deleting else Effect.WRITTEN
        assert (await workshop.carry_out_one(intent)).effect is expected

    play(scenario)


def test_deleting_a_parent_and_making_a_child_exclude_each_other() -> None:
    async def scenario(workshop: Workshop) -> None:
        parent = await workshop.make(ROOT)
        make = Ensure(KEY, wanted(of="root"), "Missing", requires=RequireExists(ROOT, lock=ROOT))
        none = RequireNone(HUB, THING, {"of": "root"}, lock=ROOT)
        remove = Delete(ROOT, parent.metadata.uid, "Unused", require_none=none)
        await asyncio.gather(workshop.carry_out(make), workshop.carry_out(remove))
        child, root = await workshop.read(KEY), await workshop.read(ROOT)
        assert (child is None) == (root is None), "a child without a parent"

    for _ in range(5):
        play(scenario)


def test_a_copy_goes_only_when_its_source_is_gone() -> None:
    async def scenario(workshop: Workshop) -> None:
        source, copy = await workshop.make(ROOT), await workshop.make(KEY)
        intent = Delete(KEY, copy.metadata.uid, "Orphaned", require_gone=RequireGone(ROOT))
        assert (await workshop.carry_out_one(intent)).effect is Effect.REFUSED
        other = RequireGone(ROOT, uid=Uid("of-another"))
        await workshop.stranger.delete(ROOT, preconditions=Preconditions(source.metadata.uid))
        await workshop.make(ROOT)
        assert (await workshop.carry_out_one(intent)).effect is Effect.REFUSED
        intent = Delete(KEY, copy.metadata.uid, "Orphaned", require_gone=other)
        assert (await workshop.carry_out_one(intent)).effect is Effect.WRITTEN

    play(scenario)


def test_a_decision_is_carried_out_only_while_what_it_was_derived_from_stands() -> None:
    async def scenario(workshop: Workshop) -> None:
        source, orphan = await workshop.make(ROOT, spec={"a": 1}), await workshop.make(KEY)
        metadata = source.metadata

        def remove(guard: RequireUnchanged) -> Delete:
            return Delete(KEY, orphan.metadata.uid, "Orphaned", require_unchanged=guard)

        same_version = remove(RequireUnchanged(ROOT, metadata.uid, metadata.resource_version))
        same_generation = remove(
            RequireUnchanged(ROOT, metadata.uid, generation=metadata.generation)
        )
        await workshop.stranger.patch_merge(ROOT, {"metadata": {"labels": {"x": "y"}}})
        assert "another version" in (await workshop.carry_out_one(same_version)).reason
        await workshop.stranger.patch_merge(ROOT, {"spec": {"a": 2}})
        assert "another generation" in (await workshop.carry_out_one(same_generation)).reason
        gone = remove(RequireUnchanged(ROOT, Uid("of-another")))
        assert "is gone" in (await workshop.carry_out_one(gone)).reason
        assert await workshop.read(KEY) is not None
        still = remove(RequireUnchanged(ROOT, metadata.uid, generation=metadata.generation + 1))
        assert (await workshop.carry_out_one(still)).effect is Effect.WRITTEN

    play(scenario)


def test_a_guard_that_cannot_be_asked_refuses_by_failing() -> None:
    async def scenario(workshop: Workshop) -> None:
        parent = await workshop.make(ROOT)
        workshop.strike(Action.ERROR, Point(verb="list", kind="Thing"), status=503)
        none = RequireNone(HUB, THING, {"of": "root"})
        outcome = await workshop.carry_out_one(
            Delete(ROOT, parent.metadata.uid, "Unused", require_none=none)
        )
        assert outcome.effect is Effect.FAILED
        unserved = Kind("example.datumapis.com", "v1", "ghosts", "Ghost")
        outcome = await workshop.carry_out_one(
            Delete(ROOT, parent.metadata.uid, "Unused", require_none=RequireNone(HUB, unserved, {}))
        )
        assert outcome.reason == "ListIncomplete"
        assert await workshop.read(ROOT) is not None

    play(scenario)


# Delete ----------------------------------------------------------------------------------------


def test_what_is_gone_replaced_or_going_needs_no_delete() -> None:
    async def scenario(workshop: Workshop) -> None:
        absent = Delete(KEY, Uid("u"), "Unused")
        assert (await workshop.carry_out_one(absent)).effect is Effect.EQUAL
        made = await workshop.make(metadata={"finalizers": ["f/g"]})
        assert (await workshop.carry_out_one(absent)).effect is Effect.EQUAL
        intent = Delete(KEY, made.metadata.uid, "Unused")
        assert (await workshop.carry_out_one(intent)).effect is Effect.WRITTEN
        await workshop.catch_up()
        assert (await workshop.carry_out_one(intent)).effect is Effect.EQUAL
        assert workshop.sent() == ["delete"]

    play(scenario)


@pytest.mark.fault("B5")
def test_a_stale_delete_never_hits_the_fresh_object_of_the_same_name() -> None:
    async def scenario(workshop: Workshop) -> None:
        old = await workshop.make()
        await workshop.stranger.delete(KEY, preconditions=Preconditions(old.metadata.uid))
        fresh: JsonObject = {
            "apiVersion": THING.api_version,
            "kind": "Thing",
            "metadata": {"name": "web"},
        }
        await workshop.stranger.create(KEY, fresh)
        outcome = await workshop.carry_out_one(Delete(KEY, old.metadata.uid, "Unused"))
        assert isinstance(outcome.error, ConflictError)
        assert await workshop.read() is not None

    play(scenario)


# SetStatus -------------------------------------------------------------------------------------


def test_a_status_is_written_on_the_version_it_was_derived_from() -> None:
    async def scenario(workshop: Workshop) -> None:
        made = await workshop.make(spec={"text": "hi"})
        metadata = made.metadata
        intent = SetStatus(
            KEY, metadata.uid, metadata.resource_version, {"phase": "Ready"}, "Ready"
        )
        assert (await workshop.carry_out_one(intent)).effect is Effect.WRITTEN
        await workshop.catch_up()
        assert (await workshop.carry_out_one(intent)).effect is Effect.EQUAL
        assert workshop.sent() == ["update"]
        stale = SetStatus(KEY, metadata.uid, metadata.resource_version, {"phase": "Other"}, "Other")
        assert isinstance((await workshop.carry_out_one(stale)).error, ConflictError)
        assert workshop.sent() == ["update"]

    play(scenario)


@pytest.mark.fault("C1")
def test_a_status_derived_from_a_stale_view_is_refused_by_the_server() -> None:
    async def scenario(workshop: Workshop) -> None:
        metadata = (await workshop.make()).metadata
        await workshop.stranger.patch_merge(KEY, {"status": {"theirs": 1}}, subresource="status")
        intent = SetStatus(
            KEY, metadata.uid, metadata.resource_version, {"phase": "Ready"}, "Ready"
        )
        assert isinstance((await workshop.carry_out_one(intent)).error, ConflictError)
        read = await workshop.read()
        assert read is not None
        assert read["status"] == {"theirs": 1}

    play(scenario)


def test_a_status_follows_an_own_write_of_the_same_reconcile() -> None:
    async def scenario(workshop: Workshop) -> None:
        metadata = (await workshop.make(spec={"text": "old"})).metadata
        outcomes = await workshop.carry_out(
            Ensure(KEY, wanted(), "Drifted", uid=metadata.uid),
            SetStatus(KEY, metadata.uid, metadata.resource_version, {"phase": "Ready"}, "Ready"),
        )
        assert [outcome.effect for outcome in outcomes] == [Effect.WRITTEN, Effect.WRITTEN]

    play(scenario)


def test_a_status_does_not_follow_an_own_write_that_brought_another_status() -> None:
    async def scenario(workshop: Workshop) -> None:
        metadata = (await workshop.make(spec={"text": "old"})).metadata
        await workshop.stranger.patch_merge(KEY, {"status": {"theirs": 1}}, subresource="status")
        outcomes = await workshop.carry_out(
            Ensure(KEY, wanted(), "Drifted", uid=metadata.uid),
            SetStatus(KEY, metadata.uid, metadata.resource_version, {"phase": "Ready"}, "Ready"),
        )
        assert outcomes[0].effect is Effect.WRITTEN
        assert isinstance(outcomes[1].error, ConflictError)

    play(scenario)


def test_the_status_of_an_object_that_this_reconcile_creates_is_written_with_it() -> None:
    async def scenario(workshop: Workshop) -> None:
        status = SetStatus(KEY, None, "", {"phase": "Ready"}, "Ready")
        outcomes = await workshop.carry_out(Ensure(KEY, wanted(), "Missing"), status)
        assert [outcome.effect for outcome in outcomes] == [Effect.WRITTEN, Effect.WRITTEN]
        stored = await workshop.read()
        assert stored is not None
        assert stored["status"] == {"phase": "Ready"}
        await workshop.catch_up()
        assert (await workshop.carry_out_one(status)).effect is Effect.SKIPPED

    play(scenario)


def test_the_status_of_an_object_that_vanished_is_no_error() -> None:
    async def scenario(workshop: Workshop) -> None:
        metadata = (await workshop.make()).metadata
        intent = SetStatus(
            KEY, metadata.uid, metadata.resource_version, {"phase": "Ready"}, "Ready"
        )
        await workshop.stranger.delete(KEY, preconditions=Preconditions(metadata.uid))
        assert (await workshop.carry_out_one(intent)).effect is Effect.SKIPPED
        await workshop.catch_up()
        assert (await workshop.carry_out_one(intent)).effect is Effect.SKIPPED

    play(scenario)


def test_the_status_of_another_object_of_the_name_is_not_touched() -> None:
    async def scenario(workshop: Workshop) -> None:
        await workshop.make()
        intent = SetStatus(KEY, Uid("of-another"), "1", {"phase": "Ready"}, "Ready")
        assert isinstance((await workshop.carry_out_one(intent)).error, ConflictError)

    play(scenario)


# finalizers and gates --------------------------------------------------------------------------


def test_a_finalizer_and_its_annotation_travel_together() -> None:
    async def scenario(workshop: Workshop) -> None:
        made = await workshop.make()
        intent = AddFinalizer(
            KEY, made.metadata.uid, "ours/f", "NotProtected", annotations={"ours/a": "1"}
        )
        assert (await workshop.carry_out_one(intent)).effect is Effect.WRITTEN
        await workshop.catch_up()
        assert (await workshop.carry_out_one(intent)).effect is Effect.EQUAL
        stored = await workshop.read()
        assert stored is not None
        metadata = member_object(stored, "metadata")
        assert metadata["finalizers"] == ["ours/f"]
        assert metadata["annotations"] == {"ours/a": "1"}
        assert workshop.sent() == ["patch"]

    play(scenario)


def test_finalizers_of_others_stay_where_they_are() -> None:
    async def scenario(workshop: Workshop) -> None:
        made = await workshop.make(metadata={"finalizers": ["theirs/a"]})
        add = AddFinalizer(KEY, made.metadata.uid, "ours/f", "NotProtected")
        assert (await workshop.carry_out_one(add)).effect is Effect.WRITTEN
        await workshop.catch_up()
        remove = RemoveFinalizer(KEY, made.metadata.uid, "ours/f", "Done")
        assert (await workshop.carry_out_one(remove)).effect is Effect.WRITTEN
        await workshop.catch_up()
        assert (await workshop.carry_out_one(remove)).effect is Effect.EQUAL
        stored = await workshop.read()
        assert stored is not None
        assert member_object(stored, "metadata")["finalizers"] == ["theirs/a"]

    play(scenario)


def test_a_finalizer_that_moved_in_its_list_is_not_mistaken_for_another() -> None:
    async def scenario(workshop: Workshop) -> None:
        made = await workshop.make(metadata={"finalizers": ["ours/f", "theirs/a"]})
        await workshop.stranger.patch_merge(
            KEY, {"metadata": {"finalizers": ["theirs/b", "theirs/a", "ours/f"]}}
        )
        remove = RemoveFinalizer(KEY, made.metadata.uid, "ours/f", "Done")
        assert isinstance((await workshop.carry_out_one(remove)).error, ConflictError)
        stored = await workshop.read()
        assert stored is not None
        metadata = member_object(stored, "metadata")
        assert metadata["finalizers"] == ["theirs/b", "theirs/a", "ours/f"]

    play(scenario)


def test_a_finalizer_of_a_successor_of_the_name_stays() -> None:
    async def scenario(workshop: Workshop) -> None:
        await workshop.make(metadata={"finalizers": ["ours/f"]})
        remove = RemoveFinalizer(KEY, Uid("of-its-predecessor"), "ours/f", "Done")
        assert (await workshop.carry_out_one(remove)).effect is Effect.EQUAL
        stored = await workshop.read()
        assert stored is not None
        assert member_object(stored, "metadata")["finalizers"] == ["ours/f"]
        assert workshop.sent() == []

    play(scenario)


def test_an_object_on_its_way_out_takes_no_finalizer() -> None:
    async def scenario(workshop: Workshop) -> None:
        made = await workshop.make(metadata={"finalizers": ["theirs/a"]})
        await workshop.stranger.delete(KEY, preconditions=Preconditions(made.metadata.uid))
        await workshop.catch_up()
        add = AddFinalizer(KEY, made.metadata.uid, "ours/f", "NotProtected")
        assert (await workshop.carry_out_one(add)).effect is Effect.SKIPPED
        assert workshop.sent() == []

    play(scenario)


def test_the_last_finalizer_lets_the_object_go_and_the_key_waits_for_that() -> None:
    async def scenario(workshop: Workshop) -> None:
        made = await workshop.make(metadata={"finalizers": ["ours/f"]})
        await workshop.stranger.delete(KEY, preconditions=Preconditions(made.metadata.uid))
        await workshop.catch_up()
        remove = RemoveFinalizer(
            KEY, made.metadata.uid, "ours/f", "Done", require_gone=RequireGone(ROOT)
        )
        assert (await workshop.carry_out_one(remove)).effect is Effect.WRITTEN
        assert workshop.gate.find_unmet(ROOT) is not None
        await workshop.catch_up()
        assert workshop.gate.find_unmet(ROOT) is None
        assert await workshop.read() is None

    play(scenario)


def test_a_finalizer_is_kept_while_a_guard_refuses() -> None:
    async def scenario(workshop: Workshop) -> None:
        await workshop.make(ROOT)
        made = await workshop.make(metadata={"finalizers": ["ours/f"]})
        remove = RemoveFinalizer(
            KEY, made.metadata.uid, "ours/f", "Done", require_gone=RequireGone(ROOT)
        )
        assert (await workshop.carry_out_one(remove)).effect is Effect.REFUSED
        assert workshop.sent() == []

    play(scenario)


def gated(*names: str) -> JsonObject:
    return {"controller": {"schedulingGates": [{"name": name} for name in names]}}


def test_one_gate_is_removed_and_the_others_stay() -> None:
    async def scenario(workshop: Workshop) -> None:
        metadata = (await workshop.make(spec=gated("Network", "Quota"))).metadata
        intent = RemoveGate(KEY, metadata.uid, "Quota", "Granted", generation=metadata.generation)
        assert (await workshop.carry_out_one(intent)).effect is Effect.WRITTEN
        read = await workshop.read()
        assert read is not None
        assert read["spec"] == gated("Network")
        await workshop.catch_up()
        assert (await workshop.carry_out_one(intent)).effect is Effect.EQUAL

    play(scenario)


@pytest.mark.parametrize("change", [{"spec": {"size": 2}}, None])
def test_a_gate_stays_when_the_object_was_changed_or_deleted_since_the_judgement(
    change: JsonObject | None,
) -> None:
    async def scenario(workshop: Workshop) -> None:
        spec, finalizers = gated("Quota"), {"finalizers": ["theirs/a"]}
        metadata = (await workshop.make(spec=spec, metadata=finalizers)).metadata
        if change is None:
            await workshop.stranger.delete(KEY, preconditions=Preconditions(metadata.uid))
        else:
            await workshop.stranger.patch_merge(KEY, change)
        intent = RemoveGate(KEY, metadata.uid, "Quota", "Granted", generation=metadata.generation)
        assert isinstance((await workshop.carry_out_one(intent)).error, ConflictError)
        read = await workshop.read()
        assert read is not None
        assert member_object(read, "spec")["controller"] == spec["controller"]

    play(scenario)


def test_gates_removed_by_two_writers_at_once_never_come_back() -> None:
    async def scenario(workshop: Workshop) -> None:
        metadata = (await workshop.make(spec=gated("Network", "Quota"))).metadata
        network = RemoveGate(KEY, metadata.uid, "Network", "NetworkReady")
        quota = RemoveGate(KEY, metadata.uid, "Quota", "Granted")
        for _ in range(3):
            await asyncio.gather(workshop.carry_out(network), workshop.carry_out(quota))
            await workshop.catch_up()
        read = await workshop.read()
        assert read is not None
        assert read["spec"] == gated()

    play(scenario)


def test_an_object_without_gates_or_without_their_parent_is_left_alone() -> None:
    async def scenario(workshop: Workshop) -> None:
        absent = RemoveGate(KEY, Uid("u"), "Quota", "Granted")
        assert (await workshop.carry_out_one(absent)).effect is Effect.SKIPPED
        metadata = (await workshop.make(spec={"controller": 7})).metadata
        intent = RemoveGate(KEY, metadata.uid, "Quota", "Granted")
        assert (await workshop.carry_out_one(intent)).effect is Effect.EQUAL
        other = RemoveGate(KEY, Uid("of-another"), "Quota", "Granted")
        assert isinstance((await workshop.carry_out_one(other)).error, ConflictError)

    play(scenario)


def test_a_gate_opens_only_on_a_status_that_stands() -> None:
    async def scenario(workshop: Workshop) -> None:
        metadata = (await workshop.make(spec=gated("Quota"))).metadata
        granted = SetStatus(
            KEY, metadata.uid, metadata.resource_version, {"granted": True}, "Granted"
        )
        opened = RemoveGate(
            KEY, metadata.uid, "Quota", "Granted", generation=metadata.generation, after=granted
        )
        at = Point(verb="update", kind="Thing", subresource="status")
        workshop.strike(Action.ERROR, at, status=409, reason="Conflict")
        first = await workshop.carry_out(granted, opened)
        assert [outcome.effect for outcome in first] == [Effect.FAILED, Effect.SKIPPED]
        second = await workshop.carry_out(granted, opened)
        assert [outcome.effect for outcome in second] == [Effect.WRITTEN, Effect.WRITTEN]

    play(scenario)


# events and waits ------------------------------------------------------------------------------


def test_an_event_tells_of_what_happened_now_and_of_nothing_else() -> None:
    async def scenario(workshop: Workshop) -> None:
        made = Ensure(KEY, wanted(), "Missing")
        told = RecordEvent(ROOT, Uid("u"), "Made", "made it", action="Making", after=made)
        await workshop.carry_out(made, told)
        assert workshop.recorder.emitted == [told]
        await workshop.catch_up()
        outcomes = await workshop.carry_out(made, told)
        assert outcomes[1].effect is Effect.SKIPPED
        assert workshop.recorder.emitted == [told]
        plain = RecordEvent(ROOT, Uid("u"), "Odd", "odd", action="Looking", type="Warning")
        await workshop.carry_out(plain)
        assert workshop.recorder.emitted == [told, plain]

    play(scenario)


def test_waiting_is_said_and_not_done() -> None:
    async def scenario(workshop: Workshop) -> None:
        before = workshop.clock.monotonic()
        outcome = await workshop.carry_out_one(RequeueAfter(KEY, "Terminating", 9 * SECOND))
        assert (outcome.effect, outcome.wait) == (Effect.NOTED, 9 * SECOND)
        assert workshop.clock.monotonic() == before

    play(scenario)


# failing ---------------------------------------------------------------------------------------


def test_a_failed_intent_stops_none_of_the_others() -> None:
    async def scenario(workshop: Workshop) -> None:
        bad = Ensure(ROOT, OwnedFields(labels={"not a label": "x"}), "Missing")
        outcomes = await workshop.carry_out(bad, Ensure(KEY, wanted(), "Missing"))
        assert isinstance(outcomes[0].error, InvalidSpecError)
        assert outcomes[1].effect is Effect.WRITTEN

    play(scenario)


@pytest.mark.fault("C5")
@pytest.mark.parametrize("action", [Action.LOSE_REPLY, Action.TIMEOUT_COMMITTED])
def test_a_write_that_was_done_although_no_answer_came_is_known_to_be_done(action: Action) -> None:
    async def scenario(workshop: Workshop) -> None:
        workshop.strike(action, Point(verb="write", kind="Thing", times=0))
        assert (await workshop.carry_out_one(Ensure(KEY, wanted("old"), "x"))).effect is (
            Effect.WRITTEN
        )
        await workshop.catch_up()
        existing = await workshop.stranger.get(KEY)
        assert isinstance(existing, Snapshot)
        uid = existing.metadata.uid
        owner = OwnerReference("v1", "Thing", "root", Uid("u1"))
        later: list[Intent] = [
            Ensure(KEY, OwnedFields(owners=(owner,)), "x", uid=uid),
            AddFinalizer(KEY, uid, "ours/f", "x"),
            RemoveFinalizer(KEY, uid, "ours/f", "x"),
            Delete(KEY, uid, "x"),
        ]
        for intent in later:
            assert (await workshop.carry_out_one(intent)).effect is Effect.WRITTEN, intent
            await workshop.catch_up()
        assert workshop.sent() == ["create", "patch", "patch", "patch", "delete"]

    play(scenario)


@pytest.mark.fault("C5")
def test_a_status_that_was_written_although_no_answer_came_is_known_to_be_written() -> None:
    async def scenario(workshop: Workshop) -> None:
        metadata = (await workshop.make(spec=gated("Quota"))).metadata
        workshop.strike(Action.LOSE_REPLY, Point(verb="write", kind="Thing", times=0))
        status = SetStatus(
            KEY, metadata.uid, metadata.resource_version, {"phase": "Ready"}, "Ready"
        )
        gate = RemoveGate(KEY, metadata.uid, "Quota", "Granted", after=status)
        outcomes = await workshop.carry_out(status, gate)
        assert [outcome.effect for outcome in outcomes] == [Effect.WRITTEN, Effect.WRITTEN]

    play(scenario)


@pytest.mark.fault("C5")
def test_a_write_that_was_not_done_stays_unknown_and_is_not_sent_twice() -> None:
    async def scenario(workshop: Workshop) -> None:
        workshop.strike(Action.RESET, Point(verb="create", kind="Thing"))
        outcome = await workshop.carry_out_one(Ensure(KEY, wanted(), "Missing"))
        assert isinstance(outcome.error, OutcomeUnknownError)
        assert workshop.sent() == ["create"]
        workshop.strike(Action.LOSE_REPLY, Point(verb="create", kind="Thing"))
        workshop.strike(Action.ERROR, Point(verb="get", kind="Thing"), status=503)
        outcome = await workshop.carry_out_one(Ensure(KEY, wanted(), "Missing"))
        assert isinstance(outcome.error, OutcomeUnknownError)

    play(scenario)


@pytest.mark.fault("C6")
def test_what_a_plane_has_just_refused_is_not_asked_again_for_a_moment() -> None:
    async def scenario(workshop: Workshop) -> None:
        at = Point(verb="create", kind="Thing", times=0)
        workshop.strike(Action.ERROR, at, status=403, reason="Forbidden")
        intent = Ensure(KEY, wanted(), "Missing")
        assert (await workshop.carry_out_one(intent)).effect is Effect.FAILED
        applied = await workshop.begin().apply(Plan.of(intent))
        assert applied.outcomes[0].effect is Effect.REFUSED
        assert applied.failures == ()
        assert isinstance(applied.errors[0], ForbiddenError)
        assert workshop.sent() == ["create"]
        other = Ensure(KEY, wanted("changed"), "Missing")
        assert (await workshop.carry_out_one(other)).effect is Effect.FAILED
        await workshop.clock.sleep(5 * SECOND)
        assert (await workshop.carry_out_one(other)).effect is Effect.FAILED
        assert workshop.sent() == ["create"] * 3

    play(scenario)


@pytest.mark.fault("E2")
def test_nothing_is_written_once_another_process_leads() -> None:
    async def scenario(workshop: Workshop) -> None:
        made = await workshop.make(metadata={"finalizers": ["ours/f"]})
        workshop.leadership.is_leading = False
        metadata = made.metadata
        for intent in (
            Ensure(ROOT, wanted(), "x"),
            Ensure(KEY, wanted(), "x", uid=metadata.uid),
            Delete(KEY, metadata.uid, "x"),
            SetStatus(KEY, metadata.uid, metadata.resource_version, {"a": 1}, "x"),
            AddFinalizer(KEY, metadata.uid, "ours/g", "x"),
            RemoveFinalizer(KEY, metadata.uid, "ours/f", "x"),
        ):
            outcome = await workshop.carry_out_one(intent)
            assert isinstance(outcome.error, TransientError), intent
            assert outcome.reason == "NotLeading"
        assert workshop.sent() == []

    play(scenario)


def test_a_kind_that_is_not_cached_is_read_from_its_plane() -> None:
    async def scenario(workshop: Workshop) -> None:
        namespaces = Kind("", "v1", "namespaces", "Namespace", namespaced=False)
        key = ObjectKey(HUB, namespaces, "", "ns-1")
        intent = Ensure(key, OwnedFields(labels={"a": "1"}), "Missing")
        assert (await workshop.carry_out_one(intent)).effect is Effect.WRITTEN
        assert (await workshop.carry_out_one(intent)).effect is Effect.EQUAL
        assert workshop.gate.find_unmet(ROOT) is None

    play(scenario)


def test_a_reconcile_may_read_live_what_no_cache_has_seen_yet() -> None:
    async def scenario(workshop: Workshop) -> None:
        session = workshop.begin()
        assert await session.read(KEY) == Absent()
        theirs: JsonObject = {"apiVersion": THING.api_version, "kind": "Thing"}
        await workshop.stranger.create(KEY, {**theirs, "metadata": {"name": "web"}})
        assert isinstance(await session.read(KEY), Snapshot)

    play(scenario)


def test_what_a_reconcile_wrote_is_what_its_next_intent_sees() -> None:
    async def scenario(workshop: Workshop) -> None:
        session = workshop.begin()
        await session.apply(Plan.of(Ensure(KEY, wanted(), "Missing")))
        existing = await workshop.stranger.get(KEY)
        assert isinstance(existing, Snapshot)
        intent = Ensure(KEY, wanted(a="1"), "Drifted", uid=existing.metadata.uid)
        applied = await session.apply(Plan.of(intent))
        assert applied.outcomes[0].effect is Effect.WRITTEN

    play(scenario)


# conflicts -------------------------------------------------------------------------------------


@pytest.mark.spec("FS-04")
@pytest.mark.fault("C1")
@pytest.mark.parametrize("way", ["edited", "gone"])
def test_a_conflict_holds_the_key_until_the_cache_has_what_is_there(way: str) -> None:
    async def scenario(workshop: Workshop) -> None:
        metadata = (await workshop.make(ROOT)).metadata
        if way == "edited":
            await workshop.stranger.patch_merge(ROOT, {"spec": {"text": "edited"}})
        else:
            await workshop.stranger.delete(ROOT, preconditions=Preconditions(metadata.uid))
            workshop.strike(Action.ERROR, Point(verb="update"), 409, "Conflict")
        status = SetStatus(ROOT, metadata.uid, metadata.resource_version, {"a": 1}, "Reported")
        assert isinstance((await workshop.carry_out_one(status)).error, ConflictError)
        assert workshop.gate.find_unmet(ROOT) is not None
        await workshop.catch_up()
        assert workshop.gate.find_unmet(ROOT) is None
        assert workshop.reads(ROOT) == 1

    play(scenario)


@pytest.mark.spec("FS-04")
def test_a_conflict_with_a_cause_that_cannot_be_read_is_still_a_conflict() -> None:
    async def scenario(workshop: Workshop) -> None:
        metadata = (await workshop.make(ROOT)).metadata
        workshop.strike(Action.ERROR, Point(verb="update"), 409, "Conflict")
        workshop.strike(Action.ERROR, Point(verb="get"), 503)
        status = SetStatus(ROOT, metadata.uid, metadata.resource_version, {"a": 1}, "Reported")
        assert isinstance((await workshop.carry_out_one(status)).error, ConflictError)
        assert workshop.gate.find_unmet(ROOT) is None

    play(scenario)
