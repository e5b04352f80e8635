"""The management operator, built from settings and ports: every controller, and admission.

A controller folder is added by one line in `leader_controllers` or `read_only_controllers`. No
connection is opened and no file is read here, so that a simulation runs what ships.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from compute_api_types import labels
from compute_management_operator.admission.review import Admission
from compute_management_operator.cache_limits import CacheLimits
from compute_management_operator.claims import controller as claims
from compute_management_operator.dependencies import Dependencies
from compute_management_operator.discovery import controller as discovery
from compute_management_operator.discovery.plan import derive_project_url
from compute_management_operator.hub.api_reader import ApiReader
from compute_management_operator.hub.federation import controller as federation
from compute_management_operator.hub.hearing import controller as hearing_controller
from compute_management_operator.hub.hearing.dark_objects import CellHearing
from compute_management_operator.hub.namespace_uids import NamespaceUids
from compute_management_operator.hub.namespaces import controller as hub_namespace
from compute_management_operator.hub.policy import controller as policy
from compute_management_operator.hub.projection import controller as projection
from compute_management_operator.hub.referenced_data import controller as referenced_data
from compute_management_operator.hub.referenced_data.data_caches import read_templates
from compute_management_operator.hub.referenced_data.resolver import DataResolver
from compute_management_operator.planes import HOME, HUB, LOCATION, NETWORK, PROJECT, ROOT, SINGLE
from compute_management_operator.settings import ManagementSettings
from compute_management_operator.workload import controller as workload
from compute_operator_kit.cache.optional_kinds import OptionalKindsMode
from compute_operator_kit.client.interface import FieldOwner, KubeClient
from compute_operator_kit.controller.context import OperatorContext
from compute_operator_kit.controller.manager import Workers
from compute_operator_kit.controller.ports import OperatorPorts
from compute_operator_kit.controller.registration import ControllerSetup
from compute_operator_kit.core.keys import PlaneName, Role
from compute_operator_kit.planes.endpoints import PlaneEndpoints
from compute_operator_kit.planes.engaged_plane import Plane
from compute_operator_kit.planes.optional_kinds import OptionalKinds, TrackedKinds
from compute_operator_kit.process.operator import Operator, OperatorSetup, own_deployment

COMPONENT: Final = "compute-management-operator"
NETWORKING: Final = TrackedKinds(
    Role.PROJECT, (LOCATION, NETWORK), FieldOwner("networking", "compute-workload")
)
# Namespaces of projects are read in the name of the federation controller, whichever needs a UID.
NAMESPACE_READER: Final = FieldOwner("federation", labels.FEDERATION_MANAGER)


def leader_controllers(deps: Dependencies, networking: OptionalKinds) -> Iterator[ControllerSetup]:
    """Controllers that write."""
    if not deps.settings.is_federated:
        yield workload.build(deps, networking)
        return

    def client_of(plane: PlaneName) -> KubeClient:
        return deps.context.kube(plane, NAMESPACE_READER)

    # One for all of them: each read of a namespace proves its UID to every controller.
    namespaces = NamespaceUids(client_of)
    yield workload.build(deps, networking, namespaces.find_hub_namespace)
    hearing = CellHearing()
    data = None
    if deps.settings.delivers_data:
        data = DataResolver(ApiReader(deps.context, NAMESPACE_READER), deps.clock)
        yield referenced_data.build(deps, namespaces, data)
    yield federation.build(deps, namespaces, hearing, data)
    yield policy.build(deps, namespaces)
    yield projection.build(deps, namespaces, hearing)
    yield hearing_controller.build(deps, hearing)
    yield hub_namespace.build(deps, namespaces)
    yield claims.build(deps, namespaces)


def _sharing_caches(
    deps: Dependencies, setups: Iterator[ControllerSetup]
) -> tuple[ControllerSetup, ...]:
    """While data is delivered, the one cache of deployments also reads their templates."""
    if deps.settings.delivers_data and deps.settings.is_federated:
        return tuple(read_templates(setup) for setup in setups)
    return tuple(setups)


def read_only_controllers(
    deps: Dependencies, endpoints: PlaneEndpoints
) -> Iterator[ControllerSetup]:
    """Controllers that write nothing; they run on every replica."""
    if deps.settings.is_single:
        yield discovery.build_single(deps)
    else:
        yield discovery.build(deps, lambda name, uid: describe_project(endpoints, name, uid))


def describe_project(endpoints: PlaneEndpoints, name: str, uid: str) -> Plane:
    endpoint = endpoints.find(Role.PROJECT)
    return Plane(
        PlaneName(name),
        Role.PROJECT,
        base_url=derive_project_url(endpoint.url, name),
        credentials=endpoint.credentials,
        uid=uid,
    )


def known_planes(settings: ManagementSettings, endpoints: PlaneEndpoints) -> Iterator[Plane]:
    """The planes that the settings name; projects are discovered."""
    yield endpoints.describe(HOME, Role.HOME)
    if settings.is_federated:
        yield endpoints.describe(HUB, Role.HUB)
    if settings.is_single:
        home = endpoints.find(Role.HOME)
        yield Plane(SINGLE, Role.PROJECT, home.url, home.credentials)
    else:
        yield endpoints.describe(ROOT, Role.ROOT)


class ManagementOperator(Operator):
    """The operator with its admission, which reads the same caches on every replica."""

    def __init__(self, settings: ManagementSettings, ports: OperatorPorts) -> None:
        context = OperatorContext()
        deps = Dependencies(
            settings=settings,
            clock=ports.clock,
            random=ports.random,
            operator=own_deployment(HOME, ports.namespace, COMPONENT),
            metrics=ports.metrics,
            context=context,
        )
        mode = OptionalKindsMode(settings.networking)
        networking = OptionalKinds(mode, NETWORKING, context, ports.clock)
        limits = CacheLimits(settings.caches, is_single=settings.is_single)
        setup = OperatorSetup(
            context=context,
            planes=tuple(known_planes(settings, ports.endpoints)),
            # Nothing is cached of the home plane, except in mode `single`, where it is the project.
            ready_plane=SINGLE if settings.is_single else HOME,
            leader_controllers=_sharing_caches(deps, leader_controllers(deps, networking)),
            read_only_controllers=tuple(read_only_controllers(deps, ports.endpoints)),
            workers=Workers(settings.workers.total, settings.workers.per_project),
            find_meter=limits.find_meter,
            update_gauges=lambda planes: limits.report(planes, ports),
        )
        super().__init__(setup, ports, settings.clients)
        self.admission = Admission(deps, networking)
        self._were_projects_listed = False

    def find_projects_unlisted(self) -> str | None:
        """For `/readyz`: the first list of Projects, once complete; no project plane is asked."""
        store = self.planes.find_store(ROOT, PROJECT)
        self._were_projects_listed |= store is not None and store.is_synced
        return None if self._were_projects_listed else "projects are not listed yet"
