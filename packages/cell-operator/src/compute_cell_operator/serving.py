"""The process of this operator: its identities, its quota client and what makes it ready.

The rest of a process is the kit's (`compute_operator_kit.house`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Final

from typing_extensions import override

from compute_cell_operator.access import Identities, load_identities
from compute_cell_operator.front_door import open_front_door
from compute_cell_operator.kinds import DEPLOYMENT, INSTANCE
from compute_cell_operator.plane_names import CELL
from compute_cell_operator.quota_gate.clients import open_client
from compute_cell_operator.settings import CellSettings
from compute_cell_operator.wiring import COMPONENT, Operator, Ports
from compute_operator_kit.clock import Clock
from compute_operator_kit.house import Frame, House, keep, prepare
from compute_operator_kit.keys import Kind
from compute_operator_kit.kopf_host import FrontDoor
from compute_operator_kit.probes import ProbeServer
from compute_operator_kit.process import Lifecycle
from compute_operator_kit.system_clock import SystemClock

# Who speaks in events about Instances and deployments (cell.md 14).
VOICES: Final[Mapping[Kind, str]] = {
    INSTANCE: "instance-controller",
    DEPLOYMENT: "workloaddeployment-controller",
}

logger = logging.getLogger(__name__)


async def serve(
    settings: CellSettings, environ: Mapping[str, str], version: str, lifecycle: Lifecycle
) -> None:
    """Runs the process until it is asked to stop, or loses its Lease."""
    prepare(settings)
    clock = SystemClock()
    identities = load_identities(settings, environ, clock)
    house = CellHouse(Frame(COMPONENT, version, CELL, environ), settings, identities, clock)
    await keep(house, lifecycle)


class CellHouse(House[Operator]):
    """With a client of the quota server, where quota is enforced."""

    voices = VOICES

    def __init__(
        self, frame: Frame, settings: CellSettings, identities: Identities, clock: Clock
    ) -> None:
        super().__init__(frame, settings, identities, clock)
        self._own_settings = settings
        self._own_identities = identities
        self._user_agent = f"{frame.component}/{frame.version}"

    @override
    async def open(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        await super().open(stack)

    @override
    def build_operator(self) -> Operator:
        quota = None
        if self._own_settings.is_quota_enforced:
            quota = open_client(self._own_settings, self._user_agent, self.clock, self.random)
            self._stack.push_async_callback(quota.aclose)  # after the operator that uses it
        else:
            # Switched off is never a fallback, so it is said aloud (operations.md 2).
            logger.warning("Quota is disabled: every Instance starts")
        ports = Ports(
            connect=self.connector.connect,
            clock=self.clock,
            random=self.random,
            places=self._own_identities.places(),
            namespace=self.namespace,
            leadership=self.leadership,
            recorder=self.recorders,
            measures=self.metrics.measures,
            spans=self.tracing,
            quota=quota,
        )
        return Operator(self._own_settings, ports)

    @override
    def build_door(self) -> FrontDoor:
        return open_front_door()

    @override
    def add_checks(self, probes: ProbeServer) -> None:
        probes.ready.add("home-synced", self.operator.find_unsynced)
