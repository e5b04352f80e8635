"""The recorded history of a run: requests, commits, watch events, reconciles and faults, in order.

A recording transport sees what the client sees, while a listener at the plane's storage sees what
was committed; they differ exactly where faults were injected. Oracles are functions over a history,
and two runs are equal when their dumps are. Recording does not affect the run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Protocol, TypeAlias, TypeVar
from urllib.parse import parse_qs

import orjson

from compute_sim_planes.api_server.http.transport import Response, Transport
from compute_sim_planes.api_server.storage.records import Change
from compute_sim_planes.json_types import JsonObject, JsonValue, string_at
from compute_sim_planes.request_address import (
    Address,
    KindNames,
    no_kind_names,
    parse_address,
)


class HistoryClock(Protocol):
    """The clock of the run."""

    def now(self) -> datetime: ...


class CommitSource(Protocol):
    """A storage that reports its commits."""

    def listen(self, listener: Callable[[Change], None]) -> None: ...


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request: identity of the connection, user agent, field manager."""

    identity: str
    user_agent: str = ""
    field_manager: str = ""


@dataclass(frozen=True, slots=True)
class Commit:
    """One change in a plane's storage. `request` is None for changes by the plane's controllers."""

    at: datetime
    plane: str
    type: str
    kind: str
    key: str
    revision: int
    actor: str
    before: bytes
    after: bytes
    request: int | None


@dataclass(frozen=True, slots=True)
class Request:
    """One request as its sender saw it: `status` is 0 without a response, `failure` the error."""

    number: int
    begun: datetime
    at: datetime
    caller: Caller
    address: Address
    status: int
    failure: str
    commits: tuple[Commit, ...]

    @property
    def is_refused(self) -> bool:
        return self.status == 0 or self.status >= 400


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a watch, as its client received it."""

    at: datetime
    plane: str
    caller: Caller
    type: str
    kind: str
    key: str
    version: str


@dataclass(frozen=True, slots=True)
class ReconcileRecord:
    """One reconcile of one key; `outcome` is `done`, `waiting` or the class of an error."""

    at: datetime
    controller: str
    key: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Injected:
    """One injected fault."""

    at: datetime
    fault: str
    address: str


HistoryEntry: TypeAlias = Request | Commit | Event | ReconcileRecord | Injected
_E = TypeVar("_E", Request, Commit, Event, ReconcileRecord, Injected)


@dataclass(slots=True)
class _Open:
    """A request in progress. After its end it takes no more commits: timers it set keep its
    context.
    """

    number: int
    is_open: bool = True
    commits: list[Commit] = field(default_factory=list[Commit])


_CURRENT: ContextVar[_Open | None] = ContextVar("request under way", default=None)


def current_request() -> int | None:
    """The number of the request under way in this context, for records beside the history."""
    current = _CURRENT.get()
    return current.number if current is not None and current.is_open else None


def answer_request() -> None:
    """The plane has answered the request under way, whose sender will not learn it: what its tasks
    and timers commit from now on is not of this request.
    """
    current = _CURRENT.get()
    if current is not None:
        current.is_open = False


class History:
    """The record of one run."""

    def __init__(self, clock: HistoryClock) -> None:
        self._clock = clock
        self._requests = 0
        self.begun = clock.now()
        self.entries: list[HistoryEntry] = []
        # Responses that are not closed yet, by the number of their request.
        self.open_responses: dict[int, Address] = {}

    @property
    def now(self) -> datetime:
        return self._clock.now()

    def listen(self, plane: str, storage: CommitSource) -> None:
        """Record the commits of a plane's storage from now on."""
        storage.listen(lambda change: self._add_commit(plane, change))

    def add_reconcile(self, controller: str, key: str, outcome: str) -> None:
        self.entries.append(ReconcileRecord(self.now, controller, key, outcome))

    def add_injected(self, fault: str, address: str) -> None:
        self.entries.append(Injected(self.now, fault, address))

    def of(self, entry_type: type[_E]) -> Iterator[_E]:
        """The entries of one type, in order."""
        return (entry for entry in self.entries if isinstance(entry, entry_type))

    def dump(self) -> bytes:
        """The whole history as JSON lines: equal bytes mean equal runs."""
        return b"".join(_dump_entry(entry) + b"\n" for entry in self.entries)

    def begin_request(self) -> _Open:
        self._requests += 1
        return _Open(self._requests)

    def _add_commit(self, plane: str, change: Change) -> None:
        current = _CURRENT.get()
        is_ours = current is not None and current.is_open
        commit = Commit(
            at=self.now,
            plane=plane,
            type=change.type.value,
            kind=change.after.kind.kind,
            key=change.after.key,
            revision=change.revision,
            actor=change.actor,
            before=change.before.raw if change.before is not None else b"",
            after=b"" if change.type.value == "DELETED" else change.after.raw,
            request=current.number if is_ours and current is not None else None,
        )
        self.entries.append(commit)
        if current is not None and is_ours:
            current.commits.append(commit)


def _dump_entry(entry: HistoryEntry) -> bytes:
    shown: dict[str, object] = {one.name: getattr(entry, one.name) for one in fields(entry)}
    shown["entry"] = type(entry).__name__
    if isinstance(entry, Commit):
        for name, raw in (("before", entry.before), ("after", entry.after)):
            shown[name] = orjson.Fragment(raw or b"null")
    elif isinstance(entry, Request):
        # Commits are entries of their own, directly before their request.
        shown["commits"] = [commit.revision for commit in entry.commits]
    return orjson.dumps(shown, option=orjson.OPT_SORT_KEYS | orjson.OPT_UTC_Z)


class RecordingTransport:
    """A transport that records the requests of one client to one plane."""

    def __init__(
        self,
        inner: Transport,
        history: History,
        *,
        plane: str,
        identity: str,
        kinds: KindNames = no_kind_names,
    ) -> None:
        self._inner = inner
        self._history = history
        self._plane = plane
        self._identity = identity
        self._kinds = kinds

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        history, begun = self._history, self._history.now
        address = parse_address(self._plane, method, target, body, self._kinds)
        caller = Caller(
            self._identity, _header(headers, "user-agent"), _parameter(target, "fieldManager")
        )
        current = history.begin_request()
        token = _CURRENT.set(current)
        status, failure = 0, ""
        try:
            answer = await self._inner.request(method, target, headers, body)
            status = answer.status
        except BaseException as error:
            failure = type(error).__name__
            raise
        finally:
            current.is_open = False
            _CURRENT.reset(token)
            history.entries.append(
                Request(
                    number=current.number,
                    begun=begun,
                    at=history.now,
                    caller=caller,
                    address=address,
                    status=status,
                    failure=failure,
                    commits=tuple(current.commits),
                )
            )
        history.open_responses[current.number] = address
        return _RecordedResponse(answer, history, current.number, caller, address)


class _RecordedResponse:
    def __init__(
        self, inner: Response, history: History, number: int, caller: Caller, address: Address
    ) -> None:
        self._inner = inner
        self._history = history
        self._number = number
        self._caller = caller
        self._address = address

    @property
    def status(self) -> int:
        return self._inner.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._inner.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        is_watch = self._address.verb == "watch" and self.status == 200
        rest = b""
        async for chunk in self._inner.chunks():
            if is_watch:
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._history.entries.append(self._event(line))
            yield chunk

    async def close(self) -> None:
        self._history.open_responses.pop(self._number, None)
        await self._inner.close()

    def _event(self, line: bytes) -> Event:
        document = parse_line(line)
        namespace = string_at(document, "object", "metadata", "namespace")
        name = string_at(document, "object", "metadata", "name")
        return Event(
            at=self._history.now,
            plane=self._address.plane,
            caller=self._caller,
            type=string_at(document, "type") or "GARBAGE",
            kind=string_at(document, "object", "kind"),
            key=f"{namespace}/{name}" if namespace else name,
            version=string_at(document, "object", "metadata", "resourceVersion"),
        )


def parse_line(line: bytes) -> JsonObject:
    """The event in a line of a watch; empty when there is none."""
    try:
        document: JsonValue = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}


def _parameter(target: str, parameter: str) -> str:
    return parse_qs(target.partition("?")[2]).get(parameter, [""])[-1]


def _header(headers: Mapping[str, str], header: str) -> str:
    return next((value for name, value in headers.items() if name.lower() == header), "")
