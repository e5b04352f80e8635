"""S12: no secret of ours or of a tenant is told to anybody.

Every credential of a simulated world and a Secret on each of its planes carry a canary, a word that
stands nowhere else. After a run nothing that people read may hold one: log lines at DEBUG, objects
(conditions, events and annotations among them), labels of metrics, the record of passes and
requests. Only Secrets themselves may.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterable, Iterator
from typing import Final

from typing_extensions import override

from compute_api_types.wire import JsonObject
from compute_operator_kit.logs import JsonFormatter
from compute_sim_planes.history import Commit, Entry, History, Pass, Request

_WORD: Final = "c4nary"
TOKEN: Final = f"{_WORD}-token"
SECRET: Final = f"{_WORD}-se"  # nine bytes: in base64 the beginning of a longer text is the same
# As they are, and as a Secret's `data` has them.
_FORMS: Final = (_WORD, base64.b64encode(SECRET.encode()).decode())
_RAW_FORMS: Final = tuple(form.encode() for form in _FORMS)


def a_canary_secret(namespace: str, plane: str) -> JsonObject:
    """A Secret that nobody has any business with."""
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


class ListeningHandler(logging.Handler):
    """Reads every line as it ships, and all that was handed in with it: what a line is cut of today
    may stand in it tomorrow.
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
    """Objects, passes and requests in which a canary shows."""
    return [f"S12: {told}" for entry in history.entries for told in _leaks_of(entry)]


def _leaks_of(entry: Entry) -> Iterator[str]:
    match entry:
        case Commit():
            if entry.kind != "Secret" and any(form in entry.after for form in _RAW_FORMS):
                yield f"{entry.kind} {entry.key} on {entry.plane} holds a canary"
        case Pass():
            if has_canary(f"{entry.controller} {entry.key} {entry.outcome}"):
                yield f"a pass of {entry.controller} tells a canary"
        case Request():
            # What an audit log has of a request: its path and who sent it, never its headers.
            if has_canary(f"{entry.address} {entry.caller} {entry.failure}"):
                yield f"{entry.address.verb} {entry.address.resource} tells a canary"
        case _:
            pass  # a watch event repeats a commit, and of a fault only its name is kept


def leaks_in_series(series: Iterable[object]) -> list[str]:
    """Metrics whose name or labels hold one."""
    return [f"S12: measured as {one!r}" for one in series if has_canary(repr(one))]
