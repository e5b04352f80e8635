"""The base of a simulated world: planes by name, transports to them, time, and recorded requests.

The tests of an operator derive their world from it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

from typing_extensions import override

from compute_sim_planes.api_server.authz.identity import User, authenticated
from compute_sim_planes.api_server.http.transport import Response, Transport
from compute_sim_planes.api_server.plane import Plane
from compute_sim_planes.faults.injection import CrashableProcess, FaultyTransport, Injector
from compute_sim_planes.faults.links import Link
from compute_sim_planes.faults.plans import Fault
from compute_sim_planes.history import History, RecordingTransport, Request
from compute_sim_planes.time.clock import VirtualClock

START: Final = datetime(2026, 3, 1, tzinfo=UTC)
USER: Final = authenticated("user", "system:masters")
POLL: Final = 0.05  # seconds


class Ground:
    """See the module's text; `kind_names` gives the kind of a resource for the history."""

    def __init__(
        self,
        clock: VirtualClock,
        kind_names: Callable[[str, str, str], str],
        faults: tuple[Fault, ...] = (),
    ) -> None:
        self.clock = clock
        self.history = History(clock)
        self.injector = Injector(faults, clock, self.history)
        self.planes: dict[str, Plane] = {}
        self.links: dict[str, Link] = {}
        self.error_lines: list[str] = []
        self.kind_names = kind_names

    def adopt(self, plane: Plane) -> None:
        """Adds a plane, or replaces the one of its name; transports and links stay."""
        self.planes[plane.name] = plane
        self.links.setdefault(plane.name, Link())
        self.history.listen(plane.name, plane.state.store)

    # transports ------------------------------------------------------------------------------

    def way(self, name: str, user: User) -> Transport:
        """A transport to the plane that has the name at the time of a request."""
        return _Current(self.planes, name, user)

    def recorded(self, way: Transport, name: str, identity: str) -> Transport:
        """A transport with all requests recorded."""
        return RecordingTransport(
            way, self.history, plane=name, identity=identity, kinds=self.kind_names
        )

    def faulty(self, way: Transport, name: str, life: CrashableProcess) -> Transport:
        """The transport of an operator: with the faults of the run, its link, and recording."""
        broken = FaultyTransport(
            way,
            self.injector,
            plane=name,
            kinds=self.kind_names,
            process=life,
            link=self.links.setdefault(name, Link()),
        )
        return self.recorded(broken, name, life.name)

    # time ------------------------------------------------------------------------------------

    async def sleep(self, seconds: float) -> None:
        await self.clock.sleep(timedelta(seconds=seconds))

    async def sleep_until(self, seconds: float) -> None:
        """Sleeps until this time after the start of the run."""
        await self.sleep(seconds - self.clock.monotonic().total_seconds())

    async def eventually(self, is_so: Callable[[], Awaitable[bool]], within: float = 60) -> float:
        """Waits until a condition holds; returns how long that took."""
        begun = self.clock.monotonic()
        while not await is_so():
            taken = (self.clock.monotonic() - begun).total_seconds()
            assert taken < within, f"not so after {within} s"
            await self.sleep(POLL)
        return (self.clock.monotonic() - begun).total_seconds()

    # history ---------------------------------------------------------------------------------

    def requests(self, identity: str = "operator") -> list[Request]:
        return [one for one in self.history.of(Request) if one.caller.identity == identity]

    def writes(
        self,
        identity: str = "operator",
        *,
        plane: str = "",
        kind: str = "",
        controller: str = "",
        verb: str = "",
    ) -> list[Request]:
        """The mutating requests of a process so far."""
        return [
            request
            for request in self.requests(identity)
            if request.address.is_write
            and plane in {"", request.address.plane}
            and kind in {"", request.address.kind}
            and verb in {"", request.address.verb}
            and request.caller.user_agent.endswith(f"({controller})" if controller else "")
        ]

    async def rests(self, minutes: float, identity: str = "operator") -> list[Request]:
        """The writes of a process while no user writes."""
        before = len(self.writes(identity))
        await self.sleep(minutes * 60)
        return self.writes(identity)[before:]

    @contextmanager
    def heard(self, *loggers: str) -> Generator[None]:
        """Collects error lines of these loggers."""
        handler = _ErrorLines(self.error_lines)
        for name in loggers:
            logging.getLogger(name).addHandler(handler)
        try:
            yield
        finally:
            for name in loggers:
                logging.getLogger(name).removeHandler(handler)


class _Current:
    """Sends to the plane that has the name now, such as a restored one."""

    def __init__(self, planes: Mapping[str, Plane], name: str, user: User) -> None:
        self._planes = planes
        self._name = name
        self._user = user

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        plane = self._planes[self._name]
        return await plane.connect(self._user).request(method, target, headers, body)


class _ErrorLines(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._lines = lines

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())
