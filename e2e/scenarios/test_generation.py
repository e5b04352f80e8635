"""A project reports a generation as done only after a cell has done it."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import pytest

from e2e.world.scenario import (
    DEPLOYMENT,
    DFW,
    INSTANCE,
    WORKLOAD,
    JsonObject,
    Needs,
    ObjectVersion,
    Plane,
    World,
    a_template,
    a_workload,
    condition_of,
    generation_of,
    number_at,
    objects_at,
    scenario,
    text_at,
    within,
)

WD = "web-default-dfw"


@pytest.mark.spec("E-09")
@scenario(Needs(has_quota=True))
async def test_a_generation_is_observed_when_a_cell_has_acted_on_it(world: World) -> None:
    project = world.project
    await project.create(a_workload("web"))
    for tag in ("1.0", "2.0", "3.0"):
        if tag != "1.0":
            await project.patch(WORKLOAD, "web", {"spec": {"template": a_template(tag)}})
        await world.eventually(partial(_is_current, project, tag), within(60, real=120))
    cell = await world.cell_of(DFW, project)
    _check_never_ahead(project.versions(DEPLOYMENT, WD), cell)
    _check_times(project.versions(DEPLOYMENT, WD))


async def _is_current(project: Plane, tag: str) -> None:
    """Current for kstatus, with the new image."""
    deployment = await project.get(DEPLOYMENT, WD)
    assert _image(deployment, "spec", "template", "spec").endswith(f":{tag}")
    assert number_at(deployment, "status", "observedGeneration") == generation_of(deployment)
    assert condition_of(deployment, "Ready").status == "True"
    shown = await project.get(INSTANCE, f"{WD}-0")
    assert _image(shown, "spec").endswith(f":{tag}")


def _image(document: JsonObject, *path: str) -> str:
    (container,) = objects_at(document, *path, "runtime", "sandbox", "containers")
    return text_at(container, "image")


def _check_never_ahead(versions: list[ObjectVersion], cell: Plane) -> None:
    """No version is Current before the cell had an Instance of its template."""
    made = [
        (one.at, _image(one.object, "spec"))
        for one in cell.versions(INSTANCE, f"{WD}-0")
        if not one.is_gone
    ]
    for version in versions:
        document = version.object
        observed, generation = (
            number_at(document, "status", "observedGeneration"),
            generation_of(document),
        )
        assert observed <= generation
        is_current = observed == generation and condition_of(document, "Ready").status == "True"
        if is_current and not version.is_gone:
            image = _image(document, "spec", "template", "spec")
            assert any(at <= version.at and tag == image for at, tag in made), version.at


def _check_times(versions: list[ObjectVersion]) -> None:
    for before, after in pairwise(versions):
        for name in ("Available", "ReplicasReady", "Ready"):
            was, now = condition_of(before.object, name), condition_of(after.object, name)
            if was.status == now.status:
                assert was.since == now.since, f"{name} at {after.at}"
