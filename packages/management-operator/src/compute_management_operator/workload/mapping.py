"""Says which Workloads a change concerns, and under which values objects are found. Pure.

Every mapping function sees an object before and after the change: what it no longer says must wake
somebody too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from compute_management_operator.kinds import WORKLOAD
from compute_management_operator.networking import LOCATIONS_BY_CITY
from compute_management_operator.workload.observe import (
    DEPLOYMENTS_BY_WORKLOAD,
    NetworkName,
    possible_names,
    read_networks,
    read_placements,
    workload_uid_of,
)
from compute_operator_kit.cache import Caches, Change
from compute_operator_kit.indexing import IndexFunction, of_spec
from compute_operator_kit.keys import ObjectKey, PlaneName, Role
from compute_operator_kit.objects import Metadata
from compute_operator_kit.wire import JsonObject, member_object

# Of Workloads; those that a pass reads too are `observe`'s.
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
    """Every name a deployment of this Workload may have: whoever holds one of them matters here."""
    placements = read_placements(member_object(body, "spec"))
    return (f"{metadata.namespace}/{name}" for name in possible_names(metadata, placements))


def index_by_workload(metadata: Metadata, body: JsonObject) -> Iterable[str]:
    """For deployments: the uid of their Workload; one without a uid is in no index."""
    uid = workload_uid_of(metadata, member_object(body, "spec"))
    return (uid,) if uid else ()


WORKLOAD_INDEXES: Final[Mapping[str, IndexFunction]] = {
    UID: of_spec(index_by_uid),
    CITY: of_spec(index_by_city),
    NETWORK_NAME: of_spec(index_by_network),
    DEPLOYMENT_NAME: of_spec(index_by_deployment_name),
}
DEPLOYMENT_INDEXES: Final[Mapping[str, IndexFunction]] = {
    DEPLOYMENTS_BY_WORKLOAD: index_by_workload
}


# --- whom a change concerns -----------------------------------------------------------------------


def map_deployment(change: Change, caches: Caches) -> Iterable[ObjectKey]:
    """Its Workload, and whoever would like to use its name: a name that is freed heals a
    collision.
    """
    if _is_only_marked(change):
        return
    for entry in change.entries:
        for uid in entry.values.get(DEPLOYMENTS_BY_WORKLOAD, ()):
            yield from _workloads(change, caches, UID, uid)
    place = f"{change.key.namespace}/{change.key.name}"
    yield from _workloads(change, caches, DEPLOYMENT_NAME, place)


def _is_only_marked(change: Change) -> bool:
    """Whether nothing changed but finalizers and annotations, which no Workload looks at: this is
    what federation does to every deployment.
    """
    before, after = change.before, change.after
    if before is None or after is None:
        return False
    was, now = before.metadata, after.metadata
    if (was.finalizers, was.annotations) == (now.finalizers, now.annotations):
        return False  # then it is something else
    if (was.uid, was.generation, was.is_deleting) != (now.uid, now.generation, now.is_deleting):
        return False
    if (was.labels, was.owners) != (now.labels, now.owners):
        return False
    if not (before.snapshot.has_body and after.snapshot.has_body):
        return False  # not known; a pass more does no harm
    return before.snapshot.member("status") == after.snapshot.member("status")


def map_location(change: Change, caches: Caches) -> Iterable[ObjectKey]:
    """Workloads of the project that name its city."""
    for entry in change.entries:
        for code in entry.values.get(LOCATIONS_BY_CITY, ()):
            yield from _workloads(change, caches, CITY, code)


def map_network(change: Change, caches: Caches) -> Iterable[ObjectKey]:
    """Workloads whose template refers to it."""
    found = str(NetworkName(change.key.namespace, change.key.name))
    yield from _workloads(change, caches, NETWORK_NAME, found)


def wake_workloads(plane: PlaneName, caches: Caches) -> Iterable[ObjectKey]:
    """Every Workload of a project; a plane that is none has none."""
    if plane not in caches.planes(Role.PROJECT):
        return
    workloads = caches.view(plane, WORKLOAD)
    for uid in workloads.index_values(UID):
        for entry in workloads.entries_by_index(UID, uid):
            yield entry.key


def _workloads(change: Change, caches: Caches, index: str, value: str) -> Iterator[ObjectKey]:
    for entry in caches.view(change.key.plane, WORKLOAD).entries_by_index(index, value):
        yield entry.key
