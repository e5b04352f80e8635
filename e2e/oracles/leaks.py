"""S12: no credential or Secret value appears in logs, objects, metrics or traces.

Every credential of a simulated run and a Secret on each plane contain a canary, a string that
occurs nowhere else. After a run it may be in Secrets only: not in log lines at DEBUG, objects
(conditions, events and annotations included), metric labels, spans or recorded requests. Karmada
keeps the manifest of a delivered Secret in a Work of the cell (referenced-data.md 8).
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterable, Iterator
from typing import Final

from typing_extensions import override

from compute_api_types.wire import JsonObject
from compute_operator_kit.telemetry.logs import JsonFormatter
from compute_sim_planes.history import Commit, History, HistoryEntry, ReconcileRecord, Request

_WORD: Final = "c4nary"
TOKEN: Final = f"{_WORD}-token"
# Nine bytes, so that the base64 text of a longer value starts with the same characters.
SECRET: Final = f"{_WORD}-se"
# In plain text, and in base64 as in a Secret's `data`.
_FORMS: Final = (_WORD, base64.b64encode(SECRET.encode()).decode())
_EXECUTION_NAMESPACE: Final = "karmada-es-"
_RAW_FORMS: Final = tuple(form.encode() for form in _FORMS)


def a_canary_secret(namespace: str, plane: str) -> JsonObject:
    """A Secret that no operator needs."""
    value = base64.b64encode(f"{SECRET}cret-of-{plane}".encode()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "canary", "namespace": namespace},
        "type": "Opaque",
        "data": {"password": value},
    }


def has_canary(text: str) -> bool:
    return any(form in text for form in _FORMS)


class CanaryLogHandler(logging.Handler):
    """Searches every log line and all arguments of the log call, which a changed format would
    print.
    """

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.read = 0
        self.leaks: list[str] = []
        self._formatter = JsonFormatter()

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self.read += 1
        shown = f"{self._formatter.format(record)} {vars(record)!r}"
        if has_canary(shown):
            self.leaks.append(f"S12: logged by {record.name}: {shown}")


def leaks_in_history(history: History) -> list[str]:
    """Objects, spans and requests that contain a canary."""
    return [f"S12: {leak}" for entry in history.entries for leak in _leaks_of(entry)]


def _leaks_of(entry: HistoryEntry) -> Iterator[str]:
    match entry:
        case Commit():
            if not _may_hold(entry) and any(form in entry.after for form in _RAW_FORMS):
                yield f"{entry.kind} {entry.key} on {entry.plane} holds a canary"
        case ReconcileRecord():
            if has_canary(f"{entry.controller} {entry.key} {entry.outcome}"):
                yield f"a reconcile of {entry.controller} contains a canary"
        case Request():
            # The parts of a request that an audit log has: path and caller, not headers.
            if has_canary(f"{entry.address} {entry.caller} {entry.failure}"):
                yield f"{entry.address.verb} {entry.address.resource} contains a canary"
        case _:
            pass  # a watch event repeats a commit, and of a fault only the name is recorded


def _may_hold(entry: Commit) -> bool:
    return entry.kind == "Secret" or (
        entry.kind == "Work" and entry.key.startswith(_EXECUTION_NAMESPACE)
    )


def leaks_in_series(series: Iterable[object]) -> list[str]:
    """Metrics with a canary in name or labels."""
    return [f"S12: measured as {one!r}" for one in series if has_canary(repr(one))]
