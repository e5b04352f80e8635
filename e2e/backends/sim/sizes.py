"""The quota an Instance of a scenario uses, by `docs/spec/quota.md` B2.

Rules for oracle O5. They are derived independently of the operator, since shared code would hide
its mistakes.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from compute_api_types import labels
from compute_api_types.quantity import parse_quantity, round_up
from compute_api_types.wire import JsonObject
from compute_sim_planes.oracles.quota import QuotaRules
from e2e.oracles.layout import Layout
from e2e.world.objects import object_at

# The catalogue has one instance type: 1000 millicores, 2048 MiB.
MILLICORES: Final = 1000
MEBIBYTES: Final = 2048
_MILLI: Final = Fraction(1, 1000)
_MEBI: Final = Fraction(1024 * 1024)


def derive_size(instance: JsonObject) -> dict[str, int]:
    """From the resource requests if there are any, else from the catalogue."""
    requests = object_at(instance, "spec", "runtime", "resources", "requests")
    cpu, memory = requests.get("cpu"), requests.get("memory")
    return {
        labels.INSTANCES_RESOURCE: 1,
        labels.VCPUS_RESOURCE: round_up(parse_quantity(cpu), _MILLI) if cpu else MILLICORES,
        labels.MEMORY_RESOURCE: round_up(parse_quantity(memory), _MEBI) if memory else MEBIBYTES,
    }


def quota_rules(layout: Layout) -> QuotaRules:
    """Every cell is checked except those that are lost permanently."""
    return QuotaRules(
        cells={cell: cell for cell in layout.cells - layout.lost},
        size_of=derive_size,
        # Only the claiming cell's connection counts: management and other cells may still reach a
        # project that this cell is cut off from.
        claims_for=lambda identity, cell: identity == cell,
        manual_claims=layout.by_hand,
    )
