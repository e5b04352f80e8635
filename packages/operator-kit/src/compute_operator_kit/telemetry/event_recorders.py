"""Event recorders by kind: Events about some kinds name another source component.

Events about Instances and WorkloadDeployments name their controller as `reportingComponent`, as
users filter by it (cell.md 14).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.keys import Kind, PlaneName
from compute_operator_kit.intents.intents import RecordEvent
from compute_operator_kit.telemetry.events import EventClient, EventSink, EventSource


class EventRecorders:
    """One recorder per source component; kinds without one use the operator's own."""

    def __init__(self, own: EventSink, by_kind: Mapping[Kind, EventSink]) -> None:
        self._own = own
        self._by_kind = dict(by_kind)

    @classmethod
    def for_kinds(
        cls,
        own: EventSource,
        event_sources: Mapping[Kind, str],
        find: Callable[[PlaneName], EventClient | None],
        clock: Clock,
        is_busy: Callable[[], bool] = lambda: False,
    ) -> EventRecorders:
        """The recorders of one process; `event_sources` are component names by kind."""
        by_kind = {
            kind: EventSink(find, EventSource(name, own.instance), clock, is_busy)
            for kind, name in event_sources.items()
        }
        return cls(EventSink(find, own, clock, is_busy), by_kind)

    def record(self, emit: RecordEvent) -> None:
        self._by_kind.get(emit.key.kind, self._own).record(emit)

    def __iter__(self) -> Iterator[EventSink]:
        yield self._own
        yield from self._by_kind.values()
