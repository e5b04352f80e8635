"""`kubectl compute` with all planes: an outage, a report that is cut, a timeline, the proxy."""

from __future__ import annotations

import json
from datetime import datetime
from itertools import pairwise

import pytest

from compute_api_types import labels
from e2e.world.scenario import (
    ADMIN,
    DFW,
    DIAGNOSER,
    HUB,
    INSTANCE,
    ORD,
    WORKLOAD,
    JsonObject,
    Needs,
    World,
    a_placement,
    a_template,
    a_workload,
    condition_of,
    objects_at,
    scenario,
    text_at,
    uid_of,
    value_at,
    within,
)

BOTH = Needs(cells=(DFW, ORD), has_quota=True, is_alone=True, is_slow=True)
ALONE = Needs(has_quota=True, is_alone=True, is_slow=True)
SOON = within(60, real=180)
WD = "web-default-dfw"
SLOT = f"{WD}-0"


async def _ask(
    world: World, *words: str, contexts: tuple[str, ...] | None = None, user: str = DIAGNOSER
) -> JsonObject:
    """The JSON answer of a command."""
    result = await world.compute(*words, "-o", "json", contexts=contexts, user=user)
    try:
        answer: JsonObject = json.loads(result.output)
    except ValueError:
        raise AssertionError(f"exit {result.code}: {result.output}") from None
    return answer


async def _ends_well(world: World) -> None:
    """The status of the Workload is asked first, because a command costs more than a request."""

    async def shows_ready() -> None:
        one = await world.project.get(WORKLOAD, "web")
        assert condition_of(one, "Ready").status == "True"

    await world.eventually(shows_ready, SOON)
    await world.eventually(lambda: _is_ready(world))


async def _is_ready(world: World) -> None:
    answer = await _ask(world, "why", "web")
    assert text_at(answer, "verdict") == "ready", json.dumps(answer, indent=1)
    assert objects_at(answer, "contradictions") == []


@pytest.mark.spec("WY-06")
@scenario(BOTH)
async def test_an_outage_is_a_contradiction_until_it_is_over(world: World) -> None:
    await world.project.create(a_workload("web", a_placement("default", "DFW", "ORD")))
    await _ends_well(world)
    await world.cut_off(ORD)

    async def is_contradicted() -> None:
        answer = await _ask(world, "why", "web")
        contradictions = objects_at(answer, "contradictions")
        assert len(contradictions) == 1, json.dumps(answer, indent=1)
        one = contradictions[0]
        assert text_at(one, "text").startswith("project shows 1 Instance Ready, cell ord-1")
        assert text_at(one, "first", "kind") == "Instance"
        assert text_at(one, "second", "kind") == "Cluster"
        assert text_at(one, "second", "since")
        # Nothing is known against the city: its Instances may well run, and no word is invented.
        assert text_at(answer, "verdict") == "ready"

    await world.eventually(is_contradicted, SOON)
    text = (await world.compute("why", "web")).output
    assert "project shows 1 Instance Ready, cell ord-1 is unreachable" in text
    await world.reconnect(ORD)
    await _ends_well(world)


@pytest.mark.spec("WY-07")
@scenario(ALONE)
async def test_a_crash_is_named_while_its_report_is_cut(world: World) -> None:
    project = world.project
    await project.create(a_workload("web", template=a_template("crash-after-20")))
    await _ends_well(world)
    # Both ways back: the write-back of Instances, and Karmada, which carries deployments.
    await world.operator_of(DFW).cut(HUB)
    await world.backend.cut_member(DFW.name)

    async def is_named() -> None:
        answer = await _ask(world, "why", "web")
        assert text_at(answer, "reason") == "InstanceCrashing", json.dumps(answer, indent=1)
        assert text_at(answer, "actionability") == "user"
        texts = [text_at(one, "text") for one in objects_at(answer, "contradictions")]
        assert f"Instance {SLOT}: project shows Ready, dfw-1 does not" in texts

    await world.eventually(is_named, within(90, real=180))
    shown = await project.get(INSTANCE, SLOT)
    assert condition_of(shown, "Ready").status == "True"
    await world.operator_of(DFW).heal(HUB)
    await world.backend.heal_member(DFW.name)
    await project.patch(WORKLOAD, "web", {"spec": {"template": a_template("2.0")}})
    await _ends_well(world)


@pytest.mark.spec("WY-12")
@scenario(Needs(has_quota=True))
async def test_the_timeline_has_every_stage_in_order_and_marks_the_longest_wait(
    world: World,
) -> None:
    project = world.project
    await project.create(a_workload("web"))
    await _ends_well(world)
    cell = await world.cell_of(DFW, project)
    former = uid_of(await cell.get(INSTANCE, SLOT))
    again = a_template(annotations={labels.RESTARTED_AT: "2026-03-01T12:00:00Z"})
    await project.patch(WORKLOAD, "web", {"spec": {"template": again}})

    async def is_restarted() -> None:
        assert uid_of(await cell.get(INSTANCE, SLOT)) != former
        await _is_ready(world)

    await world.eventually(is_restarted, SOON)
    answer = await _ask(world, "timeline", "web")
    moments = objects_at(answer, "moments")
    times = [datetime.fromisoformat(text_at(one, "at")) for one in moments]
    assert times == sorted(times)
    _has_every_stage(moments)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    (slowest,) = [place for place, one in enumerate(moments) if value_at(one, "slowest") is True]
    assert gaps[slowest - 1] == max(gaps)
    text = (await world.compute("timeline", "web")).output
    assert text.count("◀ slowest") == 1
    events = [
        (text_at(one, "at"), text_at(one, "object", "name"), text_at(one, "what"))
        for one in moments
        if text_at(one, "what").startswith("event ")
    ]
    assert len(events) == len(set(events))


def _has_every_stage(moments: list[JsonObject]) -> None:
    """What each stage leaves behind, by plane and kind."""
    kinds = {(text_at(one, "plane"), text_at(one, "object", "kind")) for one in moments}
    assert {
        ("project", "Workload"),
        ("project", "WorkloadDeployment"),
        ("hub", "WorkloadDeployment"),
        ("hub", "PropagationPolicy"),
        ("hub", "ResourceBinding"),
        (DFW.name, "WorkloadDeployment"),
        (DFW.name, "Instance"),
        ("project", "ResourceClaim"),
        ("hub", "Instance"),
        ("project", "Instance"),
    } <= kinds
    whats = {(text_at(one, "plane"), text_at(one, "what")) for one in moments}
    for plane, what in (
        ("hub", "Scheduled=True"),
        (DFW.name, "Programmed=True"),
        (DFW.name, "Available=True"),
        ("project", "Granted=True"),
        ("project", "Ready=True"),
    ):
        assert any(where == plane and one.startswith(what) for where, one in whats), what


@pytest.mark.spec("WY-18")
@scenario(Needs(has_quota=True))
async def test_the_cells_are_read_through_the_hub_where_no_context_names_them(
    world: World,
) -> None:
    await world.project.create(a_workload("web"))
    await _ends_well(world)
    answer = await _ask(world, "why", "web", contexts=(HUB,), user=ADMIN)
    states = {text_at(one, "name"): text_at(one, "state") for one in objects_at(answer, "planes")}
    assert states == {"project": "read", "hub": "read", DFW.name: "read"}
    assert text_at(answer, "verdict") == "ready"
    tree = await _ask(world, "tree", "web", contexts=(HUB,), user=ADMIN)
    below = {(DFW.name, "WorkloadDeployment", WD), (DFW.name, "Instance", SLOT)}
    assert below <= set(_nodes(tree))


def _nodes(tree: JsonObject) -> list[tuple[str, str, str]]:
    """Plane, kind and name of every node."""
    nodes: list[tuple[str, str, str]] = []
    rest = [value_at(tree, "root")]
    while rest:
        node = rest.pop()
        assert isinstance(node, dict)
        nodes.append((text_at(node, "plane"), text_at(node, "kind"), text_at(node, "name")))
        rest += objects_at(node, "children")
    return nodes
