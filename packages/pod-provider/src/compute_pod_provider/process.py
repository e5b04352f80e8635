"""The process of the pod provider: kopf under the Lease, with the kit's servers around it.

kopf starts when the Lease is held and ends with it. Two leaders would be safe, by names, UIDs and
versions, but each would write what the other has written.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from compute_operator_kit.core.errors import ReconcileError
from compute_operator_kit.core.keys import Role
from compute_operator_kit.core.system_clock import SystemClock
from compute_operator_kit.planes.endpoints import load_operator_credentials
from compute_operator_kit.planes.registry import Planes
from compute_operator_kit.process.lifecycle import Lifecycle
from compute_operator_kit.process.operator_process import (
    BuiltOperator,
    OperatorProcess,
    ProcessInfo,
    run_operator_process,
    setup_process,
)
from compute_pod_provider import delays
from compute_pod_provider.apply import HOME, INSTANCE
from compute_pod_provider.cluster.client import ClusterClient
from compute_pod_provider.cluster.login import derive_login, load_configuration
from compute_pod_provider.handlers import GetLogin, run_kopf
from compute_pod_provider.provider import PodProvider, ProviderDeps
from compute_pod_provider.settings import PodProviderSettings

COMPONENT: Final = "compute-pod-provider"
EVENT_SOURCES: Final = {INSTANCE: COMPONENT}

logger = logging.getLogger(__name__)


class LedProvider:
    """`RunnableOperator` of the kit: its plane is there for Events, kopf does the rest."""

    def __init__(
        self,
        provider: PodProvider,
        client: ClusterClient,
        planes: Planes,
        login: GetLogin,
        process: OperatorProcess,
    ) -> None:
        self.planes = planes
        self._provider = provider
        self._client = client
        self._login = login
        self._clock = process.clock
        self._home = process.ports.endpoints.describe(HOME, Role.HOME)
        self._stop = asyncio.Event()

    @property
    def is_busy(self) -> bool:
        return False

    def start(self) -> None:
        self.planes.engage(self._home)

    async def lead(self) -> None:
        """Runs kopf until a stop is requested. kopf takes over SIGTERM and SIGINT, on which it ends
        without an error; one of its own failures is raised and fatal.
        """
        if not await self._wait_until_served():
            return
        try:
            async with asyncio.TaskGroup() as tasks:
                sweep = tasks.create_task(self._provider.sweep(), name="sweep")
                await run_kopf(self._provider, self._clock, self._login, self._stop)
                sweep.cancel()
        finally:
            await self._provider.close()

    async def _wait_until_served(self) -> bool:
        """kopf does not look for kinds that appear later: it starts when Instances are served."""
        while not self._stop.is_set():
            try:
                if await self._client.is_served():
                    return True
                logger.warning("Waiting for the CRD of Instances", extra={"reason": "NotServed"})
            except ReconcileError as trouble:
                logger.warning("Waiting for the API server", extra={"reason": trouble.reason})
            await self._clock.sleep(delays.SERVED_CHECK)
        return False

    def stop(self) -> None:
        self._stop.set()

    async def close(self) -> None:
        await self.planes.close()
        await self._client.close()


async def run(settings: PodProviderSettings, info: ProcessInfo, lifecycle: Lifecycle) -> None:
    """Runs the process until a stop is requested, or its Lease is lost."""
    setup_process(settings)
    # At INFO a line per event and handler, with all settings of kopf in it.
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
    clock = SystemClock()
    credentials = load_operator_credentials(
        {}, info.environ, clock, allow_exec=settings.clients.allow_exec
    )
    configuration = await load_configuration(info.environ)

    def build(process: OperatorProcess) -> BuiltOperator:
        ports = process.ports
        client = ClusterClient(configuration, ports.metrics, process.user_agent)
        deps = ProviderDeps(
            client=client,
            options=settings.options(ports.namespace),
            record=ports.event_recorder.record,
            metrics=ports.metrics,
            clock=clock,
            random=ports.random,
            spans=ports.spans,
        )
        planes = Planes(ports.connect, (), ports.registry_deps(settings.clients))
        provider = PodProvider(deps)
        led = LedProvider(provider, client, planes, lambda: derive_login(configuration), process)
        return BuiltOperator(operator=led)

    process = OperatorProcess(
        info, settings, credentials, clock, build=build, event_sources=EVENT_SOURCES
    )
    await run_operator_process(process, lifecycle)
