from __future__ import annotations

import pytest

from compute_api_types import labels
from compute_api_types.wire import JsonObject
from compute_sim_planes.oracles.invariants import field_ownership
from e2e.oracles.layout import Layout
from e2e.oracles.ownership import ownership_in
from e2e.oracles.tenancy import tenancy
from e2e.oracles.testing import HistoryBuilder, an_object

UID = "3bea65ed-100f-4d8d-b0ef-c7cbf3074b4b"
LAYOUT = Layout(frozenset({"dfw-1", "ord-1"}))


@pytest.mark.parametrize(
    ("user", "plane", "verb", "resource"),
    [
        ("management", "acme", "delete", "secrets"),
        ("management", "dfw-1", "get", "instances"),
        ("dfw-1", "ord-1", "list", "instances"),
        ("dfw-1", "hub", "patch", "workloaddeployments"),
        ("dfw-1", "acme", "list", "workloads"),
        ("dfw-1", "root", "list", "projects"),
    ],
)
def test_a_request_outside_the_list_breaks_o6(
    script: HistoryBuilder, user: str, plane: str, verb: str, resource: str
) -> None:
    script.ask(user, plane, verb, resource)
    assert len(tenancy(script.history, LAYOUT)) == 1


def test_what_people_and_neighbours_ask_is_not_judged(script: HistoryBuilder) -> None:
    script.ask("tenant", "acme", "delete", "secrets")
    script.ask("karmada", "hub", "update", "works")
    assert tenancy(script.history, LAYOUT) == []


def _labelled(project: str, namespace: str = "shop") -> JsonObject:
    identity: JsonObject = {
        labels.UPSTREAM_CLUSTER_NAME: f"cluster-{project}",
        labels.UPSTREAM_NAMESPACE: namespace,
    }
    return {"labels": identity}


def _write(script: HistoryBuilder, plane: str, document: JsonObject) -> list[str]:
    script.write("management", plane, document, resource="instances")
    return [one.message for one in tenancy(script.history, LAYOUT)]


def test_an_object_of_one_project_in_the_plane_of_another_breaks_o6(script: HistoryBuilder) -> None:
    stray = an_object("Instance", "shop/web-0", metadata=_labelled("beta"))
    (message,) = _write(script, "acme", stray)
    assert "an object of 'cluster-beta' is in project 'acme'" in message


def test_an_object_of_one_project_in_the_hub_namespace_of_another_breaks_o6(
    script: HistoryBuilder,
) -> None:
    script.write("tenant", "acme", an_object("Namespace", "shop", UID))
    own = an_object("Instance", f"ns-{UID}/web-0", metadata=_labelled("acme"))
    assert _write(script, "hub", own) == []
    stray = an_object("Instance", f"ns-{UID}/web-1", metadata=_labelled("beta"))
    (message,) = _write(script, "hub", stray)
    assert "is in the namespace of project 'acme'" in message


def test_a_write_outside_the_namespaces_of_projects_breaks_o6(script: HistoryBuilder) -> None:
    (message,) = _write(script, "hub", an_object("Instance", "default/web-0"))
    assert "'default' on the hub stands for no project" in message


def test_a_condition_of_the_provider_is_not_ours_to_change(script: HistoryBuilder) -> None:
    def instance(status: str, condition: str) -> JsonObject:
        status_with: JsonObject = {"conditions": [{"type": condition, "status": status}]}
        return an_object("Instance", f"ns-{UID}/web-0", status=status_with)

    for condition, expected in (("QuotaGranted", 0), ("Programmed", 1)):
        script.write("provider", "dfw-1", instance("Unknown", condition))
        script.write("dfw-1", "dfw-1", instance("True", condition))
        violations = field_ownership(script.history, ownership_in(LAYOUT))
        assert len([one for one in violations if f"'{condition}'" in one.message]) == expected


def test_hub_status_is_not_managements_to_write(script: HistoryBuilder) -> None:
    script.write("karmada", "hub", an_object("WorkloadDeployment", f"ns-{UID}/web"))
    deployment = an_object("WorkloadDeployment", f"ns-{UID}/web", status={"replicas": 1})
    script.write("management", "hub", deployment)
    (violation,) = field_ownership(script.history, ownership_in(LAYOUT))
    assert "added status 'replicas'" in violation.message
