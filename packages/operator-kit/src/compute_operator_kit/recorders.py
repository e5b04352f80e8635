"""Events by who speaks: some kinds have a reporter of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from compute_operator_kit.clock import Clock
from compute_operator_kit.events import Events, Recorder, Reporter
from compute_operator_kit.intents import Emit
from compute_operator_kit.keys import Kind, PlaneName


class Recorders:
    """One recorder per reporter; what is about any other kind is the operator's own word."""

    def __init__(self, own: Recorder, by_kind: Mapping[Kind, Recorder]) -> None:
        self._own = own
        self._by_kind = dict(by_kind)

    @classmethod
    def speaking_as(
        cls,
        own: Reporter,
        voices: Mapping[Kind, str],
        find: Callable[[PlaneName], Events | None],
        clock: Clock,
        is_pressed: Callable[[], bool] = lambda: False,
    ) -> Recorders:
        """All of one process: `voices` are the reporters' names by the kind they speak about."""
        by_kind = {
            kind: Recorder(find, Reporter(name, own.instance), clock, is_pressed)
            for kind, name in voices.items()
        }
        return cls(Recorder(find, own, clock, is_pressed), by_kind)

    def record(self, emit: Emit) -> None:
        self._by_kind.get(emit.key.kind, self._own).record(emit)

    def __iter__(self) -> Iterator[Recorder]:
        yield self._own
        yield from self._by_kind.values()
