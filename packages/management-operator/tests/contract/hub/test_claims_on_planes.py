"""Claims in the name of another city's cell, on simulated planes under the rights that ship."""

from __future__ import annotations

import pytest
from management_builders.documents import (
    a_claim_document,
    a_cluster_document,
    a_condition_document,
)
from management_builders.hub_script import INSTANCE_NAME, PROJECT, READY, Hub, play_hub

from compute_api_types import labels, names, reasons
from compute_management_operator.hub.metrics import MISPLACED_CLAIMS, UNBACKED_CLAIMS
from compute_management_operator.planes import CLAIM, CLUSTER, HUB
from compute_operator_kit.core.json import JsonObject

NAME = names.derive_claim_name(INSTANCE_NAME)
HELD = a_condition_document("QuotaGranted", "False", "QuotaMisconfigured", "held by another")


async def begin(hub: Hub) -> None:
    """A deployment in DFW, and a cell of another city."""
    await hub.world.install(PROJECT, "quota.miloapis.com")
    await hub.world.create(HUB, a_cluster_document("ord-1", "ORD"))
    await hub.federate()


async def be_held(hub: Hub) -> None:
    await hub.show()
    await hub.say(HELD)
    await hub.world.eventually(hub.is_shown)


async def is_gone(hub: Hub) -> bool:
    return not await hub.world.exists(PROJECT, CLAIM, NAME)


@pytest.mark.spec("AT-04")
def test_a_claim_of_another_city_is_removed_every_time_it_comes_back() -> None:
    async def story(hub: Hub) -> None:
        await begin(hub)
        await hub.world.create(PROJECT, a_claim_document(NAME, "ord-1"))
        await be_held(hub)
        for turn in range(1, 4):
            await hub.world.eventually(lambda: is_gone(hub), within=10)
            assert hub.process.measures.total(MISPLACED_CLAIMS, cell="ord-1") == turn
            await hub.world.create(PROJECT, a_claim_document(NAME, "ord-1"))
        assert reasons.MISPLACED_CLAIM_REMOVED in hub.process.reasons()

    play_hub(story)


@pytest.mark.spec("AT-04")
@pytest.mark.parametrize(
    "claim",
    [
        a_claim_document(NAME, "dfw-1"),
        a_claim_document(NAME, ""),
        a_claim_document(NAME, "ord-1", labels.INSTANCES_RESOURCE, "storage.example.com/gib"),
    ],
    ids=["of the right city", "of no cell", "of another service too"],
)
def test_no_other_claim_is_touched(claim: JsonObject) -> None:
    async def story(hub: Hub) -> None:
        await begin(hub)
        await hub.world.create(PROJECT, claim)
        await be_held(hub)
        await hub.world.sleep(120)
        assert not await is_gone(hub)

    play_hub(story)


@pytest.mark.spec("AT-04")
def test_a_claim_stays_while_no_cell_serves_the_city_and_while_nothing_is_held() -> None:
    async def story(hub: Hub) -> None:
        await begin(hub)
        await hub.world.create(PROJECT, a_claim_document(NAME, "ord-1"))
        await hub.show()
        await hub.say(*READY)
        await hub.world.sleep(60)
        assert not await is_gone(hub)
        await hub.world.delete(HUB, CLUSTER, "dfw-1", "")
        await hub.say(HELD)
        await hub.world.sleep(60)
        assert not await is_gone(hub)

    play_hub(story)


@pytest.mark.spec("AT-07")
def test_claims_that_nothing_backs_are_counted_and_reported_once() -> None:
    async def story(hub: Hub) -> None:
        await begin(hub)
        backed = a_claim_document(NAME, "dfw-1")
        await hub.world.create(PROJECT, backed)
        for name, cell in (
            ("instance-gone-0", "dfw-1"),
            (names.derive_claim_name("web-us-dfw-900"), "dfw-1"),
            ("instance-web-us-dfw-1", "ord-1"),
            ("instance-other-0", "nowhere-1"),
        ):
            await hub.world.create(PROJECT, a_claim_document(name, cell))
        await hub.world.sleep(40 * 60)
        measures = hub.process.measures
        counted = {cell: _gauge(hub, cell) for cell in ("dfw-1", "ord-1", "unknown")}
        assert counted == {"dfw-1": 2, "ord-1": 1, "unknown": 1}
        assert measures.total(MISPLACED_CLAIMS, cell="ord-1") == 0
        assert hub.process.reasons().count(reasons.UNBACKED_CLAIMS) == 3
        assert len(await hub.world.names(PROJECT, CLAIM)) == 5, "reported, never removed"

    play_hub(story)


def _gauge(hub: Hub, cell: str) -> float:
    return hub.process.measures.gauges[UNBACKED_CLAIMS, (("cell", cell),)]
