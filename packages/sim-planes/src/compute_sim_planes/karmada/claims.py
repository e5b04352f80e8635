"""Claims: labels and annotations by which a policy marks an object and its binding. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from compute_sim_planes.json_types import JsonObject, string_at
from compute_sim_planes.karmada.kinds import (
    CLUSTER_POLICIES,
    CLUSTER_POLICY_ID,
    CLUSTER_POLICY_NAME,
    POLICY_ID,
    POLICY_NAME,
    POLICY_NAMESPACE,
)
from compute_sim_planes.karmada.metadata import (
    annotations_of,
    labels_of,
    name_of,
    namespace_of,
    with_metadata,
    without_metadata,
)

CLAIM_LABELS: Final = (POLICY_ID, CLUSTER_POLICY_ID)
CLAIM_ANNOTATIONS: Final = (POLICY_NAMESPACE, POLICY_NAME, CLUSTER_POLICY_NAME)


@dataclass(frozen=True, slots=True)
class Claim:
    """The policy of an object; `namespace` is empty for a ClusterPropagationPolicy."""

    permanent_id: str
    namespace: str
    name: str

    @property
    def labels(self) -> dict[str, str]:
        return {POLICY_ID if self.namespace else CLUSTER_POLICY_ID: self.permanent_id}

    @property
    def annotations(self) -> dict[str, str]:
        if self.namespace:
            return {POLICY_NAMESPACE: self.namespace, POLICY_NAME: self.name}
        return {CLUSTER_POLICY_NAME: self.name}


def claim_of(policy: JsonObject) -> Claim:
    """The claim of a policy; its id is empty until the policy has one."""
    is_for_all = string_at(policy, "kind") == CLUSTER_POLICIES.kind
    label = CLUSTER_POLICY_ID if is_for_all else POLICY_ID
    namespace = "" if is_for_all else namespace_of(policy)
    return Claim(labels_of(policy).get(label, ""), namespace, name_of(policy))


def find_claim(existing: JsonObject) -> Claim | None:
    """The claim on an object, if it is complete."""
    labels, annotations = labels_of(existing), annotations_of(existing)
    claims = (
        Claim(
            labels.get(POLICY_ID, ""),
            annotations.get(POLICY_NAMESPACE, ""),
            annotations.get(POLICY_NAME, ""),
        ),
        Claim(labels.get(CLUSTER_POLICY_ID, ""), "", annotations.get(CLUSTER_POLICY_NAME, "")),
    )
    for claim, is_for_all in zip(claims, (False, True), strict=True):
        if claim.permanent_id and claim.name and (is_for_all or claim.namespace):
            return claim
    return None


def with_claim(existing: JsonObject, claim: Claim) -> JsonObject:
    """The object claimed by this policy and no other."""
    return with_metadata(
        without_claim(existing), labels=claim.labels, annotations=claim.annotations
    )


def without_claim(existing: JsonObject) -> JsonObject:
    return without_metadata(existing, labels=CLAIM_LABELS, annotations=CLAIM_ANNOTATIONS)
