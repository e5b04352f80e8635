"""What an Instance of a scenario takes of quota, by `docs/spec/quota.md` B2 and nothing of ours.

Rules for O5: derived apart from the operator, which is what is being judged.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from compute_api_types import labels
from compute_api_types.quantity import parse_quantity, round_up
from compute_api_types.wire import JsonObject
from compute_sim_planes.oracles_quota import QuotaRules
from e2e.faults.layout import Layout
from e2e.objects import object_at

# The catalogue has one type: 1000 millicores, 2048 MiB.
MILLICORES: Final = 1000
MEBIBYTES: Final = 2048
_MILLI: Final = Fraction(1, 1000)
_MEBI: Final = Fraction(1024 * 1024)


def derive_size(instance: JsonObject) -> dict[str, int]:
    """By the requests of its resources where it has any, else by the catalogue."""
    requests = object_at(instance, "spec", "runtime", "resources", "requests")
    cpu, memory = requests.get("cpu"), requests.get("memory")
    return {
        labels.INSTANCES_RESOURCE: 1,
        labels.VCPUS_RESOURCE: round_up(parse_quantity(cpu), _MILLI) if cpu else MILLICORES,
        labels.MEMORY_RESOURCE: round_up(parse_quantity(memory), _MEBI) if memory else MEBIBYTES,
    }


def quota_rules(layout: Layout) -> QuotaRules:
    """Every cell enforces; a cell that is gone for good is nobody's to judge."""
    return QuotaRules(
        cells={cell: cell for cell in layout.cells - layout.lost},
        size_of=derive_size,
        # Whether quota is away is seen by the cell that claims: management, and other cells, reach
        # a project that it is cut from.
        claims_for=lambda identity, cell: identity == cell,
        by_hand=layout.by_hand,
    )
