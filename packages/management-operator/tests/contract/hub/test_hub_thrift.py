"""What a new Workload costs in passes, and that what passes share stays as it was read."""

from __future__ import annotations

from collections import Counter

import pytest
from management_builders.documents import a_workload_document
from management_builders.hub_script import PROJECT, READY, WD_READY, Hub, play_hub

from compute_management_operator.planes import DEPLOYMENT, HUB, WORKLOAD
from compute_operator_kit.core.json import JsonObject, decode_json_object, encode
from compute_operator_kit.core.objects import Snapshot
from compute_sim_planes.history import ReconcileRecord


async def _live(hub: Hub) -> None:
    world = hub.world
    await world.create(PROJECT, a_workload_document("web"))
    await world.eventually(hub.has_copy)
    await hub.show()
    await hub.say(*READY)
    await hub.report(*WD_READY, ready=1)
    await world.eventually(hub.is_shown)
    await world.sleep(1)
    await world.delete(PROJECT, WORKLOAD, "web")
    await world.eventually(lambda: world.is_gone(PROJECT, WORKLOAD, "web"))
    await world.sleep(5)


def test_what_passes_share_is_never_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Snapshot.read
    seen: list[tuple[bytes, JsonObject]] = []

    def remember(snapshot: Snapshot) -> JsonObject:
        body = read(snapshot)
        seen.append((snapshot.raw, body))
        return body

    monkeypatch.setattr(Snapshot, "read", remember)
    play_hub(_live)
    assert seen
    changed = [raw for raw, body in seen if encode(body) != encode(decode_json_object(raw))]
    assert not changed


def test_a_workload_reaches_the_hub_in_four_reconciles_and_its_own_writes_enqueue_nothing() -> None:
    """Finalizer, deployment, status; copy. Policy and place were known before, so the deployment
    is born with what federation records on it.
    """

    async def story(hub: Hub) -> None:
        world = hub.world
        await world.create(PROJECT, a_workload_document("first"))
        await world.eventually(lambda: _is_delivered(hub, "first"))
        await world.sleep(2)
        before = len(list(world.history.of(ReconcileRecord)))
        await world.create(PROJECT, a_workload_document("web"))
        await world.eventually(hub.has_copy)
        await world.sleep(5)
        ran = Counter(one.controller for one in list(world.history.of(ReconcileRecord))[before:])
        assert ran == {"workload": 3, "federation": 1}

    play_hub(story)


async def _is_delivered(hub: Hub, name: str) -> bool:
    existing = await hub.world.names(HUB, DEPLOYMENT)
    return any(one.startswith(name) for one in existing)
