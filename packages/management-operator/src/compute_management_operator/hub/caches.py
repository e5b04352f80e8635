"""The kinds that the hub controllers cache on projects and on the hub, with their indexes.

All four declare the same list, so that a store has every index whichever controller starts first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from compute_management_operator.dependencies import IN_USE
from compute_management_operator.hub import indexes
from compute_management_operator.hub.decoders import DEPLOYMENT_DECODER
from compute_management_operator.planes import CLUSTER, DEPLOYMENT, INSTANCE, NAMESPACE, POLICY
from compute_operator_kit.core.keys import Role
from compute_operator_kit.planes.engaged_plane import CachedKind

HUB_CACHES: Final = (
    CachedKind(
        Role.PROJECT,
        DEPLOYMENT,
        indexes=indexes.PROJECT_DEPLOYMENTS,
        decoder=DEPLOYMENT_DECODER,
    ),
    # A projection that is left in a project without deployments is looked for when that is engaged.
    CachedKind(
        Role.PROJECT,
        INSTANCE,
        indexes=indexes.PROJECT_INSTANCES,
        on_demand=replace(IN_USE, while_present=True),
    ),
    CachedKind(Role.HUB, NAMESPACE, indexes=indexes.HUB_NAMESPACES),
    CachedKind(Role.HUB, DEPLOYMENT, indexes=indexes.HUB_DEPLOYMENTS, decoder=DEPLOYMENT_DECODER),
    CachedKind(Role.HUB, POLICY, indexes=indexes.HUB_POLICIES),
    CachedKind(Role.HUB, CLUSTER, indexes=indexes.HUB_CLUSTERS),
    CachedKind(Role.HUB, INSTANCE, indexes=indexes.HUB_INSTANCES),
)
