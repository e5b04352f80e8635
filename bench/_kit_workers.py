"""The processes that `bench.kit` measures: an operator on the kit, and one on kopf, both counting.

Each prints `ready` once its caches are complete, answers every line on stdin with what it has
counted so far, as JSON, and ends when stdin does. They do nothing else, so that their CPU time is
that of receiving.
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

from compute_operator_kit.apply.desk import Means
from compute_operator_kit.cache import Caches, Change
from compute_operator_kit.controller import Controller, Watch
from compute_operator_kit.credentials import FileCredentials
from compute_operator_kit.exchange import Connection
from compute_operator_kit.heap import freeze_heap, return_large_blocks
from compute_operator_kit.http_transport import AiohttpTransport, Tls, open_session
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.kube import Kube, Writer
from compute_operator_kit.kube_http import KubeHttp
from compute_operator_kit.lane import Lane
from compute_operator_kit.manager import Manager, Runtime
from compute_operator_kit.planes import Plane, Planes, Setting, Watched
from compute_operator_kit.reconcile import Pass, Result
from compute_operator_kit.system_clock import SystemClock
from compute_operator_kit.telemetry import Metrics

WRITER = Writer("bench", "bench")
KINDS = tuple(
    Kind("compute.datumapis.com", "v1alpha", f"{kind.lower()}s", kind)
    for kind in ("Workload", "WorkloadDeployment", "Instance")
)


class Counted(TypedDict):
    """What a worker has seen so far."""

    events: int
    passes: int
    cpu: float  # seconds of this process, all its threads
    latencies: list[float]  # seconds from the sender's stamp to the pass, of the last events


class Tally:
    """Counts, and clears what was told."""

    def __init__(self) -> None:
        self.events = 0
        self.passes = 0
        self.latencies: list[float] = []

    def told(self) -> str:
        counted: Counted = {
            "events": self.events,
            "passes": self.passes,
            "cpu": time.process_time(),
            "latencies": self.latencies,
        }
        self.latencies = []
        return json.dumps(counted)


async def answer_questions(tally: Tally) -> None:
    """One line in, one line out, until the other side closes."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    say("ready")
    while await reader.readline():
        say(tally.told())


def say(line: str) -> None:
    print(line, flush=True)


# --- the kit --------------------------------------------------------------------------------------


async def run_kit(kubeconfig: Path, planes_wanted: int, *, with_passes: bool = False) -> None:
    """Watches three kinds on each of the planes; every change goes through mapping and queue.

    Without passes it is a replica that stands by, which does all but the work of the leader.
    """
    return_large_blocks()
    clock, tally, metrics = SystemClock(), Tally(), Metrics("bench", "0")
    credentials = FileCredentials.from_kubeconfig(kubeconfig, clock=clock)
    origin = _origin(credentials.server)
    async with open_session() as session:

        def connect(plane: Plane, lane: Lane) -> Kube:
            tls = Tls(lambda: credentials.ssl_context, credentials.server_hostname)
            connection = Connection(
                plane=plane.name,
                role=plane.role,
                transport=AiohttpTransport(session, origin, tls),
                lane=lane,
                credentials=credentials,
                base_path=urlsplit(plane.base_url).path,
                measures=metrics.measures,
            )
            return KubeHttp(connection, WRITER)

        setting = Setting(clock=clock, random=SystemRandom(), measures=metrics.measures)
        watched = [Watched(Role.PROJECT, kind) for kind in KINDS]
        planes = Planes(connect, watched, setting)
        runtime = Runtime(Means(planes, clock), SystemRandom(), metrics.measures)
        manager = Manager([_counting(tally)], runtime)
        running = asyncio.create_task(manager.run()) if with_passes else None
        for number in range(planes_wanted):
            name = PlaneName(f"p{number}")
            planes.engage(Plane(name, Role.PROJECT, f"{origin}/planes/{name}"))
        names = [PlaneName(f"p{number}") for number in range(planes_wanted)]
        # The kit tells controllers when a plane is complete, not onlookers.
        while not all(planes.get(name).is_synced for name in names):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        freeze_heap()
        await answer_questions(tally)
        manager.stop()
        if running is not None:
            await running
        await planes.close()


async def run_kit_with_passes(kubeconfig: Path, planes_wanted: int) -> None:
    await run_kit(kubeconfig, planes_wanted, with_passes=True)


def _origin(server: str) -> str:
    found = urlsplit(server)
    return f"{found.scheme}://{found.netloc}"


def _counting(tally: Tally) -> Controller:
    async def reconcile(key: ObjectKey, work: Pass) -> Result:
        tally.passes += 1
        entry = work.caches.view(key.plane, key.kind).entry(key.namespace, key.name)
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
    """The same kind on one plane, through `on.event`, logging as `kopf run` does.

    It reads the kubeconfig that the environment names, as kopf does.
    """
    if not is_silent:
        log_as_kopf_does()
    tally = Tally()
    registry = kopf.OperatorRegistry()
    login: Callable[..., kopf.ConnectionInfo | None] = kopf.login_with_kubeconfig
    kopf.on.login(registry=registry)(login)

    async def seen(**_: object) -> None:
        tally.events += 1
        tally.passes += 1

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
    await asyncio.sleep(1)  # kopf says nothing about its first list
    await answer_questions(tally)
    stop.set()
    await operator


async def run_kopf_silently(kubeconfig: Path, planes: int) -> None:
    await run_kopf(kubeconfig, planes, is_silent=True)


def log_as_kopf_does() -> None:
    """Its own set-up, written to nowhere: what a container runtime does with it is not kopf's."""
    nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for the whole process
    with contextlib.redirect_stderr(nowhere):  # its handler keeps what it finds now
        kopf.configure()


def main() -> None:
    role, kubeconfig, planes = sys.argv[1:4]
    roles: dict[str, Callable[[Path, int], Awaitable[None]]] = {
        "kit": run_kit,
        "kit-passes": run_kit_with_passes,
        "kopf": run_kopf,
        "kopf-silent": run_kopf_silently,
    }
    run = roles[role]

    async def chosen() -> None:
        await run(Path(kubeconfig), int(planes))

    uvloop.run(chosen())


if __name__ == "__main__":
    main()
