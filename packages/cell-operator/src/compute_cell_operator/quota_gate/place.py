"""Where a claim is, or would be. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from compute_api_types import names
from compute_cell_operator.quota_gate.evidence import Payer


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """One claim's place, in all projects."""

    project: str
    namespace: str
    name: str


def derive_place(payer: Payer, instance: str) -> Place:
    return Place(payer.project, payer.namespace, names.derive_claim_name(instance))
