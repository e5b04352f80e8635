"""Fault injection: a transport that fails at the points of a fault plan.

It wraps the transport of one process to one plane, so that operators run unchanged and see what a
real fault looks like: an error status, a lost response to a committed write, a crash during a
write. Matches are counted in one injector for all transports of a run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

import orjson

from compute_sim_planes.api_server.http.transport import BytesResponse, Response, Transport
from compute_sim_planes.faults.links import Link, hang
from compute_sim_planes.faults.plans import EVENT_ACTIONS, Action, Fault, Point
from compute_sim_planes.faults.streams import FaultyWatch, status_body
from compute_sim_planes.history import answer_request
from compute_sim_planes.request_address import (
    WRITES,
    Address,
    KindNames,
    no_kind_names,
    parse_address,
)

# The verb `write` of a point matches every writing verb.
ANY_WRITE = "write"


class InjectorClock(Protocol):
    def now(self) -> datetime: ...


class InjectionLog(Protocol):
    """Records injected faults; a `History` is one."""

    def add_injected(self, fault: str, address: str) -> None: ...


@dataclass(slots=True)
class _ArmedFault:
    fault: Fault
    matches: int = 0

    def should_fire(self) -> bool:
        """Counts one match, and returns whether the fault applies to it."""
        self.matches += 1
        at = self.fault.at
        since = self.matches - at.nth
        if since < 0 or since % at.every:
            return False
        return at.times == 0 or since // at.every < at.times


@dataclass(slots=True)
class CrashableProcess:
    """A process that can crash: afterwards it sends nothing and receives no pending response.

    `on_crash` gets the fault and cancels the tasks of the process. Clean-up code in those tasks may
    still send requests, which fail.
    """

    name: str
    on_crash: Callable[[Fault], None] | None = None
    crashed_by: Fault | None = None
    crashes: int = field(default=0)

    @property
    def is_dead(self) -> bool:
        return self.crashed_by is not None

    def crash(self, fault: Fault) -> None:
        if self.is_dead:
            return
        self.crashed_by = fault
        self.crashes += 1
        if self.on_crash is not None:
            self.on_crash(fault)


class Injector:
    """Counts matches of the points of a plan and selects the faults to inject."""

    def __init__(
        self, faults: tuple[Fault, ...], clock: InjectorClock, log: InjectionLog | None = None
    ) -> None:
        self._clock = clock
        self._begun = clock.now()
        self._log = log
        self._requests = [_ArmedFault(f) for f in faults if f.action not in EVENT_ACTIONS]
        self._events = [_ArmedFault(f) for f in faults if f.action in EVENT_ACTIONS]
        self._waiting: list[tuple[str, str, Callable[[], None]]] = []

    def arm(self, fault: Fault) -> None:
        """Add a fault during a run; its matches are counted from now on."""
        armed = self._events if fault.action in EVENT_ACTIONS else self._requests
        armed.append(_ArmedFault(fault))

    def disarm(self, fault_id: str) -> None:
        """Remove every fault with that id."""
        self._requests = [armed for armed in self._requests if armed.fault.id != fault_id]
        self._events = [armed for armed in self._events if armed.fault.id != fault_id]

    def match_request(self, address: Address, process: str = "") -> Fault | None:
        """The fault to inject into this request of a process, if any. Every match is counted."""
        del process  # for injectors that record their matches
        return self._first_match(self._requests, address)

    def match_event(self, address: Address, process: str = "") -> Fault | None:
        """The fault to inject into this event of a watch of a process, if any."""
        del process
        return self._first_match(self._events, address)

    def record_delivery(self, plane: str, kind: str) -> None:
        """Release events that were held until an event of another kind was delivered."""
        ready = [one for one in self._waiting if one[0] == plane and one[1] != kind]
        self._waiting = [one for one in self._waiting if one not in ready]
        for _, _, release in ready:
            release()

    def await_other_kind(self, plane: str, kind: str, release: Callable[[], None]) -> None:
        self._waiting.append((plane, kind, release))

    def _first_match(self, armed: list[_ArmedFault], address: Address) -> Fault | None:
        struck: Fault | None = None
        for one in armed:
            if not self._matches(one.fault.at, address):
                continue
            if one.should_fire() and struck is None:
                struck = one.fault
        if struck is not None:
            self.record_injected(struck, address)
        return struck

    def record_injected(self, fault: Fault, address: Address) -> None:
        """Adds the fault to the log of the run."""
        if self._log is not None:
            what = address.kind or address.resource
            shown = f"{address.plane} {address.verb} {what} {address.key}"
            self._log.add_injected(fault.id, shown)

    def _matches(self, point: Point, address: Address) -> bool:
        return is_at(point, address) and self._is_time(point)

    def _is_time(self, point: Point) -> bool:
        age = self._clock.now() - self._begun
        return point.after <= age and (point.until is None or age < point.until)


def is_at(point: Point, address: Address) -> bool:
    """Whether a request or event is where the point lies, at any time and however often it came."""
    if point.verb == ANY_WRITE:
        if address.verb not in WRITES:
            return False
    elif point.verb and point.verb != address.verb:
        return False
    if point.subresource is not None and point.subresource != address.subresource:
        return False
    expected = (point.plane, point.kind, point.key)
    actual = (address.plane, address.kind, address.key)
    return all(part in {"", there} for part, there in zip(expected, actual, strict=True))


class FaultyTransport:
    """A transport from one process to one plane that injects faults."""

    def __init__(
        self,
        inner: Transport,
        injector: Injector,
        *,
        plane: str,
        kinds: KindNames = no_kind_names,
        process: CrashableProcess | None = None,
        link: Link | None = None,
    ) -> None:
        self._inner = inner
        self._injector = injector
        self._plane = plane
        self._kinds = kinds
        self._process = process or CrashableProcess(plane)
        self.link = link or Link()

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        if self._process.is_dead:
            raise ConnectionRefusedError(
                f"process {self._process.name!r} is dead and sends nothing"
            )
        address = parse_address(self._plane, method, target, body, self._kinds)
        await self.link.let_pass(address)
        fault = self._injector.match_request(address, self._process.name)

        async def send() -> Response:
            return await self._inner.request(method, target, headers, body)

        answer = await (send() if fault is None else self._inject(fault, send))
        if self._process.is_dead:
            # Another task of this process crashed it meanwhile.
            await answer.close()
            await hang()
        if address.verb == "watch" and answer.status == 200:
            return FaultyWatch(
                answer, address, self._injector, link=self.link, reader=self._process
            )
        return answer

    async def _inject(self, fault: Fault, send: Callable[[], Awaitable[Response]]) -> Response:
        match fault.action:
            case Action.DELAY:
                await asyncio.sleep(fault.parameters.delay.total_seconds())
                return await send()
            case Action.ERROR:
                return _error_response(fault)
            case Action.BAD_BODY:
                return BytesResponse(200, {"Content-Type": "text/html"}, b"<html>\xff</html>")
            case Action.REFUSE:
                raise ConnectionRefusedError(f"refused by fault {fault.id}")
            case Action.RESET:
                raise ConnectionResetError(f"reset by fault {fault.id}")
            case _:
                return await self._inject_unanswered(fault, send)

    async def _inject_unanswered(
        self, fault: Fault, send: Callable[[], Awaitable[Response]]
    ) -> Response:
        """Faults after which the sender never learns the outcome of its request."""
        commits = {Action.LOSE_REPLY, Action.TIMEOUT_COMMITTED, Action.CRASH_AFTER}
        if fault.action in commits:
            await (await send()).close()
            answer_request()
        if fault.action in {Action.CRASH_BEFORE, Action.CRASH_AFTER}:
            self._process.crash(fault)
        if fault.action is Action.LOSE_REPLY:
            raise ConnectionResetError(f"reply lost by fault {fault.id}")
        await hang()


def _error_response(fault: Fault) -> BytesResponse:
    headers = {"Content-Type": "application/json"}
    if fault.parameters.retry_after is not None:
        headers["Retry-After"] = f"{int(fault.parameters.retry_after.total_seconds())}"
    return BytesResponse(fault.parameters.status, headers, orjson.dumps(status_body(fault)))
