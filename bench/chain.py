"""Latency of the whole chain on real planes: create Workload → Instance Ready in the project.

Karmada runs at its own rates, the provider answers at once, networking is off, and operators
connect to planes directly. One Workload that stays keeps the namespace and the city's policy in
place (the *quick path* of `management.md` and `cell.md`). Times are absolute, because they are
promises to users (`runtime.md`, numbers to reach).

`BENCH_DATA=<n>` measures n Workloads at rest without and n with a ConfigMap and a Secret instead,
and n deliveries of two dependencies by Karmada alone, one of each by turns.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from bench import _chain_data
from bench._chain_stages import STAGES, Journey, Sightings, percentile, sights_of
from compute_api_types.wire import JsonObject
from compute_sim_planes.pod_life import ProviderOptions
from e2e.backends.real.environment import (
    CELLS,
    SHARED_PROJECTS,
    EnvironmentOptions,
    RealEnvironment,
)
from e2e.backends.real.oracles import writes_since
from e2e.harness.access.client import PlaneClient
from e2e.harness.access.waiting import until
from e2e.harness.planes.topology import Rates
from e2e.world.documents import NETWORK_NAME, a_namespace, a_network, a_workload
from e2e.world.kinds import DEPLOYMENT, INSTANCE, WORKLOAD
from e2e.world.port import DFW, HUB, MANAGEMENT, AuditedRequest, Needs
from tools.bench import Row

PROJECT: Final = SHARED_PROJECTS[0]
NAMESPACE: Final = "bench"
AT_REST: Final = 20
LOADED: Final = 60
# Between two Workloads at rest, Karmada's token bucket refills (about 13 hub writes each).
PAUSE: Final = timedelta(seconds=3)
PATIENCE: Final = timedelta(minutes=3)
MEDIAN_TARGET: Final = 0.7
NINETY_TARGET: Final = 1.0
WRITES_TARGET: Final = 28.0
CPU_TARGET: Final = 150.0
RSS_REST_TARGET: Final = 85.0
RSS_TARGET: Final = 95.0
DATA_FACTOR: Final = 1.3
DATA_ALLOWANCE: Final = 0.15
EPOCH: Final = datetime.min.replace(tzinfo=UTC)
SETTINGS: Final[dict[str, JsonObject]] = {
    name: {"networking": "off"} for name in (MANAGEMENT, *(cell.name for cell in CELLS))
}


def run() -> list[Row]:
    quick = ProviderOptions(timedelta(), timedelta(), timedelta())
    # From wheels, as a developer's environment has libraries of 16 MB that images lack.
    options = EnvironmentOptions(
        has_wheels=True,
        is_audited_whole=False,
        has_links=False,
        rates=Rates.DEFAULT,
        provider=quick,
    )
    environment = RealEnvironment(options)
    environment.open()
    try:
        with_data = int(os.environ.get("BENCH_DATA", "0"))
        body = _run_with_data(environment, with_data) if with_data else _run(environment)
        return environment.background_loop.run(body)
    finally:
        environment.close()


@dataclass(frozen=True, slots=True)
class _Use:
    """CPU seconds and megabytes of a process."""

    cpu: float
    rss: float


class _Chain:
    """Stage times of each Workload, read from the recorder."""

    def __init__(self, environment: RealEnvironment) -> None:
        self.environment = environment
        self._sightings = Sightings(sights_of(PROJECT, HUB, DFW.name, DFW.city))
        self._looked_at = 0

    def read(self) -> None:
        records = self.environment.recorder.after(self._looked_at)
        self._looked_at += len(records)
        self._sightings.read(records)

    def journey(self, name: str, begun: datetime | None = None) -> Journey:
        return Journey(begun or EPOCH, self._sightings.of(name))


async def _run(environment: RealEnvironment) -> list[Row]:
    await environment.arrange(Needs(settings=SETTINGS))
    chain = _Chain(environment)
    async with (
        environment.planes.plane(PROJECT).client() as project,
        environment.planes.milo.client(PROJECT) as tenant,
    ):
        await project.create(a_namespace(NAMESPACE))
        await project.apply(a_network(NETWORK_NAME, NAMESPACE))
        # The first one creates namespace, policy and Karmada's informers and keeps them.
        await _create(tenant, "kept", patiently=True)
        await _finish(chain, ["kept"])
        resting = _use(environment)
        rest, writes = await _at_rest(chain, tenant)
        before = _use(environment)
        loaded = await _loaded(chain, tenant)
        after = _use(environment)
    return [
        *_latencies("at rest", rest),
        *_latencies("one per second", loaded),
        *_requests(writes),
        _row("CPU per Workload, both operators", _cpu(before, after), "ms", CPU_TARGET),
        *_memory("at rest", resting, RSS_REST_TARGET),
        *_memory("after a minute", after, RSS_TARGET),
    ]


# --- loads ----------------------------------------------------------------------------------------


async def _at_rest(chain: _Chain, tenant: PlaneClient) -> tuple[list[Journey], Counter[str]]:
    """One Workload at a time; also the mutating requests of a whole life cycle, without events."""
    names = [f"rest-{number}" for number in range(AT_REST)]
    journeys: list[Journey] = []
    since = datetime.now(UTC)
    for name in names:
        begun = await _create(tenant, name)
        await _finish(chain, [name])
        journeys.append(chain.journey(name, begun))
        await tenant.delete(WORKLOAD.path(NAMESPACE, name))
        await _gone(chain.environment, name)
        await asyncio.sleep(PAUSE.total_seconds())
    asked = [one for one in writes_since(chain.environment, since) if one.resource != "events"]
    return journeys, Counter(f"{_operator(one.user)} on {_side(one.plane)}" for one in asked)


async def _loaded(chain: _Chain, tenant: PlaneClient) -> list[Journey]:
    """One Workload per second, regardless of the earlier ones."""
    clock = asyncio.get_running_loop().time
    start = clock()
    begun: dict[str, datetime] = {}
    for number in range(LOADED):
        await asyncio.sleep(max(0.0, start + number - clock()))
        name = f"load-{number}"
        begun[name] = await _create(tenant, name)
    await _finish(chain, list(begun))
    return [chain.journey(name, moment) for name, moment in begun.items()]


async def _create(
    tenant: PlaneClient, name: str, *, patiently: bool = False, has_data: bool = False
) -> datetime:
    """Returns the time before the request, at which a user's wait begins."""
    document = _chain_data.a_workload_with_data(name) if has_data else a_workload(name)
    document["metadata"] = {"name": name, "namespace": NAMESPACE}
    if patiently:

        async def created() -> bool:
            await tenant.create(document)
            return True

        await until(f"Workload {name} to be admitted", created, check=lambda: None)
        return datetime.now(UTC)
    begun = datetime.now(UTC)
    await tenant.create(document)
    return begun


async def _finish(chain: _Chain, names: Sequence[str]) -> None:
    async def done() -> bool:
        chain.read()
        return all(chain.journey(name).is_whole for name in names)

    planes = chain.environment.planes
    await until("Workloads to be Ready", done, check=planes.check, patience=PATIENCE)


async def _gone(environment: RealEnvironment, name: str) -> None:
    deployment = f"{name}-default-{DFW.city.lower()}"
    hub = next(iter(_hub_namespaces(environment)))

    async def done() -> bool:
        recorder = environment.recorder
        return (
            recorder.has_lost(PROJECT, WORKLOAD, f"{NAMESPACE}/{name}")
            and recorder.has_lost(DFW.name, DEPLOYMENT, f"{hub}/{deployment}")
            and recorder.has_lost(DFW.name, INSTANCE, f"{hub}/{deployment}-0")
            and recorder.has_lost(PROJECT, INSTANCE, f"{NAMESPACE}/{deployment}-0")
        )

    await until(f"{name} to be gone", done, check=environment.planes.check, patience=PATIENCE)


def _hub_namespaces(environment: RealEnvironment) -> set[str]:
    records = environment.recorder.versions(HUB, DEPLOYMENT, since=EPOCH)
    return {record.namespace for record in records}


# --- with referenced data -------------------------------------------------------------------------


async def _run_with_data(environment: RealEnvironment, count: int) -> list[Row]:
    settings = {name: {**given, **_chain_data.ON} for name, given in SETTINGS.items()}
    await _chain_data.grant_data(environment)
    await environment.arrange(Needs(settings=settings))
    chain, own = _Chain(environment), list[float]()
    without: list[Journey] = []
    with_data: list[Journey] = []
    planes = environment.planes
    async with (
        planes.plane(PROJECT).client() as project,
        planes.milo.client(PROJECT) as tenant,
        planes.plane(HUB).client() as hub,
    ):
        await project.create(a_namespace(NAMESPACE))
        await project.apply(a_network(NETWORK_NAME, NAMESPACE))
        await _chain_data.prepare_own(hub)
        # The first ones create namespace, policy and Karmada's informers, and keep them.
        await _create(tenant, "kept", patiently=True)
        await _create_with_data(project, tenant, "kept-data")
        await _finish(chain, ["kept", "kept-data"])
        await _chain_data.time_own(environment, hub, "first")
        since = datetime.now(UTC)
        for number in range(count):
            without.append(await _live_once(chain, tenant, f"plain-{number}"))
            begun = await _create_with_data(project, tenant, f"data-{number}")
            with_data.append(await _end_once(chain, tenant, f"data-{number}", begun))
            own.append(await _chain_data.time_own(environment, hub, f"own-{number}"))
            await asyncio.sleep(PAUSE.total_seconds())
        written = [one for one in writes_since(environment, since) if one.plane == HUB]
    return _rows_with_data(without, with_data, own, _companions(written) / count)


async def _create_with_data(project: PlaneClient, tenant: PlaneClient, name: str) -> datetime:
    for document in _chain_data.two_objects(name, NAMESPACE):
        await project.create(document)
    return await _create(tenant, name, has_data=True)


async def _live_once(chain: _Chain, tenant: PlaneClient, name: str) -> Journey:
    return await _end_once(chain, tenant, name, await _create(tenant, name))


async def _end_once(chain: _Chain, tenant: PlaneClient, name: str, begun: datetime) -> Journey:
    """A Workload that becomes Ready, and is deleted before the next one."""
    await _finish(chain, [name])
    journey = chain.journey(name, begun)
    await tenant.delete(WORKLOAD.path(NAMESPACE, name))
    await _gone(chain.environment, name)
    await asyncio.sleep(PAUSE.total_seconds())
    return journey


def _companions(written: Sequence[AuditedRequest]) -> int:
    return sum(one.resource in {"configmaps", "secrets"} for one in written)


def _rows_with_data(
    without: Sequence[Journey], with_data: Sequence[Journey], own: Sequence[float], writes: float
) -> list[Row]:
    """The promise: 1.3 times as long at most, or Karmada's own delivery and 150 ms more."""
    plain, more = (
        percentile([journey.seconds_to("projection") for journey in journeys], 0.5)
        for journeys in (without, with_data)
    )
    karmada = percentile(own, 0.5)
    is_kept = more <= DATA_FACTOR * plain or more - plain <= karmada + DATA_ALLOWANCE
    return [
        _row("at rest: create → Ready, p50, without data", plain, "s"),
        Row(
            "at rest: create → Ready, p50, with two objects",
            more,
            "s",
            target=max(DATA_FACTOR * plain, plain + karmada + DATA_ALLOWANCE),
            holds=is_kept,
        ),
        _row("two dependencies by Karmada alone, p50", karmada, "s"),
        _row("hub writes of companions per Workload", writes, ""),
    ]


# --- rows -----------------------------------------------------------------------------------------


def _latencies(load: str, journeys: Sequence[Journey]) -> list[Row]:
    whole = [journey.seconds_to("projection") for journey in journeys]
    rows = [
        _row(f"{load}: create → Ready, p50", percentile(whole, 0.5), "s", MEDIAN_TARGET),
        _row(f"{load}: create → Ready, p90", percentile(whole, 0.9), "s", NINETY_TARGET),
        _row(f"{load}: create → Ready, p99", percentile(whole, 0.99), "s", None),
    ]
    for stage in STAGES:
        taken = [journey.seconds_to(stage) for journey in journeys]
        shares = "/".join(f"{percentile(taken, share):.3f}" for share in (0.5, 0.9, 0.99))
        rows.append(_row(f"{load}: {stage} (p50/p90/p99 {shares})", percentile(taken, 0.5), "s"))
    for whose, shares_of in (
        ("our", [journey.ours for journey in journeys]),
        ("Karmada's", [journey.karmada for journey in journeys]),
        ("the quota plane's", [journey.quota for journey in journeys]),
    ):
        rows.append(_row(f"{load}: {whose} share, p50", percentile(shares_of, 0.5), "s"))
        rows.append(_row(f"{load}: {whose} share, p90", percentile(shares_of, 0.9), "s"))
    return rows


def _requests(writes: Counter[str]) -> list[Row]:
    rows = [
        _row(f"mutating requests per lifecycle: {where}", count / AT_REST, "")
        for where, count in sorted(writes.items())
    ]
    total = sum(writes.values()) / AT_REST
    return [*rows, _row("mutating requests per lifecycle, all", total, "", WRITES_TARGET)]


def _memory(when: str, used: dict[str, _Use], target: float) -> list[Row]:
    return [_row(f"RSS of {name}, {when}", one.rss, "MB", target) for name, one in used.items()]


def _cpu(before: dict[str, _Use], after: dict[str, _Use]) -> float:
    used = sum(after[name].cpu - before[name].cpu for name in (MANAGEMENT, DFW.name))
    return used / LOADED * 1000


def _row(measure: str, value: float, unit: str, target: float | None = None) -> Row:
    return Row(measure, value, unit, target=target, holds=target is None or value <= target)


def _operator(user: str) -> str:
    return "management" if user == MANAGEMENT else "cell"


def _side(plane: str) -> str:
    return {HUB: "hub", PROJECT: "project", DFW.name: "cell"}.get(plane, plane)


def _use(environment: RealEnvironment) -> dict[str, _Use]:
    return {
        name: _use_of(replicas.pids[0])
        for name, replicas in environment.replicas.items()
        if name in {MANAGEMENT, DFW.name}
    }


def _use_of(pid: int) -> _Use:
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])  # utime and stime, counted after the name
    rss = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    return _Use(ticks / os.sysconf("SC_CLK_TCK"), rss * os.sysconf("SC_PAGE_SIZE") / 1_000_000)
