"""Builds both operators for the simulation from their shipped settings and simulated ports.

The configuration comes from the ConfigMaps in `deploy/`, with the values that each installation
must set merged over it. An operator therefore starts in the simulation as it ships.
"""

from __future__ import annotations

from typing import Final

from compute_api_types import labels
from compute_api_types.wire import JsonObject
from compute_cell_operator import planes as cell_kinds
from compute_cell_operator import planes as cell_planes
from compute_cell_operator import wiring as cell_wiring
from compute_cell_operator.settings import CellSettings
from compute_management_operator import planes as management_planes
from compute_management_operator import wiring as management_wiring
from compute_management_operator.settings import ManagementSettings
from compute_operator_kit.config.loader import validate_settings
from compute_operator_kit.controller.ports import OperatorPorts
from compute_operator_kit.core.keys import Role
from compute_operator_kit.planes.endpoints import PlaneEndpoint, PlaneEndpoints
from compute_operator_kit.process.election import Timing
from compute_quota_client import QuotaClient, QuotaSettings
from compute_quota_client import Surroundings as QuotaSurroundings
from e2e.backends.sim.canaries import quota_credentials
from e2e.backends.sim.processes import Blueprint, ProcessPorts
from e2e.backends.sim.quota_transport import QuotaTransport
from e2e.harness.deploy.shipped import merge_over, shipped_configuration
from e2e.world.port import HOME, HUB, MANAGEMENT, ROOT, SINGLE, Cell, Needs

MILO: Final = "https://milo.example.net"
# Event sources of a cell by kind (cell.md 14); other events name the operator's component.
EVENT_SOURCES: Final = {
    cell_kinds.INSTANCE: "instance-controller",
    cell_kinds.DEPLOYMENT: "workloaddeployment-controller",
}


def management(needs: Needs, given: JsonObject | None = None) -> Blueprint:
    """The management operator; `given` is merged over its configuration."""
    folder = "single-cluster" if needs.is_single else "management"
    document = shipped_configuration(folder, "compute-management-config")
    for overrides in (needs.settings.get(MANAGEMENT, {}), given or {}):
        document = merge_over(document, overrides)
    settings = validate_settings(ManagementSettings, document)
    fixed: dict[str, str] = {
        management_planes.HOME: SINGLE.name if needs.is_single else HOME,
        management_planes.ROOT: ROOT,
        management_planes.HUB: HUB,
    }

    def wire(configs: ProcessPorts) -> management_wiring.ManagementOperator:
        ports = OperatorPorts(
            connect=configs.connect,
            clock=configs.clock,
            random=configs.random,
            endpoints=PlaneEndpoints({Role.PROJECT: PlaneEndpoint(MILO)}),
            leadership=configs.leadership,
            event_recorder=configs.recorder,
            metrics=configs.measures,
            spans=configs.spans,
        )
        return management_wiring.ManagementOperator(settings, ports)

    return Blueprint(
        operator=MANAGEMENT,
        component=management_wiring.COMPONENT,
        home=management_planes.HOME,
        plane_of=lambda name: fixed.get(name, name),
        wire=wire,
        timing=Timing.of(settings.leader_election),
    )


def cell(which: Cell, needs: Needs, given: JsonObject | None = None) -> Blueprint:
    """The operator of a cell; its configuration switches quota off if the scenario needs none."""
    document = shipped_configuration(
        "single-cluster" if needs.is_single else "cell", "compute-cell-config"
    )
    own = {} if needs.is_single else _cell_settings(which, needs)
    for overrides in (own, needs.settings.get(which.name, {}), given or {}):
        document = merge_over(document, overrides)
    settings = validate_settings(CellSettings, document)
    fixed: dict[str, str] = {cell_planes.CELL: which.name, cell_planes.HUB: HUB}

    def wire(configs: ProcessPorts) -> cell_wiring.CellOperator:
        ports = OperatorPorts(
            connect=configs.connect,
            clock=configs.clock,
            random=configs.random,
            leadership=configs.leadership,
            event_recorder=configs.recorder,
            metrics=configs.measures,
            spans=configs.spans,
        )
        quota = _open_quota(configs, which.name) if settings.is_quota_enforced else None
        return cell_wiring.CellOperator(settings, ports, quota)

    return Blueprint(
        operator=which.name,
        component=cell_wiring.COMPONENT,
        home=cell_planes.CELL,
        plane_of=lambda name: fixed.get(name, name),
        wire=wire,
        event_sources=EVENT_SOURCES,
        timing=Timing.of(settings.leader_election),
    )


def _cell_settings(which: Cell, needs: Needs) -> JsonObject:
    """The settings each installation must set: name and city of the cell, and whether quota is
    on.
    """
    identity: JsonObject = {
        "name": which.name,
        "cityCode": which.city if which.has_city_setting else "",
    }
    own: JsonObject = {"cell": identity}
    if not needs.has_quota:
        own["quota"] = {"mode": "disabled", "kubeconfigPath": None}
    return own


def _open_quota(configs: ProcessPorts, operator: str) -> QuotaClient:
    client = QuotaClient(
        MILO,
        transport=QuotaTransport(configs.reach),
        settings=QuotaSettings(
            user_agent=cell_wiring.COMPONENT, field_manager=labels.QUOTA_MANAGER
        ),
        surroundings=QuotaSurroundings(chance=configs.random.random, wall_clock=configs.clock.now),
        credentials=quota_credentials(operator),
    )
    configs.closing.append(client.aclose)
    return client
