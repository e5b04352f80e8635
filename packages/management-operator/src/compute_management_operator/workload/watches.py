"""Cache indexes of Workloads and deployments, and which Workloads a changed object enqueues. Pure.

Every mapping function sees the object before and after the change: a value that was removed, such
as a city of a Location, enqueues the Workloads that depended on it, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from compute_management_operator.networking import LOCATIONS_BY_CITY
from compute_management_operator.planes import WORKLOAD
from compute_management_operator.workload.observe import (
    DEPLOYMENTS_BY_WORKLOAD,
    NetworkName,
    possible_names,
    read_networks,
    read_placements,
    workload_uid_of,
)
from compute_operator_kit.cache.indexers import IndexFunction, spec_index
from compute_operator_kit.cache.store import Caches, Change
from compute_operator_kit.core.json import JsonObject, member_object
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Role
from compute_operator_kit.core.objects import Metadata

# Of Workloads; the indexes that a reconcile reads too are in `observe`.
UID: Final = "uid"
CITY: Final = "city"
NETWORK_NAME: Final = "network"
DEPLOYMENT_NAME: Final = "deployment-name"


# --- indexes --------------------------------------------------------------------------------------


def index_by_uid(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    return (metadata.uid,)


def index_by_city(_: Metadata, body: JsonObject) -> Iterable[str]:
    """Every city a Workload names."""
    placements = read_placements(member_object(body, "spec"))
    return (code for placement in placements for code in placement.city_codes)


def index_by_network(metadata: Metadata, body: JsonObject) -> Iterable[str]:
    template = member_object(member_object(body, "spec"), "template")
    return (str(network) for network in read_networks(template, metadata.namespace))


def index_by_deployment_name(metadata: Metadata, body: JsonObject) -> Iterable[str]:
    """Every name a deployment of this Workload may have: one of another Workload blocks it."""
    placements = read_placements(member_object(body, "spec"))
    return (f"{metadata.namespace}/{name}" for name in possible_names(metadata, placements))


def index_by_workload(metadata: Metadata, body: JsonObject) -> Iterable[str]:
    """For deployments: the uid of their Workload; one without a uid is in no index."""
    uid = workload_uid_of(metadata, member_object(body, "spec"))
    return (uid,) if uid else ()


WORKLOAD_INDEXES: Final[Mapping[str, IndexFunction]] = {
    UID: spec_index(index_by_uid),
    CITY: spec_index(index_by_city),
    NETWORK_NAME: spec_index(index_by_network),
    DEPLOYMENT_NAME: spec_index(index_by_deployment_name),
}
DEPLOYMENT_INDEXES: Final[Mapping[str, IndexFunction]] = {
    DEPLOYMENTS_BY_WORKLOAD: index_by_workload
}


# --- mapping functions ----------------------------------------------------------------------------


def map_deployment(change: Change, caches: Caches) -> Iterable[ObjectKey]:
    """Its Workload, and those with a deployment that may take its name: a name that becomes free
    ends their collision.
    """
    if _is_only_marked(change):
        return
    for entry in change.entries:
        for uid in entry.index_values.get(DEPLOYMENTS_BY_WORKLOAD, ()):
            yield from _workloads(change, caches, UID, uid)
    name = f"{change.key.namespace}/{change.key.name}"
    yield from _workloads(change, caches, DEPLOYMENT_NAME, name)


def _is_only_marked(change: Change) -> bool:
    """Whether only finalizers and annotations changed, which no Workload reads: federation writes
    them on every deployment.
    """
    before, after = change.before, change.after
    if before is None or after is None:
        return False
    was, now = before.metadata, after.metadata
    if (was.finalizers, was.annotations) == (now.finalizers, now.annotations):
        return False  # another change
    if (was.uid, was.generation, was.is_deleting) != (now.uid, now.generation, now.is_deleting):
        return False
    if (was.labels, was.owners) != (now.labels, now.owners):
        return False
    if not (before.snapshot.has_body and after.snapshot.has_body):
        return False  # unknown; one more reconcile does no harm
    return before.snapshot.member("status") == after.snapshot.member("status")


def map_location(change: Change, caches: Caches) -> Iterable[ObjectKey]:
    """Workloads of the project that name its city."""
    for entry in change.entries:
        for code in entry.index_values.get(LOCATIONS_BY_CITY, ()):
            yield from _workloads(change, caches, CITY, code)


def map_network(change: Change, caches: Caches) -> Iterable[ObjectKey]:
    """Workloads with a template that refers to it."""
    network = str(NetworkName(change.key.namespace, change.key.name))
    yield from _workloads(change, caches, NETWORK_NAME, network)


def enqueue_workloads(plane: PlaneName, caches: Caches) -> Iterable[ObjectKey]:
    """Every Workload of a project; none of a plane in another role."""
    if plane not in caches.planes(Role.PROJECT):
        return
    workloads = caches.lister(plane, WORKLOAD)
    for uid in workloads.index_values(UID):
        for entry in workloads.entries_by_index(UID, uid):
            yield entry.key


def _workloads(change: Change, caches: Caches, index: str, value: str) -> Iterator[ObjectKey]:
    for entry in caches.lister(change.key.plane, WORKLOAD).entries_by_index(index, value):
        yield entry.key
