"""What counts for one Instance now: what is known without asking, else the worker's finding. Pure
(quota.md B4, its rows 1, 4 and 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compute_api_types import labels, names
from compute_cell_operator.quota_gate.findings import (
    Disabled,
    Finding,
    Said,
    SizeUnknown,
    Undecided,
    Unresolvable,
)
from compute_cell_operator.quota_gate.size import Size, UnknownSize
from compute_operator_kit.keys import Uid
from compute_operator_kit.objects import Metadata


@dataclass(frozen=True, slots=True)
class Payer:
    """Whose quota is claimed, by the labels of the cell Namespace; they are not proof yet."""

    project: str
    namespace: str
    proof: str  # the UID that the project namespace must have


def derive_payer(namespace: Metadata) -> Payer | Unresolvable:
    """The project and its namespace that a cell Namespace stands for (cell.md 1)."""
    owner = f'Namespace "{namespace.name}"'
    try:
        project = names.decode_project(namespace.labels, namespace.annotations, owner=owner)
    except names.UndecodableIdentityError as cause:
        return Unresolvable("ID", str(cause))
    if not names.is_dns_label(project):
        detail = f"{project[:63]!r} is no DNS label"
        return Unresolvable("ID", _blames(owner, labels.UPSTREAM_CLUSTER_NAME, detail))
    within = namespace.labels.get(labels.UPSTREAM_NAMESPACE, "")
    if not names.is_dns_label(within):
        detail = f"{within[:63]!r} is no DNS label" if within else "the label is missing or empty"
        return Unresolvable("namespace", _blames(owner, labels.UPSTREAM_NAMESPACE, detail))
    proof = names.parse_hub_namespace(namespace.name)
    if proof is None:
        return Unresolvable("namespace", f"{owner} is not named after a project namespace")
    return Payer(project, within, proof)


def _blames(owner: str, label: str, detail: str) -> str:
    return f"label {label!r} of {owner}: {detail}"


@dataclass(frozen=True, slots=True)
class Known:
    """What the pass has at hand about the quota of one Instance."""

    is_enforced: bool
    size: Size | UnknownSize
    payer: Payer | Unresolvable | None  # None: its Namespace has not been seen yet
    finding: Finding | None


def derive_said(uid: Uid, known: Known) -> Said:
    """What holds for this Instance; a finding for another, or for another size, is none."""
    if not known.is_enforced:
        return Disabled()
    if isinstance(known.size, UnknownSize):
        return SizeUnknown(known.size.instance_type)
    if isinstance(known.payer, Unresolvable):
        return known.payer
    found = known.finding
    if found is None or not found.holds_for(uid, known.size.requests):
        return Undecided()
    return found.said


def derive_requests(size: Size | UnknownSize) -> Mapping[str, int]:
    """What would be claimed; nothing for an unknown size."""
    return size.requests if isinstance(size, Size) else {}
