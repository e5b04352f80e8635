"""The rights that the operators' shipped roles grant, and those that requests needed.

`get`, `list` and `watch` together are one right (`s`). `e2e.harness.deploy.rights_report` joins the
reports of many runs. Pure except for reading the roles.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from compute_api_types.wire import JsonObject
from compute_sim_planes.history import History, Request
from e2e.harness.deploy.shipped import manifests
from e2e.world.objects import objects_at, text_at, texts_at
from e2e.world.port import HOME, HUB, MANAGEMENT

MANAGEMENT_USER: Final = "system:serviceaccount:compute-system:compute-management-operator"
CELL_USER: Final = "system:serviceaccount:compute-system:compute-cell-operator"
READS: Final = frozenset({"get", "list", "watch"})


@dataclass(frozen=True, slots=True, order=True)
class GrantedRight:
    """One verb on one resource that a role grants on one kind of plane."""

    side: str  # root, home, hub, cell
    role: str
    group: str
    resource: str  # with its subresource
    verb: str  # `s` for get, list and watch

    @override
    def __str__(self) -> str:
        return f"{self.role} ({self.side}): {self.verb} {self.resource}.{self.group or 'core'}"


# Roles of operators by the kind of plane they are bound on; roles of users are not counted.
OPERATORS_ROLES: Final = {
    "root": ("milo", {"compute-management-operator-project", "compute-cell-operator-quota"}),
    "hub": ("hub", {"compute-management-operator", "compute-cell-operator"}),
    "home": ("management", {"compute-management-operator"}),
    "cell": ("cell", {"compute-cell-operator"}),
}


def granted_rights() -> set[GrantedRight]:
    """Every right that the shipped roles of both operators grant."""
    return {
        right
        for side, (folder, names) in OPERATORS_ROLES.items()
        for role in manifests(folder)
        if text_at(role, "kind") in {"Role", "ClusterRole"}
        and text_at(role, "metadata", "name") in names
        and text_at(role, "apiVersion").startswith("rbac.")
        for right in _rights_of(side, role)
    }


def _rights_of(side: str, role: JsonObject) -> Iterator[GrantedRight]:
    name = text_at(role, "metadata", "name")
    for rule in objects_at(role, "rules"):
        for group in texts_at(rule, "apiGroups"):
            for resource in texts_at(rule, "resources"):
                for verb in texts_at(rule, "verbs"):
                    yield GrantedRight(side, name, group, resource, "s" if verb in READS else verb)


def used_rights(history: History, cells: Iterable[str]) -> set[GrantedRight]:
    """The granted rights that the operators' requests of a run needed."""
    granted = granted_rights()
    known = {*cells}
    used: set[GrantedRight] = set()
    for request in history.of(Request):
        operator = request.caller.identity
        if operator == MANAGEMENT or operator in known:
            side = _side(operator, request.address.plane)
            used |= {right for right in granted if _needs(right, request, operator, side)}
    return used


def _side(operator: str, plane: str) -> str:
    if plane in {HUB, HOME}:
        return plane
    return "cell" if plane == operator else "root"


def _needs(right: GrantedRight, request: Request, operator: str, side: str) -> bool:
    address = request.address
    resource = address.resource
    if address.subresource:
        resource = f"{resource}/{address.subresource}"
    verb = "s" if address.verb in READS else address.verb
    owner = "management" if operator == MANAGEMENT else "cell"
    return (right.side, right.group, right.resource, right.verb) == (
        side,
        address.group,
        resource,
        verb,
    ) and f"compute-{owner}-operator" in right.role
