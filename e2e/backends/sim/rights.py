"""Who everybody is to each plane, what `deploy/` lets him do there, and what of it was used.

Operators are nobody but the identities of `docs/spec/operations.md` 5: what their roles do not
grant is refused. The report of a run names every right of a role, and whether a request needed it;
`get`, `list` and `watch` together are one right (`s`). Reports of many runs are joined by
`e2e.rights`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import orjson
from typing_extensions import override

from compute_api_types.wire import JsonObject
from compute_sim_planes.api_server.identity import MASTERS, User, authenticated
from compute_sim_planes.crds import Neighbour, load_crds
from compute_sim_planes.history import History, Request
from e2e.backends.port import HOME, HUB, MANAGEMENT
from e2e.manifests import DEPLOY, render
from e2e.objects import object_at, objects_at, text_at, texts_at

MANAGEMENT_USER: Final = "system:serviceaccount:compute-system:compute-management-operator"
CELL_USER: Final = "system:serviceaccount:compute-system:compute-cell-operator"
READS: Final = frozenset({"get", "list", "watch"})
TEMPLATE_CELL: Final = "example"  # the name in the folders that are copied for each cell


def user_of(operator: str, plane: str) -> User:
    """An operator's identity: management has one, a cell is itself at home and `compute:cell:…`
    elsewhere.
    """
    if operator == MANAGEMENT:
        return authenticated(MANAGEMENT_USER)
    return authenticated(CELL_USER if plane == operator else f"compute:cell:{operator}")


def person(who: str) -> User:
    """Somebody who is no operator. Names with a colon are identities and get no more than theirs;
    the others may do everything, since IAM inside a project is Milo's and not played here.
    """
    return authenticated(who) if ":" in who else authenticated(who, MASTERS)


# --- what an administrator applies ----------------------------------------------------------------


@cache
def _rendered(folder: Path) -> tuple[bytes, ...]:
    """Rendered once per process: reading takes longer than most scenarios."""
    return tuple(orjson.dumps(one) for one in render(folder))


def manifests(folder: str) -> list[JsonObject]:
    return [orjson.loads(raw) for raw in _rendered(DEPLOY / folder)]


@cache
def _loaded(*neighbours: Neighbour) -> tuple[bytes, ...]:
    return tuple(orjson.dumps(crd) for crd in load_crds(*neighbours))


def definitions(*neighbours: Neighbour) -> list[JsonObject]:
    """Our own CRDs, as shipped, and those of the neighbours named."""
    return [*manifests("crds"), *(neighbour_definitions(*neighbours) if neighbours else ())]


def neighbour_definitions(*neighbours: Neighbour) -> list[JsonObject]:
    return [orjson.loads(raw) for raw in _loaded(*neighbours)]


def cell_bindings(side: str, cell: str) -> list[JsonObject]:
    """The binding of one cell on the hub or at Milo's root, made from the template that ships."""
    raws = _rendered(DEPLOY / side / "cells" / TEMPLATE_CELL)
    return [orjson.loads(raw.replace(TEMPLATE_CELL.encode(), cell.encode())) for raw in raws]


# --- what was used --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One verb on one resource that a role grants on one kind of plane."""

    side: str  # root, home, hub, cell
    role: str
    group: str
    resource: str  # with its subresource
    verb: str  # `s` for get, list and watch

    @override
    def __str__(self) -> str:
        return f"{self.role} ({self.side}): {self.verb} {self.resource}.{self.group or 'core'}"


# Roles of operators by the kind of plane they are bound on; a person's roles are used by hand.
OPERATORS_ROLES: Final = {
    "root": ("milo", {"compute-management-operator-project", "compute-cell-operator-quota"}),
    "hub": ("hub", {"compute-management-operator", "compute-cell-operator"}),
    "home": ("management", {"compute-management-operator"}),
    "cell": ("cell", {"compute-cell-operator"}),
}


def granted_rights() -> set[Right]:
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


def _rights_of(side: str, role: JsonObject) -> Iterator[Right]:
    name = text_at(role, "metadata", "name")
    for rule in objects_at(role, "rules"):
        for group in texts_at(rule, "apiGroups"):
            for resource in texts_at(rule, "resources"):
                for verb in texts_at(rule, "verbs"):
                    yield Right(side, name, group, resource, "s" if verb in READS else verb)


def used_rights(history: History, cells: Iterable[str]) -> set[Right]:
    """Which of them the operators' requests of a run needed."""
    granted = granted_rights()
    known = {*cells}
    found: set[Right] = set()
    for request in history.of(Request):
        operator = request.caller.identity
        if operator == MANAGEMENT or operator in known:
            side = _side(operator, request.address.plane)
            found |= {right for right in granted if _needs(right, request, operator, side)}
    return found


def _side(operator: str, plane: str) -> str:
    if plane in {HUB, HOME}:
        return plane
    return "cell" if plane == operator else "root"


def _needs(right: Right, request: Request, operator: str, side: str) -> bool:
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


def refusals(history: History, cells: Iterable[str]) -> list[Request]:
    """What planes forbade operators; there must be none."""
    known = {MANAGEMENT, *cells}
    return [
        request
        for request in history.of(Request)
        if request.caller.identity in known and request.status == 403
    ]


def describe_webhook() -> str:
    """The address at which the shipped configuration has planes ask for admission."""
    for one in manifests("milo"):
        if text_at(one, "kind") == "ValidatingWebhookConfiguration":
            service = object_at(objects_at(one, "webhooks")[0], "clientConfig", "service")
            host = f"{text_at(service, 'name')}.{text_at(service, 'namespace')}.svc"
            return f"https://{host}:{service.get('port', 443)}{text_at(service, 'path')}"
    raise LookupError("reading deploy/milo: no ValidatingWebhookConfiguration")
