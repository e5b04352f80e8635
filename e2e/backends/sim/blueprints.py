"""How both operators are built for a simulated world: settings as shipped, ports of the world.

The configuration is that of the ConfigMaps in `deploy/`, with what an installation must say laid
over it; so what is simulated starts as what ships.
"""

from __future__ import annotations

from typing import Final

from compute_api_types import labels
from compute_api_types.wire import JsonObject
from compute_cell_operator import kinds as cell_kinds
from compute_cell_operator import plane_names as cell_planes
from compute_cell_operator import wiring as cell_wiring
from compute_cell_operator.settings import CellSettings
from compute_management_operator import plane_names as management_planes
from compute_management_operator import wiring as management_wiring
from compute_management_operator.settings import ManagementSettings
from compute_operator_kit.configuration import validate_settings
from compute_operator_kit.election import Timing
from compute_quota_client import QuotaClient, QuotaSettings
from compute_quota_client import Surroundings as QuotaSurroundings
from e2e.backends.port import HOME, HUB, MANAGEMENT, ROOT, SINGLE, Cell, Needs
from e2e.backends.shipped import lay_over, shipped_configuration
from e2e.backends.sim.canaries import quota_credentials
from e2e.backends.sim.processes import Blueprint, Fittings
from e2e.backends.sim.quota_way import QuotaWay

MILO: Final = "https://milo.example.net"
# Who speaks in a cell's events (cell.md 14); everything else is the operator's own word.
VOICES: Final = {
    cell_kinds.INSTANCE: "instance-controller",
    cell_kinds.DEPLOYMENT: "workloaddeployment-controller",
}


def management(needs: Needs, given: JsonObject | None = None) -> Blueprint:
    """The management operator; `given` lies over its configuration."""
    folder = "single-cluster" if needs.is_single else "management"
    document = shipped_configuration(folder, "compute-management-config")
    for laid in (needs.settings.get(MANAGEMENT, {}), given or {}):
        document = lay_over(document, laid)
    settings = validate_settings(ManagementSettings, document)
    fixed: dict[str, str] = {
        management_planes.HOME: SINGLE.name if needs.is_single else HOME,
        management_planes.ROOT: ROOT,
        management_planes.HUB: HUB,
    }

    def wire(fittings: Fittings) -> management_wiring.Operator:
        ports = management_wiring.Ports(
            connect=fittings.connect,
            clock=fittings.clock,
            random=fittings.random,
            places=management_wiring.Places(projects=MILO),
            leadership=fittings.leadership,
            recorder=fittings.recorder,
            measures=fittings.measures,
            spans=fittings.spans,
        )
        return management_wiring.Operator(settings, ports)

    return Blueprint(
        operator=MANAGEMENT,
        component=management_wiring.COMPONENT,
        home=management_planes.HOME,
        plane_of=lambda name: fixed.get(name, name),
        wire=wire,
        timing=Timing.of(settings.leader_election),
    )


def cell(which: Cell, needs: Needs, given: JsonObject | None = None) -> Blueprint:
    """The operator of a cell; without quota it is told so in its configuration."""
    document = shipped_configuration(
        "single-cluster" if needs.is_single else "cell", "compute-cell-config"
    )
    own = {} if needs.is_single else _say_of_cell(which, needs)
    for laid in (own, needs.settings.get(which.name, {}), given or {}):
        document = lay_over(document, laid)
    settings = validate_settings(CellSettings, document)
    fixed: dict[str, str] = {cell_planes.CELL: which.name, cell_planes.HUB: HUB}

    def wire(fittings: Fittings) -> cell_wiring.Operator:
        ports = cell_wiring.Ports(
            connect=fittings.connect,
            clock=fittings.clock,
            random=fittings.random,
            leadership=fittings.leadership,
            recorder=fittings.recorder,
            measures=fittings.measures,
            spans=fittings.spans,
            quota=_open_quota(fittings, which.name) if settings.is_quota_enforced else None,
        )
        return cell_wiring.Operator(settings, ports)

    return Blueprint(
        operator=which.name,
        component=cell_wiring.COMPONENT,
        home=cell_planes.CELL,
        plane_of=lambda name: fixed.get(name, name),
        wire=wire,
        voices=VOICES,
        timing=Timing.of(settings.leader_election),
    )


def _say_of_cell(which: Cell, needs: Needs) -> JsonObject:
    """What an installation must say: which cell this is, and whether quota is on."""
    identity: JsonObject = {"name": which.name, "cityCode": which.city if which.says_city else ""}
    own: JsonObject = {"cell": identity}
    if not needs.has_quota:
        own["quota"] = {"mode": "disabled", "kubeconfigPath": None}
    return own


def _open_quota(fittings: Fittings, operator: str) -> QuotaClient:
    client = QuotaClient(
        MILO,
        transport=QuotaWay(fittings.reach),
        settings=QuotaSettings(
            user_agent=cell_wiring.COMPONENT, field_manager=labels.QUOTA_MANAGER
        ),
        surroundings=QuotaSurroundings(
            chance=fittings.random.random, wall_clock=fittings.clock.now
        ),
        credentials=quota_credentials(MILO, operator),
    )
    fittings.closing.append(client.aclose)
    return client
