"""Events by who speaks: Instances and deployments have reporters of their own (cell.md 14)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from compute_cell_operator.kinds import DEPLOYMENT, INSTANCE
from compute_operator_kit.events import MAX_MESSAGE_BYTES, Recorder, Reporter
from compute_operator_kit.intents import Emit
from compute_operator_kit.keys import Kind
from compute_operator_kit.printable import cut_to_bytes, escape_unprintable

CUT: Final = "..."
REPORTERS: Final[Mapping[Kind, str]] = {
    INSTANCE: "instance-controller",
    DEPLOYMENT: "workloaddeployment-controller",
}


class Recorders:
    """One recorder per reporter; what is about anything else is the operator's own word."""

    def __init__(self, own: Recorder, by_kind: Mapping[Kind, Recorder]) -> None:
        self._own = own
        self._by_kind = dict(by_kind)

    def record(self, emit: Emit) -> None:
        told = replace(emit, message=shorten(emit.message))
        self._by_kind.get(emit.key.kind, self._own).record(told)

    def __iter__(self) -> Iterator[Recorder]:
        yield self._own
        yield from self._by_kind.values()


def shorten(message: str) -> str:
    """As long as the API allows, and one that was cut says so (cell.md 14)."""
    printable = escape_unprintable(message)
    if len(printable.encode("utf-8")) <= MAX_MESSAGE_BYTES:
        return printable
    return cut_to_bytes(printable, MAX_MESSAGE_BYTES - len(CUT)) + CUT


def reporters(component: str, identity: str) -> tuple[Reporter, dict[Kind, Reporter]]:
    """Who we are to readers of events: ourselves, and one voice per kind."""
    by_kind = {kind: Reporter(name, identity) for kind, name in REPORTERS.items()}
    return Reporter(component, identity), by_kind
