"""Cached networking kinds of the cell and their indexes.

Apart from `observe`, which plans import: a plan must not depend on the planes registry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from compute_cell_operator.indexes import OWNER, index_by_owner
from compute_cell_operator.network.observe import (
    CITY,
    CONTEXT,
    NetworkReference,
    read_bound_context,
    read_city,
)
from compute_cell_operator.planes import (
    LOCATION,
    NETWORK_BINDING,
    NETWORKING_KINDS,
    SUBNET,
    SUBNET_CLAIM,
)
from compute_operator_kit.cache.indexers import IndexFunction
from compute_operator_kit.core.json import JsonObject, member_object, member_text
from compute_operator_kit.core.keys import Kind, Role
from compute_operator_kit.core.objects import Metadata
from compute_operator_kit.planes.engaged_plane import CachedKind


def index_by_bound_context(metadata: Metadata, body: JsonObject) -> Iterable[str]:
    context = read_bound_context(metadata, body)
    return (str(context),) if context is not None else ()


def index_by_context(metadata: Metadata, body: JsonObject) -> Iterable[str]:
    name = member_text(member_object(member_object(body, "spec"), "networkContext"), "name")
    return (str(NetworkReference(metadata.namespace, name)),) if name else ()


def index_by_city(_: Metadata, body: JsonObject) -> Iterable[str]:
    code = read_city(body)
    return (code,) if code else ()


_INDEXES: Final[Mapping[Kind, Mapping[str, IndexFunction]]] = {
    LOCATION: {CITY: index_by_city},
    NETWORK_BINDING: {OWNER: index_by_owner, CONTEXT: index_by_bound_context},
    SUBNET_CLAIM: {CONTEXT: index_by_context},
    SUBNET: {CONTEXT: index_by_context},
}

# Optional: a kind that the cell does not serve counts as empty, and no reconcile waits for it.
CACHED_KINDS: Final = tuple(
    CachedKind(Role.HOME, kind, indexes=_INDEXES.get(kind, {}), is_optional=True)
    for kind in NETWORKING_KINDS
)
