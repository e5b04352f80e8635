"""Which kinds federation, policy and projection cache on projects and on the hub."""

from __future__ import annotations

from typing import Final

from compute_management_operator import hub_indexes
from compute_management_operator.kinds import CLUSTER, DEPLOYMENT, INSTANCE, NAMESPACE, POLICY
from compute_management_operator.outlines import DEPLOYMENT_OUTLINE
from compute_operator_kit.keys import Role
from compute_operator_kit.planes import Watched

HUB_CACHES: Final = (
    Watched(
        Role.PROJECT,
        DEPLOYMENT,
        indexes=hub_indexes.PROJECT_DEPLOYMENTS,
        outline=DEPLOYMENT_OUTLINE,
    ),
    Watched(Role.PROJECT, INSTANCE, indexes=hub_indexes.PROJECT_INSTANCES),
    Watched(Role.HUB, NAMESPACE, indexes=hub_indexes.HUB_NAMESPACES),
    Watched(Role.HUB, DEPLOYMENT, indexes=hub_indexes.HUB_DEPLOYMENTS, outline=DEPLOYMENT_OUTLINE),
    Watched(Role.HUB, POLICY, indexes=hub_indexes.HUB_POLICIES),
    Watched(Role.HUB, CLUSTER, indexes=hub_indexes.HUB_CLUSTERS),
    Watched(Role.HUB, INSTANCE, indexes=hub_indexes.HUB_INSTANCES),
)
