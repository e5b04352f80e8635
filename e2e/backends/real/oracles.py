"""The oracles of real planes (`docs/spec/faults.md` 5), over recorded versions and audit logs.

O4, O6 and O7 are the functions used for simulated runs, on a history built from watches and audit
logs. O9 reads the operators' exits and logs; O3 reads the audit logs after the time to settle.
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
from compute_sim_planes.oracles.invariants import field_ownership
from compute_sim_planes.request_address import Address
from e2e.backends.real.auditing import AuditEntry
from e2e.backends.real.backend import RealBackend
from e2e.backends.real.environment import CELLS, RealEnvironment
from e2e.backends.real.recording import RecordedVersion
from e2e.oracles.layout import Layout
from e2e.oracles.orphans import no_orphans
from e2e.oracles.ownership import ownership_in
from e2e.oracles.tenancy import tenancy
from e2e.world.kinds import INSTANCE, KINDS
from e2e.world.objects import text_at, value_at
from e2e.world.port import MANAGEMENT, AuditedRequest

OPERATORS: Final = frozenset({MANAGEMENT, *(cell.name for cell in CELLS)})
# A watch event and the audit entry of the same write differ by this much at most.
SKEW: Final = timedelta(milliseconds=50)
SETTLE: Final = timedelta(seconds=60)
QUIET: Final = timedelta(minutes=2)
_OF_CONTAINER: Final = re.compile(r"^\S+ (?:stdout|stderr) [FP] ")


class _WallClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


def find_violations(backend: RealBackend) -> list[str]:
    """Violations of O4, O6 and O7 of one settled scenario, a line each."""
    recorder, begun = backend.environment.recorder, backend.begun
    held = [one for one in recorder.held_at(begun).values() if backend.is_own_record(one)]
    changed = [one for one in recorder.since(begun) if backend.is_own_record(one)]
    history = derive_history(held, changed, backend.entries())
    cells, by_hand = frozenset(cell.name for cell in CELLS), frozenset(backend.by_hand)
    layout = Layout(cells, by_hand, reads_data=backend.needs.reads_data)
    # In a single cluster there are no copies, and both operators write to one plane.
    violations = (
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
        *(str(one) for one in violations if not (lost and one.message.startswith(lost))),
        *(f"S1: {shown(one.audited)}" for one in refusals(backend.entries())),
        *traces_of_kopf(changed),
        *(
            f"provider of {cell}: {violation}"
            for cell, provider in backend.environment.external.providers.items()
            for violation in provider.violations[backend.complaints.get(cell, 0) :]
        ),
    ]


def crashes(backend: RealBackend, logs: Sequence[Path], offsets: Mapping[Path, int]) -> list[str]:
    """O9 of a scenario that causes errors on purpose: ERROR lines are allowed, exits are not."""
    if backend.needs.expects_errors:
        return []
    deaths = [
        death for replicas in backend.environment.replicas.values() for death in replicas.deaths
    ]
    traces = [line for line in error_lines(logs, offsets) if "Traceback" in line]
    return [*(f"O9: {death}" for death in deaths), *traces]


def derive_history(
    held: Iterable[RecordedVersion],
    changed: Iterable[RecordedVersion],
    entries: Iterable[AuditEntry],
) -> History:
    """The history that oracles read: initial objects, later versions, and requests."""
    history = History(_WallClock())
    commits = {_spot(one): _commit(one) for one in changed}
    history.entries += [_commit(one) for one in held]
    history.entries += commits.values()
    claimed: set[tuple[str, str, str, int]] = set()
    for number, entry in enumerate(entries, 1):
        made = _made_by(entry, commits, claimed)
        history.entries.append(_request(number, entry, made))
    return history


def _spot(one: RecordedVersion) -> tuple[str, str, str, int]:
    return one.plane, one.kind.name, one.key, one.revision


def _commit(one: RecordedVersion) -> Commit:
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
    entry: AuditEntry,
    commits: dict[tuple[str, str, str, int], Commit],
    claimed: set[tuple[str, str, str, int]],
) -> tuple[Commit, ...]:
    """The version that a request produced. A request without a change is answered with an older
    version, which was recorded before the request and belongs to another writer.
    """
    one = entry.audited
    key = f"{one.namespace}/{one.name}" if one.namespace else one.name
    location = (one.plane, _kind_name(one), key, entry.revision)
    commit = commits.get(location)
    if commit is None or location in claimed or commit.at + SKEW < one.at:
        return ()
    claimed.add(location)
    return (commit,)


def _kind_name(one: AuditedRequest) -> str:
    for kind in KINDS:
        if (kind.group, kind.plural) == (one.group, one.resource):
            return kind.name
    return ""


def _request(number: int, entry: AuditEntry, commits: tuple[Commit, ...]) -> Request:
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
    caller = Caller(one.user, one.agent)
    return Request(number, one.at, one.at, caller, address, one.status, "", commits)


# --- over all scenarios ---------------------------------------------------------------------------


def traces_of_kopf(changed: Iterable[RecordedVersion]) -> list[str]:
    """PP-06: Instances on which kopf has stored anything. The field manager of its finalizer is
    named after it and is no such thing.
    """
    traces: list[str] = []
    for one in changed:
        if one.kind is not INSTANCE or b"kopf" not in one.after:
            continue
        document: JsonValue = json.loads(one.after)
        stored = [value_at(document, "metadata", "annotations"), value_at(document, "status")]
        if "kopf" in json.dumps(stored):
            traces.append(f"PP-06: Instance {one.key} on {one.plane} has something of kopf")
    return traces


def refusals(entries: Iterable[AuditEntry]) -> list[AuditEntry]:
    """Requests of operators that were answered 403; there must be none."""
    return [
        one
        for one in entries
        if one.audited.user in OPERATORS
        and one.audited.status == HTTPStatus.FORBIDDEN
        and not one.is_namespace_terminating
    ]


def writes_since(environment: RealEnvironment, moment: datetime) -> list[AuditedRequest]:
    """Mutating requests of operators from that time on, without Lease renewals."""
    return [
        entry.audited
        for entry in environment.audits.read()
        if entry.audited.at >= moment
        and entry.audited.user in OPERATORS
        and entry.audited.is_write
        and entry.audited.resource != "leases"
    ]


def find_writes_at_rest(environment: RealEnvironment, since: datetime) -> list[str]:
    """O3: writes of operators after that time."""
    return [f"O3: {shown(one)}" for one in writes_since(environment, since)]


def error_lines(logs: Sequence[Path], offsets: Mapping[Path, int]) -> list[str]:
    """O9: ERROR lines in the logs beyond these offsets."""
    errors: list[str] = []
    for log in logs:
        if not log.exists():
            continue
        with log.open("rb") as lines:
            lines.seek(offsets.get(log, 0))
            errors += [f"O9: {log.name}: {text}" for text in map(_error_in, lines) if text]
    return errors


def _error_in(line: bytes) -> str:
    """The line if it reports an error; a line that is not JSON is a traceback or a Python
    warning.
    """
    # A container log has time and stream before each line.
    text = _OF_CONTAINER.sub("", line.decode(errors="replace")).rstrip()
    try:
        entry: JsonValue = json.loads(text)
    except ValueError:
        return text if "Traceback" in text or "Error" in text else ""
    level = text_at(entry, "level").upper()
    return text if level in {"ERROR", "CRITICAL", "FATAL"} else ""


def log_sizes(logs: Iterable[Path]) -> dict[Path, int]:
    return {log: log.stat().st_size for log in logs if log.exists()}


def shown(one: AuditedRequest) -> str:
    slash = "/" if one.subresource else ""
    return (
        f"{one.at:%H:%M:%S.%f} {one.user} sent {one.verb} {one.resource}{slash}{one.subresource} "
        f"{one.namespace}/{one.name} to {one.plane} ({one.status})"
    )
