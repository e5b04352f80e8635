"""The operator's rights: what `deploy/` grants, enforced on every plane, and what of it was used.

In every test, processes have the identity that ships. A plane's witness decides by the plane's own
roles and records the requests of the operator: a refused one fails any run (`refused`), and one
test compares the used rights with the granted ones.
Rights are those of `e2e`, so that the reports of scenarios and of contract tests can be joined.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from compute_management_operator.planes import HOME, HUB
from compute_management_operator.wiring import COMPONENT
from compute_sim_planes.api_server.authz.authorizer import Attributes, Authorizer, Decision
from compute_sim_planes.api_server.authz.identity import User, authenticated
from compute_sim_planes.json_types import JsonObject as Manifest
from e2e.harness.deploy.rights import MANAGEMENT_USER, READS, GrantedRight, granted_rights
from e2e.harness.deploy.shipped import manifests

OPERATOR: Final = authenticated(MANAGEMENT_USER)
FOLDERS: Final = {"home": "management", "hub": "hub", "root": "milo"}
RBAC: Final = "rbac.authorization.k8s.io/"
OURS: Final = (COMPONENT, "compute-metrics-reader")


def side_of(plane: str) -> str:
    """Which roles hold on a plane; those of the root hold in every project."""
    named: dict[str, str] = {HOME: "home", HUB: "hub"}
    return named.get(plane, "root")


def shipped_roles(side: str) -> list[Manifest]:
    """Our roles, their bindings and the namespace they lie in, as an administrator applies them."""
    return [
        found
        for found in manifests(FOLDERS[side])
        if found["kind"] == "Namespace"
        or (
            str(found["apiVersion"]).startswith(RBAC)
            and any(name in str(found["metadata"]) for name in OURS)
        )
    ]


def management_rights() -> set[GrantedRight]:
    """Every right that ships for this operator."""
    return {right for right in granted_rights() if COMPONENT in right.role}


@dataclass(slots=True)
class Witness:
    """What the operator asked for on the planes of one world."""

    used: set[tuple[str, str, str, str]] = field(default_factory=set[tuple[str, str, str, str]])
    refused: list[str] = field(default_factory=list[str])

    def beside(self, side: str, authorizer: Authorizer) -> Authorizer:
        return _Witnessed(self, side, authorizer)

    def see(self, side: str, wanted: Attributes, *, allowed: bool) -> None:
        resource = f"{wanted.resource}/{wanted.subresource}".removesuffix("/")
        if not allowed:
            place = f"{wanted.namespace}/{wanted.name}".strip("/")
            self.refused.append(f"{side}: {wanted.verb} {resource}.{wanted.group} {place}")
        verb = "s" if wanted.verb in READS else wanted.verb
        self.used.add((side, wanted.group, resource, verb))

    def rights(self) -> set[GrantedRight]:
        """Which of the shipped rights were used."""
        return rights_used([self])


def rights_used(witnesses: Iterable[Witness]) -> set[GrantedRight]:
    used = {one for witness in witnesses for one in witness.used}
    return {
        right
        for right in management_rights()
        if (right.side, right.group, right.resource, right.verb) in used
    }


@dataclass(frozen=True, slots=True)
class _Witnessed:
    witness: Witness
    side: str
    authorizer: Authorizer

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        verdict = self.authorizer.authorize(user, attributes)
        # Rights of other users are not recorded; discovery is free to every user with a name.
        if user.name == OPERATOR.name and attributes.resource:
            self.witness.see(self.side, attributes, allowed=verdict.allowed)
        return verdict
