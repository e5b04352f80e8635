"""Quota of a simulated Milo: neighbours.md 2.3 and 2.4, quota.md A7, and the options."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compute_sim_planes.api_server.http.transport import Response, Transport
from compute_sim_planes.client.errors import ApiError
from compute_sim_planes.client.rest import Client
from compute_sim_planes.conditions import find_condition, is_condition_true
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    integer_at,
    object_at,
    objects_at,
    string_at,
)
from compute_sim_planes.milo.kinds import BUCKETS, CLAIMS, GRANTS, NAMESPACES, REGISTRATIONS
from compute_sim_planes.milo.options import MiloOptions
from compute_sim_planes.milo.planes import MiloParts
from compute_sim_planes.milo.quota.controller import QuotaController
from compute_sim_planes.milo.quota.evaluation import BucketKey
from compute_sim_planes.milo.simulation import Milo
from compute_sim_planes.milo.testing import (
    a_claim,
    a_grant,
    a_registration,
    allocations_of,
    verdict_of,
)
from compute_sim_planes.time.clock import VirtualClock, run

START: Final = datetime(2026, 6, 20, 9, 0, 0, tzinfo=UTC)
WIDGETS: Final = "test.example.com/widgets"
GRAMS: Final = "test.example.com/grams"
GRANTED: Final = ("True", "QuotaAvailable")
DENIED: Final = ("False", "QuotaExceeded")
PENDING: Final = ("False", "PendingEvaluation")
MOMENT: Final = timedelta(seconds=1)


class World:
    """A Milo with project `acme` and two registered types, and its administrator."""

    def __init__(self, milo: Milo, clock: VirtualClock) -> None:
        self.milo = milo
        self.clock = clock
        self.root = milo.client()
        self.acme = milo.client("acme")

    async def grant(self, amounts: dict[str, int], name: str = "grant") -> None:
        grant = a_grant("acme", amounts, name)
        if await self.acme.get(GRANTS, name, "milo-system") is None:
            await self.acme.create(GRANTS, grant)
        else:
            spec: JsonObject = {"allowances": object_at(grant, "spec")["allowances"]}
            await self.acme.patch(GRANTS, name, {"spec": spec}, namespace="milo-system")
        await self.clock.sleep(MOMENT)

    async def claim(self, name: str, requests: dict[str, int], **metadata: JsonValue) -> JsonObject:
        await self.acme.create(CLAIMS, a_claim("acme", name, requests, **metadata))
        await self.clock.sleep(MOMENT)
        return await self.read(name)

    async def read(self, name: str) -> JsonObject:
        return await self.acme.get(CLAIMS, name, "default") or {}

    async def release(self, name: str) -> None:
        await self.acme.delete(CLAIMS, name, namespace="default")
        await self.clock.sleep(MOMENT)

    async def bucket(self, resource_type: str = WIDGETS) -> JsonObject:
        name = BucketKey(resource_type, "", "Project", "acme").object_name
        existing = await self.acme.get(BUCKETS, name, "milo-system")
        return object_at(existing, "status")

    async def held(self, resource_type: str = WIDGETS) -> tuple[int | None, int | None]:
        """The allocated and available amounts."""
        status = await self.bucket(resource_type)
        return integer_at(status, "allocated"), integer_at(status, "available")


def in_world(body: Callable[[World], Awaitable[None]], *, seed: int = 1) -> None:
    async def main(clock: VirtualClock) -> None:
        options = MiloOptions()
        milo = Milo(MiloParts(clock, clock), options)
        try:
            await milo.start()
            world = World(milo, clock)
            for resource_type in (WIDGETS, GRAMS):
                await world.root.create(REGISTRATIONS, a_registration(resource_type))
            await milo.add_project("acme")
            await clock.sleep(MOMENT)
            await body(world)
        finally:
            await milo.close()

    run(main, seed=seed, start=START)


@pytest.mark.spec("Q-20")
def test_a_claim_waits_until_it_is_evaluated_and_is_then_granted_in_full() -> None:
    async def body(world: World) -> None:
        await world.grant({WIDGETS: 2, GRAMS: 1000})
        await world.acme.create(CLAIMS, a_claim("acme", "c", {WIDGETS: 1, GRAMS: 100}))
        assert verdict_of(await world.read("c")) == PENDING
        await world.clock.sleep(timedelta(milliseconds=90))
        assert verdict_of(await world.read("c")) == PENDING
        await world.clock.sleep(timedelta(milliseconds=30))
        claim = await world.read("c")
        assert verdict_of(claim) == GRANTED
        assert allocations_of(claim) == {WIDGETS: ("Granted", 1), GRAMS: ("Granted", 100)}
        assert await world.held(GRAMS) == (100, 900)

    in_world(body)


@pytest.mark.spec("Q-20")
def test_without_any_grant_a_claim_is_denied_by_a_bucket_of_nothing() -> None:
    async def body(world: World) -> None:
        claim = await world.claim("c", {WIDGETS: 1})
        assert verdict_of(claim) == DENIED
        (allocation,) = objects_at(claim, "status", "allocations")
        assert allocation["message"] == "Resource quota exceeded: requested 1, available 0"
        assert await world.held() == (0, 0)

    in_world(body)


@pytest.mark.spec("Q-20")
def test_a_denial_is_final_whatever_is_granted_later() -> None:
    async def body(world: World) -> None:
        denied = await world.claim("c", {WIDGETS: 1})
        await world.grant({WIDGETS: 10})
        await world.clock.sleep(timedelta(hours=2))
        assert await world.read("c") == denied
        await world.release("c")
        assert verdict_of(await world.claim("c", {WIDGETS: 1})) == GRANTED

    in_world(body)


@pytest.mark.spec("Q-20")
def test_a_late_grant_counts_for_the_claims_after_it_and_shows_in_the_bucket() -> None:
    async def body(world: World) -> None:
        await world.claim("early", {WIDGETS: 1})
        await world.grant({WIDGETS: 3}, "first")
        await world.grant({WIDGETS: 4}, "second")
        status = await world.bucket()
        assert (status["limit"], status["grantCount"]) == (7, 2)
        names = [string_at(one, "name") for one in objects_at(status, "contributingGrantRefs")]
        assert names == ["first", "second"]
        assert verdict_of(await world.claim("late", {WIDGETS: 7})) == GRANTED
        await world.acme.delete(GRANTS, "second", namespace="milo-system")
        await world.clock.sleep(MOMENT)
        assert (await world.bucket())["limit"] == 3

    in_world(body)


@pytest.mark.spec("Q-20")
def test_the_part_of_a_denied_claim_that_fits_stays_reserved_until_it_is_deleted() -> None:
    async def body(world: World) -> None:
        await world.grant({WIDGETS: 1, GRAMS: 100})
        claim = await world.claim("c", {WIDGETS: 5, GRAMS: 100})
        assert verdict_of(claim) == DENIED
        assert allocations_of(claim) == {WIDGETS: ("Denied", None), GRAMS: ("Granted", 100)}
        assert await world.held(GRAMS) == (100, 0)
        assert verdict_of(await world.claim("other", {GRAMS: 1})) == DENIED
        await world.release("c")
        assert await world.held(GRAMS) == (0, 100)

    in_world(body)


def test_parts_after_a_denied_one_may_get_no_allocation_at_all() -> None:
    async def body(world: World) -> None:
        world.milo.options.skips_after_denial = True
        await world.grant({WIDGETS: 1, GRAMS: 100})
        claim = await world.claim("c", {WIDGETS: 5, GRAMS: 100})
        assert verdict_of(claim) == DENIED
        assert allocations_of(claim) == {WIDGETS: ("Denied", None)}
        assert verdict_of(await world.claim("other", {GRAMS: 100})) == GRANTED

    in_world(body)


@pytest.mark.spec("Q-20")
def test_later_changes_of_a_spec_are_accepted_and_not_looked_at() -> None:
    async def body(world: World) -> None:
        await world.grant({WIDGETS: 2, GRAMS: 100})
        await world.claim("c", {WIDGETS: 1, GRAMS: 100})
        raised = object_at(a_claim("acme", "c", {WIDGETS: 50, GRAMS: 100}), "spec")
        await world.acme.patch(CLAIMS, "c", {"spec": raised}, namespace="default")
        await world.clock.sleep(timedelta(minutes=10))
        claim = await world.read("c")
        assert verdict_of(claim) == GRANTED
        assert allocations_of(claim)[WIDGETS] == ("Granted", 1)
        assert integer_at(claim, "metadata", "generation") == 2
        assert integer_at(claim, "status", "observedGeneration") == 1
        assert await world.held() == (1, 1)

    in_world(body)


@pytest.mark.spec("Q-20")
def test_a_request_that_is_dropped_from_a_spec_frees_its_part() -> None:
    async def body(world: World) -> None:
        await world.grant({WIDGETS: 2, GRAMS: 100})
        await world.claim("c", {WIDGETS: 1, GRAMS: 100})
        dropped = object_at(a_claim("acme", "c", {WIDGETS: 1}), "spec")
        await world.acme.patch(CLAIMS, "c", {"spec": dropped}, namespace="default")
        await world.clock.sleep(MOMENT)
        assert await world.held(GRAMS) == (0, 100)
        assert verdict_of(await world.claim("other", {GRAMS: 100})) == GRANTED

    in_world(body)


@pytest.mark.spec("Q-20")
def test_lowering_a_grant_revokes_nothing_and_nothing_is_left() -> None:
    async def body(world: World) -> None:
        await world.grant({WIDGETS: 5})
        await world.claim("c", {WIDGETS: 4})
        await world.grant({WIDGETS: 1})
        assert verdict_of(await world.read("c")) == GRANTED
        assert await world.held() == (4, 0)
        denied = await world.claim("other", {WIDGETS: 1})
        (allocation,) = objects_at(denied, "status", "allocations")
        assert allocation["message"] == "Resource quota exceeded: requested 1, available 0"

    in_world(body)


@pytest.mark.spec("Q-20")
def test_grants_of_another_plane_and_of_another_consumer_do_not_count() -> None:
    async def body(world: World) -> None:
        await world.milo.add_project("other")
        other = world.milo.client("other")
        await other.create(GRANTS, a_grant("acme", {WIDGETS: 10}))
        await world.acme.create(GRANTS, a_grant("other", {WIDGETS: 10}))
        await world.clock.sleep(MOMENT)
        assert verdict_of(await world.claim("c", {WIDGETS: 1})) == DENIED

    in_world(body)


@pytest.mark.spec("Q-20")
def test_adopting_a_claim_moves_neither_its_grant_nor_its_reservation() -> None:
    async def body(world: World) -> None:
        await world.grant({WIDGETS: 1})
        before = await world.claim("c", {WIDGETS: 1}, annotations={"uid": "u1"})
        operations: list[JsonValue] = [
            {"op": "test", "path": "/metadata/annotations/uid", "value": "u1"},
            {"op": "replace", "path": "/metadata/annotations/uid", "value": "u2"},
        ]
        await world.acme.patch(CLAIMS, "c", operations, namespace="default")
        await world.clock.sleep(MOMENT)
        after = await world.read("c")
        assert object_at(after, "status") == object_at(before, "status")
        assert object_at(after, "spec") == object_at(before, "spec")
        assert await world.held() == (1, 0)

    in_world(body)


class AdoptedMeanwhile:
    """A transport that adopts a claim right before each of its first three status writes."""

    def __init__(self, inner: Transport, plane: Client) -> None:
        self._inner = inner
        self._plane = plane
        self.refused = 0

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        is_verdict = method == "PUT" and CLAIMS.plural in target
        if is_verdict and self.refused < 3:
            metadata: JsonObject = {"labels": {"adoption": str(self.refused)}}
            await self._plane.patch(CLAIMS, "c", {"metadata": metadata}, namespace="default")
        answer = await self._inner.request(method, target, headers, body)
        self.refused += is_verdict and answer.status == 409
        return answer


def test_a_claim_that_is_adopted_while_it_is_decided_is_decided_all_the_same() -> None:
    async def body(world: World) -> None:
        await world.grant({WIDGETS: 1, GRAMS: 1})
        await world.milo.stop_controllers()
        way = AdoptedMeanwhile(world.milo.planes.at("acme").connect(), world.acme)
        quota = QuotaController(Client(way, manager="milo"), world.clock)
        deciding = asyncio.create_task(quota.run())
        await world.acme.create(CLAIMS, a_claim("acme", "c", {WIDGETS: 1, GRAMS: 1}))
        # Well before any retry by time.
        await world.clock.sleep(timedelta(milliseconds=500))
        deciding.cancel()
        claim = await world.read("c")
        assert way.refused == 3
        assert verdict_of(claim) == GRANTED
        assert allocations_of(claim) == {WIDGETS: ("Granted", 1), GRAMS: ("Granted", 1)}
        assert await world.held() == (1, 0)

    in_world(body)


class DeafToGrants:
    """A transport on which watches of grants deliver nothing."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        if GRANTS.plural in target and "watch=true" in target:
            await asyncio.get_running_loop().create_future()
        return await self._inner.request(method, target, headers, body)


@pytest.mark.spec("Q-20")
def test_a_verdict_is_never_based_on_grants_that_are_only_remembered() -> None:
    async def body(world: World) -> None:
        await world.grant({WIDGETS: 1})
        await world.milo.stop_controllers()
        way = DeafToGrants(world.milo.planes.at("acme").connect())
        quota = QuotaController(Client(way, manager="milo"), world.clock)
        deaf = asyncio.create_task(quota.run())
        await world.clock.sleep(MOMENT)
        await world.grant({WIDGETS: 5})
        claim = await world.claim("c", {WIDGETS: 5})
        deaf.cancel()
        assert verdict_of(claim) == GRANTED

    in_world(body)


def test_paused_evaluation_leaves_claims_pending_and_goes_on_in_order() -> None:
    async def body(world: World) -> None:
        await world.grant({WIDGETS: 1})
        world.milo.options.pause()
        for name in ("first", "second"):
            await world.claim(name, {WIDGETS: 1})
        await world.clock.sleep(timedelta(hours=1))
        assert verdict_of(await world.read("first")) == PENDING
        world.milo.options.resume()
        await world.clock.sleep(MOMENT)
        assert verdict_of(await world.read("first")) == GRANTED
        assert verdict_of(await world.read("second")) == DENIED

    in_world(body)


def test_the_delay_of_evaluation_can_be_set() -> None:
    async def body(world: World) -> None:
        world.milo.options.evaluation_delay = timedelta(minutes=3)
        await world.acme.create(CLAIMS, a_claim("acme", "c", {WIDGETS: 1}))
        await world.clock.sleep(timedelta(seconds=179))
        assert verdict_of(await world.read("c")) == PENDING
        await world.clock.sleep(timedelta(seconds=2))
        assert verdict_of(await world.read("c")) == DENIED

    in_world(body)


def test_the_reaper_of_old_versions_deletes_granted_claims_without_owners() -> None:
    async def body(world: World) -> None:
        world.milo.options.reaper = True
        await world.grant({WIDGETS: 2})
        await world.claim("alone", {WIDGETS: 1})
        owner: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "name": "default"}
        namespace = await world.acme.get(NAMESPACES, "default")
        owner["uid"] = string_at(namespace, "metadata", "uid")
        await world.claim("owned", {WIDGETS: 1}, ownerReferences=[owner])
        await world.claim("denied", {WIDGETS: 9})
        await world.clock.sleep(timedelta(seconds=40))
        assert verdict_of(await world.read("alone")) == GRANTED
        await world.clock.sleep(timedelta(seconds=10))
        assert await world.read("alone") == {}
        assert verdict_of(await world.read("owned")) == GRANTED
        assert verdict_of(await world.read("denied")) == DENIED
        assert await world.held() == (1, 1)

    in_world(body)


def test_a_new_claim_of_the_same_name_has_a_reaper_of_its_own() -> None:
    async def body(world: World) -> None:
        world.milo.options.reaper = True
        await world.grant({WIDGETS: 2})
        await world.claim("c", {WIDGETS: 1})
        await world.clock.sleep(timedelta(seconds=30))
        await world.release("c")
        await world.claim("c", {WIDGETS: 1})
        await world.clock.sleep(timedelta(seconds=30))
        assert verdict_of(await world.read("c")) == GRANTED
        await world.clock.sleep(timedelta(seconds=20))
        assert await world.read("c") == {}

    in_world(body)


@pytest.mark.spec("Q-20")
def test_a_denied_claim_that_looks_like_one_of_milos_own_is_cleaned_up() -> None:
    async def body(world: World) -> None:
        await world.grant({WIDGETS: 1})
        labels: JsonObject = {"quota.miloapis.com/auto-created": "true"}
        annotations: JsonObject = {"quota.miloapis.com/created-by": "claim-creation-plugin"}
        granted = await world.claim("g", {WIDGETS: 1}, labels=labels, annotations=annotations)
        denied = await world.claim("d", {WIDGETS: 1}, labels=labels, annotations=annotations)
        assert (verdict_of(granted), denied) == (GRANTED, {})
        assert verdict_of(await world.claim("l", {WIDGETS: 1}, labels=labels)) == DENIED

    in_world(body)


def test_controllers_that_come_back_count_and_decide_as_if_they_had_never_gone() -> None:
    async def body(world: World) -> None:
        await world.grant({WIDGETS: 3})
        await world.claim("before", {WIDGETS: 2})
        await world.milo.stop_controllers()
        await world.claim("meanwhile", {WIDGETS: 1})
        await world.release("before")
        assert verdict_of(await world.claim("too-much", {WIDGETS: 4})) == PENDING
        world.milo.start_controllers()
        await world.clock.sleep(MOMENT)
        assert verdict_of(await world.read("meanwhile")) == GRANTED
        assert verdict_of(await world.read("too-much")) == DENIED
        assert await world.held() == (1, 2)

    in_world(body)


def test_controllers_that_died_in_the_middle_of_a_claim_finish_it() -> None:
    async def body(world: World) -> None:
        await world.grant({WIDGETS: 1, GRAMS: 1})
        # The bucket was created before the crash.
        await world.claim("earlier", {WIDGETS: 1})
        await world.release("earlier")
        await world.milo.stop_controllers()
        await world.claim("c", {WIDGETS: 1, GRAMS: 1})
        half: JsonObject = {
            "resourceType": WIDGETS,
            "status": "Granted",
            "allocatedAmount": 1,
            "lastTransitionTime": "2026-06-20T09:00:00Z",
        }
        await world.acme.patch(
            CLAIMS, "c", {"status": {"allocations": [half]}}, namespace="default",
            subresource="status",
        )  # fmt: skip
        world.milo.start_controllers()
        await world.clock.sleep(MOMENT)
        claim = await world.read("c")
        assert verdict_of(claim) == GRANTED
        assert allocations_of(claim) == {WIDGETS: ("Granted", 1), GRAMS: ("Granted", 1)}
        assert await world.held() == (1, 0)

    in_world(body)


@pytest.mark.spec("Q-20")
def test_without_its_namespace_quota_is_not_evaluated() -> None:
    async def body(world: World) -> None:
        await world.acme.delete(NAMESPACES, "milo-system")
        await world.clock.sleep(MOMENT)
        assert verdict_of(await world.claim("c", {WIDGETS: 1})) == PENDING
        await world.clock.sleep(timedelta(minutes=5))
        assert verdict_of(await world.read("c")) == PENDING
        namespace: JsonObject = {"apiVersion": "v1", "kind": "Namespace"}
        await world.acme.create(NAMESPACES, {**namespace, "metadata": {"name": "milo-system"}})
        await world.clock.sleep(timedelta(seconds=3))
        assert verdict_of(await world.read("c")) == DENIED

    in_world(body)


def test_an_unavailable_plane_refuses_all_clients_and_its_claims_wait() -> None:
    async def body(world: World) -> None:
        await world.grant({WIDGETS: 1})
        await world.acme.create(CLAIMS, a_claim("acme", "c", {WIDGETS: 1}))
        world.milo.make_unavailable("acme")
        with pytest.raises(ApiError) as caught:
            await world.read("c")
        assert (caught.value.status, caught.value.reason) == (503, "ServiceUnavailable")
        await world.milo.add_project("other")
        await world.clock.sleep(timedelta(minutes=1))
        world.milo.make_available("acme")
        assert verdict_of(await world.read("c")) == PENDING
        await world.clock.sleep(timedelta(seconds=3))
        assert verdict_of(await world.read("c")) == GRANTED

    in_world(body)


def test_a_settled_plane_is_not_written_to() -> None:
    async def body(world: World) -> None:
        await world.grant({WIDGETS: 1})
        await world.claim("c", {WIDGETS: 1})
        before = world.milo.planes.root.state.store.revision
        await world.clock.sleep(timedelta(hours=3))
        assert world.milo.planes.root.state.store.revision == before

    in_world(body)


def test_registrations_and_grants_say_which_generation_is_active() -> None:
    async def body(world: World) -> None:
        await world.grant({WIDGETS: 1})
        await world.grant({WIDGETS: 2})
        grant = await world.acme.get(GRANTS, "grant", "milo-system") or {}
        assert is_condition_true(grant, "Active")
        assert integer_at(grant, "status", "observedGeneration") == 2
        condition = find_condition(grant, "Active")
        assert string_at(condition, "reason") == "GrantActive"
        registration = (await world.root.list(REGISTRATIONS)).items[0]
        assert is_condition_true(registration, "Active")

    in_world(body)


Act = tuple[str, int, int]
VERBS = st.sampled_from(("claim", "release", "wait", "raise"))
ACTS = st.lists(st.tuples(VERBS, st.integers(0, 5), st.integers(1, 4)), max_size=25)


@given(acts=ACTS, seed=st.integers(0, 1000))
@settings(max_examples=20)
def test_never_more_is_promised_than_was_granted_and_everything_is_decided(
    acts: list[Act], seed: int
) -> None:
    async def body(world: World) -> None:
        limit = 4
        await world.grant({WIDGETS: limit})
        for act, number, amount in acts:
            limit = await carry_out(world, act, number, amount, limit)
        await world.clock.sleep(MOMENT)
        claims = (await world.acme.list(CLAIMS)).items
        verdicts = [verdict_of(claim) for claim in claims]
        assert set(verdicts) <= {GRANTED, DENIED}
        held = sum(
            integer_at(one, "allocatedAmount") or 0
            for claim in claims
            for one in objects_at(claim, "status", "allocations")
        )
        assert held <= limit
        if claims:
            assert await world.held() == (held, limit - held)

    in_world(body, seed=seed)


async def carry_out(world: World, act: str, number: int, amount: int, limit: int) -> int:
    """Perform one action; returns the limit afterwards. Only `wait` lets time pass."""
    if act == "claim" and await world.read(f"c{number}") == {}:
        await world.acme.create(CLAIMS, a_claim("acme", f"c{number}", {WIDGETS: amount}))
    if act == "release":
        await world.acme.delete(CLAIMS, f"c{number}", namespace="default")
    if act == "wait":
        await world.clock.sleep(timedelta(milliseconds=40 * amount))
    if act == "raise":
        await raise_grant(world.acme, limit + amount)
        return limit + amount
    return limit


async def raise_grant(plane: Client, amount: int) -> None:
    spec = object_at(a_grant("acme", {WIDGETS: amount}), "spec")
    await plane.patch(GRANTS, "grant", {"spec": spec}, namespace="milo-system")
