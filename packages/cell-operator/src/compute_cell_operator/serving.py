"""The process: servers, credentials, Lease and front door around the operator, and their end.

```
files and sockets ──► probes · metrics ──► planes ──► Lease ──► controllers
```

Everything up to the Lease runs on every replica, and no far plane is needed to get there. On
SIGTERM controllers take no more keys, what is in flight ends or is aborted, the Lease is given
back, and the rest is closed in the reverse order.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import sys
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack
from datetime import timedelta
from random import SystemRandom
from typing import Final

from compute_cell_operator.access import Connector, load_identities
from compute_cell_operator.front_door import open_front_door
from compute_cell_operator.plane_names import CELL
from compute_cell_operator.recorders import Recorders, reporters
from compute_cell_operator.settings import CellSettings
from compute_cell_operator.wiring import COMPONENT, Operator, Ports
from compute_operator_kit.apply.desk import AlwaysLeading
from compute_operator_kit.certificates import ServingCertificate
from compute_operator_kit.clock import Clock, Random
from compute_operator_kit.configuration import check_files
from compute_operator_kit.election import Timing
from compute_operator_kit.events import Events, Recorder
from compute_operator_kit.http_transport import open_session
from compute_operator_kit.keys import ObjectKey, PlaneName
from compute_operator_kit.kopf_host import KopfHost
from compute_operator_kit.kube import Writer
from compute_operator_kit.leader import LEASE, Candidacy, Election, derive_identity, find_namespace
from compute_operator_kit.logs import set_up_logs
from compute_operator_kit.metrics_server import MetricsServer, OpenGuard, ReviewGuard
from compute_operator_kit.probes import ProbeServer
from compute_operator_kit.process import Lifecycle, freeze_heap
from compute_operator_kit.settings import Bind
from compute_operator_kit.system_clock import SystemClock
from compute_operator_kit.telemetry import Metrics, build_tracing

LEASE_WRITER: Final = Writer("leader-election", COMPONENT)
METRICS_WRITER: Final = Writer("metrics", COMPONENT)
EVENTS_WRITER: Final = Writer("events", COMPONENT)
# Long enough for the first lists; what comes later is collected as usual.
FREEZE_AFTER: Final = timedelta(seconds=30)

logger = logging.getLogger(__name__)


async def serve(
    settings: CellSettings, environ: Mapping[str, str], version: str, lifecycle: Lifecycle
) -> None:
    """Runs the process until it is asked to stop, or loses its Lease."""
    set_up_logs(settings.telemetry.log_level, settings.telemetry.log_format, sys.stderr)
    check_files(settings)
    async with AsyncExitStack() as stack:
        house = House(settings, environ, version)
        await house.open(stack)
        async with asyncio.TaskGroup() as crew:
            helpers = [crew.create_task(work, name=name) for name, work in house.errands()]
            await house.lead(lifecycle)
            for helper in helpers:
                helper.cancel()


class House:
    """Everything one process is made of."""

    def __init__(self, settings: CellSettings, environ: Mapping[str, str], version: str) -> None:
        self._settings = settings
        self._clock: Clock = SystemClock()
        self._random: Random = SystemRandom()
        self._version = version
        self._identity = derive_identity(
            environ.get("POD_NAME", ""), socket.gethostname(), secrets.token_hex(4)
        )
        self._identities = load_identities(settings, environ, self._clock)
        self._namespace = find_namespace(
            settings.leader_election.namespace, environ, self._identities.cell.namespace
        )
        self._metrics = Metrics(COMPONENT, version)
        self._tracing = build_tracing(settings.telemetry, COMPONENT, version)
        self._recorders = self._build_recorders()
        self._certificates: list[ServingCertificate] = []
        self._is_leading = False

    # opening -------------------------------------------------------------------------------------

    async def open(self, stack: AsyncExitStack) -> None:
        """Opens what others see of this process, then what it looks at; closed in reverse."""
        stack.callback(self._metrics.shut_down)
        stack.callback(self._tracing.shut_down)
        session = await stack.enter_async_context(open_session())
        self._connector = Connector(
            session,
            self._identities,
            self._settings,
            measures=self._metrics.measures,
            user_agent=f"{COMPONENT}/{self._version}",
        )
        self._election = self._build_election()
        self._operator = self._build_operator()
        self._host = self._build_host()
        self._tell_of_quota()
        await self._open_servers(stack)
        stack.push_async_callback(self._operator.close)
        self._operator.start()
        stack.push_async_callback(self._host.stop)
        self._host.start()

    def _build_recorders(self) -> Recorders:
        own, by_kind = reporters(COMPONENT, self._identity)
        return Recorders(
            Recorder(self._find_events, own, self._clock),
            {
                kind: Recorder(self._find_events, reporter, self._clock)
                for kind, reporter in by_kind.items()
            },
        )

    def _build_operator(self) -> Operator:
        is_elected = self._settings.leader_election.enabled
        ports = Ports(
            connect=self._connector.connect,
            clock=self._clock,
            random=self._random,
            places=self._identities.places(),
            namespace=self._namespace,
            leadership=self._election if is_elected else AlwaysLeading(),
            recorder=self._recorders,
            measures=self._metrics.measures,
            spans=self._tracing,
        )
        return Operator(self._settings, ports)

    def _build_election(self) -> Election:
        candidacy = Candidacy(
            ObjectKey(CELL, LEASE, self._namespace, COMPONENT),
            self._identity,
            Timing.of(self._settings.leader_election),
        )
        return Election(
            self._connector.connect_home(self._clock, LEASE_WRITER),
            candidacy,
            clock=self._clock,
            random=self._random,
            measures=self._metrics.measures,
        )

    def _build_host(self) -> KopfHost:
        return KopfHost(
            open_front_door(),
            self._identities.cell,
            clock=self._clock,
            random=self._random,
            measures=self._metrics.measures,
        )

    def _tell_of_quota(self) -> None:
        """Switched off is never a fallback, so it is said aloud (operations.md 2)."""
        is_enforced = self._settings.is_quota_enforced
        self._metrics.measures.gauge("compute_quota_enforcement_enabled", float(is_enforced))
        if not is_enforced:
            logger.warning("Quota is disabled: every Instance starts")

    async def _open_servers(self, stack: AsyncExitStack) -> None:
        if (bind := self._settings.health.bind) is not None:
            probes = ProbeServer(bind)
            # That somebody answers at all is the operator's own loop; the other one is asked.
            probes.healthy.add("front-door", self._host.find_unhealthy)
            probes.ready.add("home-synced", self._operator.find_unsynced)
            await probes.start()
            stack.push_async_callback(probes.stop)
        if (bind := self._settings.metrics_server.bind) is not None:
            metrics = self._build_metrics_server(bind)
            await metrics.start()
            stack.push_async_callback(metrics.stop)

    def _build_metrics_server(self, bind: Bind) -> MetricsServer:
        found = self._settings.metrics_server
        if not found.secure_serving:
            return MetricsServer(bind, self._metrics.render, OpenGuard())
        certificate = ServingCertificate(
            "metrics",
            found.tls.certificate,
            found.tls.key,
            clock=self._clock,
            measures=self._metrics.measures,
        )
        self._certificates.append(certificate)
        reviewer = self._connector.connect_home(self._clock, METRICS_WRITER)
        guard = ReviewGuard(reviewer, self._clock)
        return MetricsServer(bind, self._metrics.render, guard, certificate=certificate)

    def _find_events(self, plane: PlaneName) -> Events | None:
        engaged = self._operator.planes.find(plane)
        return None if engaged is None else engaged.kube.acting_as(EVENTS_WRITER)

    # running -------------------------------------------------------------------------------------

    def errands(self) -> Iterator[tuple[str, Coroutine[None, None, None]]]:
        """What runs beside the controllers, and ends with them."""
        for recorder in self._recorders:
            yield "events", recorder.run()
        yield "heap", self._freeze_heap()
        for certificate in self._certificates:
            yield "certificate", certificate.follow()

    async def lead(self, lifecycle: Lifecycle) -> None:
        """Writes under the Lease until it is asked to stop; raises when the Lease is lost."""
        leading = asyncio.create_task(self._lead(), name="leading")
        asked = asyncio.create_task(lifecycle.wait_for_stop(), name="asked to stop")
        try:
            await asyncio.wait({leading, asked}, return_when=asyncio.FIRST_COMPLETED)
            self._operator.stop()
            if not self._is_leading:
                leading.cancel()  # a candidate waits for a Lease it no longer wants
            await asyncio.wait({leading})
        finally:
            for task in (leading, asked):
                task.cancel()
            await asyncio.wait({leading, asked})
        if not leading.cancelled():
            leading.result()

    async def _lead(self) -> None:
        if self._settings.leader_election.enabled:
            await self._election.lead(self._write)
        else:
            await self._write()

    async def _write(self) -> None:
        self._is_leading = True
        await self._operator.lead()

    async def _freeze_heap(self) -> None:
        await self._clock.sleep(FREEZE_AFTER)
        freeze_heap()
