"""Opens the stage on kind's clusters."""

from __future__ import annotations

from collections.abc import Iterable

from e2e.backends.kind.commands import check_programs
from e2e.backends.real.stage import Planned, RealStage
from e2e.planes.errors import PlanesError


def open_stage(planned: Iterable[Planned]) -> RealStage:
    """Raises: clusters and Karmada can be made, but the theatre plays on planes of ours alone.

    What is missing is one adapter: `e2e.planes.plane.Plane` over a kubeconfig of `clusters.py`
    (endpoints, tokens of people and neighbours, audit logs out of the node's container).
    """
    check_programs()
    names = ", ".join(one.name for one in planned)
    raise PlanesError(
        f"playing {names} on kind: planes out of kubeconfigs are not written yet",
        remedy="use --in-cluster, which runs the same images and manifests on kubelets",
    )
