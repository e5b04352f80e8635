"""The claim that an Instance needs, and whether a grant seen earlier covers it. Pure (quota.md B3,
B6).

One claim per slot: its name follows the Instance's, which is the slot's. Its spec never changes;
the subject follows the Instance in the slot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from compute_api_types import labels, names
from compute_cell_operator.quota_gate.evidence import Payer
from compute_cell_operator.quota_gate.size import Size
from compute_operator_kit.keys import Uid
from compute_quota_client import Claim, FoundClaim, Granted, Verdict, project_ref


@dataclass(frozen=True, slots=True)
class Occupant:
    """The Instance in a slot, as far as its claim names it."""

    namespace: str
    name: str
    uid: Uid


def derive_claim(cell: str, payer: Payer, occupant: Occupant, size: Size) -> Claim:
    """The claim that is wanted for this Instance."""
    return Claim(
        namespace=payer.namespace,
        name=names.derive_claim_name(occupant.name),
        requests=size.requests,
        consumer=project_ref(payer.project),
        # `subject` is written as annotations unless a key stands in `labels`: this one is selected
        # by.
        labels={labels.INSTANCE_NAMESPACE: occupant.namespace},
        owner=derive_owner(cell),
        subject=derive_subject(occupant),
    )


def derive_owner(cell: str) -> Mapping[str, str]:
    return MappingProxyType({labels.SOURCE_CLUSTER: cell})


def derive_subject(occupant: Occupant) -> Mapping[str, str]:
    return MappingProxyType(
        {labels.INSTANCE_NAMESPACE: occupant.namespace, labels.INSTANCE_UID: occupant.uid}
    )


def read_subject(found: FoundClaim) -> Mapping[str, str | None]:
    """What a claim records of its subject; None where it records nothing."""
    keys = (labels.INSTANCE_NAMESPACE, labels.INSTANCE_UID)
    return MappingProxyType({key: found.value_of(key) for key in keys})


def find_other_resource(found: FoundClaim) -> str | None:
    """A resource type that a claim asks for and that is not compute's: the claim of another
    service, of whatever name and labels (faults.md AT-13).
    """
    types = (request.resource_type for request in found.requests)
    return next((one for one in types if not one.startswith(labels.COMPUTE_PREFIX)), None)


def is_covered(last: Verdict, wanted: Claim) -> bool:
    """Whether a gate may open on the last verdict, made on that claim by itself, while its plane is
    away.

    It must be a grant of ours, identical in everything but the UID of its subject, and record an
    Instance of this very slot: same namespace, and the same name, since claims are named by slot.
    That recorded UID is this Instance or one that is gone, because a successor exists only then.
    """
    if not isinstance(last, Granted):
        return False
    found = last.found
    recorded = read_subject(found)
    return (
        found.key == (wanted.namespace, wanted.name)
        and found.carries(wanted.owner)
        and recorded[labels.INSTANCE_NAMESPACE] == wanted.subject[labels.INSTANCE_NAMESPACE]
        and bool(recorded[labels.INSTANCE_UID])
        and found.asks_for(wanted.requests)
        and found.consumer == wanted.consumer
        and found.resource == wanted.claiming_resource
    )
