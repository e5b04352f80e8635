"""The process around an operator: credentials, servers, Lease, background tasks, and their end.

```
files and sockets ──► probes · metrics ──► planes · caches ──► Lease ──► controllers
```

All up to the Lease runs on every replica and needs no remote plane, so that an outage of a hub
keeps no pod from becoming ready. On SIGTERM controllers start no more keys, reconciles in flight
end or are aborted, the Lease is released, and the rest is closed in reverse order. The operator
comes from a callable, with its probes and background tasks.
"""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import socket
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias

from compute_operator_kit.apply.context import AlwaysLeading, Leadership
from compute_operator_kit.client.interface import FieldOwner
from compute_operator_kit.config.loader import check_files, find_warnings
from compute_operator_kit.config.settings import Bind, Root, TlsFiles
from compute_operator_kit.controller.ports import OperatorPorts
from compute_operator_kit.core.clock import Clock, Random
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName
from compute_operator_kit.core.memory import freeze_heap
from compute_operator_kit.planes.client_factory import ClientFactory, open_transports
from compute_operator_kit.planes.endpoints import OperatorCredentials
from compute_operator_kit.planes.registry import Planes
from compute_operator_kit.process.certificates import ServingCertificate
from compute_operator_kit.process.election import Timing
from compute_operator_kit.process.leader import (
    LEASE,
    Candidacy,
    Election,
    derive_identity,
    find_namespace,
)
from compute_operator_kit.process.lifecycle import Lifecycle
from compute_operator_kit.process.metrics_server import MetricsServer, OpenGuard, TokenReviewGuard
from compute_operator_kit.process.probes import Check, ProbeServer
from compute_operator_kit.telemetry.event_recorders import EventRecorders
from compute_operator_kit.telemetry.events import EventClient, EventSource
from compute_operator_kit.telemetry.logs import set_up_logs
from compute_operator_kit.telemetry.opentelemetry import (
    MetricsExporter,
    build_tracing,
    choose_metric_exporter,
)
from compute_operator_kit.telemetry.otlp import build_resource

# Long enough for the first lists of most planes; later objects are collected as usual.
FREEZE_AFTER: Final = timedelta(seconds=30)
# The default of OTEL_METRIC_EXPORT_INTERVAL in the OpenTelemetry specification.
EXPORT_EVERY: Final = timedelta(seconds=60)

logger = logging.getLogger(__name__)

BackgroundTask: TypeAlias = Callable[[], Coroutine[object, object, None]]


class RunnableOperator(Protocol):
    """What a process needs of an operator."""

    @property
    def planes(self) -> Planes: ...

    @property
    def is_busy(self) -> bool:
        """Whether more keys are due than workers are free."""
        ...

    def start(self) -> None: ...

    async def lead(self) -> None: ...

    def stop(self) -> None: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """Names and environment of a process, known before anything is opened."""

    component: str
    version: str
    home: PlaneName
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltOperator:
    """An operator that is wired and not started, with its probes and background tasks."""

    operator: RunnableOperator
    healthy: Mapping[str, Check] = field(default_factory=dict[str, Check])
    ready: Mapping[str, Check] = field(default_factory=dict[str, Check])
    # By name; started with the operator and cancelled before it is closed.
    background_tasks: Mapping[str, BackgroundTask] = field(
        default_factory=dict[str, BackgroundTask]
    )


class OperatorProcess:
    """One process. `build` is called once the clients and the election exist."""

    def __init__(
        self,
        info: ProcessInfo,
        settings: Root,
        credentials: OperatorCredentials,
        clock: Clock,
        *,
        build: Callable[[OperatorProcess], BuiltOperator],
        event_sources: Mapping[Kind, str] = MappingProxyType({}),  # `reportingComponent` by kind
    ) -> None:
        self._info = info
        self._settings = settings
        self._credentials = credentials
        self._build = build
        self.clock = clock
        # For jitter and reconcile IDs, several per reconcile; no secret depends on it.
        self.random: Random = random.Random()  # noqa: S311
        environ = info.environ
        self._identity = derive_identity(
            environ.get("POD_NAME", ""), socket.gethostname(), secrets.token_hex(4)
        )
        self._namespace = find_namespace(
            settings.leader_election.namespace,
            environ,
            credentials.home.namespace,
            is_elected=settings.leader_election.enabled,
        )
        resource = build_resource(
            info.component,
            info.version,
            instance=self._identity,
            namespace=self._namespace,
            environ=environ,
        )
        self.metrics = MetricsExporter(
            info.component,
            info.version,
            resource=resource,
            exporter=choose_metric_exporter(settings.telemetry),
        )
        self._tracing = build_tracing(settings.telemetry, resource)
        self._recorders = EventRecorders.for_kinds(
            EventSource(info.component, self._identity),
            event_sources,
            self._find_events,
            clock,
            lambda: self._built.operator.is_busy,
        )
        self._certificates: list[ServingCertificate] = []
        self._is_leading = False

    # opening -------------------------------------------------------------------------------------

    async def open(self, stack: AsyncExitStack) -> None:
        """Opens the servers, then the planes; closed in reverse."""
        self._stack = stack
        stack.callback(self.metrics.shut_down)
        stack.callback(self._tracing.shut_down)
        self._clients = ClientFactory(
            await stack.enter_async_context(open_transports()),
            self._credentials,
            self._settings.clients,
            measures=self.metrics.measures,
            component=self._info.component,
            version=self._info.version,
        )
        self._election = self._build_election()
        self._built = self._build(self)
        await self._open_servers(stack)
        stack.push_async_callback(self._built.operator.close)
        self._built.operator.start()

    @property
    def ports(self) -> OperatorPorts:
        """What an operator is wired with in this process."""
        return OperatorPorts(
            connect=self._clients.connect,
            clock=self.clock,
            random=self.random,
            endpoints=self._credentials.endpoints(),
            namespace=self._namespace,
            leadership=self._leadership,
            event_recorder=self._recorders,
            metrics=self.metrics.measures,
            spans=self._tracing,
        )

    @property
    def user_agent(self) -> str:
        return f"{self._info.component}/{self._info.version}"

    @property
    def _leadership(self) -> Leadership:
        return self._election if self._settings.leader_election.enabled else AlwaysLeading()

    def on_close(self, close: Callable[[], Awaitable[None]]) -> None:
        """Closes, after the operator, something that `build` opened for it."""
        self._stack.push_async_callback(close)

    def serve_certificate(
        self, server: str, files: TlsFiles, client_ca: Path | None = None
    ) -> ServingCertificate:
        """A certificate that is read again when its files change; with `client_ca`, clients must
        present one of that authority.
        """
        certificate = ServingCertificate(
            server,
            files.certificate,
            files.key,
            clock=self.clock,
            measures=self.metrics.measures,
            client_ca=client_ca,
        )
        self._certificates.append(certificate)
        return certificate

    def _build_election(self) -> Election:
        candidacy = Candidacy(
            ObjectKey(self._info.home, LEASE, self._namespace, self._info.component),
            self._identity,
            Timing.of(self._settings.leader_election),
        )
        return Election(
            self._clients.connect_home(
                self._info.home, self.clock, self._field_owner("leader-election")
            ),
            candidacy,
            clock=self.clock,
            random=self.random,
            measures=self.metrics.measures,
        )

    async def _open_servers(self, stack: AsyncExitStack) -> None:
        if (bind := self._settings.health.bind) is not None:
            probes = ProbeServer(bind)
            for name, check in self._built.healthy.items():
                probes.healthy.add(name, check)
            for name, check in self._built.ready.items():
                probes.ready.add(name, check)
            await probes.start()
            stack.push_async_callback(probes.stop)
        if (bind := self._settings.metrics_server.bind) is not None:
            metrics = self._build_metrics_server(bind)
            await metrics.start()
            stack.push_async_callback(metrics.stop)

    def _build_metrics_server(self, bind: Bind) -> MetricsServer:
        section = self._settings.metrics_server
        if not section.secure_serving:
            return MetricsServer(bind, self.metrics.render, OpenGuard())
        reviewer = self._clients.connect_home(
            self._info.home, self.clock, self._field_owner("metrics")
        )
        return MetricsServer(
            bind,
            self.metrics.render,
            TokenReviewGuard(reviewer, self.clock),
            certificate=self.serve_certificate("metrics", section.tls),
        )

    def _find_events(self, plane: PlaneName) -> EventClient | None:
        engaged = self._built.operator.planes.find(plane)
        return None if engaged is None else engaged.kube.as_owner(self._field_owner("events"))

    def _field_owner(self, name: str) -> FieldOwner:
        return FieldOwner(name, self._info.component)

    # running -------------------------------------------------------------------------------------

    def background_tasks(self) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Tasks beside the controllers, which end with them."""
        for recorder in self._recorders:
            yield "events", recorder.run()
        yield "heap", self._freeze_heap()
        if self.metrics.is_exported:
            yield "metrics export", self._export_metrics()
        for certificate in self._certificates:
            yield "certificate", certificate.follow()
        for name, start in self._built.background_tasks.items():
            yield name, start()

    async def lead(self, lifecycle: Lifecycle) -> None:
        """Runs the controllers under the Lease until a stop is requested; raises when the Lease is
        lost.
        """
        leading = asyncio.create_task(self._lead(), name="leading")
        asked = asyncio.create_task(lifecycle.wait_for_stop(), name="asked to stop")
        try:
            await asyncio.wait({leading, asked}, return_when=asyncio.FIRST_COMPLETED)
            self._built.operator.stop()
            if not self._is_leading:
                leading.cancel()  # a candidate waits for a Lease that it no longer needs
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
        await self._built.operator.lead()

    async def _export_metrics(self) -> None:
        while True:
            await self.clock.sleep(EXPORT_EVERY)
            await asyncio.to_thread(self.metrics.export)  # it blocks on the collector

    async def _freeze_heap(self) -> None:
        await self.clock.sleep(FREEZE_AFTER)
        freeze_heap()


def setup_process(settings: Root) -> None:
    """Before an `OperatorProcess` is built: logs, and every file that the settings name."""
    set_up_logs(settings.telemetry.log_level, settings.telemetry.log_format, sys.stderr)
    for warning in find_warnings(settings):
        logger.warning(
            "Starting with a setting that has no effect",
            extra={"reason": "ExporterMissing", "setting": warning.path, "hint": warning.message},
        )
    check_files(settings)


async def run_operator_process(process: OperatorProcess, lifecycle: Lifecycle) -> None:
    """Runs the process until a stop is requested, or its Lease is lost."""
    async with AsyncExitStack() as stack:
        await process.open(stack)
        async with asyncio.TaskGroup() as group:
            work = process.background_tasks()
            tasks = [group.create_task(coroutine, name=name) for name, coroutine in work]
            await process.lead(lifecycle)
            for task in tasks:
                task.cancel()
