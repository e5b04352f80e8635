"""Index and mapping functions of the deployment controller: changed object to deployment keys. Pure
(cell.md 2).

A mapping function reads the object before and after the change, so that a deployment which a change
detaches is enqueued too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from compute_api_types import names
from compute_cell_operator.deployment.instance_digest import (
    DIGEST,
    index_by_digest,
    is_relevant_change,
)
from compute_cell_operator.deployment.observe import SLOT_OF, index_by_slot
from compute_cell_operator.indexes import (
    NAMESPACE,
    OWNER,
    index_by_namespace,
    index_by_owner,
    keys_by_index,
)
from compute_cell_operator.network.observe import CITY as LOCATIONS_BY_CITY
from compute_cell_operator.network.observe import CONTEXT
from compute_cell_operator.planes import CELL, DEPLOYMENT, NETWORK_BINDING
from compute_operator_kit.cache.indexers import IndexFunction
from compute_operator_kit.cache.store import Caches, Change
from compute_operator_kit.core.json import JsonObject, member_object, member_text
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import Metadata

# Indexes of deployments.
UID: Final = "uid"
CITY: Final = "city"
LOCATION: Final = "location"


def index_by_uid(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    return (metadata.uid,)


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
    OWNER: index_by_owner,
    SLOT_OF: index_by_slot,
    DIGEST: index_by_digest,
}


# --- mapping --------------------------------------------------------------------------------------


def map_instance(change: Change, caches: Caches) -> Iterable[ObjectKey]:
    """The deployment that controls the Instance, and the one it occupies a slot of, which a foreign
    Instance frees by its deletion. None where the change is irrelevant to both.
    """
    if not is_relevant_change(change):
        return ()
    owners = {uid for entry in change.entries for uid in entry.index_values.get(OWNER, ())}
    keys = [key for uid in sorted(owners) for key in _deployments(caches, UID, uid)]
    parsed = names.parse_instance_name(change.key.name)
    if parsed is not None:
        keys.extend(_named(caches, change.key.namespace, parsed[0]))
    return dict.fromkeys(keys)


def map_namespace(change: Change, caches: Caches) -> Iterable[ObjectKey]:
    return _deployments(caches, NAMESPACE, change.key.name)


def map_location(change: Change, caches: Caches) -> Iterable[ObjectKey]:
    """Deployments of its city, before and after, and those located in it."""
    for entry in change.entries:
        for code in entry.index_values.get(LOCATIONS_BY_CITY, ()):
            yield from _deployments(caches, CITY, code)
    yield from _deployments(caches, LOCATION, change.key.name)


def map_binding(change: Change, caches: Caches) -> Iterable[ObjectKey]:
    """Its controlling deployment, and the one that needs the name of a foreign binding."""
    for entry in change.entries:
        for uid in entry.index_values.get(OWNER, ()):
            yield from _deployments(caches, UID, uid)
    parsed = names.parse_instance_name(change.key.name)
    if parsed is not None:
        yield from _named(caches, change.key.namespace, parsed[0].removesuffix("-net"))


def map_context(change: Change, caches: Caches) -> Iterable[ObjectKey]:
    return _bound_to(f"{change.key.namespace}/{change.key.name}", caches)


def map_subnet(change: Change, caches: Caches) -> Iterable[ObjectKey]:
    """Of a SubnetClaim or Subnet: the deployments bound to its context."""
    for entry in change.entries:
        for context in entry.index_values.get(CONTEXT, ()):
            yield from _bound_to(context, caches)


def _bound_to(context: str, caches: Caches) -> Iterator[ObjectKey]:
    for entry in caches.lister(CELL, NETWORK_BINDING).entries_by_index(CONTEXT, context):
        for uid in entry.index_values.get(OWNER, ()):
            yield from _deployments(caches, UID, uid)


def _named(caches: Caches, namespace: str, name: str) -> Iterator[ObjectKey]:
    entry = caches.lister(CELL, DEPLOYMENT).entry(namespace, name)
    if entry is not None:
        yield entry.key


def _deployments(caches: Caches, index: str, value: str) -> Iterator[ObjectKey]:
    return keys_by_index(caches, DEPLOYMENT, index, value)
