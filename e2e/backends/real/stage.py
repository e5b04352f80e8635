"""Plays scenarios on real planes: most of them side by side, some alone, and judges what they left.

Those that share the same operators are a company. It plays together when the first of it is asked
for; each test then waits for its own. What a company left stays until all are done, on the usual
operators until they have been seen to rest (O3), and is cleared then. Those that cut, stop or
relabel what others share come after that, one by one, each cleared at its end.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, TypeAlias

from e2e.backends.port import Audited, Backend, Needs
from e2e.backends.real.backend import RealBackend
from e2e.backends.real.backstage import Backstage
from e2e.backends.real.judging import (
    OPERATORS,
    QUIET,
    SETTLE,
    crashes,
    error_lines,
    judge,
    log_sizes,
    refusals,
    restless,
    shown,
)
from e2e.backends.real.theatre import Theatre, ToldUse, can_share, name_arrangement

# Scenarios at once; more only wait for the same two cores.
TOGETHER: Final = 6
# How long nobody may have written before a scenario counts as settled.
CALM: Final = timedelta(seconds=5)

Body: TypeAlias = Callable[[Backend], Coroutine[object, object, None]]


class ScenarioError(AssertionError):
    """A scenario, or an oracle after it, did not hold; the message names the logs."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A scenario that is to be played."""

    name: str
    needs: Needs
    body: Body


@dataclass(slots=True)
class Noting:
    """A stage on which nothing is played: it learns what a test would play."""

    noted: list[Planned] = field(default_factory=list[Planned])

    def play(self, name: str, needs: Needs, body: Body) -> None:
        self.noted.append(Planned(name, needs, body))


@dataclass(slots=True)
class Company:
    """Scenarios that are played side by side, and how each of them ended."""

    needs: Needs  # of any of them: all need the same operators
    planned: list[Planned] = field(default_factory=list[Planned])
    results: dict[str, Future[None]] = field(default_factory=dict[str, Future[None]])
    played: list[RealBackend] = field(default_factory=list[RealBackend])
    # What was wrong with them as a whole; None before any of them was asked for.
    whole: Future[list[str]] | None = None

    @property
    def is_usual(self) -> bool:
        return name_arrangement(self.needs) == name_arrangement(Needs())


class RealStage:
    """The stage of a session."""

    def __init__(
        self,
        theatre: Theatre,
        planned: Mapping[str, Planned],
        make: Callable[[Theatre, str, Needs], RealBackend] = RealBackend,
        *,
        is_rest_awaited: bool = True,
    ) -> None:
        self.theatre = theatre
        self._make = make
        self._is_rest_awaited = is_rest_awaited
        self.seconds: dict[str, float] = {}
        self._companies: dict[str, Company] = {}
        for one in planned.values():
            if can_share(one.needs):
                company = self._companies.setdefault(
                    name_arrangement(one.needs), Company(one.needs)
                )
                company.planned.append(one)
        self._auditorium = Backstage("scenarios")
        self._is_interrupted = False

    def open(self) -> None:
        self._auditorium.start()

    def close(self) -> None:
        self._auditorium.stop()

    def play(self, name: str, needs: Needs, body: Body) -> None:
        try:
            self._play(Planned(name, needs, body))
        except KeyboardInterrupt:
            self._is_interrupted = True
            raise

    def _play(self, planned: Planned) -> None:
        if can_share(planned.needs):
            company = self._companies[name_arrangement(planned.needs)]
            self._begin(company)
            company.results[planned.name].result()
        else:
            self._end_companies()
            self._auditorium.run(self._play_alone(planned))

    def judge_whole(self) -> list[str]:
        """What no single scenario is to blame for: O3 and O9 of those that shared, refusals."""
        if self._is_interrupted:
            return []  # whoever interrupts does not want to wait for the rest
        together = self._end_companies()
        refused = refusals(self.theatre.audits.read())
        return [*together, *(f"S1: {shown(one.audited)}" for one in refused)]

    def describe_use(self) -> ToldUse:
        """What a session's backend tells of itself at the end."""
        return self.theatre.describe_use()

    # --- side by side ----------------------------------------------------------------------------

    def _begin(self, company: Company) -> None:
        if company.whole is None:
            self._end_companies()  # it would take the operators away from those before it
            company.results = {one.name: Future() for one in company.planned}
            company.whole = self._auditorium.submit(self._play_together(company))

    def _end_companies(self) -> list[str]:
        """What was wrong with all that have begun, once they have ended."""
        begun = [one.whole for one in self._companies.values() if one.whole is not None]
        return [violation for whole in begun for violation in whole.result()]

    async def _play_together(self, company: Company) -> list[str]:
        try:
            await self.theatre.backstage.do(self.theatre.arrange(company.needs))
            sizes = log_sizes(self._logs())
            room = asyncio.Semaphore(TOGETHER)
            # The longest first: whatever waits for minutes does so while the others are played.
            planned = sorted(company.planned, key=lambda one: not one.needs.is_slow)
            await asyncio.gather(*(self._play_one(one, company, room) for one in planned))
            return await self._rest_and_clear(company, sizes)
        except Exception as failure:
            for result in company.results.values():
                if not result.done():
                    result.set_exception(failure)
            raise

    async def _play_one(self, planned: Planned, company: Company, room: asyncio.Semaphore) -> None:
        result = company.results[planned.name]
        async with room:
            backend = self._make(self.theatre, planned.name, planned.needs)
            company.played.append(backend)
            try:
                await self._run(backend, planned)
            except Exception as failure:  # noqa: BLE001 it is the result of that scenario
                result.set_exception(self._explained(failure))
            else:
                result.set_result(None)

    async def _rest_and_clear(self, company: Company, sizes: Mapping[Path, int]) -> list[str]:
        """O3 and O9 over everything that shared; then nothing of it is left."""
        is_awaited = self._is_rest_awaited and company.is_usual
        violations = await self._rest(company) if is_awaited else []
        crews = self.theatre.crews.values()
        violations += error_lines(self._logs(), sizes)
        violations += [f"O9: {death}" for crew in crews for death in crew.deaths]
        for backend in company.played:
            await backend.clear()
        left = await asyncio.gather(*(self._close(backend) for backend in company.played))
        return [*violations, *(one for one in left if one)]

    async def _close(self, backend: RealBackend) -> str:
        """What is wrong with what a scenario left; nothing mostly."""
        try:
            await backend.close()
        except AssertionError as left:
            return f"{backend.scenario}: {left}"
        return ""

    async def _rest(self, company: Company) -> list[str]:
        """The second half of O3, once: on the operators as they ship, with all that was made."""
        now = datetime.now(UTC)
        last = max((one.last_act for one in company.played), default=now)
        rest = max(last + SETTLE, now)
        await asyncio.sleep((rest + QUIET - now).total_seconds())
        return restless(self.theatre, rest)

    # --- alone -----------------------------------------------------------------------------------

    async def _play_alone(self, planned: Planned) -> None:
        backend = self._make(self.theatre, planned.name, planned.needs)
        sizes = log_sizes(self._logs())
        try:
            await self._run(backend, planned)
            if fallen := crashes(backend, self._logs(), sizes):
                raise ScenarioError("\n".join(fallen))
        except Exception as failure:
            raise self._explained(failure) from failure
        finally:
            await backend.close()
            for crew in self.theatre.crews.values():
                crew.forgive()  # it has been judged, and the next has nothing to do with it

    # --- each ------------------------------------------------------------------------------------

    async def _run(self, backend: RealBackend, planned: Planned) -> None:
        begun = time.monotonic()
        await backend.open()
        try:
            await planned.body(backend)
            self.theatre.planes.check()
            self.theatre.neighbours.check()
            violations = [*await self._settle(backend), *judge(backend)]
        finally:
            self.seconds[planned.name] = time.monotonic() - begun
        if violations:
            raise ScenarioError("\n".join(violations))

    async def _settle(self, backend: RealBackend) -> list[str]:
        """The first half of O3: at most a minute after the last act nobody writes any more. A
        scenario that ended with calm has had it.
        """
        end = datetime.now(UTC) + SETTLE
        while (now := datetime.now(UTC)) < end:
            last = max((backend.last_act, *(one.at for one in self._writes(backend))))
            if last + CALM <= now:
                return []
            await asyncio.sleep((last + CALM - now).total_seconds())
        late = self._writes(backend)[-5:]
        return [f"O3: not settled after {SETTLE}: {shown(one)}" for one in late]

    def _writes(self, backend: RealBackend) -> list[Audited]:
        return [
            one
            for one in backend.audit()
            if one.who in OPERATORS and one.is_write and one.resource != "leases"
        ]

    def _logs(self) -> list[Path]:
        return [log for crew in self.theatre.crews.values() for log in crew.logs]

    def _explained(self, failure: Exception) -> ScenarioError:
        folder = self.theatre.planes.run_folder.path
        self.theatre.failure = failure  # logs stay
        logs = f"logs of operators and planes: {folder / 'logs'}, audit: {folder / 'audit'}"
        explained = ScenarioError(f"{failure}\n\n{logs}")
        explained.__cause__ = failure
        return explained
