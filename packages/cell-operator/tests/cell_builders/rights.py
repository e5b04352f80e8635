"""The operator's rights: what `deploy/` grants, enforced on every plane, and what of it was used.

In every test the processes have the identities that ship: at home a service account, elsewhere
`compute:cell:…` with the binding of one cell, narrowed by the admission policies that ship. A
plane's witness authorizes by the plane's own roles and records every request: a refused one fails
any run (`refused`), and one test compares the used rights with the granted ones. The user of the
decommission command is recorded alike, under separate roles.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from cell_builders.documents import CELL_NAME, CITY
from compute_cell_operator.planes import CELL, HUB
from compute_cell_operator.wiring import COMPONENT
from compute_sim_planes.api_server.authz.authorizer import Attributes, Authorizer, Decision
from compute_sim_planes.api_server.authz.identity import User, authenticated
from compute_sim_planes.json_types import JsonObject as Manifest
from compute_sim_planes.json_types import objects_at, string_at, strings_at
from e2e.harness.deploy.rights import CELL_USER, READS, GrantedRight
from e2e.harness.deploy.shipped import cell_bindings, manifests

AT_HOME: Final = authenticated(CELL_USER)
ABROAD: Final = authenticated(f"compute:cell:{CELL_NAME}")
PERSON: Final = authenticated("person")
WATCHED: Final = {AT_HOME.name: COMPONENT, ABROAD.name: COMPONENT, PERSON.name: "person"}
FOLDERS: Final = {"cell": "cell", "hub": "hub", "root": "milo"}
RBAC: Final = "rbac.authorization.k8s.io"
POLICIES: Final = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
ROLES: Final = ("Role", "ClusterRole")
OURS: Final = (COMPONENT, "compute-metrics-reader")
DECOMMISSION: Final = "compute-cell-decommission"


def side_of(plane: str) -> str:
    """Which roles hold on a plane; those of Milo's root hold in every project."""
    named: dict[str, str] = {CELL: "cell", HUB: "hub"}
    return named.get(plane, "root")


def operator_on(plane: str) -> User:
    """The operator's user on a plane."""
    return AT_HOME if plane == CELL else ABROAD


# --- what ships -----------------------------------------------------------------------------------


def shipped(side: str) -> list[Manifest]:
    """Our roles, policies and bindings, and the namespace, as an administrator applies them."""
    found = [one for one in manifests(FOLDERS[side]) if _is_of_the_operator(one)]
    bindings = [] if side == "cell" else cell_bindings(FOLDERS[side], CELL_NAME, CITY)
    return [*found, *bindings]


def _is_of_the_operator(manifest: Manifest) -> bool:
    kind, name = string_at(manifest, "kind"), string_at(manifest, "metadata", "name")
    return kind in {"Namespace", *POLICIES} or (_is_rbac(manifest) and name.startswith(OURS))


def _is_rbac(manifest: Manifest) -> bool:
    return string_at(manifest, "apiVersion").startswith(RBAC)


def decommission_roles(side: str) -> list[Manifest]:
    """The person's roles on a side, each with the binding that exists only meanwhile."""
    roles = [
        one
        for one in manifests(FOLDERS[side])
        if _is_rbac(one) and string_at(one, "metadata", "name").startswith(DECOMMISSION)
    ]
    return [*roles, *map(_binding_of, roles)]


def _binding_of(role: Manifest) -> Manifest:
    kind, name = string_at(role, "kind"), string_at(role, "metadata", "name")
    metadata: Manifest = {"name": name}
    if kind == "Role":
        metadata["namespace"] = string_at(role, "metadata", "namespace")
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": PERSON.name}],
    }


def operator_rights() -> set[GrantedRight]:
    """Every right that ships for this operator; reading a kind in whichever way is one right."""
    return {
        right
        for side in FOLDERS
        for role in shipped(side)
        if string_at(role, "kind") in ROLES and string_at(role, "metadata", "name") not in OURS[1:]
        for right in _rights_of(side, role, joins_reads=True)
    }


def person_rights() -> set[GrantedRight]:
    """Every right that ships for the decommission command, verb by verb."""
    return {
        right
        for side in ("hub", "root")
        for role in decommission_roles(side)
        for right in _rights_of(side, role, joins_reads=False)
    }


def _rights_of(side: str, role: Manifest, *, joins_reads: bool) -> Iterator[GrantedRight]:
    name = string_at(role, "metadata", "name")
    for rule in objects_at(role, "rules"):
        for group in strings_at(rule, "apiGroups"):
            for resource in strings_at(rule, "resources"):
                for verb in strings_at(rule, "verbs"):
                    told = "s" if joins_reads and verb in READS else verb
                    yield GrantedRight(side, name, group, resource, told)


# --- what was used --------------------------------------------------------------------------------


@dataclass(slots=True)
class Witness:
    """What the operator and the person asked for on the planes of one world."""

    used: set[tuple[str, str, str, str, str]] = field(
        default_factory=set[tuple[str, str, str, str, str]]
    )
    refused: list[str] = field(default_factory=list[str])

    def beside(self, side: str, authorizer: Authorizer) -> Authorizer:
        return _Witnessed(self, side, authorizer)

    def see(self, side: str, who: str, wanted: Attributes, *, allowed: bool) -> None:
        resource = f"{wanted.resource}/{wanted.subresource}".removesuffix("/")
        if not allowed:
            place = f"{wanted.namespace}/{wanted.name}".strip("/")
            self.refused.append(f"{side}: {who}: {wanted.verb} {resource}.{wanted.group} {place}")
        for verb in {wanted.verb, "s" if wanted.verb in READS else wanted.verb}:
            self.used.add((who, side, wanted.group, resource, verb))

    def find_unused(self, granted: Iterable[GrantedRight], who: str = COMPONENT) -> list[str]:
        """Rights that no request needed."""
        return [str(right) for right in sorted(granted) if not self._has_used(right, who)]

    def rights(self, granted: Iterable[GrantedRight], who: str = COMPONENT) -> set[GrantedRight]:
        """Which of these rights were needed."""
        return {right for right in granted if self._has_used(right, who)}

    def _has_used(self, right: GrantedRight, who: str) -> bool:
        return (who, right.side, right.group, right.resource, right.verb) in self.used


@dataclass(frozen=True, slots=True)
class _Witnessed:
    witness: Witness
    side: str
    authorizer: Authorizer

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        verdict = self.authorizer.authorize(user, attributes)
        who = WATCHED.get(user.name)
        # Other users are not recorded; discovery is open to every authenticated user.
        if who is not None and attributes.resource:
            self.witness.see(self.side, who, attributes, allowed=verdict.allowed)
        return verdict
