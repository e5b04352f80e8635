"""A project over its cache budget is still served, only slower, and is reported."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from management_builders.documents import a_template_document, a_workload_document
from management_builders.world import Process, World, play, settings_of

from compute_api_types import reasons
from compute_management_operator.cache_limits import LIMITED
from compute_management_operator.planes import DEPLOYMENT, HUB, PROJECT, ROOT, WORKLOAD
from compute_operator_kit.cache.store import CACHE_EXHAUSTED
from compute_operator_kit.core.json import Json, JsonObject, member_list, member_object
from compute_operator_kit.core.keys import PlaneName
from compute_operator_kit.planes.engaged_plane import OVER_BUDGET, PlaneState

SMALL: JsonObject = {"bytesPerProject": 1024**2, "objectsPerProject": 100}
HEAVY = 150_000  # of a template: ten with their deployments take three times the budget
WORKLOADS = 10
A_WATCH = timedelta(minutes=8)  # the longest; its bookmarks bring what there is room for


def a_heavy_workload(name: str) -> JsonObject:
    template = a_template_document()
    runtime = member_object(member_object(template, "spec"), "runtime")
    container = member_list(member_object(runtime, "sandbox"), "containers")[0]
    assert isinstance(container, dict)
    text = random.Random(name).randbytes(HEAVY // 10).hex()  # noqa: S311 - text, not a secret
    env: list[Json] = [{"name": f"E{number}", "value": text} for number in range(5)]
    container["env"] = env
    return a_workload_document(name, template=template)


async def start(world: World, *, caches: JsonObject = SMALL) -> Process:
    await world.add_project("heavy", cities=("DFW",))
    await world.add_project("light", cities=("DFW",))
    process = world.process(settings=settings_of(caches=caches))
    process.start()
    await world.sleep(2)
    return process


def gauge(process: Process, **labels: str) -> float:
    return process.measures.gauges[(LIMITED, tuple(sorted(labels.items())))]


def state_of(process: Process, plane: str) -> tuple[PlaneState, str]:
    engaged = process.operator.planes.get(PlaneName(plane))
    return engaged.state, engaged.limit


@pytest.mark.spec("AT-01")
def test_a_project_over_its_budget_is_degraded_alone_served_and_reported() -> None:
    async def story(world: World) -> None:
        process = await start(world)
        for number in range(WORKLOADS):
            await world.create("heavy", a_heavy_workload(f"heavy-{number}"))
        await world.create("light", a_workload_document("web"))
        await world.sleep(60)
        assert state_of(process, "heavy") == (PlaneState.DEGRADED, OVER_BUDGET)
        assert state_of(process, "light") == (PlaneState.UP, "")
        copies = await world.names(HUB, DEPLOYMENT)
        assert len(copies) == WORKLOADS + 1
        assert gauge(process, plane="project", reason="over_budget") == 1
        assert gauge(process, plane="hub", reason="project_over_budget") == 1
        reported = [
            emit
            for emit in process.recorder.emitted
            if emit.reason == reasons.CACHE_BUDGET_EXCEEDED
        ]
        assert [(emit.key.plane, emit.key.kind, emit.key.name) for emit in reported] == [
            (ROOT, PROJECT, "heavy")
        ]
        assert "1048576 bytes" in reported[0].message
        assert "Delete Workloads" in reported[0].message
        await world.sleep(60)  # until every deployment has waited a minute for its cell
        assert await world.rests() == []  # settled, and nothing is deleted because it is not cached
        assert await world.names(HUB, DEPLOYMENT) == copies

    play(story)


@pytest.mark.spec("AT-01")
def test_edits_and_deletions_of_a_project_over_its_budget_take_effect_and_it_recovers() -> None:
    async def story(world: World) -> None:
        process = await start(world)
        for number in range(WORKLOADS):
            await world.create("heavy", a_heavy_workload(f"heavy-{number}"))
        await world.sleep(60)
        edited = a_heavy_workload(f"heavy-{WORKLOADS - 1}")
        member_object(member_object(edited, "spec"), "template")["metadata"] = {
            "annotations": {"edited": "yes"}
        }
        await world.patch(
            "heavy",
            WORKLOAD,
            f"heavy-{WORKLOADS - 1}",
            {"spec": {"template": member_object(member_object(edited, "spec"), "template")}},
        )
        await world.sleep(30)
        name = f"heavy-{WORKLOADS - 1}-us-dfw"
        existing = next(one for one in await world.listed(HUB, DEPLOYMENT) if named(one) == name)
        template = member_object(member_object(existing, "spec"), "template")
        assert member_object(template, "metadata")["annotations"] == {"edited": "yes"}
        for number in range(2, WORKLOADS):
            await world.delete("heavy", WORKLOAD, f"heavy-{number}")
        await world.sleep(60)
        assert await world.names("heavy", WORKLOAD) == ["heavy-0", "heavy-1"]
        assert len(await world.names(HUB, DEPLOYMENT)) == 2
        await world.sleep(A_WATCH.total_seconds())
        assert state_of(process, "heavy") == (PlaneState.UP, "")
        assert gauge(process, plane="project", reason="over_budget") == 0

    play(story)


@pytest.mark.spec("AT-01")
def test_a_project_with_too_many_headers_is_down_alone_and_loses_nothing() -> None:
    async def story(world: World) -> None:
        process = await start(world)
        await world.create("heavy", a_workload_document("first"))
        await world.sleep(10)
        copies = await world.names(HUB, DEPLOYMENT)
        assert len(copies) == 1
        for number in range(401):
            await world.create("heavy", a_workload_document(f"w{number}", {"moon": ("TYCHO",)}))
        await world.create("light", a_workload_document("web"))
        await world.sleep(30)
        assert state_of(process, "heavy") == (PlaneState.DOWN, CACHE_EXHAUSTED)
        assert gauge(process, plane="project", reason="cache_exhausted") == 1
        assert state_of(process, "light") == (PlaneState.UP, "")
        assert len(await world.names(HUB, DEPLOYMENT)) == 2
        await world.sleep(1200)
        assert set(await world.names(HUB, DEPLOYMENT)) >= set(copies)

    play(story, is_clean=False)


def named(document: JsonObject) -> str:
    return str(member_object(document, "metadata")["name"])
