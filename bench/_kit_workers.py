"""The processes that `bench.kit` measures: an operator on the kit and one on kopf, both counting.

Each prints `ready` when its caches are complete, answers each line on stdin with its counts as
JSON, and ends with stdin. Nothing else runs in them, so their CPU time is that of receiving events.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from random import SystemRandom
from typing import TypedDict
from urllib.parse import urlsplit

import kopf
import uvloop

from compute_kubeconfig.credentials import FileCredentials
from compute_operator_kit.apply.context import ApplyDeps
from compute_operator_kit.cache.store import Caches, Change
from compute_operator_kit.client.flow_control import FlowControl
from compute_operator_kit.client.http_client import HttpKubeClient
from compute_operator_kit.client.interface import FieldOwner, KubeClient
from compute_operator_kit.client.rest import RestConfig
from compute_operator_kit.client.transport.aiohttp import AiohttpTransport, Tls, open_session
from compute_operator_kit.controller.manager import Manager, ManagerDeps
from compute_operator_kit.controller.reconcile import ReconcileContext, Result
from compute_operator_kit.controller.spec import Controller, Watch
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.core.memory import collect_rarely, freeze_heap, return_large_blocks
from compute_operator_kit.core.system_clock import SystemClock
from compute_operator_kit.planes.engaged_plane import CachedKind, Plane
from compute_operator_kit.planes.registry import Planes, RegistryDeps
from compute_operator_kit.telemetry.opentelemetry import MetricsExporter

WRITER = FieldOwner("bench", "bench")
KINDS = tuple(
    Kind("compute.datumapis.com", "v1alpha", f"{kind.lower()}s", kind)
    for kind in ("Workload", "WorkloadDeployment", "Instance")
)


class Counted(TypedDict):
    """Counts of a worker so far."""

    events: int
    reconciles: int
    cpu: float  # seconds of this process, all its threads
    # Seconds from the sender's timestamp to the reconcile, of the last events.
    latencies: list[float]


class Tally:
    """Counts, and resets what was reported."""

    def __init__(self) -> None:
        self.events = 0
        self.reconciles = 0
        self.latencies: list[float] = []

    def as_line(self) -> str:
        counted: Counted = {
            "events": self.events,
            "reconciles": self.reconciles,
            "cpu": time.process_time(),
            "latencies": self.latencies,
        }
        self.latencies = []
        return json.dumps(counted)


async def answer_questions(tally: Tally) -> None:
    """One line in, one line out, until stdin closes."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    say("ready")
    while await reader.readline():
        say(tally.as_line())


def say(line: str) -> None:
    print(line, flush=True)


# --- the kit --------------------------------------------------------------------------------------


async def run_kit(kubeconfig: Path, planes_wanted: int, *, with_reconciles: bool = False) -> None:
    """Watches three kinds on each plane; every change goes through mapping and queue.

    Without reconciles it is a standby replica, which does everything but the leader's work.
    """
    return_large_blocks()
    collect_rarely()
    clock, tally, metrics = SystemClock(), Tally(), MetricsExporter("bench", "0")
    credentials = FileCredentials.from_kubeconfig(kubeconfig, clock=clock)
    origin = _origin(credentials.server)
    async with open_session() as session:

        def connect(plane: Plane, lane: FlowControl) -> KubeClient:
            tls = Tls(lambda: credentials.ssl_context, credentials.server_hostname)
            connection = RestConfig(
                plane=plane.name,
                role=plane.role,
                transport=AiohttpTransport(session, origin, tls),
                lane=lane,
                credentials=credentials,
                base_path=urlsplit(plane.base_url).path,
                measures=metrics.measures,
            )
            return HttpKubeClient(connection, WRITER)

        setting = RegistryDeps(clock=clock, random=SystemRandom(), measures=metrics.measures)
        watched = [CachedKind(Role.PROJECT, kind) for kind in KINDS]
        planes = Planes(connect, watched, setting)
        runtime = ManagerDeps(ApplyDeps(planes, clock), SystemRandom(), metrics.measures)
        manager = Manager([_counting(tally)], runtime)
        running = asyncio.create_task(manager.run()) if with_reconciles else None
        for number in range(planes_wanted):
            name = PlaneName(f"p{number}")
            planes.engage(Plane(name, Role.PROJECT, f"{origin}/planes/{name}"))
        names = [PlaneName(f"p{number}") for number in range(planes_wanted)]
        # The kit notifies controllers about a synced plane; this code is none, so it polls.
        while not all(planes.get(name).is_synced for name in names):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        freeze_heap()
        await answer_questions(tally)
        manager.stop()
        if running is not None:
            await running
        await planes.close()


async def run_kit_with_reconciles(kubeconfig: Path, planes_wanted: int) -> None:
    await run_kit(kubeconfig, planes_wanted, with_reconciles=True)


def _origin(server: str) -> str:
    url = urlsplit(server)
    return f"{url.scheme}://{url.netloc}"


def _counting(tally: Tally) -> Controller:
    async def reconcile(key: ObjectKey, work: ReconcileContext) -> Result:
        tally.reconciles += 1
        entry = work.caches.lister(key.plane, key.kind).entry(key.namespace, key.name)
        stamp = entry.metadata.annotations.get("sent", "") if entry else ""
        if stamp and len(tally.latencies) < 5000:
            tally.latencies.append(time.time() - float(stamp))
        return Result()

    def count(change: Change, _: Caches) -> Iterable[ObjectKey]:
        tally.events += 1
        return (change.key,)

    watches = tuple(Watch(Role.PROJECT, kind, count) for kind in KINDS)
    return Controller("bench", WRITER, watches, reconcile)


# --- kopf -----------------------------------------------------------------------------------------


async def run_kopf(_kubeconfig: Path, _planes: int, *, is_silent: bool = False) -> None:
    """Watches the same kind on one plane through `on.event` and logs as `kopf run` does.

    kopf reads the kubeconfig that the environment names.
    """
    if not is_silent:
        log_as_kopf_does()
    tally = Tally()
    registry = kopf.OperatorRegistry()
    login: Callable[..., kopf.ConnectionInfo | None] = kopf.login_with_kubeconfig
    kopf.on.login(registry=registry)(login)

    async def seen(**_: object) -> None:
        tally.events += 1
        tally.reconciles += 1

    kopf.on.event("workloads.compute.datumapis.com", registry=registry)(seen)
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    stop, ready = asyncio.Event(), asyncio.Event()
    operator = asyncio.create_task(
        kopf.operator(
            registry=registry,
            settings=settings,
            standalone=True,
            namespaces=["default"],
            stop_flag=stop,
            ready_flag=ready,
        )
    )
    await ready.wait()
    await asyncio.sleep(1)  # kopf does not report its first list
    await answer_questions(tally)
    stop.set()
    await operator


async def run_kopf_silently(kubeconfig: Path, planes: int) -> None:
    await run_kopf(kubeconfig, planes, is_silent=True)


def log_as_kopf_does() -> None:
    """kopf's own logging set-up, written to /dev/null: the container runtime's cost is not
    kopf's.
    """
    devnull = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for the whole process
    with contextlib.redirect_stderr(devnull):  # its handler keeps the stream it sees now
        kopf.configure()


def main() -> None:
    role, kubeconfig, planes = sys.argv[1:4]
    roles: dict[str, Callable[[Path, int], Awaitable[None]]] = {
        "kit": run_kit,
        "kit-reconciles": run_kit_with_reconciles,
        "kopf": run_kopf,
        "kopf-silent": run_kopf_silently,
    }
    run = roles[role]

    async def chosen() -> None:
        await run(Path(kubeconfig), int(planes))

    uvloop.run(chosen())


if __name__ == "__main__":
    main()
