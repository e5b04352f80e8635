"""Federation, policy, projection, hub namespaces and claims: all that exists only with a hub
(management.md 4).

They share the UIDs of project namespaces; `wiring.py` asks for all of them at once, or for none.
"""

from __future__ import annotations

from typing import Final

from compute_api_types import labels
from compute_management_operator.assembly import Tools
from compute_management_operator.claims import controller as claims
from compute_management_operator.federation import controller as federation
from compute_management_operator.hub_namespace import controller as hub_namespace
from compute_management_operator.policy import controller as policy
from compute_management_operator.project_namespaces import ProjectNamespaces
from compute_management_operator.projection import controller as projection
from compute_operator_kit.keys import PlaneName
from compute_operator_kit.kube import Kube, Writer
from compute_operator_kit.parts import Part

# Whoever needs a UID asks in the name of the controller that federates.
READER: Final = Writer("federation", labels.FEDERATION_MANAGER)


def build_namespaces(tools: Tools) -> ProjectNamespaces:
    def kube_of(plane: PlaneName) -> Kube:
        return tools.reach.kube(plane, READER)

    return ProjectNamespaces(kube_of)


def build(tools: Tools, namespaces: ProjectNamespaces) -> tuple[Part, ...]:
    return (
        federation.build(tools, namespaces),
        policy.build(tools, namespaces),
        projection.build(tools, namespaces),
        hub_namespace.build(tools, namespaces),
        claims.build(tools, namespaces),
    )
