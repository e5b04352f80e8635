"""Runs scenarios on real planes, most side by side and some alone, and evaluates oracles.

Scenarios that need equal operators form a group. The first test of a group starts all its
scenarios; each test waits for its own. Objects of a group are deleted when all have ended; on
unchanged settings the operators are first checked to be at rest (O3). Scenarios that cut, stop or
relabel shared parts run afterwards, one by one.
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

from e2e.backends.real.backend import RealBackend
from e2e.backends.real.background_loop import BackgroundLoop
from e2e.backends.real.environment import RealEnvironment, UsageReport, can_share, name_arrangement
from e2e.backends.real.oracles import (
    OPERATORS,
    QUIET,
    SETTLE,
    crashes,
    error_lines,
    find_violations,
    find_writes_at_rest,
    log_sizes,
    refusals,
    shown,
)
from e2e.world.port import AuditedRequest, Backend, Needs

# Scenarios at once; more would only compete for the same two cores.
TOGETHER: Final = 6
# Time without writes after which a scenario counts as settled.
CALM: Final = timedelta(seconds=5)

Body: TypeAlias = Callable[[Backend], Coroutine[object, object, None]]


class RealScenarioError(AssertionError):
    """A scenario or an oracle failed; the message names the logs."""


@dataclass(frozen=True, slots=True)
class PlannedScenario:
    """A scenario that a test will run."""

    name: str
    needs: Needs
    body: Body


@dataclass(slots=True)
class CollectingScheduler:
    """Runs nothing: it records which scenario a test would run."""

    noted: list[PlannedScenario] = field(default_factory=list[PlannedScenario])

    def run(self, name: str, needs: Needs, body: Body) -> None:
        self.noted.append(PlannedScenario(name, needs, body))


@dataclass(slots=True)
class ScenarioGroup:
    """Scenarios that run side by side, and their results."""

    needs: Needs  # of any of them: all need equal operators
    planned: list[PlannedScenario] = field(default_factory=list[PlannedScenario])
    results: dict[str, Future[None]] = field(default_factory=dict[str, Future[None]])
    backends: list[RealBackend] = field(default_factory=list[RealBackend])
    # Violations of the group as a whole; None until its first test runs.
    whole: Future[list[str]] | None = None

    @property
    def is_usual(self) -> bool:
        return name_arrangement(self.needs) == name_arrangement(Needs())


class RealScheduler:
    """The `ScenarioScheduler` of a session on real planes."""

    def __init__(
        self,
        environment: RealEnvironment,
        planned: Mapping[str, PlannedScenario],
        make: Callable[[RealEnvironment, str, Needs], RealBackend] = RealBackend,
        *,
        is_rest_awaited: bool = True,
    ) -> None:
        self.environment = environment
        self._make = make
        self._is_rest_awaited = is_rest_awaited
        self.seconds: dict[str, float] = {}
        self._groups: dict[str, ScenarioGroup] = {}
        for one in planned.values():
            if can_share(one.needs):
                group = self._groups.setdefault(
                    name_arrangement(one.needs), ScenarioGroup(one.needs)
                )
                group.planned.append(one)
        self._loop = BackgroundLoop("scenarios")
        self._is_interrupted = False

    def open(self) -> None:
        self._loop.start()

    def close(self) -> None:
        self._loop.stop()

    def run(self, name: str, needs: Needs, body: Body) -> None:
        try:
            self._run_scenario(PlannedScenario(name, needs, body))
        except KeyboardInterrupt:
            self._is_interrupted = True
            raise

    def _run_scenario(self, planned: PlannedScenario) -> None:
        if can_share(planned.needs):
            group = self._groups[name_arrangement(planned.needs)]
            self._begin(group)
            group.results[planned.name].result()
        else:
            self._finish_groups()
            self._loop.run(self._run_alone(planned))

    def find_session_violations(self) -> list[str]:
        """Violations that belong to no single scenario: O3 and O9 of the groups, refused
        requests.
        """
        if self._is_interrupted:
            return []  # after an interrupt, do not wait for the other scenarios
        together = self._finish_groups()
        refused = refusals(self.environment.audits.read())
        return [*together, *(f"S1: {shown(one.audited)}" for one in refused)]

    def describe_use(self) -> UsageReport:
        """The usage report of the session's environment."""
        return self.environment.describe_use()

    # --- side by side ----------------------------------------------------------------------------

    def _begin(self, group: ScenarioGroup) -> None:
        if group.whole is None:
            self._finish_groups()  # earlier groups still use the operators
            group.results = {one.name: Future() for one in group.planned}
            group.whole = self._loop.submit(self._run_group(group))

    def _finish_groups(self) -> list[str]:
        """Waits for all started groups and returns their violations."""
        begun = [one.whole for one in self._groups.values() if one.whole is not None]
        return [violation for whole in begun for violation in whole.result()]

    async def _run_group(self, group: ScenarioGroup) -> list[str]:
        try:
            await self.environment.background_loop.do(self.environment.arrange(group.needs))
            sizes = log_sizes(self._logs())
            room = asyncio.Semaphore(TOGETHER)
            # The slowest first, so that their waits overlap with the other scenarios.
            planned = sorted(group.planned, key=lambda one: not one.needs.is_slow)
            await asyncio.gather(*(self._run_in_group(one, group, room) for one in planned))
            return await self._rest_and_clear(group, sizes)
        except Exception as failure:
            for result in group.results.values():
                if not result.done():
                    result.set_exception(failure)
            raise

    async def _run_in_group(
        self, planned: PlannedScenario, group: ScenarioGroup, room: asyncio.Semaphore
    ) -> None:
        result = group.results[planned.name]
        async with room:
            backend = self._make(self.environment, planned.name, planned.needs)
            group.backends.append(backend)
            try:
                await self._run(backend, planned)
            except Exception as failure:  # noqa: BLE001 it is the result of that scenario
                result.set_exception(self._explained(failure))
            else:
                result.set_result(None)

    async def _rest_and_clear(self, group: ScenarioGroup, sizes: Mapping[Path, int]) -> list[str]:
        """O3 and O9 of the whole group; then its objects are deleted."""
        is_awaited = self._is_rest_awaited and group.is_usual
        violations = await self._rest(group) if is_awaited else []
        all_replicas = self.environment.replicas.values()
        violations += error_lines(self._logs(), sizes)
        violations += [f"O9: {death}" for replicas in all_replicas for death in replicas.deaths]
        for backend in group.backends:
            await backend.clear()
        left = await asyncio.gather(*(self._close(backend) for backend in group.backends))
        return [*violations, *(one for one in left if one)]

    async def _close(self, backend: RealBackend) -> str:
        """Closes a scenario; returns what it left behind as a violation, or an empty text."""
        try:
            await backend.close()
        except AssertionError as left:
            return f"{backend.scenario}: {left}"
        return ""

    async def _rest(self, group: ScenarioGroup) -> list[str]:
        """The second half of O3, once per group: no write at rest, with the objects of all
        scenarios.
        """
        now = datetime.now(UTC)
        last = max((one.last_act for one in group.backends), default=now)
        rest = max(last + SETTLE, now)
        await asyncio.sleep((rest + QUIET - now).total_seconds())
        return find_writes_at_rest(self.environment, rest)

    # --- alone -----------------------------------------------------------------------------------

    async def _run_alone(self, planned: PlannedScenario) -> None:
        backend = self._make(self.environment, planned.name, planned.needs)
        sizes = log_sizes(self._logs())
        try:
            await self._run(backend, planned)
            if fallen := crashes(backend, self._logs(), sizes):
                raise RealScenarioError("\n".join(fallen))
        except Exception as failure:
            raise self._explained(failure) from failure
        finally:
            await backend.close()
            for replicas in self.environment.replicas.values():
                replicas.expect_restarts()  # its exits were evaluated above

    # --- every scenario --------------------------------------------------------------------------

    async def _run(self, backend: RealBackend, planned: PlannedScenario) -> None:
        begun = time.monotonic()
        await backend.open()
        try:
            await planned.body(backend)
            self.environment.planes.check()
            self.environment.external.check()
            violations = [*await self._settle(backend), *find_violations(backend)]
        finally:
            self.seconds[planned.name] = time.monotonic() - begun
        if violations:
            raise RealScenarioError("\n".join(violations))

    async def _settle(self, backend: RealBackend) -> list[str]:
        """The first half of O3: within a minute of the scenario's last act, writes stop."""
        end = datetime.now(UTC) + SETTLE
        while (now := datetime.now(UTC)) < end:
            last = max((backend.last_act, *(one.at for one in self._writes(backend))))
            if last + CALM <= now:
                return []
            await asyncio.sleep((last + CALM - now).total_seconds())
        late = self._writes(backend)[-5:]
        return [f"O3: not settled after {SETTLE}: {shown(one)}" for one in late]

    def _writes(self, backend: RealBackend) -> list[AuditedRequest]:
        return [
            one
            for one in backend.audit()
            if one.user in OPERATORS and one.is_write and one.resource != "leases"
        ]

    def _logs(self) -> list[Path]:
        return [log for replicas in self.environment.replicas.values() for log in replicas.logs]

    def _explained(self, failure: Exception) -> RealScenarioError:
        folder = self.environment.planes.run_folder.path
        self.environment.failure = failure  # keeps the logs
        logs = f"logs of operators and planes: {folder / 'logs'}, audit: {folder / 'audit'}"
        explained = RealScenarioError(f"{failure}\n\n{logs}")
        explained.__cause__ = failure
        return explained
