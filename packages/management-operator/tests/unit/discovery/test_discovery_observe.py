"""What is read of a Project, whatever shape it has."""

from __future__ import annotations

import pytest

from compute_management_operator.discovery.observe import (
    IS_READY,
    PROJECT_INDEXES,
    ObservedProject,
    RootProject,
    index_by_readiness,
    is_ready,
    observe,
    observe_suspension,
    ready_projects,
)
from compute_management_operator.planes import PROJECT, ROOT
from compute_operator_kit.core.json import Json, JsonObject
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Role
from compute_operator_kit.core.objects import Absent, Snapshot
from compute_operator_kit.testing.fakes import FakeCaches, a_snapshot, a_store

KEY = ObjectKey(ROOT, PROJECT, "", "acme")


def a_project(name: str = "acme", status: str = "True") -> Snapshot:
    conditions: list[Json] = [{"type": "Other", "status": "True"}, None]
    conditions.append({"type": "Ready", "status": status})
    key = ObjectKey(ROOT, PROJECT, "", name)
    return a_snapshot(key, status={"conditions": conditions})


def caches(*snapshots: Snapshot, is_synced: bool = True) -> FakeCaches:
    store = a_store(ROOT, PROJECT, snapshots, indexes=PROJECT_INDEXES, is_synced=is_synced)
    return FakeCaches([store], {ROOT: Role.ROOT})


def nobody(_: PlaneName) -> str | None:
    return None


def test_a_project_is_seen_with_its_plane() -> None:
    seen = observe(KEY, caches(a_project()), lambda plane: f"engaged {plane}")
    assert seen == ObservedProject(
        "acme", RootProject("uid-of-acme", is_ready=True), "engaged acme"
    )


def test_an_absent_project_is_distinguished_from_an_incomplete_list() -> None:
    assert observe(KEY, caches(), nobody) == ObservedProject("acme", Absent(), None)
    assert observe(KEY, caches(is_synced=False), nobody) is None


@pytest.mark.fault("F1")
@pytest.mark.parametrize(
    "body",
    [{}, {"status": "x"}, {"status": {"conditions": {}}}, {"status": {"conditions": ["Ready"]}}],
)
def test_a_project_of_an_odd_shape_is_not_ready(body: JsonObject) -> None:
    assert not is_ready(body)


def test_only_ready_projects_are_indexed_and_counted() -> None:
    unready = a_project("unready", "Unknown")
    assert list(index_by_readiness(unready.metadata, unready.decode())) == []
    ready = a_project("ready")
    assert list(index_by_readiness(ready.metadata, ready.decode())) == [IS_READY]
    assert ready_projects(ROOT, caches(unready, ready)) == frozenset({"ready"})


def a_project_suspended(status: str) -> Snapshot:
    conditions: list[Json] = [{"type": "Suspended", "status": status}]
    return a_snapshot(KEY, status={"conditions": conditions})


@pytest.mark.spec("SU-15")
@pytest.mark.parametrize(
    ("snapshots", "expected"),
    [
        ((a_project_suspended("True"),), True),
        ((a_project_suspended("False"),), False),
        ((a_project(),), False),  # without the condition: the feature is off
        ((a_project_suspended("Unknown"),), None),
        ((), None),  # missing from the list: no evidence of a resume
    ],
)
def test_a_suspension_is_known_only_by_the_condition_of_a_listed_project(
    snapshots: tuple[Snapshot, ...], expected: bool | None
) -> None:
    assert observe_suspension(caches(*snapshots), PlaneName("acme")) is expected


def test_without_a_root_no_project_is_suspended() -> None:
    assert observe_suspension(FakeCaches([], {}), PlaneName("acme")) is False
