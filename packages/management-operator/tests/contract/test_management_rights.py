"""Every right that ships is needed by something the operator does, and nothing else is.

That the operator needs no more than what ships is held by all contract tests: `play` fails on a
request that a plane forbade. Here one long life uses everything once.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus

import pytest
from management_builders.documents import (
    a_claim_document,
    a_cluster_document,
    a_condition_document,
    a_document,
    a_workload_document,
)
from management_builders.hub_script import (
    PROJECT,
    WD,
    WD_READY,
    Hub,
)
from management_builders.rights import management_rights
from management_builders.world import World, a_review, key_to, play

from compute_api_types import labels, reasons
from compute_management_operator.admission.review import AdmissionAllowed
from compute_management_operator.planes import (
    CLAIM,
    DEPLOYMENT,
    HOME,
    HUB,
    INSTANCE,
    NAMESPACE,
    POLICY,
    WORKLOAD,
)
from compute_management_operator.wiring import COMPONENT
from compute_operator_kit.core.json import JsonObject
from compute_operator_kit.core.keys import Kind, ObjectKey, Role
from compute_operator_kit.process.election import Timing
from compute_operator_kit.process.leader import LEASE, Candidacy, Election
from compute_operator_kit.process.metrics_server import TokenReviewGuard
from e2e.harness.deploy.rights_report import keep_record

CLUSTER_ROLE = Kind(
    "rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False
)
CROWD = 12  # enough for the mass-delete guard to hold


async def start(world: World) -> Hub:
    await world.add_project(PROJECT, cities=("DFW", "LHR"))
    await world.create(HUB, a_cluster_document("dfw-1"))
    process = world.process(writes_events=True)
    process.start()
    await world.sleep(2)
    return Hub(world, process)


async def live(hub: Hub) -> None:
    """A Workload from its first placement to Ready."""
    await hub.world.create(PROJECT, a_workload_document())
    await hub.world.eventually(hub.has_copy)
    await hub.report(*WD_READY)
    await hub.world.sleep(2)


async def be_disturbed(hub: Hub) -> None:
    """Another client changes what is ours, twice: each event is recorded once and counted once."""
    world, place = hub.world, await hub.namespace()
    for number in (2, 3):
        await hub.project()
        drift: JsonObject = {"spec": {"scaleSettings": {"minReplicas": number}}}
        await world.patch(PROJECT, DEPLOYMENT, WD, drift)
        for _ in range(2):
            spoilt: JsonObject = {"spec": {"conflictResolution": "Abort"}}
            await world.patch(HUB, POLICY, "city-dfw", spoilt, place)
            await world.sleep(1)
        stranger: JsonObject = {"metadata": {"labels": {labels.CITY_CODE: "other"}}}
        await world.patch(PROJECT, INSTANCE, f"{WD}-0", stranger)
        await world.patch(HUB, NAMESPACE, place, {"metadata": {"labels": None}})
        await world.sleep(2)
        await world.delete(PROJECT, DEPLOYMENT, WD)  # created again, and recorded again
        await world.sleep(10)
    await hub.show(labels={labels.CELL: None})
    await world.sleep(2)


async def lose_a_crowd(hub: Hub, prefix: str) -> None:
    """Many deployments are deleted without events: too many at once for the mass-delete guard."""
    for number in range(CROWD):
        await hub.federate(f"{prefix}{number}-us-dfw")
    hub.world.links[PROJECT].cut()
    await hub.world.sleep(30)
    for number in range(CROWD):
        name = f"{prefix}{number}-us-dfw"
        await hub.world.patch(PROJECT, DEPLOYMENT, name, {"metadata": {"finalizers": None}})
        await hub.world.delete(PROJECT, DEPLOYMENT, name)
    hub.world.links[PROJECT].heal()
    await hub.world.sleep(150)


async def lose_a_namespace(hub: Hub) -> None:
    """A project namespace goes, and the hub namespace after it."""
    await hub.world.create(PROJECT, a_document(NAMESPACE, "team"))
    within, hub.within = hub.within, "team"
    await hub.federate()
    place = await hub.namespace()
    await hub.world.delete(PROJECT, NAMESPACE, "team")
    await hub.world.eventually(lambda: hub.world.is_gone(HUB, NAMESPACE, place))
    hub.within = within


async def lose_a_slot(hub: Hub) -> None:
    """Claims of a cell of another city, of which one takes the place of a slot."""
    world, name = hub.world, "taken-us-dfw"
    await world.install(PROJECT, "quota.miloapis.com")
    await world.create(HUB, a_cluster_document("ord-1", "ORD"))
    await hub.federate(name)
    await world.create(PROJECT, a_claim_document(f"instance-{name}-0", "ord-1"))
    await hub.show(f"{name}-0")
    held = a_condition_document("QuotaGranted", "False", "QuotaMisconfigured", "held")
    await hub.say(held, name=f"{name}-0")
    await world.eventually(lambda: world.is_gone(PROJECT, CLAIM, f"instance-{name}-0"))
    await world.sleep(20 * 60)  # a sweep


async def live_as_a_process(hub: Hub) -> None:
    """What a process does around the operator: its Lease, and the access to its metrics."""
    world, home = hub.world, hub.process.reach(HOME, Role.HOME)
    key = ObjectKey(HOME, LEASE, "compute-system", COMPONENT)
    candidacy = Candidacy(key, "pod-1", Timing())
    election = Election(
        home,
        candidacy,
        clock=world.clock,
        random=world.clock.random("lease"),
        measures=hub.process.measures,
    )
    await election.lead(lambda: asyncio.sleep(30))
    guard = TokenReviewGuard(home, world.clock)
    assert await guard.authorize("Bearer nobody") is HTTPStatus.UNAUTHORIZED


@pytest.mark.spec("S1", "S2")
def test_every_right_that_ships_is_used_and_no_other_is_asked_for() -> None:
    async def scenario(world: World) -> None:
        hub = await start(world)
        await live(hub)
        review = a_review(a_workload_document(), {labels.PARENT_NAME_EXTRA: [PROJECT]})
        assert isinstance(await hub.process.admit(review), AdmissionAllowed)
        await be_disturbed(hub)
        await world.delete(PROJECT, WORKLOAD, "web")
        await world.eventually(lambda: world.is_gone(PROJECT, WORKLOAD, "web"))
        for prefix in ("first", "second"):
            await lose_a_crowd(hub, prefix)
        assert hub.process.reasons().count(reasons.MASS_DELETE_REFUSED) == 2
        await lose_a_namespace(hub)
        await lose_a_slot(hub)
        await live_as_a_process(hub)

    done = play(scenario, is_clean=False)  # a quarantine is an ERROR line
    used = done.world.witness.rights()
    keep_record("management-contract", used)
    assert [str(right) for right in sorted(management_rights() - used)] == []


def test_a_right_that_is_missing_is_a_finding_of_any_run() -> None:
    async def scenario(world: World) -> None:
        hub = await start(world)
        await world.kube(HUB).patch_merge(key_to(HUB, CLUSTER_ROLE, COMPONENT, ""), {"rules": []})
        await world.create(PROJECT, a_workload_document())
        await world.sleep(5)
        assert await hub.has_no_copy()

    with pytest.raises(AssertionError, match="hub: create namespaces"):
        play(scenario, is_clean=False)
