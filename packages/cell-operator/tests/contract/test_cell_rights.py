"""Every right that ships is needed by something the operator does, and nothing else is.

That the operator needs no more than what ships is held by all contract tests: `play` fails on a
request that a plane forbade. Here one long life uses everything once; what the decommission command
needs is held by its own tests.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus

import pytest
from cell_builders.documents import NS, a_network_document, a_template_document
from cell_builders.quota_scenes import has_claims, records
from cell_builders.rights import operator_rights
from cell_builders.world import (
    HUB_SETTINGS,
    QUOTA_ON,
    SCRAPER_TOKEN,
    Process,
    World,
    key_to,
    play,
    settings_of,
)

from compute_api_types import labels
from compute_cell_operator.planes import CELL, DEPLOYMENT, HUB, INSTANCE
from compute_cell_operator.wiring import COMPONENT
from compute_operator_kit.core.json import JsonObject
from compute_operator_kit.core.keys import Kind, ObjectKey, Role
from compute_operator_kit.process.election import Timing
from compute_operator_kit.process.leader import LEASE, Candidacy, Election
from compute_operator_kit.process.metrics_server import TokenReviewGuard
from e2e.harness.deploy.rights import GrantedRight
from e2e.harness.deploy.rights_report import keep_record

CLUSTER_ROLE = Kind(
    "rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False
)

EXCESS = GrantedRight("hub", COMPONENT, "", "namespaces", "create")  # as it would be found


async def start(world: World) -> Process:
    await world.add_milo()
    await world.federate()
    world.start_neighbours()
    settings = settings_of(quota=QUOTA_ON, federation=HUB_SETTINGS)  # with the heartbeat
    process = world.process(settings=settings, writes_events=True)
    process.start()
    return process


async def live(world: World) -> None:
    """From delivery through a roll and a change of networks to the end."""
    await world.deliver("web", 2)
    await world.eventually(world.is_converged)
    await world.eventually(lambda: world.has_copies("web-0", "web-1"))
    await world.set_image("web", "1.1")
    await world.eventually(world.is_converged)
    await world.eventually(records(world, "web-1"))
    await world.create(CELL, a_network_document("backend"))
    template = a_template_document("1.1", networks=("backend",))
    await world.patch(CELL, DEPLOYMENT, "web", {"spec": {"template": template}})
    await world.eventually(world.is_converged)
    for replicas in (1, 2, 1):  # a repeated event is counted on the existing one
        await world.scale("web", replicas)
        await world.sleep(20)
    await world.eventually(has_claims(world, "instance-web-0"))


async def be_disturbed(world: World) -> None:
    """A user changes objects of the operator, in the cell and on the hub."""
    await world.patch(
        CELL, INSTANCE, "web-0", {"metadata": {"labels": {labels.CITY_CODE: "elsewhere"}}}
    )
    await world.patch(HUB, INSTANCE, "web-0", {"spec": {"location": {"name": "elsewhere"}}})
    await world.sleep(60)
    await world.delete(HUB, INSTANCE, "web-0", NS)
    await world.sleep(60)
    await world.eventually(lambda: world.has_copies("web-0"))


async def live_as_a_process(world: World, process: Process) -> None:
    """Requests of the process besides the operator's: its Lease, and reviews of metrics readers."""
    home = process.reach(CELL, Role.HOME)
    key = ObjectKey(CELL, LEASE, "compute-system", COMPONENT)
    candidacy = Candidacy(key, "pod-1", Timing())
    election = Election(
        home,
        candidacy,
        clock=world.clock,
        random=world.clock.random("lease"),
        measures=process.measures,
    )
    await election.lead(lambda: asyncio.sleep(30))
    guard = TokenReviewGuard(home, world.clock)
    assert await guard.authorize("Bearer nobody") is HTTPStatus.UNAUTHORIZED
    assert await guard.authorize(f"Bearer {SCRAPER_TOKEN}") is HTTPStatus.FORBIDDEN


@pytest.mark.spec("S1", "S2")
def test_every_right_that_ships_is_used_and_no_other_is_asked_for() -> None:
    async def scenario(world: World) -> None:
        process = await start(world)
        await live(world)
        await be_disturbed(world)
        # As the Go operators left it; ours removes it once the Instances are gone.
        held: JsonObject = {"metadata": {"finalizers": [*labels.RETIRED_DEPLOYMENT_FINALIZERS]}}
        await world.patch(CELL, DEPLOYMENT, "web", held)
        await world.withdraw("web")
        await world.eventually(lambda: world.is_gone(CELL, DEPLOYMENT, "web"))
        await world.eventually(has_claims(world), within=300)
        await world.eventually(world.has_no_copies, within=300)
        await live_as_a_process(world, process)

    done = play(scenario)
    witness, granted = done.world.witness, operator_rights()
    keep_record("cell-contract", witness.rights(granted))
    assert {right.side for right in granted} == {"cell", "hub", "root"}
    assert witness.find_unused(granted) == []
    assert witness.find_unused([EXCESS]) == [str(EXCESS)]


def test_a_right_that_is_missing_is_a_finding_of_any_run() -> None:
    async def scenario(world: World) -> None:
        await start(world)
        await world.kube(HUB).patch_merge(key_to(HUB, CLUSTER_ROLE, COMPONENT, ""), {"rules": []})
        await world.deliver("web", 1)
        await world.eventually(world.is_converged)
        assert await world.has_no_copies()

    with pytest.raises(AssertionError, match="hub: compute-cell-operator: list instances"):
        play(scenario, is_clean=False)
