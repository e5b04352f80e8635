"""The oracles of real planes (`docs/spec/faults.md` 5), over what was recorded and audited.

O4, O6 and O7 are the functions that judge simulated runs; the history they judge is made here from
watches and audit logs. O9 is told from the operators' processes and logs, O3 from the audit logs
once everything had time to settle.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Final

from compute_api_types.wire import JsonValue
from compute_sim_planes.history import Caller, Commit, History, Request
from compute_sim_planes.oracles import field_ownership
from compute_sim_planes.request_address import Address
from e2e.backends.port import MANAGEMENT, Audited
from e2e.backends.real.auditing import Entry
from e2e.backends.real.backend import RealBackend
from e2e.backends.real.recording import Recorded
from e2e.backends.real.theatre import CELLS, Theatre
from e2e.faults.layout import Layout
from e2e.faults.orphans import no_orphans
from e2e.faults.ownership import ownership_in
from e2e.faults.tenancy import tenancy
from e2e.kinds import KINDS
from e2e.objects import text_at

OPERATORS: Final = frozenset({MANAGEMENT, *(cell.name for cell in CELLS)})
# Clocks of one machine, but a watch and a log tell of the same moment apart.
SKEW: Final = timedelta(milliseconds=50)
SETTLE: Final = timedelta(seconds=60)
QUIET: Final = timedelta(minutes=2)
_OF_CONTAINER: Final = re.compile(r"^\S+ (?:stdout|stderr) [FP] ")


class _WallClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


def judge(backend: RealBackend) -> list[str]:
    """O4, O6 and O7 of one scenario that has settled, a line each."""
    recorder, begun = backend.theatre.recorder, backend.begun
    held = [one for one in recorder.held_at(begun).values() if backend.is_own_record(one)]
    changed = [one for one in recorder.since(begun) if backend.is_own_record(one)]
    history = derive_history(held, changed, backend.entries())
    layout = Layout(frozenset(cell.name for cell in CELLS), frozenset(backend.by_hand))
    # On a single cluster nothing crosses planes and both operators stand in one place.
    found = (
        []
        if backend.needs.is_single
        else [
            *no_orphans(history, layout),
            *tenancy(history, layout),
            *field_ownership(history, ownership_in(layout)),
        ]
    )
    lost = tuple(f"{cell} " for cell in backend.lost)
    return [
        *(str(one) for one in found if not (lost and one.message.startswith(lost))),
        *(f"S1: {shown(one.audited)}" for one in refusals(backend.entries())),
        *(
            f"provider of {cell}: {violation}"
            for cell, provider in backend.theatre.neighbours.providers.items()
            for violation in provider.violations[backend.complaints.get(cell, 0) :]
        ),
    ]


def crashes(backend: RealBackend, logs: Sequence[Path], offsets: Mapping[Path, int]) -> list[str]:
    """O9 of a scenario that spoils things on purpose: errors may be told, but nobody may fall."""
    if backend.needs.expects_errors:
        return []
    deaths = [death for crew in backend.theatre.crews.values() for death in crew.deaths]
    traces = [line for line in error_lines(logs, offsets) if "Traceback" in line]
    return [*(f"O9: {death}" for death in deaths), *traces]


def derive_history(
    held: Iterable[Recorded], changed: Iterable[Recorded], entries: Iterable[Entry]
) -> History:
    """What planes held at first, what changed then, and what was asked, as the oracles read it."""
    history = History(_WallClock())
    commits = {_spot(one): _commit(one) for one in changed}
    history.entries += [_commit(one) for one in held]
    history.entries += commits.values()
    claimed: set[tuple[str, str, str, int]] = set()
    for number, entry in enumerate(entries, 1):
        made = _made_by(entry, commits, claimed)
        history.entries.append(_request(number, entry, made))
    return history


def _spot(one: Recorded) -> tuple[str, str, str, int]:
    return one.plane, one.kind.name, one.key, one.revision


def _commit(one: Recorded) -> Commit:
    change = "DELETED" if not one.after else "MODIFIED" if one.before else "ADDED"
    return Commit(
        at=one.at,
        plane=one.plane,
        type=change,
        kind=one.kind.name,
        key=one.key,
        revision=one.revision,
        actor="",
        before=one.before,
        after=one.after,
        request=None,
    )


def _made_by(
    entry: Entry,
    commits: dict[tuple[str, str, str, int], Commit],
    claimed: set[tuple[str, str, str, int]],
) -> tuple[Commit, ...]:
    """The version a request made. One that changed nothing answers with an older version, which
    was somebody else's: it was recorded before the request came.
    """
    one = entry.audited
    key = f"{one.namespace}/{one.name}" if one.namespace else one.name
    spot = (one.plane, _kind_name(one), key, entry.revision)
    found = commits.get(spot)
    if found is None or spot in claimed or found.at + SKEW < one.at:
        return ()
    claimed.add(spot)
    return (found,)


def _kind_name(one: Audited) -> str:
    for kind in KINDS:
        if (kind.group, kind.plural) == (one.group, one.resource):
            return kind.name
    return ""


def _request(number: int, entry: Entry, commits: tuple[Commit, ...]) -> Request:
    one = entry.audited
    address = Address(
        plane=one.plane,
        verb=one.verb,
        group=one.group,
        resource=one.resource,
        kind=_kind_name(one),
        namespace=one.namespace,
        name=one.name,
        subresource=one.subresource,
    )
    caller = Caller(one.who, one.agent)
    return Request(number, one.at, one.at, caller, address, one.status, "", commits)


# --- over all scenarios ---------------------------------------------------------------------------


def refusals(entries: Iterable[Entry]) -> list[Entry]:
    """What planes forbade operators; there must be none."""
    return [
        one
        for one in entries
        if one.audited.who in OPERATORS
        and one.audited.status == HTTPStatus.FORBIDDEN
        and not one.is_namespace_going
    ]


def writes_since(theatre: Theatre, moment: datetime) -> list[Audited]:
    """Mutating requests of operators from then on, Lease renewals left out."""
    return [
        entry.audited
        for entry in theatre.audits.read()
        if entry.audited.at >= moment
        and entry.audited.who in OPERATORS
        and entry.audited.is_write
        and entry.audited.resource != "leases"
    ]


def restless(theatre: Theatre, since: datetime) -> list[str]:
    """O3: what operators still wrote after that moment."""
    return [f"O3: {shown(one)}" for one in writes_since(theatre, since)]


def error_lines(logs: Sequence[Path], offsets: Mapping[Path, int]) -> list[str]:
    """O9: lines at ERROR that logs hold beyond these offsets."""
    found: list[str] = []
    for log in logs:
        if not log.exists():
            continue
        with log.open("rb") as lines:
            lines.seek(offsets.get(log, 0))
            found += [f"O9: {log.name}: {text}" for text in map(_error_in, lines) if text]
    return found


def _error_in(line: bytes) -> str:
    """The line where it tells an error; what is no JSON is a trace or a complaint of Python's."""
    # A container's log has the time and the stream before each line.
    text = _OF_CONTAINER.sub("", line.decode(errors="replace")).rstrip()
    try:
        said: JsonValue = json.loads(text)
    except ValueError:
        return text if "Traceback" in text or "Error" in text else ""
    level = text_at(said, "level").upper()
    return text if level in {"ERROR", "CRITICAL", "FATAL"} else ""


def log_sizes(logs: Iterable[Path]) -> dict[Path, int]:
    return {log: log.stat().st_size for log in logs if log.exists()}


def shown(one: Audited) -> str:
    slash = "/" if one.subresource else ""
    return (
        f"{one.at:%H:%M:%S.%f} {one.who} sent {one.verb} {one.resource}{slash}{one.subresource} "
        f"{one.namespace}/{one.name} to {one.plane} ({one.status})"
    )
