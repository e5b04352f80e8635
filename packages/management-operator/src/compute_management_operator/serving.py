"""The process of this operator: its identities, its webhook and what makes it ready.

The rest of a process is the kit's (`compute_operator_kit.house`).
"""

from __future__ import annotations

from collections.abc import Mapping

from typing_extensions import override

from compute_management_operator.access import Identities, load_identities
from compute_management_operator.front_door import PATH, open_front_door
from compute_management_operator.kinds import WORKLOAD
from compute_management_operator.plane_names import HOME
from compute_management_operator.settings import ManagementSettings
from compute_management_operator.wiring import COMPONENT, Operator, Ports
from compute_operator_kit.clock import Clock
from compute_operator_kit.house import Frame, House, keep, prepare
from compute_operator_kit.kopf_host import FrontDoor, Webhook
from compute_operator_kit.probes import ProbeServer
from compute_operator_kit.process import Lifecycle
from compute_operator_kit.settings import Bind
from compute_operator_kit.system_clock import SystemClock


async def serve(
    settings: ManagementSettings, environ: Mapping[str, str], version: str, lifecycle: Lifecycle
) -> None:
    """Runs the process until it is asked to stop, or loses its Lease."""
    prepare(settings)
    clock = SystemClock()
    identities = load_identities(settings, environ, clock)
    house = ManagementHouse(Frame(COMPONENT, version, HOME, environ), settings, identities, clock)
    await keep(house, lifecycle)


class ManagementHouse(House[Operator]):
    """With discovery and admission on every replica."""

    def __init__(
        self, frame: Frame, settings: ManagementSettings, identities: Identities, clock: Clock
    ) -> None:
        super().__init__(frame, settings, identities, clock)
        self._own_settings = settings
        self._own_identities = identities

    @override
    def build_operator(self) -> Operator:
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
        )
        return Operator(self._own_settings, ports)

    @override
    def build_door(self) -> FrontDoor:
        return open_front_door(self.operator.admission.review, self._build_webhook())

    @override
    def add_checks(self, probes: ProbeServer) -> None:
        probes.ready.add("home-synced", self.operator.find_home_unsynced)
        if not self._own_settings.is_single:
            probes.ready.add("discovery-synced", self.operator.find_projects_unlisted)
        if self._own_settings.webhook_server is not None:
            probes.ready.add("webhook", self.host.find_unready)

    def _build_webhook(self) -> Webhook | None:
        found = self._own_settings.webhook_server
        if found is None:
            return None
        certificate = self.serve_certificate("webhook", found.tls, found.tls.client_ca)
        return Webhook(Bind(found.host, found.port), certificate, [PATH], [WORKLOAD])
