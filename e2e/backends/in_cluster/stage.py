"""Opens the stage of a session on pods."""

from __future__ import annotations

from collections.abc import Iterable

from e2e.backends.in_cluster.backend import PodBackend
from e2e.backends.in_cluster.theatre import PodTheatre
from e2e.backends.real.stage import Planned, RealStage


def open_stage(planned: Iterable[Planned], *, is_whole: bool) -> RealStage:
    """The stack with nodes and images, and the stage on it; both are closed by whoever asked.

    The three minutes in which nobody may write (O3) are for whole runs: operators rest as pods as
    they do as processes, and a core must fit into a change's gate.
    """
    theatre = PodTheatre()
    theatre.open()
    known = {one.name: one for one in planned}
    stage = RealStage(theatre, known, PodBackend, is_rest_awaited=is_whole)
    stage.open()
    return stage
