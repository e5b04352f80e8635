"""Opens the stage of a session on pods."""

from __future__ import annotations

from collections.abc import Iterable

from e2e.backends.in_cluster.backend import PodBackend
from e2e.backends.in_cluster.theatre import PodTheatre
from e2e.backends.real.stage import Planned, RealStage


def open_stage(planned: Iterable[Planned]) -> RealStage:
    """The stack with nodes and images, and the stage on it; both are closed by whoever asked.

    The three minutes in which nobody may write after everything (O3) are for operators as
    processes: as pods they rest alike, and E-10 shows that.
    """
    theatre = PodTheatre()
    theatre.open()
    known = {one.name: one for one in planned}
    stage = RealStage(theatre, known, PodBackend, is_rest_awaited=False)
    stage.open()
    return stage
