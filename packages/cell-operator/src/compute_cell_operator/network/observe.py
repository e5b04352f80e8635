"""Cache reads of the network of one deployment, at one moment.

Each object is named by the one before: binding → context → claim → subnet. Where one cache is
incomplete the whole is `Unreadable`: half a chain would look like a network that is not ready yet,
or like bindings that no interface needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from typing_extensions import override

from compute_api_types import labels, names, reasons
from compute_cell_operator.conditions import ReportedCondition, read_ready
from compute_cell_operator.indexes import OWNER
from compute_cell_operator.planes import (
    NETWORK_BINDING,
    NETWORK_CONTEXT,
    NETWORKING_KINDS,
    SUBNET,
    SUBNET_CLAIM,
)
from compute_operator_kit.cache.store import Caches
from compute_operator_kit.core.json import JsonObject, member_list, member_object, member_text
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Uid
from compute_operator_kit.core.objects import Metadata, Snapshot, Unreadable

CONTEXT: Final = "context"
"""Index: `namespace/name` of the context that a binding is bound to, or that a claim is in."""
CITY: Final = "city"
"""Index of Locations: their city code."""


@dataclass(frozen=True, slots=True)
class NetworkReference:
    """An object by namespace and name."""

    namespace: str  # "": that of the referring object
    name: str

    def within(self, namespace: str) -> NetworkReference:
        """Seen from an object in this namespace."""
        return self if self.namespace else NetworkReference(namespace, self.name)

    @override
    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ObservedBinding:
    """A NetworkBinding with the name of one of the deployment's, whatever controls it."""

    key: ObjectKey
    metadata: Metadata
    network: NetworkReference
    location: str
    ready: ReportedCondition | None
    context: NetworkReference | None


@dataclass(frozen=True, slots=True)
class ObservedContext:
    """A NetworkContext."""

    key: ObjectKey
    metadata: Metadata
    ready: ReportedCondition | None


@dataclass(frozen=True, slots=True)
class SubnetClaimState:
    """A SubnetClaim in a context, with the readiness of its Subnet."""

    key: ObjectKey
    subnet_class: str
    ip_family: str
    location: str
    ready: ReportedCondition | None = None
    subnet: str = ""  # the name in its status
    subnet_ready: ReportedCondition | None = None  # None also where the Subnet does not exist


@dataclass(frozen=True, slots=True)
class ObservedNetwork:
    """The network of one deployment."""

    interfaces: tuple[NetworkReference, ...]  # network of each interface of the template, in order
    bindings: Mapping[int, ObservedBinding] = field(
        default_factory=dict[int, ObservedBinding]
    )  # by interface
    contexts: Mapping[NetworkReference, ObservedContext] = field(
        default_factory=dict[NetworkReference, ObservedContext]
    )
    claims: Mapping[NetworkReference, tuple[SubnetClaimState, ...]] = field(
        default_factory=dict[NetworkReference, tuple[SubnetClaimState, ...]]
    )


def observe_network(
    deployment: ObjectKey, uid: Uid, template: JsonObject, caches: Caches
) -> ObservedNetwork | Unreadable:
    """The chain of every interface, as far as it exists."""
    listers = [caches.lister(deployment.plane, kind) for kind in NETWORKING_KINDS]
    if not all(lister.is_synced for lister in listers):
        return Unreadable(reasons.CACHE_NOT_SYNCED)
    interfaces = read_interfaces(template)
    bindings = dict(_bindings(deployment, uid, len(interfaces), caches))
    bound = {binding.context for binding in bindings.values() if binding.context is not None}
    contexts = dict(_contexts(deployment.plane, bound, caches))
    claims = {reference: _claims(deployment.plane, reference, caches) for reference in contexts}
    return ObservedNetwork(interfaces, bindings, contexts, claims)


def read_interfaces(template: JsonObject) -> tuple[NetworkReference, ...]:
    """The `network` of each interface; a malformed entry keeps its index."""
    entries = member_list(member_object(template, "spec"), "networkInterfaces")
    return tuple(
        _read_reference(member_object(entry, "network") if isinstance(entry, dict) else {})
        for entry in entries
    )


def _read_reference(reference: JsonObject) -> NetworkReference:
    return NetworkReference(member_text(reference, "namespace"), member_text(reference, "name"))


def observe_refusal(owner: Uid, caches: Caches, plane: PlaneName) -> ReportedCondition | None:
    """`NetworkFailedToCreate` of a binding of this deployment, for `Ready` of its Instances."""
    bindings = caches.lister(plane, NETWORK_BINDING).by_index(OWNER, owner)
    if isinstance(bindings, Unreadable):
        return None
    conditions = (read_ready(member_object(binding.decode(), "status")) for binding in bindings)
    return next((ready for ready in conditions if is_failed(ready)), None)


def is_failed(ready: ReportedCondition | None) -> bool:
    return (
        ready is not None
        and ready.status == "False"
        and ready.reason == reasons.NETWORK_FAILED_TO_CREATE
    )


# --- reading --------------------------------------------------------------------------------------


def _bindings(
    deployment: ObjectKey, uid: Uid, interfaces: int, caches: Caches
) -> Iterator[tuple[int, ObservedBinding]]:
    """By name for the current interfaces, by owner for former ones."""
    lister = caches.lister(deployment.plane, NETWORK_BINDING)
    for index in range(interfaces):
        name = names.derive_network_binding_name(deployment.name, index)
        existing = lister.get(deployment.namespace, name)
        if isinstance(existing, Snapshot):
            yield index, read_binding(existing)
    owned = lister.by_index(OWNER, uid)
    for snapshot in () if isinstance(owned, Unreadable) else owned:
        former = parse_binding_name(deployment.name, snapshot.key.name)
        if former is not None and former >= interfaces:
            yield former, read_binding(snapshot)


def parse_binding_name(deployment: str, name: str) -> int | None:
    """The interface of the deployment that a binding is for; None for any other name."""
    parsed = names.parse_instance_name(name)  # `<deployment>-net` and the interface
    if parsed is None or names.derive_network_binding_name(deployment, parsed[1]) != name:
        return None
    return parsed[1]


def read_binding(snapshot: Snapshot) -> ObservedBinding:
    body = snapshot.decode()
    spec, status = member_object(body, "spec"), member_object(body, "status")
    network = _read_reference(member_object(spec, "network"))
    return ObservedBinding(
        key=snapshot.key,
        metadata=snapshot.metadata,
        network=network.within(snapshot.key.namespace),
        location=_read_location(spec),
        ready=read_ready(status),
        context=read_bound_context(snapshot.metadata, body),
    )


def read_bound_context(metadata: Metadata, body: JsonObject) -> NetworkReference | None:
    """The context that a binding is bound to."""
    status = member_object(body, "status")
    reference = _read_reference(member_object(status, "networkContextRef"))
    return reference.within(metadata.namespace) if reference.name else None


def _read_location(spec: JsonObject) -> str:
    return member_text(member_object(spec, "location"), "name")


def _contexts(
    plane: PlaneName, bound: Iterable[NetworkReference], caches: Caches
) -> Iterator[tuple[NetworkReference, ObservedContext]]:
    for reference in sorted(bound, key=str):
        context = _get(caches, plane, NETWORK_CONTEXT, reference)
        if context is not None:
            status = member_object(context.decode(), "status")
            yield reference, ObservedContext(context.key, context.metadata, read_ready(status))


def _claims(
    plane: PlaneName, context: NetworkReference, caches: Caches
) -> tuple[SubnetClaimState, ...]:
    claims = caches.lister(plane, SUBNET_CLAIM).by_index(CONTEXT, str(context))
    if isinstance(claims, Unreadable):
        return ()
    return tuple(_read_claim(claim, caches) for claim in claims)


def _read_claim(snapshot: Snapshot, caches: Caches) -> SubnetClaimState:
    body = snapshot.decode()
    spec, status = member_object(body, "spec"), member_object(body, "status")
    subnet = member_text(member_object(status, "subnetRef"), "name")
    return SubnetClaimState(
        key=snapshot.key,
        subnet_class=member_text(spec, "subnetClass"),
        ip_family=member_text(spec, "ipFamily"),
        location=_read_location(spec),
        ready=read_ready(status),
        subnet=subnet,
        subnet_ready=_observe_subnet(
            NetworkReference(snapshot.key.namespace, subnet), snapshot.key.plane, caches
        ),
    )


def _observe_subnet(
    reference: NetworkReference, plane: PlaneName, caches: Caches
) -> ReportedCondition | None:
    subnet = _get(caches, plane, SUBNET, reference)
    return read_ready(member_object(subnet.decode(), "status")) if subnet else None


def _get(
    caches: Caches, plane: PlaneName, kind: Kind, reference: NetworkReference
) -> Snapshot | None:
    existing = caches.lister(plane, kind).get(reference.namespace, reference.name)
    return existing if isinstance(existing, Snapshot) else None


def read_city(location: JsonObject) -> str:
    """The city code of a Location; "" where it has none."""
    topology = member_object(member_object(location, "spec"), "topology")
    return member_text(topology, labels.TOPOLOGY_CITY_CODE)
