"""Who owns what, for O7: the table `docs/spec/README.md` "Who writes what", by writer and kind."""

from __future__ import annotations

from typing import Final

from compute_api_types import labels
from compute_sim_planes.history import Commit, Request
from compute_sim_planes.oracles import Ownership, OwnershipOf, owns_names
from e2e.backends.port import MANAGEMENT
from e2e.faults.layout import Layout, Side

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
_SUMMARIES: Final = owns_names("Available", "ReplicasReady", "Ready", "Progressing")
_OUR_KEYS: Final = owns_names(
    *(f"{prefix}*" for prefix in labels.RESERVED_PREFIXES), labels.TOPOLOGY_CITY_CODE
)

# Management and cells each write these; every other kind is nobody's to change.
_TABLE: Final[dict[tuple[str, Side, str], Ownership]] = {
    ("management", "project", "Workload"): Ownership(
        finalizers=owns_names(labels.WORKLOAD_FINALIZER), conditions=_SUMMARIES, status=_STATUS
    ),
    ("management", "project", "WorkloadDeployment"): Ownership(
        labels=_OUR_KEYS,
        annotations=_OUR_KEYS,
        finalizers=owns_names(labels.FEDERATION_FINALIZER),
        conditions=_SUMMARIES,
        status=_STATUS,
        spec=_EVERYTHING,
    ),
    # The whole projection is ours, the conditions of others in it too: they are copies.
    ("management", "project", "Instance"): Ownership(
        labels=_EVERYTHING,
        annotations=_EVERYTHING,
        conditions=_EVERYTHING,
        status=_EVERYTHING,
        spec=_EVERYTHING,
    ),
    ("management", "hub", "WorkloadDeployment"): Ownership(
        labels=_OUR_KEYS, annotations=_OUR_KEYS, spec=_EVERYTHING
    ),
    ("management", "hub", "Namespace"): Ownership(
        labels=owns_names(*labels.IDENTITY_LABELS),
        annotations=owns_names(labels.IDENTITY_REPAIRED),
        status=owns_names("phase"),  # the server sets it to Terminating with our delete
    ),
    ("management", "hub", "PropagationPolicy"): Ownership(
        labels=_OUR_KEYS,
        annotations=_OUR_KEYS,
        spec=owns_names("resourceSelectors", "placement", "conflictResolution"),
    ),
    ("management", "hub", "Instance"): Ownership(
        annotations=owns_names(*labels.QUARANTINE_ANNOTATIONS)
    ),
    ("cell", "cell", "WorkloadDeployment"): Ownership(
        finalizers=owns_names(*labels.RETIRED_DEPLOYMENT_FINALIZERS),
        conditions=_SUMMARIES,
        status=owns_names(
            *_COUNTED, "location", "observedTemplateGeneration", "observedTemplateUID"
        ),
    ),
    ("cell", "cell", "Instance"): Ownership(
        labels=_OUR_KEYS,
        annotations=_OUR_KEYS,
        finalizers=owns_names(*labels.RETIRED_INSTANCE_FINALIZERS),
        conditions=owns_names("QuotaGranted", "Ready"),
        spec=owns_names("controller"),
    ),
    ("cell", "hub", "Instance"): Ownership(
        labels=_EVERYTHING,
        annotations=_EVERYTHING,
        conditions=_EVERYTHING,
        status=_EVERYTHING,
        spec=_EVERYTHING,
    ),
    ("cell", "project", "ResourceClaim"): Ownership(labels=_OUR_KEYS, annotations=_OUR_KEYS),
}
# Made and kept by one writer alone, and not told apart by parts.
_OWN_KINDS: Final = frozenset({"Event", "Lease"})


def ownership_in(layout: Layout) -> OwnershipOf:
    """The table for the planes of a run."""

    def ownership_of(request: Request, commit: Commit) -> Ownership | None:
        identity = request.caller.identity
        if not layout.is_operator(identity) or commit.kind in _OWN_KINDS:
            return None
        operator = "management" if identity == MANAGEMENT else "cell"
        return _TABLE.get((operator, layout.side_of(commit.plane), commit.kind), Ownership())

    return ownership_of
