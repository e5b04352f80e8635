"""Whether a project's plane is served, decided without a server."""

from __future__ import annotations

import pytest

from compute_api_types.names import NamingError
from compute_management_operator.discovery.observe import ObservedProject, RootProject
from compute_management_operator.discovery.plan import (
    Disengage,
    Engage,
    Leave,
    derive_project_url,
    plan,
)
from compute_operator_kit.core.objects import Absent

READY = RootProject("uid-1", is_ready=True)
NOT_LABELS = ("a/../b", "A", "a" * 64, "%2e", "a.b", "..")
UNREADY = RootProject("uid-1", is_ready=False)


@pytest.mark.spec("M-80")
def test_a_ready_project_is_engaged_and_one_that_is_not_is_left() -> None:
    assert plan(ObservedProject("acme", READY, None)) == Engage("acme", "uid-1")
    assert plan(ObservedProject("acme", UNREADY, None)) == Leave()


@pytest.mark.spec("M-80")
@pytest.mark.parametrize("project", [READY, UNREADY])
def test_an_engaged_project_stays_with_any_conditions(project: RootProject) -> None:
    assert plan(ObservedProject("acme", project, "uid-1")) == Leave()


@pytest.mark.spec("M-80")
@pytest.mark.parametrize("project", [READY, UNREADY])
def test_another_project_under_the_name_ends_the_former_one_first(project: RootProject) -> None:
    assert plan(ObservedProject("acme", project, "another")) == Disengage("acme")


@pytest.mark.spec("M-80")
def test_a_project_that_is_gone_is_disengaged_once() -> None:
    assert plan(ObservedProject("acme", Absent(), "uid-1")) == Disengage("acme")
    assert plan(ObservedProject("acme", Absent(), None)) == Leave()


@pytest.mark.spec("M-81")
@pytest.mark.fault("G6")
@pytest.mark.parametrize("name", NOT_LABELS)
def test_a_name_that_is_no_label_is_never_engaged(name: str) -> None:
    assert plan(ObservedProject(name, READY, None)) == Leave()


@pytest.mark.spec("M-81")
@pytest.mark.fault("G6")
@pytest.mark.parametrize("name", NOT_LABELS)
def test_a_name_that_is_no_label_never_becomes_part_of_an_address(name: str) -> None:
    with pytest.raises(NamingError, match="must be a DNS label"):
        derive_project_url("https://milo.example:6443", name)


def test_the_longest_label_is_addressed_and_query_and_fragment_are_dropped() -> None:
    name = "a" * 63
    path = f"/apis/resourcemanager.miloapis.com/v1alpha1/projects/{name}/control-plane"
    assert derive_project_url("https://[::1]:6443/x?y=1#z", name) == f"https://[::1]:6443{path}"
