"""The roles of `deploy/` are the table of operations.md 5, and none could grow beyond it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TypeAlias

import pytest

from compute_api_types.wire import JsonObject
from e2e.deploy_checks.rbac_rights import READING, RbacRight, granted_by, parse_table, roles_in
from e2e.harness.deploy.manifests import DEPLOY, load_overlay
from e2e.harness.deploy.overlay_targets import OPERATORS, OVERLAYS
from e2e.harness.stack.kubectl import NO_KUBECTL, find_kubectl, kustomize
from e2e.world.components import parse_manifests
from e2e.world.objects import object_at, objects_at, text_at, texts_at
from tools.workspace import ROOT

PAGE = (ROOT / "docs/spec/operations.md").read_text("utf-8")
TABLE = parse_table(PAGE)
CLUSTER = "ClusterRole"
Subject: TypeAlias = tuple[str, str, str]  # kind, namespace, name
Bound: TypeAlias = tuple[str, tuple[Subject, ...]]  # role and subjects
# Where the roles of an identity are, and which they are; names in the table must be these.
HELD: dict[str, tuple[tuple[str, tuple[tuple[str, str], ...]], ...]] = {
    "A": (("milo", ((CLUSTER, "compute-management-operator-project"),)),),
    "B": (
        (
            "hub",
            ((CLUSTER, "compute-management-operator"), ("Role", "compute-management-operator")),
        ),
    ),
    "C": (
        ("hub", ((CLUSTER, "compute-cell-operator"),)),
        ("hub/cells/example", (("Role", "compute-cell-heartbeat:example"),)),
    ),
    "D": (("cell", ((CLUSTER, "compute-cell-operator"),)),),
    "E": (("milo", ((CLUSTER, "compute-cell-operator-quota"),)),),
    "F": tuple(
        (
            folder,
            (("Role", name), (CLUSTER, f"{name}-metrics")),
        )
        for folder, name in OPERATORS.items()
    ),
    "G": (
        ("hub", ((CLUSTER, "compute-cell-decommission"), ("Role", "compute-cell-decommission"))),
        ("milo", ((CLUSTER, "compute-cell-decommission-quota"),)),
    ),
    "H": (("pod-provider", ((CLUSTER, "compute-pod-provider"),)),),
}
# Rights that are a way to further rights, or to somebody's secrets.
FORBIDDEN_VERBS = {"*", "escalate", "bind", "impersonate"}
FORBIDDEN_RESOURCES = {"*", "secrets", "configmaps", "serviceaccounts/token"}
FORBIDDEN_GROUPS = {
    "*",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "rbac.authorization.k8s.io",
}


@cache
def rendered(folder: str) -> list[JsonObject]:
    return load_overlay(folder)


def without_names(rights: set[RbacRight]) -> set[RbacRight]:
    return {RbacRight(right.group, right.resource, right.verb) for right in rights}


def test_the_page_has_the_identities_a_to_h() -> None:
    assert sorted({line.identity for line in TABLE}) == sorted(HELD)
    assert len(TABLE) == 44  # A 9, B 8, C 5, D 8, E 2, F 3, G 5, H 4


@pytest.mark.parametrize("identity", sorted(HELD))
def test_roles_of_an_identity_grant_what_its_lines_say(identity: str) -> None:
    lines = [line for line in TABLE if line.identity == identity]
    for folder, names in HELD[identity]:
        roles = roles_in(rendered(folder))
        granted = {right for name in names for right in granted_by(roles[name])}
        named = {name for _, name in names}
        # F has no name of its own in the table: every operator has its own roles.
        wanted = {right for line in lines if line.role in {"", *named} for right in line.rights}
        assert wanted
        assert without_names(granted) == wanted, folder


def test_role_names_of_the_page_are_those_of_the_manifests() -> None:
    told = {(line.identity, line.role) for line in TABLE if line.role}
    held = {
        (identity, name)
        for identity, places in HELD.items()
        if identity != "F"
        for _, names in places
        for _, name in names
    }
    assert told == held


def test_no_role_stands_beside_the_table() -> None:
    known = {
        (folder, *name) for places in HELD.values() for folder, names in places for name in names
    }
    for folder in ("hub", "milo", "management", "cell", "pod-provider"):
        for name in roles_in(rendered(folder)):
            if name != (CLUSTER, "compute-metrics-reader"):
                assert (folder, *name) in known


@pytest.mark.parametrize("overlay", sorted(OVERLAYS))
def test_no_right_leads_to_more_rights_or_to_secrets(overlay: str) -> None:
    for role in roles_in(rendered(overlay)).values():
        for right in granted_by(role):
            assert right.verb not in FORBIDDEN_VERBS, right
            assert right.resource not in FORBIDDEN_RESOURCES, right
            assert right.group not in FORBIDDEN_GROUPS, right


@pytest.mark.parametrize("overlay", sorted(OVERLAYS))
def test_what_is_watched_is_got_and_listed_by_the_same_rule(overlay: str) -> None:
    for role in roles_in(rendered(overlay)).values():
        for rule in objects_at(role, "rules"):
            if "watch" in texts_at(rule, "verbs"):
                assert set(READING) <= set(texts_at(rule, "verbs"))


@pytest.mark.parametrize(
    ("folder", "name"),
    OPERATORS.items(),
)
def test_lease_is_read_and_written_by_its_name_alone(folder: str, name: str) -> None:
    role = roles_in(rendered(folder))["Role", name]
    leases = {right for right in granted_by(role) if right.resource == "leases"}
    group = "coordination.k8s.io"
    assert leases == {
        RbacRight(group, "leases", "create"),
        RbacRight(group, "leases", "get", (name,)),
        RbacRight(group, "leases", "update", (name,)),
    }


@pytest.mark.spec("DS-13")
def test_a_cell_renews_its_own_lease_by_name_and_cannot_create_it() -> None:
    role = roles_in(rendered("hub/cells/example"))["Role", "compute-cell-heartbeat:example"]
    name = ("compute-cell-example",)
    assert granted_by(role) == {
        RbacRight("coordination.k8s.io", "leases", verb, name) for verb in ("get", "update")
    }
    (lease,) = (one for one in rendered("hub/cells/example") if text_at(one, "kind") == "Lease")
    assert text_at(lease, "metadata", "name") == name[0]
    assert "spec" not in lease  # never renewed: the cell is not judged by it yet
    assert object_at(role, "metadata")["namespace"] == object_at(lease, "metadata")["namespace"]


def test_metrics_readers_may_get_metrics_and_nothing_else() -> None:
    for folder in ("management", "cell", "pod-provider", "single-cluster"):
        reader = roles_in(rendered(folder))[CLUSTER, "compute-metrics-reader"]
        assert reader["rules"] == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]


def bindings(folder: str) -> dict[str, Bound]:
    """Role and subjects by the binding's name."""
    return {
        f"{text_at(one, 'kind')}/{text_at(one, 'metadata', 'name')}": (
            f"{text_at(one, 'roleRef', 'kind')}/{text_at(one, 'roleRef', 'name')}",
            tuple(
                (text_at(who, "kind"), text_at(who, "namespace"), text_at(who, "name"))
                for who in objects_at(one, "subjects")
            ),
        )
        for one in rendered(folder)
        if text_at(one, "kind") in {"RoleBinding", "ClusterRoleBinding"}
    }


MANAGEMENT: Subject = ("ServiceAccount", "compute-system", "compute-management-operator")
CELL: Subject = ("ServiceAccount", "compute-system", "compute-cell-operator")
PROVIDER: Subject = ("ServiceAccount", "compute-system", "compute-pod-provider")
MANAGEMENT_USER: Subject = (
    "User",
    "",
    "system:serviceaccount:compute-system:compute-management-operator",
)
AT_HOME: dict[str, dict[str, Bound]] = {
    who[2]: {
        f"RoleBinding/{who[2]}": (f"Role/{who[2]}", (who,)),
        f"ClusterRoleBinding/{who[2]}-metrics": (f"ClusterRole/{who[2]}-metrics", (who,)),
    }
    for who in (MANAGEMENT, CELL, PROVIDER)
}
OWN_PLANE: dict[str, Bound] = {
    "ClusterRoleBinding/compute-cell-operator": ("ClusterRole/compute-cell-operator", (CELL,))
}
OWN_PODS: dict[str, Bound] = {
    "ClusterRoleBinding/compute-pod-provider": ("ClusterRole/compute-pod-provider", (PROVIDER,))
}
PROJECTS = "compute-management-operator-project"
BOUND: dict[str, dict[str, Bound]] = {
    "crds": {},
    "hub": {
        "ClusterRoleBinding/compute-management-operator": (
            "ClusterRole/compute-management-operator",
            (MANAGEMENT_USER,),
        ),
        "RoleBinding/compute-management-operator": (
            "Role/compute-management-operator",
            (MANAGEMENT_USER,),
        ),
    },
    "hub/cells/example": {
        "ClusterRoleBinding/compute-cell-operator:example": (
            "ClusterRole/compute-cell-operator",
            (("User", "", "compute:cell:example"),),
        ),
        "RoleBinding/compute-cell-heartbeat:example": (
            "Role/compute-cell-heartbeat:example",
            (("User", "", "compute:cell:example"),),
        ),
    },
    "milo": {f"ClusterRoleBinding/{PROJECTS}": (f"ClusterRole/{PROJECTS}", (MANAGEMENT_USER,))},
    "milo/cells/example": {
        "ClusterRoleBinding/compute-cell-operator-quota:example": (
            "ClusterRole/compute-cell-operator-quota",
            (("User", "", "compute:cell:example"),),
        )
    },
    "management": AT_HOME[MANAGEMENT[2]],
    "cell": AT_HOME[CELL[2]] | OWN_PLANE,
    "pod-provider": AT_HOME[PROVIDER[2]] | OWN_PODS,
    # Roles A, D, F and H, bound locally.
    "single-cluster": AT_HOME[MANAGEMENT[2]]
    | AT_HOME[CELL[2]]
    | AT_HOME[PROVIDER[2]]
    | OWN_PLANE
    | OWN_PODS
    | {f"ClusterRoleBinding/{PROJECTS}": (f"ClusterRole/{PROJECTS}", (MANAGEMENT,))},
}


@pytest.mark.parametrize("overlay", sorted(OVERLAYS))
def test_everybody_is_bound_to_his_own_role_and_nobody_to_that_of_a_person(overlay: str) -> None:
    assert bindings(overlay) == BOUND[overlay]


def test_single_cluster_has_the_same_role_as_the_milo_root() -> None:
    name = (CLUSTER, PROJECTS)
    here, there = (roles_in(rendered(folder))[name] for folder in ("single-cluster", "milo"))
    assert here["rules"] == there["rules"]


@pytest.mark.skipif(find_kubectl() is None, reason=NO_KUBECTL)
def test_owner_refs_adds_the_finalizers_of_owners_and_nothing_else(tmp_path: Path) -> None:
    overlay = tmp_path / "kustomization.yaml"
    added: set[RbacRight] = set()
    for folder in ("hub", "milo", "cell", "pod-provider"):
        (tmp_path / "deploy").unlink(missing_ok=True)
        (tmp_path / "deploy").symlink_to(DEPLOY)
        overlay.write_text(
            "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
            f"resources: [deploy/{folder}]\ncomponents: [deploy/components/owner-refs]\n",
            "utf-8",
        )
        with_patch = roles_in(parse_manifests(kustomize(tmp_path)))
        without = roles_in(rendered(folder))
        for name, role in with_patch.items():
            added |= granted_by(role) - granted_by(without[name])
    assert added == {
        RbacRight("compute.datumapis.com", f"{owner}/finalizers", "update")
        for owner in ("workloads", "workloaddeployments", "instances")
    }


def test_roles_say_which_identity_they_are() -> None:
    """A reader of a role finds its line of the table by the letter."""
    files = {
        "A": "milo/roles/management/role.yaml",
        "B": "hub/rbac/management.yaml",
        "C": "hub/rbac/cell.yaml",
        "D": "cell/operator/role.yaml",
        "E": "milo/roles/cell/role.yaml",
        "F": "management/operator/rbac.yaml",
        "G": "hub/rbac/decommission.yaml",
        "H": "pod-provider/operator/role.yaml",
    }
    for letter, name in files.items():
        assert (DEPLOY / name).read_text("utf-8").startswith(f"# {letter}: ")


def test_cell_templates_are_one_name_put_in_three_places() -> None:
    for side in ("hub", "milo"):
        for document in rendered(f"{side}/cells/example"):
            labels = object_at(document, "metadata", "labels")
            assert labels["compute.datumapis.com/cell"] == "example"
        text = (DEPLOY / side / "cells/example/binding.yaml").read_text("utf-8")
        assert text.count("example") == 3
