"""Fault injection: a transport that goes wrong at the points a plan names.

It wraps the transport of one process to one plane, so that operators run unchanged and a fault
looks to them as it does in life: an error status, a reply that never comes though the write was
committed, a process that dies in the middle of a write. Which point is struck is counted here, in
one place, for all transports of a run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

import orjson

from compute_sim_planes.api_server.transport import Answer, BytesAnswer, Transport
from compute_sim_planes.fault_links import Link, hang
from compute_sim_planes.fault_plans import EVENT_ACTIONS, Action, Fault, Point
from compute_sim_planes.fault_streams import FaultyWatch, status_body
from compute_sim_planes.request_address import (
    WRITES,
    Address,
    KindNames,
    no_kind_names,
    parse_address,
)

# A point may say `write` for any of the writing verbs.
ANY_WRITE = "write"


class Clock(Protocol):
    def now(self) -> datetime: ...


class InjectionLog(Protocol):
    """Where struck points are written down; a `History` is one."""

    def add_injected(self, fault: str, address: str) -> None: ...


@dataclass(slots=True)
class _Armed:
    fault: Fault
    matches: int = 0

    def strikes(self) -> bool:
        """Counts one match, and tells whether this is one of those that are struck."""
        self.matches += 1
        at = self.fault.at
        since = self.matches - at.nth
        if since < 0 or since % at.every:
            return False
        return at.times == 0 or since // at.every < at.times


@dataclass(slots=True)
class OperatorLife:
    """A process that can die: once dead it sends nothing, and reads no answer that was under way.

    `on_crash` is told by what; it ends the process's tasks. Their clean-up may still try to send,
    as no dead process could: nothing of it gets through.
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
    """Counts what matches the points of a plan, and strikes."""

    def __init__(
        self, faults: tuple[Fault, ...], clock: Clock, log: InjectionLog | None = None
    ) -> None:
        self._clock = clock
        self._begun = clock.now()
        self._log = log
        self._requests = [_Armed(f) for f in faults if f.action not in EVENT_ACTIONS]
        self._events = [_Armed(f) for f in faults if f.action in EVENT_ACTIONS]
        self._waiting: list[tuple[str, str, Callable[[], None]]] = []

    def arm(self, fault: Fault) -> None:
        """Add a fault while the run is under way; its point is counted from now on."""
        armed = self._events if fault.action in EVENT_ACTIONS else self._requests
        armed.append(_Armed(fault))

    def disarm(self, fault_id: str) -> None:
        """Lift every fault of that id."""
        self._requests = [armed for armed in self._requests if armed.fault.id != fault_id]
        self._events = [armed for armed in self._events if armed.fault.id != fault_id]

    def strike_request(self, address: Address) -> Fault | None:
        """The fault that strikes this request, if any. Every match is counted, struck or not."""
        return self._strike(self._requests, address)

    def strike_event(self, address: Address) -> Fault | None:
        return self._strike(self._events, address)

    def note_delivery(self, plane: str, kind: str) -> None:
        """An event of a kind was delivered: those that wait for another kind may go on."""
        ready = [one for one in self._waiting if one[0] == plane and one[1] != kind]
        self._waiting = [one for one in self._waiting if one not in ready]
        for _, _, release in ready:
            release()

    def await_other_kind(self, plane: str, kind: str, release: Callable[[], None]) -> None:
        self._waiting.append((plane, kind, release))

    def _strike(self, armed: list[_Armed], address: Address) -> Fault | None:
        struck: Fault | None = None
        for one in armed:
            if not self._matches(one.fault.at, address):
                continue
            if one.strikes() and struck is None:
                struck = one.fault
        if struck is not None and self._log is not None:
            shown = (
                f"{address.plane} {address.verb} {address.kind or address.resource} {address.key}"
            )
            self._log.add_injected(struck.id, shown)
        return struck

    def _matches(self, point: Point, address: Address) -> bool:
        if point.verb == ANY_WRITE:
            if address.verb not in WRITES:
                return False
        elif point.verb and point.verb != address.verb:
            return False
        if point.subresource is not None and point.subresource != address.subresource:
            return False
        wanted = (point.plane, point.kind, point.key)
        found = (address.plane, address.kind, address.key)
        is_there = all(part in {"", there} for part, there in zip(wanted, found, strict=True))
        return is_there and self._is_time(point)

    def _is_time(self, point: Point) -> bool:
        age = self._clock.now() - self._begun
        return point.after <= age and (point.until is None or age < point.until)


class FaultyTransport:
    """One process's transport to one plane, with faults in it."""

    def __init__(
        self,
        inner: Transport,
        injector: Injector,
        *,
        plane: str,
        kinds: KindNames = no_kind_names,
        life: OperatorLife | None = None,
        link: Link | None = None,
    ) -> None:
        self._inner = inner
        self._injector = injector
        self._plane = plane
        self._kinds = kinds
        self._life = life or OperatorLife(plane)
        self.link = link or Link()

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Answer:
        if self._life.is_dead:
            raise ConnectionRefusedError(f"process {self._life.name!r} is dead and sends nothing")
        address = parse_address(self._plane, method, target, body, self._kinds)
        await self.link.let_pass(address)
        fault = self._injector.strike_request(address)

        async def send() -> Answer:
            return await self._inner.request(method, target, headers, body)

        answer = await (send() if fault is None else self._strike(fault, send))
        if self._life.is_dead:
            # Somebody else of this process crashed it meanwhile.
            await answer.close()
            await hang()
        if address.verb == "watch" and answer.status == 200:
            return FaultyWatch(answer, address, self._injector, link=self.link, reader=self._life)
        return answer

    async def _strike(self, fault: Fault, send: Callable[[], Awaitable[Answer]]) -> Answer:
        match fault.action:
            case Action.DELAY:
                await asyncio.sleep(fault.parameters.delay.total_seconds())
                return await send()
            case Action.ERROR:
                return _error_answer(fault)
            case Action.BAD_BODY:
                return BytesAnswer(200, {"Content-Type": "text/html"}, b"<html>\xff</html>")
            case Action.REFUSE:
                raise ConnectionRefusedError(f"refused by fault {fault.id}")
            case Action.RESET:
                raise ConnectionResetError(f"reset by fault {fault.id}")
            case _:
                return await self._strike_unanswered(fault, send)

    async def _strike_unanswered(
        self, fault: Fault, send: Callable[[], Awaitable[Answer]]
    ) -> Answer:
        """Faults after which the sender never learns what became of its request."""
        commits = {Action.LOSE_REPLY, Action.TIMEOUT_COMMITTED, Action.CRASH_AFTER}
        if fault.action in commits:
            await (await send()).close()
        if fault.action in {Action.CRASH_BEFORE, Action.CRASH_AFTER}:
            self._life.crash(fault)
        if fault.action is Action.LOSE_REPLY:
            raise ConnectionResetError(f"reply lost by fault {fault.id}")
        await hang()


def _error_answer(fault: Fault) -> BytesAnswer:
    headers = {"Content-Type": "application/json"}
    if fault.parameters.retry_after is not None:
        headers["Retry-After"] = f"{int(fault.parameters.retry_after.total_seconds())}"
    return BytesAnswer(fault.parameters.status, headers, orjson.dumps(status_body(fault)))
