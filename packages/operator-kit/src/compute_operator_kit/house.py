"""A process: servers, credentials, Lease and front door around an operator, and their end.

```
files and sockets ──► probes · metrics ──► planes · front door ──► Lease ──► controllers
```

Everything up to the Lease runs on every replica, and no far plane is needed to get there. On
SIGTERM controllers take no more keys, what is in flight ends or is aborted, the Lease is given
back, and the rest is closed in the reverse order. What an operator is made of, who speaks in its
events, what its door opens to and what makes it ready is its own `House`.
"""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import socket
import sys
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

from compute_operator_kit.apply.desk import AlwaysLeading, Leadership
from compute_operator_kit.certificates import ServingCertificate
from compute_operator_kit.clock import Clock, Random
from compute_operator_kit.configuration import check_files, find_warnings
from compute_operator_kit.connector import Connector, Identities, open_ways
from compute_operator_kit.election import Timing
from compute_operator_kit.events import Events, Reporter
from compute_operator_kit.heap import freeze_heap
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName
from compute_operator_kit.kopf_host import FrontDoor, KopfHost
from compute_operator_kit.kube import Writer
from compute_operator_kit.leader import LEASE, Candidacy, Election, derive_identity, find_namespace
from compute_operator_kit.logs import set_up_logs
from compute_operator_kit.metrics_server import MetricsServer, OpenGuard, ReviewGuard
from compute_operator_kit.otlp import build_resource
from compute_operator_kit.planes import Planes
from compute_operator_kit.probes import ProbeServer
from compute_operator_kit.process import Lifecycle
from compute_operator_kit.recorders import Recorders
from compute_operator_kit.settings import Bind, Root, TlsFiles
from compute_operator_kit.telemetry import Metrics, build_tracing, choose_metric_exporter

# Long enough for the first lists of most planes; what comes later is collected as usual.
FREEZE_AFTER: Final = timedelta(seconds=30)
# What OpenTelemetry names as the default of OTEL_METRIC_EXPORT_INTERVAL.
EXPORT_EVERY: Final = timedelta(seconds=60)

logger = logging.getLogger(__name__)


class Wired(Protocol):
    """An operator as its process sees it."""

    @property
    def planes(self) -> Planes: ...

    @property
    def is_pressed(self) -> bool:
        """Whether more is to be done than workers can do now."""
        ...

    def start(self) -> None: ...

    async def lead(self) -> None: ...

    def stop(self) -> None: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Frame:
    """What a process is, before anything is opened."""

    component: str
    version: str
    home: PlaneName
    environ: Mapping[str, str]


OperatorT = TypeVar("OperatorT", bound=Wired)


class House(ABC, Generic[OperatorT]):
    """Everything one process is made of."""

    voices: Mapping[Kind, str] = {}  # reporters of their own, by the kind that they speak about
    operator: OperatorT
    host: KopfHost

    def __init__(self, frame: Frame, settings: Root, identities: Identities, clock: Clock) -> None:
        self._frame = frame
        self._settings = settings
        self._identities = identities
        self.clock = clock
        # Spreads moments and tells passes apart in logs, several times per pass; keeps no secret.
        self.random: Random = random.Random()  # noqa: S311
        environ = frame.environ
        self._identity = derive_identity(
            environ.get("POD_NAME", ""), socket.gethostname(), secrets.token_hex(4)
        )
        self.namespace = find_namespace(
            settings.leader_election.namespace, environ, identities.home.namespace
        )
        resource = build_resource(
            frame.component,
            frame.version,
            instance=self._identity,
            namespace=self.namespace,
            environ=environ,
        )
        self.metrics = Metrics(
            frame.component,
            frame.version,
            resource=resource,
            exporter=choose_metric_exporter(settings.telemetry),
        )
        self.tracing = build_tracing(settings.telemetry, resource)
        self.recorders = Recorders.speaking_as(
            Reporter(frame.component, self._identity),
            self.voices,
            self._find_events,
            clock,
            lambda: self.operator.is_pressed,
        )
        self._certificates: list[ServingCertificate] = []
        self._is_leading = False

    # what an operator brings ---------------------------------------------------------------------

    @abstractmethod
    def build_operator(self) -> OperatorT:
        """Wired, not started; the connector and the Lease are there."""

    @abstractmethod
    def build_door(self) -> FrontDoor:
        """What kopf serves; called when the operator is built."""

    @abstractmethod
    def add_checks(self, probes: ProbeServer) -> None:
        """What makes this operator ready, beside that it answers at all."""

    # opening -------------------------------------------------------------------------------------

    async def open(self, stack: AsyncExitStack) -> None:
        """Opens what others see of this process, then what it looks at; closed in reverse."""
        stack.callback(self.metrics.shut_down)
        stack.callback(self.tracing.shut_down)
        self.connector = Connector(
            await stack.enter_async_context(open_ways()),
            self._identities,
            self._settings.clients,
            measures=self.metrics.measures,
            component=self._frame.component,
            version=self._frame.version,
        )
        self._election = self._build_election()
        self.operator = self.build_operator()
        self.host = KopfHost(
            self.build_door(),
            self._identities.home,
            clock=self.clock,
            random=self.random,
            measures=self.metrics.measures,
        )
        await self._open_servers(stack)
        stack.push_async_callback(self.operator.close)
        self.operator.start()
        stack.push_async_callback(self.host.stop)
        self.host.start()

    @property
    def leadership(self) -> Leadership:
        return self._election if self._settings.leader_election.enabled else AlwaysLeading()

    def serve_certificate(
        self, server: str, files: TlsFiles, client_ca: Path | None = None
    ) -> ServingCertificate:
        """A certificate that is followed on disk for as long as the process lives; with
        `client_ca` clients must show one of theirs.
        """
        made = ServingCertificate(
            server,
            files.certificate,
            files.key,
            clock=self.clock,
            measures=self.metrics.measures,
            client_ca=client_ca,
        )
        self._certificates.append(made)
        return made

    def _build_election(self) -> Election:
        candidacy = Candidacy(
            ObjectKey(self._frame.home, LEASE, self.namespace, self._frame.component),
            self._identity,
            Timing.of(self._settings.leader_election),
        )
        return Election(
            self.connector.connect_home(
                self._frame.home, self.clock, self._writer("leader-election")
            ),
            candidacy,
            clock=self.clock,
            random=self.random,
            measures=self.metrics.measures,
        )

    async def _open_servers(self, stack: AsyncExitStack) -> None:
        if (bind := self._settings.health.bind) is not None:
            probes = ProbeServer(bind)
            # That somebody answers at all is the operator's own loop; the other one is asked.
            probes.healthy.add("front-door", self.host.find_unhealthy)
            self.add_checks(probes)
            await probes.start()
            stack.push_async_callback(probes.stop)
        if (bind := self._settings.metrics_server.bind) is not None:
            metrics = self._build_metrics_server(bind)
            await metrics.start()
            stack.push_async_callback(metrics.stop)

    def _build_metrics_server(self, bind: Bind) -> MetricsServer:
        found = self._settings.metrics_server
        if not found.secure_serving:
            return MetricsServer(bind, self.metrics.render, OpenGuard())
        reviewer = self.connector.connect_home(
            self._frame.home, self.clock, self._writer("metrics")
        )
        return MetricsServer(
            bind,
            self.metrics.render,
            ReviewGuard(reviewer, self.clock),
            certificate=self.serve_certificate("metrics", found.tls),
        )

    def _find_events(self, plane: PlaneName) -> Events | None:
        engaged = self.operator.planes.find(plane)
        return None if engaged is None else engaged.kube.acting_as(self._writer("events"))

    def _writer(self, name: str) -> Writer:
        return Writer(name, self._frame.component)

    # running -------------------------------------------------------------------------------------

    def errands(self) -> Iterator[tuple[str, Coroutine[None, None, None]]]:
        """What runs beside the controllers, and ends with them."""
        for recorder in self.recorders:
            yield "events", recorder.run()
        yield "heap", self._freeze_heap()
        if self.metrics.is_exported:
            yield "metrics export", self._export_metrics()
        for certificate in self._certificates:
            yield "certificate", certificate.follow()

    async def lead(self, lifecycle: Lifecycle) -> None:
        """Writes under the Lease until it is asked to stop; raises when the Lease is lost."""
        leading = asyncio.create_task(self._lead(), name="leading")
        asked = asyncio.create_task(lifecycle.wait_for_stop(), name="asked to stop")
        try:
            await asyncio.wait({leading, asked}, return_when=asyncio.FIRST_COMPLETED)
            self.operator.stop()
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
        await self.operator.lead()

    async def _export_metrics(self) -> None:
        while True:
            await self.clock.sleep(EXPORT_EVERY)
            await asyncio.to_thread(self.metrics.export)  # it blocks on the collector

    async def _freeze_heap(self) -> None:
        await self.clock.sleep(FREEZE_AFTER)
        freeze_heap()


def prepare(settings: Root) -> None:
    """Before a house is built: logs, and every file that the settings name."""
    set_up_logs(settings.telemetry.log_level, settings.telemetry.log_format, sys.stderr)
    for warning in find_warnings(settings):
        logger.warning(
            "Starting with a setting that has no effect",
            extra={"reason": "ExporterMissing", "setting": warning.path, "hint": warning.message},
        )
    check_files(settings)


async def keep(house: House[OperatorT], lifecycle: Lifecycle) -> None:
    """Runs the process until it is asked to stop, or loses its Lease."""
    async with AsyncExitStack() as stack:
        await house.open(stack)
        async with asyncio.TaskGroup() as crew:
            helpers = [crew.create_task(work, name=name) for name, work in house.errands()]
            await house.lead(lifecycle)
            for helper in helpers:
                helper.cancel()
