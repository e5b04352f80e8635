"""The ground of a simulated world: planes under names, ways to them, time, and what was asked.

Who lives there is written by whoever has operators to test: a world of theirs stands on this one.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

from typing_extensions import override

from compute_sim_planes.api_server.identity import User, authenticated
from compute_sim_planes.api_server.plane import Plane
from compute_sim_planes.api_server.transport import Answer, Transport
from compute_sim_planes.clock import VirtualClock
from compute_sim_planes.fault_links import Link
from compute_sim_planes.fault_plans import Fault
from compute_sim_planes.faults import FaultyTransport, Injector, OperatorLife
from compute_sim_planes.history import History, RecordingTransport, Request

START: Final = datetime(2026, 3, 1, tzinfo=UTC)
USER: Final = authenticated("user", "system:masters")
POLL: Final = 0.05  # seconds


class Ground:
    """See the module's text; `kind_names` tells a history what to call a resource."""

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
        """Puts a plane under its name, in the place of one that had it: ways and links stay."""
        self.planes[plane.name] = plane
        self.links.setdefault(plane.name, Link())
        self.history.listen(plane.name, plane.state.store)

    # ways ------------------------------------------------------------------------------------

    def way(self, name: str, user: User) -> Transport:
        """To whichever plane bears a name when it is asked."""
        return _Current(self.planes, name, user)

    def recorded(self, way: Transport, name: str, identity: str) -> Transport:
        """A way on which everything is written down."""
        return RecordingTransport(
            way, self.history, plane=name, identity=identity, kinds=self.kind_names
        )

    def faulty(self, way: Transport, name: str, life: OperatorLife) -> Transport:
        """An operator's way: with the faults of the run, its link, and everything written down."""
        broken = FaultyTransport(
            way,
            self.injector,
            plane=name,
            kinds=self.kind_names,
            life=life,
            link=self.links.setdefault(name, Link()),
        )
        return self.recorded(broken, name, life.name)

    # time ------------------------------------------------------------------------------------

    async def sleep(self, seconds: float) -> None:
        await self.clock.sleep(timedelta(seconds=seconds))

    async def sleep_until(self, seconds: float) -> None:
        """Until so long after the beginning of the run."""
        await self.sleep(seconds - self.clock.monotonic().total_seconds())

    async def eventually(self, is_so: Callable[[], Awaitable[bool]], within: float = 60) -> float:
        """Waits until something is so; how long that took."""
        begun = self.clock.monotonic()
        while not await is_so():
            taken = (self.clock.monotonic() - begun).total_seconds()
            assert taken < within, f"not so after {within} s"
            await self.sleep(POLL)
        return (self.clock.monotonic() - begun).total_seconds()

    # what happened ---------------------------------------------------------------------------

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
        """Mutating requests a process has sent so far."""
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
        """What a process writes while nobody does anything."""
        before = len(self.writes(identity))
        await self.sleep(minutes * 60)
        return self.writes(identity)[before:]

    @contextmanager
    def heard(self, *loggers: str) -> Generator[None]:
        """Keeps what is logged above a warning, for whoever wants a clean run."""
        handler = _ErrorLines(self.error_lines)
        for name in loggers:
            logging.getLogger(name).addHandler(handler)
        try:
            yield
        finally:
            for name in loggers:
                logging.getLogger(name).removeHandler(handler)


class _Current:
    """A restored plane answers where the old one did."""

    def __init__(self, planes: Mapping[str, Plane], name: str, user: User) -> None:
        self._planes = planes
        self._name = name
        self._user = user

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Answer:
        plane = self._planes[self._name]
        return await plane.connect(self._user).request(method, target, headers, body)


class _ErrorLines(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._lines = lines

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())
