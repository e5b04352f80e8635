"""A watch with faults: events are dropped, repeated, delayed, cut or silenced.

A task reads lines from the plane, so that a delayed line can be released by a timer or by another
stream. Closing the response ends that task.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import orjson

from compute_sim_planes.api_server.http.transport import Response
from compute_sim_planes.faults.links import Link, LinkState
from compute_sim_planes.faults.plans import Action, Fault
from compute_sim_planes.history import parse_line
from compute_sim_planes.json_types import JsonObject, string_at
from compute_sim_planes.request_address import Address

EXPIRED: Final[JsonObject] = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "reason": "Expired",
    "code": 410,
}
GARBAGE: Final = b'\xff\xfe{"type": not json\n'


class EventFaults(Protocol):
    """Selects the event to affect, and coordinates the streams of one plane."""

    def match_event(self, address: Address, process: str = "") -> Fault | None: ...

    def record_delivery(self, plane: str, kind: str) -> None: ...

    def await_other_kind(self, plane: str, kind: str, release: Callable[[], None]) -> None: ...


@dataclass(frozen=True, slots=True)
class _End:
    """The end of the stream, with an error when the connection broke."""

    error: OSError | None = None


class Reader(Protocol):
    """The process that reads a watch; after a crash it reads nothing."""

    name: str

    @property
    def is_dead(self) -> bool: ...


class FaultyWatch:
    """The response to a watch, with faults injected."""

    def __init__(
        self,
        inner: Response,
        address: Address,
        faults: EventFaults,
        *,
        link: Link,
        reader: Reader,
    ) -> None:
        self._inner = inner
        self._reader = reader
        self._address = address
        self._faults = faults
        self._link = link
        self._out: asyncio.Queue[bytes | _End] = asyncio.Queue()
        self._pump = asyncio.create_task(self._run(), name=f"watch of {address.plane}")
        self._forget_link = link.listen(self._follow_link)
        self._timers: list[asyncio.TimerHandle] = []
        self._delayed: list[bytes] = []
        self._past_next: Callable[[], None] | None = None
        # Lines that a stale reader has not seen yet; None while the reader is not stale.
        self._lag: list[bytes] | None = None
        self._behind = 0
        self._vanished: list[bytes] = []
        self._is_silent = False
        self._is_over = False
        self._follow_link()

    @property
    def status(self) -> int:
        return self._inner.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._inner.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            item = await self._out.get()
            if isinstance(item, bytes):
                yield item
                continue
            if item.error is not None:
                raise item.error
            return

    async def close(self) -> None:
        self._end()
        self._forget_link()
        for timer in self._timers:
            timer.cancel()
        self._pump.cancel()
        # `await self._pump` would swallow a cancellation of this task as the pump's end.
        await asyncio.wait({self._pump})
        if not self._pump.cancelled():
            self._pump.result()  # raises an error of the pump
        await self._inner.close()

    async def _run(self) -> None:
        rest = b""
        try:
            async for chunk in self._inner.chunks():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._process_line(line + b"\n")
        except OSError as error:
            self._end(error)
        else:
            self._end()

    def _process_line(self, line: bytes) -> None:
        """Process one line from the plane."""
        document = parse_line(line)
        if string_at(document, "type") in {"BOOKMARK", "ERROR"}:
            self._forward(line, "")
            return
        address = self._event_address(document)
        fault = self._faults.match_event(address, self._reader.name)
        if fault is None:
            self._forward(line, address.kind)
        else:
            self._inject(fault, line, address.kind)

    def _event_address(self, document: JsonObject) -> Address:
        where = self._address
        return Address(
            plane=where.plane,
            verb="watch",
            group=where.group,
            resource=where.resource,
            # A watch of metadata alone has PartialObjectMetadata in its events.
            kind=where.kind or string_at(document, "object", "kind"),
            namespace=string_at(document, "object", "metadata", "namespace"),
            name=string_at(document, "object", "metadata", "name"),
        )

    def _inject(self, fault: Fault, line: bytes, kind: str) -> None:
        match fault.action:
            case Action.DROP:
                pass
            case Action.DROP_UNTIL_RELIST:
                self._call_later(fault.parameters.delay.total_seconds(), self._expire)
            case Action.DUPLICATE:
                for _ in range(fault.parameters.count + 1):
                    self._forward(line, kind)
            case Action.BOOKMARK_NOISE:
                self._forward(line, kind)
                for _ in range(fault.parameters.count):
                    self._forward(_bookmark(line), "")
            case Action.DELAY_PAST_NEXT | Action.SWAP_KINDS:
                self._delay_line(fault, line, kind)
            case Action.STALE:
                self._fall_behind(fault, line)
            case _:
                self._break(fault, line)

    def _break(self, fault: Fault, line: bytes) -> None:
        """Faults after which a client must open a new watch."""
        match fault.action:
            case Action.CUT_LINE:
                self._emit(line[: max(1, len(line) // 2)])
                self._end(ConnectionResetError("the watch was cut"))
            case Action.GARBAGE:
                self._emit(GARBAGE)
            case Action.ERROR_EVENT:
                self._emit(_error_event(fault))
                self._end()
            case Action.END_STREAM:
                self._end()
            case Action.SILENCE:
                self._is_silent = True
            case _:
                self._end(ConnectionResetError(f"the watch was reset by {fault.id}"))

    def _expire(self) -> None:
        """Ends the watch as a server does that has compacted its history: the client lists."""
        self._emit(orjson.dumps({"type": "ERROR", "object": EXPIRED}) + b"\n")
        self._end()

    def _delay_line(self, fault: Fault, line: bytes, kind: str) -> None:
        """Hold the line until another line has passed it, or until the delay is over."""
        self._delayed.append(line)

        def release() -> None:
            if line in self._delayed:
                self._delayed.remove(line)
                self._emit(line)

        if fault.action is Action.SWAP_KINDS:
            self._faults.await_other_kind(self._address.plane, kind, release)
        else:
            self._past_next = release
        self._call_later(fault.parameters.delay.total_seconds(), release)

    def _fall_behind(self, fault: Fault, line: bytes) -> None:
        """From now on the reader lags `count` events behind, until the delay is over."""
        if self._lag is None:
            self._lag = []
            self._behind = fault.parameters.count
            self._call_later(fault.parameters.delay.total_seconds(), self._catch_up)
        self._lag.append(line)
        self._emit_beyond_lag()

    def _catch_up(self) -> None:
        lag, self._lag = self._lag or [], None
        for line in lag:
            self._emit(line)

    def _emit_beyond_lag(self) -> None:
        while self._lag and 0 < self._behind < len(self._lag):
            self._emit(self._lag.pop(0))

    def _forward(self, line: bytes, kind: str) -> None:
        if self._lag is not None:
            # Bookmarks lag too: one ahead of held events would confirm events that the client
            # lacks.
            self._lag.append(line)
            self._emit_beyond_lag()
            return
        self._emit(line)
        if kind:
            release, self._past_next = self._past_next, None
            if release is not None:
                release()
            self._faults.record_delivery(self._address.plane, kind)

    def _emit(self, line: bytes) -> None:
        if self._is_over or self._is_silent or self._reader.is_dead:
            return
        if self._link.reads is LinkState.SILENT:
            self._vanished.append(line)
            return
        self._out.put_nowait(line)

    def _follow_link(self) -> None:
        if self._link.reads is LinkState.REFUSED:
            self._end(ConnectionResetError("the link was cut"))
        elif self._link.reads is LinkState.UP:
            vanished, self._vanished = self._vanished, []
            for line in vanished:
                self._emit(line)

    def _call_later(self, seconds: float, act: Callable[[], None]) -> None:
        self._timers.append(asyncio.get_running_loop().call_later(seconds, act))

    def _end(self, error: OSError | None = None) -> None:
        if not self._is_over:
            self._is_over = True
            # A silent stream never ends: that is the fault.
            if not (self._is_silent or self._link.reads is LinkState.SILENT):
                self._out.put_nowait(_End(error))


def _bookmark(line: bytes) -> bytes:
    document = parse_line(line)
    shown: JsonObject = {
        "type": "BOOKMARK",
        "object": {
            "apiVersion": string_at(document, "object", "apiVersion"),
            "kind": string_at(document, "object", "kind"),
            "metadata": {
                "resourceVersion": string_at(document, "object", "metadata", "resourceVersion")
            },
        },
    }
    return orjson.dumps(shown) + b"\n"


def _error_event(fault: Fault) -> bytes:
    shown: JsonObject = {"type": "ERROR", "object": status_body(fault)}
    return orjson.dumps(shown) + b"\n"


def status_body(fault: Fault) -> JsonObject:
    """The `Status` body of an injected error."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"injected by fault {fault.id}",
        "reason": fault.parameters.reason,
        "code": fault.parameters.status,
    }
