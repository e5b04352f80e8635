"""The stack of a session on kind clusters instead of the harness's own nodes."""

from __future__ import annotations

from dataclasses import replace

from typing_extensions import override

from e2e.backends.kind.kind_clusters import KindClusters
from e2e.backends.pods.backend import PodBackend
from e2e.backends.pods.environment import (
    CELL_PART,
    MANAGEMENT_PART,
    PROVIDER_PART,
    PodEnvironment,
    images_of_planes,
)
from e2e.backends.pods.host import PodHost
from e2e.backends.real.environment import EnvironmentOptions, UsageReport
from e2e.harness.stack.stack import Options


class KindEnvironment(PodEnvironment):
    """The stack of one session on kind."""

    # kind enforces NetworkPolicies, and the shipped ones do not allow the ports of fault links.
    management_part = replace(MANAGEMENT_PART, components=())
    cell_part = replace(CELL_PART, components=())
    provider_part = replace(PROVIDER_PART, components=())

    def __init__(self, options: EnvironmentOptions | None = None) -> None:
        self.clusters = KindClusters(images_of_planes())
        super().__init__(options)

    @override
    def _options(self) -> Options:
        return replace(super()._options(), nodes=None, clusters=self.clusters)

    @override
    def _host(self, plane: str) -> PodHost:
        return self.clusters.node(plane)

    @override
    def describe_use(self) -> UsageReport:
        """Reported only: complete use of `deploy/` is checked by `in-cluster`."""
        return replace(super().describe_use(), faults=())


class KindBackend(PodBackend):
    """See `e2e/world/port.py`, with `HasPods`."""

    name = "kind"
