"""What is cached of networking kinds, and under which values it is found.

Apart from `observe`, because plans stand on that and must know nothing that runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from compute_cell_operator.kinds import (
    LOCATION,
    NETWORK_BINDING,
    NETWORKING_KINDS,
    SUBNET,
    SUBNET_CLAIM,
)
from compute_cell_operator.network import observe
from compute_operator_kit.indexing import IndexFunction
from compute_operator_kit.keys import Kind, Role
from compute_operator_kit.planes import Watched

_INDEXES: Final[Mapping[Kind, Mapping[str, IndexFunction]]] = {
    LOCATION: {observe.CITY: observe.index_by_city},
    NETWORK_BINDING: {
        observe.OWNER: observe.index_by_owner,
        observe.CONTEXT: observe.index_by_bound_context,
    },
    SUBNET_CLAIM: {observe.CONTEXT: observe.index_by_context},
    SUBNET: {observe.CONTEXT: observe.index_by_context},
}

# Optional: a kind that is not served is known not to be there, and nothing waits for it.
WATCHED: Final = tuple(
    Watched(Role.HOME, kind, indexes=_INDEXES.get(kind, {}), is_optional=True)
    for kind in NETWORKING_KINDS
)
