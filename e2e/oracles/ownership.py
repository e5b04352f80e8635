"""Field ownership for O7 by writer and kind: the table of writers in `docs/spec/README.md`."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import orjson

from compute_api_types import labels
from compute_sim_planes.history import Commit, Request
from compute_sim_planes.oracles.invariants import FieldOwnership, OwnershipOf, owns_names
from e2e.oracles.layout import Layout, Side
from e2e.world.objects import object_at
from e2e.world.port import MANAGEMENT

_EVERYTHING: Final = owns_names("*")
_COUNTED: Final = (
    "observedGeneration",
    "replicas",
    "desiredReplicas",
    "readyReplicas",
    "currentReplicas",
    "updatedReplicas",
)
_STATUS: Final = owns_names(*_COUNTED, "deployments", "placements", "location", "gateways")
# The Go operators also show the selector of a cell in projects; it is removed there.
_DEPLOYMENT_STATUS: Final = owns_names(*_COUNTED, "location", "suspended", "selector")
_SUMMARY_TYPES: Final = (
    *("Available", "ReplicasReady", "Ready", "Progressing"),
    *("AutoscalingReady", "AutoscalingLimited"),
)
_SUMMARIES: Final = owns_names(*_SUMMARY_TYPES)
_OUR_KEYS: Final = owns_names(
    *(f"{prefix}*" for prefix in labels.RESERVED_PREFIXES), labels.TOPOLOGY_CITY_CODE
)

# Kinds that the operators may change; no other kind may change.
_TABLE: Final[dict[tuple[str, Side, str], FieldOwnership]] = {
    ("management", "project", "Workload"): FieldOwnership(
        finalizers=owns_names(labels.WORKLOAD_FINALIZER), conditions=_SUMMARIES, status=_STATUS
    ),
    ("management", "project", "WorkloadDeployment"): FieldOwnership(
        labels=_OUR_KEYS,
        annotations=_OUR_KEYS,
        finalizers=owns_names(labels.FEDERATION_FINALIZER, labels.REFERENCED_DATA_FINALIZER),
        conditions=owns_names(*_SUMMARY_TYPES, "ReferencedDataReady"),
        status=_DEPLOYMENT_STATUS,
        spec=_EVERYTHING,
    ),
    # A projection is a copy, so management owns all of it, conditions of other writers included.
    ("management", "project", "Instance"): FieldOwnership(
        labels=_EVERYTHING,
        annotations=_EVERYTHING,
        conditions=_EVERYTHING,
        status=_EVERYTHING,
        spec=_EVERYTHING,
    ),
    ("management", "hub", "WorkloadDeployment"): FieldOwnership(
        labels=_OUR_KEYS, annotations=_OUR_KEYS, spec=_EVERYTHING
    ),
    ("management", "hub", "Namespace"): FieldOwnership(
        labels=owns_names(*labels.IDENTITY_LABELS),
        annotations=owns_names(labels.IDENTITY_REPAIRED),
        status=owns_names("phase"),  # the server sets it to Terminating on our delete
    ),
    ("management", "hub", "PropagationPolicy"): FieldOwnership(
        labels=_OUR_KEYS,
        annotations=_OUR_KEYS,
        spec=owns_names("resourceSelectors", "placement", "conflictResolution", "propagateDeps"),
    ),
    # Values of a companion are no part that the oracle compares.
    ("management", "hub", "ConfigMap"): FieldOwnership(annotations=_OUR_KEYS),
    ("management", "hub", "Secret"): FieldOwnership(annotations=_OUR_KEYS),
    ("management", "hub", "Instance"): FieldOwnership(
        annotations=owns_names(*labels.QUARANTINE_ANNOTATIONS)
    ),
    ("cell", "cell", "WorkloadDeployment"): FieldOwnership(
        finalizers=owns_names(*labels.RETIRED_DEPLOYMENT_FINALIZERS),
        conditions=_SUMMARIES,
        status=owns_names(
            *_COUNTED,
            "location",
            "observedTemplateGeneration",
            "observedTemplateUID",
            "selector",
            "suspended",
        ),
        # The number that an autoscaler starts from, through the scale subresource.
        spec=owns_names("replicas"),
    ),
    ("cell", "cell", "HorizontalPodAutoscaler"): FieldOwnership(
        labels=_OUR_KEYS,
        spec=owns_names("scaleTargetRef", "minReplicas", "maxReplicas", "metrics", "behavior"),
    ),
    ("cell", "cell", "Instance"): FieldOwnership(
        labels=_OUR_KEYS,
        annotations=_OUR_KEYS,
        finalizers=owns_names(*labels.RETIRED_INSTANCE_FINALIZERS),
        conditions=owns_names("QuotaGranted", "ReferencedDataReady", "Ready"),
        status=owns_names("suspended"),
        spec=owns_names("controller"),
    ),
    ("cell", "hub", "Instance"): FieldOwnership(
        labels=_EVERYTHING,
        annotations=_EVERYTHING,
        conditions=_EVERYTHING,
        status=_EVERYTHING,
        spec=_EVERYTHING,
    ),
    ("cell", "project", "ResourceClaim"): FieldOwnership(labels=_OUR_KEYS, annotations=_OUR_KEYS),
}
# These have one writer for the whole object.
_OWN_KINDS: Final = frozenset({"Event", "Lease"})


def ownership_in(layout: Layout) -> OwnershipOf:
    """The table for the planes of a run."""

    def ownership_of(request: Request, commit: Commit) -> FieldOwnership | None:
        identity = request.caller.identity
        if not layout.is_operator(identity) or commit.kind in _OWN_KINDS:
            return None
        operator = "management" if identity == MANAGEMENT else "cell"
        side = layout.side_of(commit.plane)
        owned = _TABLE.get((operator, side, commit.kind), FieldOwnership())
        if (operator, side, commit.kind) == ("cell", "cell", "Instance") and _suspends(commit):
            stopped = owns_names("QuotaGranted", "ReferencedDataReady", "Ready", "Available")
            return replace(owned, conditions=stopped)
        return owned

    return ownership_of


def _suspends(commit: Commit) -> bool:
    """Around a suspension the cell writes `Available`, which is otherwise the provider's."""
    versions = [orjson.loads(one) for one in (commit.before, commit.after) if one]
    return any(object_at(one, "status").get("suspended") is True for one in versions)
