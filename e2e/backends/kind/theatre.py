"""The stack of a session on kind's clusters: what `in_cluster` does on nodes of our own."""

from __future__ import annotations

from dataclasses import replace

from typing_extensions import override

from e2e.backends.in_cluster.backend import PodBackend
from e2e.backends.in_cluster.host import HostOfPods
from e2e.backends.in_cluster.theatre import (
    CELL_PART,
    MANAGEMENT_PART,
    PodTheatre,
    images_of_planes,
)
from e2e.backends.kind.planes import KindClusters
from e2e.backends.real.theatre import Making, ToldUse
from e2e.planes.stack import Options


class KindTheatre(PodTheatre):
    """See the module's text."""

    # kind's network enforces policies, and fault links are at ports of their own that no policy
    # which ships lets anybody reach.
    management_part = replace(MANAGEMENT_PART, components=())
    cell_part = replace(CELL_PART, components=())

    def __init__(self, making: Making | None = None) -> None:
        self.clusters = KindClusters(images_of_planes())
        super().__init__(making)

    @override
    def _options(self) -> Options:
        return replace(super()._options(), nodes=None, clusters=self.clusters)

    @override
    def _host(self, plane: str) -> HostOfPods:
        return self.clusters.node(plane)

    @override
    def describe_use(self) -> ToldUse:
        """Told, and never a fault: all that ships is installed where `in-cluster` runs."""
        return replace(super().describe_use(), faults=())


class KindBackend(PodBackend):
    """See `e2e/backends/port.py`, also `HasPods`."""

    name = "kind"
