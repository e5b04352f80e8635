"""Opens the stage on kind's clusters."""

from __future__ import annotations

from collections.abc import Iterable

from e2e.backends.kind.commands import Here, check_machine
from e2e.backends.kind.theatre import KindBackend, KindTheatre
from e2e.backends.real.stage import Planned, RealStage


def open_stage(planned: Iterable[Planned]) -> RealStage:
    """The clusters with images and Karmada, and the stage on them; closed by whoever asked."""
    check_machine(Here.look())
    theatre = KindTheatre()
    theatre.open()
    known = {one.name: one for one in planned}
    stage = RealStage(theatre, known, KindBackend, is_rest_awaited=False)
    stage.open()
    return stage
