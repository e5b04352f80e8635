"""Reads caches: what exists of the network of one deployment, at one moment.

A chain of references, each named by the one before: binding → context → claim → subnet. What cannot
be read is `Unreadable` as a whole: half a chain would look like one that is not ready yet, or like
bindings that nobody needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from typing_extensions import override

from compute_api_types import labels, names, reasons
from compute_cell_operator.kinds import (
    NETWORK_BINDING,
    NETWORK_CONTEXT,
    NETWORKING_KINDS,
    SUBNET,
    SUBNET_CLAIM,
)
from compute_cell_operator.told import Told, read_ready
from compute_operator_kit.cache import Caches
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Uid
from compute_operator_kit.objects import Absent, Metadata, Snapshot, Unreadable
from compute_operator_kit.wire import JsonObject, member_list, member_object, member_text

OWNER: Final = "owner"
"""Index of NetworkBindings: uid of their controller."""
CONTEXT: Final = "context"
"""Index: `namespace/name` of the context that a binding is bound to, or that a claim is in."""
CITY: Final = "city"
"""Index of Locations: the city code they stand for."""


@dataclass(frozen=True, slots=True)
class Reference:
    """An object by namespace and name."""

    namespace: str
    name: str

    @override
    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Binding:
    """A NetworkBinding named like one of the deployment's, whoever controls it."""

    key: ObjectKey
    metadata: Metadata
    network: Reference
    location: str
    ready: Told | None
    context: Reference | None


@dataclass(frozen=True, slots=True)
class Context:
    """A NetworkContext."""

    key: ObjectKey
    metadata: Metadata
    ready: Told | None


@dataclass(frozen=True, slots=True)
class Claim:
    """A SubnetClaim in a context, and what is known of its Subnet."""

    key: ObjectKey
    subnet_class: str
    ip_family: str
    location: str
    ready: Told | None = None
    subnet: str = ""  # the name in its status
    subnet_ready: Told | None = None  # None also where the Subnet does not exist


@dataclass(frozen=True, slots=True)
class NetworkSeen:
    """Everything about the network of one deployment."""

    interfaces: tuple[JsonObject, ...]  # `network` of each interface of the template, in order
    bindings: Mapping[int, Binding] = field(default_factory=dict[int, Binding])  # by interface
    contexts: Mapping[Reference, Context] = field(default_factory=dict[Reference, Context])
    claims: Mapping[Reference, tuple[Claim, ...]] = field(
        default_factory=dict[Reference, tuple[Claim, ...]]
    )


def observe_network(
    deployment: ObjectKey, uid: Uid, template: JsonObject, caches: Caches
) -> NetworkSeen | Unreadable:
    """The chain of every interface, as far as it goes."""
    views = [caches.view(deployment.plane, kind) for kind in NETWORKING_KINDS]
    if not all(view.is_synced for view in views):
        return Unreadable(reasons.CACHE_NOT_SYNCED)
    interfaces = read_interfaces(template)
    bindings = dict(_bindings(deployment, uid, len(interfaces), caches))
    bound = {found.context for found in bindings.values() if found.context is not None}
    contexts = dict(_contexts(deployment.plane, bound, caches))
    claims = {reference: _claims(deployment.plane, reference, caches) for reference in contexts}
    return NetworkSeen(interfaces, bindings, contexts, claims)


def read_interfaces(template: JsonObject) -> tuple[JsonObject, ...]:
    """The `network` of each interface; an entry of another shape keeps its place."""
    entries = member_list(member_object(template, "spec"), "networkInterfaces")
    return tuple(
        member_object(entry, "network") if isinstance(entry, dict) else {} for entry in entries
    )


def derive_reference(found: JsonObject, namespace: str) -> Reference:
    """Whom a `{namespace?, name}` means, seen from an object in this namespace."""
    return Reference(member_text(found, "namespace") or namespace, member_text(found, "name"))


def observe_refusal(owner: Uid, caches: Caches, plane: PlaneName) -> Told | None:
    """`NetworkFailedToCreate` of a binding of this deployment: for what its Instances say."""
    found = caches.view(plane, NETWORK_BINDING).by_index(OWNER, owner)
    if isinstance(found, Unreadable):
        return None
    told = (read_ready(member_object(one.decode(), "status")) for one in found)
    return next((ready for ready in told if is_failed(ready)), None)


def is_failed(ready: Told | None) -> bool:
    return (
        ready is not None
        and ready.status == "False"
        and ready.reason == reasons.NETWORK_FAILED_TO_CREATE
    )


# --- reading --------------------------------------------------------------------------------------


def _bindings(
    deployment: ObjectKey, uid: Uid, interfaces: int, caches: Caches
) -> Iterator[tuple[int, Binding]]:
    """By name for the interfaces there are, by owner for those there were."""
    view = caches.view(deployment.plane, NETWORK_BINDING)
    for index in range(interfaces):
        name = names.derive_network_binding_name(deployment.name, index)
        found = view.get(deployment.namespace, name)
        if isinstance(found, Snapshot):
            yield index, read_binding(found)
    owned = view.by_index(OWNER, uid)
    for snapshot in () if isinstance(owned, Unreadable) else owned:
        place = parse_binding_name(deployment.name, snapshot.key.name)
        if place is not None and place >= interfaces:
            yield place, read_binding(snapshot)


def parse_binding_name(deployment: str, name: str) -> int | None:
    """Which interface of the deployment a binding is for; None for any other name."""
    parsed = names.parse_instance_name(name)  # `<deployment>-net` and the interface
    if parsed is None or names.derive_network_binding_name(deployment, parsed[1]) != name:
        return None
    return parsed[1]


def read_binding(snapshot: Snapshot) -> Binding:
    body = snapshot.decode()
    spec, status = member_object(body, "spec"), member_object(body, "status")
    return Binding(
        key=snapshot.key,
        metadata=snapshot.metadata,
        network=derive_reference(member_object(spec, "network"), snapshot.key.namespace),
        location=member_text(member_object(spec, "location"), "name"),
        ready=read_ready(status),
        context=_bound_context(snapshot.metadata, body),
    )


def _bound_context(metadata: Metadata, body: JsonObject) -> Reference | None:
    found = member_object(member_object(body, "status"), "networkContextRef")
    reference = derive_reference(found, metadata.namespace)
    return reference if reference.name else None


def _contexts(
    plane: PlaneName, bound: Iterable[Reference], caches: Caches
) -> Iterator[tuple[Reference, Context]]:
    for reference in sorted(bound, key=str):
        found = _get(caches, plane, NETWORK_CONTEXT, reference)
        if isinstance(found, Snapshot):
            status = member_object(found.decode(), "status")
            yield reference, Context(found.key, found.metadata, read_ready(status))


def _claims(plane: PlaneName, context: Reference, caches: Caches) -> tuple[Claim, ...]:
    found = caches.view(plane, SUBNET_CLAIM).by_index(CONTEXT, str(context))
    return () if isinstance(found, Unreadable) else tuple(_read_claim(one, caches) for one in found)


def _read_claim(snapshot: Snapshot, caches: Caches) -> Claim:
    body = snapshot.decode()
    spec, status = member_object(body, "spec"), member_object(body, "status")
    subnet = member_text(member_object(status, "subnetRef"), "name")
    return Claim(
        key=snapshot.key,
        subnet_class=member_text(spec, "subnetClass"),
        ip_family=member_text(spec, "ipFamily"),
        location=member_text(member_object(spec, "location"), "name"),
        ready=read_ready(status),
        subnet=subnet,
        subnet_ready=_read_subnet(Reference(snapshot.key.namespace, subnet), snapshot, caches),
    )


def _read_subnet(reference: Reference, claim: Snapshot, caches: Caches) -> Told | None:
    found = _get(caches, claim.key.plane, SUBNET, reference)
    return read_ready(member_object(found.decode(), "status")) if found else None


def _get(caches: Caches, plane: PlaneName, kind: Kind, reference: Reference) -> Snapshot | None:
    found = caches.view(plane, kind).get(reference.namespace, reference.name)
    return None if isinstance(found, Absent | Unreadable) else found


def read_city(location: JsonObject) -> str:
    """The city a Location stands for; "" where it names none."""
    topology = member_object(member_object(location, "spec"), "topology")
    return member_text(topology, labels.TOPOLOGY_CITY_CODE)


# --- indexes --------------------------------------------------------------------------------------


def index_by_owner(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    controller = metadata.controller
    return (controller.uid,) if controller is not None else ()


def index_by_bound_context(metadata: Metadata, body: JsonObject) -> Iterable[str]:
    found = _bound_context(metadata, body)
    return (str(found),) if found is not None else ()


def index_by_context(metadata: Metadata, body: JsonObject) -> Iterable[str]:
    name = member_text(member_object(member_object(body, "spec"), "networkContext"), "name")
    return (str(Reference(metadata.namespace, name)),) if name else ()


def index_by_city(_: Metadata, body: JsonObject) -> Iterable[str]:
    code = read_city(body)
    return (code,) if code else ()
