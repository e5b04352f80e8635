"""The claim that an Instance needs, and whether a former grant covers it. Pure (quota.md B3, B6).

One claim per slot: its name follows from the Instance's name, which is the slot's. Its spec never
changes, because Milo does not evaluate a claim twice; its subject follows the Instance in the slot.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from compute_api_types import labels, names
from compute_api_types.sizes import Size
from compute_cell_operator.quota.project_ref import BillingProject, ClaimSubject, InstanceRef
from compute_quota_client import Claim, FoundClaim, Granted, Verdict, project_ref

SUBJECT_KEYS: Final = (labels.INSTANCE_NAMESPACE, labels.INSTANCE_UID)


def derive_claim(cell: str, billing: BillingProject, instance: InstanceRef, size: Size) -> Claim:
    """The desired claim of an Instance."""
    return Claim(
        namespace=billing.namespace,
        name=names.derive_claim_name(instance.name),
        requests=size.requests,
        consumer=project_ref(billing.project),
        # The client writes `subject` as annotations unless a key is in `labels`; this one is there
        # for label selectors.
        labels={labels.INSTANCE_NAMESPACE: instance.namespace},
        owner=derive_owner(cell),
        subject=derive_subject(instance),
    )


def derive_owner(cell: str) -> Mapping[str, str]:
    return MappingProxyType({labels.SOURCE_CLUSTER: cell})


def derive_subject(instance: InstanceRef) -> Mapping[str, str]:
    return MappingProxyType(
        {labels.INSTANCE_NAMESPACE: instance.namespace, labels.INSTANCE_UID: instance.uid}
    )


def read_subject_values(claim: FoundClaim) -> Mapping[str, str | None]:
    """The subject as the client takes it; None for a key that the claim does not carry."""
    return MappingProxyType({key: claim.value_of(key) for key in SUBJECT_KEYS})


def read_subject(claim: FoundClaim) -> ClaimSubject:
    namespace, uid = (claim.value_of(key) or "" for key in SUBJECT_KEYS)
    return ClaimSubject(namespace, uid)


def find_other_resource(claim: FoundClaim) -> str | None:
    """The first resource type of a claim that is not compute's. Such a claim is another service's,
    whatever its name and labels (faults.md AT-13).
    """
    types = (request.resource_type for request in claim.requests)
    return next((one for one in types if not one.startswith(labels.COMPUTE_PREFIX)), None)


def is_covered(last: Verdict, desired: Claim) -> bool:
    """Whether a gate may open on the last verdict on the claim while its project does not answer.

    The verdict must be a grant of this cell's claim, equal to the desired claim in everything but
    the UID of its subject, and that subject must be in this slot: same namespace, and the same
    name, since claims are named by slot. The recorded UID is then this Instance's or that of a gone
    one, because a successor is created only after its predecessor is gone.
    """
    if not isinstance(last, Granted):
        return False
    claim = last.found
    subject = read_subject(claim)
    return (
        claim.key == (desired.namespace, desired.name)
        and claim.carries(desired.owner)
        and subject.namespace == desired.subject[labels.INSTANCE_NAMESPACE]
        and bool(subject.uid)
        and claim.asks_for(desired.requests)
        and claim.consumer == desired.consumer
        and claim.resource == desired.claiming_resource
    )
