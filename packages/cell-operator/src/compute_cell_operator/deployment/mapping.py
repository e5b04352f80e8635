"""Says which deployments a change concerns, and under which values objects are found. Pure.

Every mapping function sees an object before and after the change: what it no longer says must wake
somebody too (cell.md 2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from compute_api_types import names
from compute_cell_operator.deployment import observe, standing
from compute_cell_operator.kinds import DEPLOYMENT, NETWORK_BINDING
from compute_cell_operator.network.observe import CITY as LOCATIONS_BY_CITY
from compute_cell_operator.network.observe import CONTEXT
from compute_cell_operator.network.observe import OWNER as BINDINGS_BY_OWNER
from compute_cell_operator.plane_names import CELL
from compute_operator_kit.cache import Caches, Change
from compute_operator_kit.indexing import IndexFunction
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.objects import Metadata
from compute_operator_kit.wire import JsonObject, member_object, member_text

# Of deployments.
UID: Final = "uid"
CITY: Final = "city"
LOCATION: Final = "location"
NAMESPACE: Final = "namespace"


def index_by_uid(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    return (metadata.uid,)


def index_by_namespace(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    return (metadata.namespace,)


def index_by_city(_: Metadata, body: JsonObject) -> Iterable[str]:
    code = member_text(member_object(body, "spec"), "cityCode")
    return (code,) if code else ()


def index_by_location(_: Metadata, body: JsonObject) -> Iterable[str]:
    name = member_text(member_object(member_object(body, "status"), "location"), "name")
    return (name,) if name else ()


DEPLOYMENT_INDEXES: Final[Mapping[str, IndexFunction]] = {
    UID: index_by_uid,
    CITY: index_by_city,
    LOCATION: index_by_location,
    NAMESPACE: index_by_namespace,
}
INSTANCE_INDEXES: Final[Mapping[str, IndexFunction]] = {
    observe.OWNER: observe.index_by_owner,
    observe.SLOT_OF: observe.index_by_slot,
    standing.STANDING: standing.index_by_standing,
}


# --- whom a change concerns -----------------------------------------------------------------------


def map_instance(change: Change, caches: Caches) -> Iterable[ObjectKey]:
    """Its deployment by owner, and the one whose slot it stands in: a foreign one that goes frees
    the slot. Nobody, where neither could tell the difference.
    """
    if standing.is_alike(change):
        return ()
    owners = {uid for entry in change.entries for uid in entry.values.get(observe.OWNER, ())}
    found = [key for uid in sorted(owners) for key in _deployments(caches, UID, uid)]
    parsed = names.parse_instance_name(change.key.name)
    if parsed is not None:
        found.extend(_named(caches, change.key.namespace, parsed[0]))
    return dict.fromkeys(found)


def map_namespace(change: Change, caches: Caches) -> Iterable[ObjectKey]:
    return _deployments(caches, NAMESPACE, change.key.name)


def map_location(change: Change, caches: Caches) -> Iterable[ObjectKey]:
    """Deployments of its city, before and after, and those that are in it."""
    for entry in change.entries:
        for code in entry.values.get(LOCATIONS_BY_CITY, ()):
            yield from _deployments(caches, CITY, code)
    yield from _deployments(caches, LOCATION, change.key.name)


def map_binding(change: Change, caches: Caches) -> Iterable[ObjectKey]:
    """Its controlling deployment; a foreign one stands in the way of the one it is named like."""
    for entry in change.entries:
        for uid in entry.values.get(BINDINGS_BY_OWNER, ()):
            yield from _deployments(caches, UID, uid)
    parsed = names.parse_instance_name(change.key.name)
    if parsed is not None:
        yield from _named(caches, change.key.namespace, parsed[0].removesuffix("-net"))


def map_context(change: Change, caches: Caches) -> Iterable[ObjectKey]:
    return _bound_to(f"{change.key.namespace}/{change.key.name}", caches)


def map_subnet(change: Change, caches: Caches) -> Iterable[ObjectKey]:
    """A claim or a subnet: whoever is bound to its context."""
    for entry in change.entries:
        for context in entry.values.get(CONTEXT, ()):
            yield from _bound_to(context, caches)


def wake_all(caches: Caches) -> Iterator[ObjectKey]:
    """Every deployment of the cell."""
    view = caches.view(CELL, DEPLOYMENT)
    for namespace in view.index_values(NAMESPACE):
        for entry in view.entries_by_index(NAMESPACE, namespace):
            yield entry.key


def _bound_to(context: str, caches: Caches) -> Iterator[ObjectKey]:
    for entry in caches.view(CELL, NETWORK_BINDING).entries_by_index(CONTEXT, context):
        for uid in entry.values.get(BINDINGS_BY_OWNER, ()):
            yield from _deployments(caches, UID, uid)


def _named(caches: Caches, namespace: str, name: str) -> Iterator[ObjectKey]:
    entry = caches.view(CELL, DEPLOYMENT).entry(namespace, name)
    if entry is not None:
        yield entry.key


def _deployments(caches: Caches, index: str, value: str) -> Iterator[ObjectKey]:
    for entry in caches.view(CELL, DEPLOYMENT).entries_by_index(index, value):
        yield entry.key
