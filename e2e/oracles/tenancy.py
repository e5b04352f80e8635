"""O6: every request is on an allow-list, and no object of one project is written to another.

The list is by credential, plane, kind and verb. It is narrower than the roles because it also
checks namespaces. Written objects are checked too, since an allowed request may carry an object of
another project.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import orjson

from compute_api_types import labels
from compute_api_types.names import parse_hub_namespace
from compute_sim_planes.history import Commit, History, Request
from compute_sim_planes.oracles.invariants import Violation
from e2e.oracles.layout import Layout, Side
from e2e.world.objects import labels_of, text_at, uid_of
from e2e.world.port import HUB, MANAGEMENT

_READ: Final = frozenset({"get", "list", "watch"})
_MAKE: Final = frozenset({"create", "patch", "delete"})
_STATUS: Final = frozenset({"update"})
_NOTE: Final = frozenset({"create", "patch"})
_ASK: Final = frozenset({"create"})  # authentication and authorization of metrics requests


@dataclass(frozen=True, slots=True)
class Allowed:
    """What one operator may request on one kind of plane."""

    operator: str
    side: Side
    resource: str  # with its subresource
    verbs: frozenset[str]


ALLOWED: Final = (
    Allowed("management", "root", "projects", _READ),
    Allowed("management", "root", "events", _NOTE),
    Allowed("management", "project", "workloads", _READ | {"patch"}),
    Allowed("management", "project", "workloads/status", _STATUS),
    Allowed("management", "project", "workloaddeployments", _READ | _MAKE),
    Allowed("management", "project", "workloaddeployments/status", _STATUS),
    Allowed("management", "project", "instances", _READ | _MAKE),
    Allowed("management", "project", "instances/status", _STATUS),
    Allowed("management", "project", "namespaces", frozenset({"get"})),
    Allowed("management", "project", "resourceclaims", frozenset({"get", "list", "delete"})),
    Allowed("management", "project", "networks", _READ),
    Allowed("management", "project", "locations", _READ),
    Allowed("management", "project", "subjectaccessreviews", frozenset({"create"})),
    Allowed("management", "project", "events", _NOTE),
    Allowed("management", "hub", "namespaces", _READ | _MAKE),
    Allowed("management", "hub", "workloaddeployments", _READ | _MAKE),
    Allowed("management", "hub", "instances", _READ | {"patch"}),
    Allowed("management", "hub", "propagationpolicies", _READ | _MAKE),
    Allowed("management", "hub", "clusters", _READ),
    Allowed("management", "hub", "leases", frozenset({"list"})),
    Allowed("management", "hub", "resourcebindings", frozenset({"get"})),
    Allowed("management", "hub", "events", _NOTE),
    Allowed("management", "home", "leases", frozenset({"get", "create", "update"})),
    Allowed("management", "home", "events", _NOTE),
    Allowed("management", "home", "tokenreviews", _ASK),
    Allowed("management", "home", "subjectaccessreviews", _ASK),
    Allowed("cell", "hub", "namespaces", frozenset({"get"})),
    Allowed("cell", "hub", "workloaddeployments", frozenset({"get"})),
    Allowed("cell", "hub", "leases", frozenset({"get", "update"})),
    Allowed("cell", "hub", "instances", _READ | _MAKE),
    Allowed("cell", "hub", "instances/status", _STATUS),
    Allowed("cell", "project", "resourceclaims", _READ | _MAKE),
    Allowed("cell", "project", "namespaces", frozenset({"get"})),
    # Removes a finalizer of the Go operators; O7 checks that nothing else changes.
    Allowed("cell", "cell", "workloaddeployments", _READ | {"patch"}),
    Allowed("cell", "cell", "workloaddeployments/status", _STATUS),
    Allowed("cell", "cell", "instances", _READ | _MAKE),
    Allowed("cell", "cell", "instances/status", _STATUS),
    Allowed("cell", "cell", "namespaces", _READ),
    Allowed("cell", "cell", "locations", _READ),
    Allowed("cell", "cell", "networkcontexts", _READ),
    Allowed("cell", "cell", "subnets", _READ),
    Allowed("cell", "cell", "networkbindings", _READ | {"create", "delete"}),
    Allowed("cell", "cell", "subnetclaims", _READ | {"create"}),
    # With component `autoscaling`.
    Allowed("cell", "cell", "horizontalpodautoscalers", _READ | {"create", "patch", "delete"}),
    Allowed("cell", "cell", "workloaddeployments/scale", frozenset({"patch"})),
    Allowed("cell", "cell", "events", _NOTE),
    Allowed("cell", "cell", "tokenreviews", _ASK),
    Allowed("cell", "cell", "subjectaccessreviews", _ASK),
    Allowed("cell", "cell", "leases", frozenset({"get", "create", "update"})),
)
# With component `referenced-data`: sources are read, companions and copies are metadata to all but
# one request.
ALLOWED_WITH_DATA: Final = (
    Allowed("management", "project", "configmaps", _READ),
    Allowed("management", "project", "secrets", _READ),
    Allowed("management", "hub", "configmaps", _READ | _MAKE),
    Allowed("management", "hub", "secrets", _READ | _MAKE),
    Allowed("cell", "cell", "configmaps", _READ),
    Allowed("cell", "cell", "secrets", _READ),
)


def tenancy(history: History, layout: Layout) -> list[Violation]:
    """O6, over every request of an operator and the objects it wrote."""
    owners = _namespace_owners(history, layout)
    violations: list[Violation] = []
    for request in history.of(Request):
        if not layout.is_operator(request.caller.identity) or not _is_about_objects(request):
            continue
        if not _is_allowed(request, layout):
            violations.append(Violation("O6", request.begun, f"{_shown(request)} is in no list"))
        for commit in request.commits:
            violations += [
                Violation("O6", commit.at, f"{_shown(request)}: {why}")
                for why in _strays(commit, layout, owners)
            ]
    return violations


def _is_about_objects(request: Request) -> bool:
    """Discovery requests have a path but no resource."""
    return not request.address.resource.startswith("/")


def _is_allowed(request: Request, layout: Layout) -> bool:
    identity, address = request.caller.identity, request.address
    side = layout.side_of(address.plane)
    operator = "management" if identity == MANAGEMENT else "cell"
    if side == "cell" and address.plane != identity:
        return False  # only its own operator uses a cell's plane
    name = address.resource + (f"/{address.subresource}" if address.subresource else "")
    return any(
        (one.operator, one.side, one.resource) == (operator, side, name)
        and address.verb in one.verbs
        for one in (*ALLOWED, *(ALLOWED_WITH_DATA if layout.reads_data else ()))
    )


def _namespace_owners(history: History, layout: Layout) -> dict[str, tuple[str, str]]:
    """Project and namespace by the UID in the name of a hub namespace."""
    return {
        uid_of(document): (commit.plane, commit.key)
        for commit in history.of(Commit)
        if commit.kind == "Namespace" and commit.after
        if layout.side_of(commit.plane) == "project"
        for document in (orjson.loads(commit.after),)
    }


def _strays(commit: Commit, layout: Layout, owners: dict[str, tuple[str, str]]) -> Iterator[str]:
    """Parts of a written object that belong to another project than its namespace. An object that a
    scenario forged may be marked as quarantined.
    """
    is_forged = f"{commit.plane} {commit.kind} {commit.key}" in layout.by_hand
    if not commit.after or commit.kind in {"Event", "Lease"} or is_forged:
        return
    document = orjson.loads(commit.after)
    upstream = labels_of(document).get(labels.UPSTREAM_CLUSTER_NAME)
    if layout.side_of(commit.plane) == "project":
        if upstream not in {None, f"cluster-{commit.plane}"}:
            yield f"an object of {upstream!r} is in project {commit.plane!r}"
        return
    name = commit.key if commit.kind == "Namespace" else commit.key.partition("/")[0]
    uid = parse_hub_namespace(name)
    if commit.plane == HUB and uid is None:
        yield f"{name!r} on the hub stands for no project"
    elif commit.plane == HUB and upstream is not None:
        owner = owners.get(str(uid))
        within = text_at(document, "metadata", "labels", labels.UPSTREAM_NAMESPACE)
        if owner is not None and (upstream, within) != (f"cluster-{owner[0]}", owner[1]):
            yield f"an object of {upstream!r} is in the namespace of project {owner[0]!r}"


def _shown(request: Request) -> str:
    address = request.address
    return (
        f"{request.caller.identity} sent {address.verb} {address.resource} "
        f"{address.key} to {address.plane}"
    )
