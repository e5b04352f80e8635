"""The provider's rights: what `deploy/pod-provider` grants, and what of it was used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from compute_sim_planes.api_server.authz.authorizer import Attributes, Authorizer, Decision
from compute_sim_planes.api_server.authz.identity import User
from compute_sim_planes.json_types import JsonObject, objects_at, string_at, strings_at
from e2e.harness.deploy.rights import READS
from e2e.harness.deploy.shipped import manifests

PROVIDER: Final = "system:serviceaccount:compute-system:compute-pod-provider"
NOT_INSTALLED: Final = ("ConfigMap", "Deployment")
OURS: Final = ("compute-pod-provider", "compute-instance-pods", "compute-system")


def shipped(overlay: str = "pod-provider") -> list[JsonObject]:
    """Roles, bindings and policy of the provider, as an administrator applies them."""
    return [
        one
        for one in manifests(overlay)
        if string_at(one, "kind") not in NOT_INSTALLED
        and string_at(one, "metadata", "name").startswith(OURS)
    ]


def granted() -> set[str]:
    """Every right of the provider's roles; reading a kind in whichever way is one right."""
    return {right for one in shipped() for right in _rights_of(one)}


def _rights_of(role: JsonObject) -> Iterator[str]:
    for rule in objects_at(role, "rules"):
        for group in strings_at(rule, "apiGroups"):
            for resource in strings_at(rule, "resources"):
                verbs = strings_at(rule, "verbs")
                reads_all = {*verbs} >= READS
                for verb in verbs:
                    shown = "s" if verb in READS and reads_all else verb
                    yield f"{shown} {resource}.{group}"


@dataclass(slots=True)
class Witness:
    """Authorizes by the plane's own roles, and records what the provider asked for."""

    authorizer: Authorizer
    used: set[str] = field(default_factory=set[str])
    refused: list[str] = field(default_factory=list[str])

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        decision = self.authorizer.authorize(user, attributes)
        if user.name == PROVIDER and attributes.resource:
            resource = f"{attributes.resource}/{attributes.subresource}".removesuffix("/")
            place = f"{resource}.{attributes.group}"
            self.used.add(f"{attributes.verb} {place}")
            if attributes.verb in READS:
                self.used.add(f"s {place}")
            if not decision.allowed:
                self.refused.append(f"{attributes.verb} {place}")
        return decision
