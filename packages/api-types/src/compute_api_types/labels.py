"""Every key on the wire that is ours: labels, annotations, finalizers, gates, field managers.

They are wire strings of `docs/spec/api.md` 10, shared with other components of the platform. Each
is spelled here alone, because a misspelled key raises no error: it only never matches. This module
decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# --- prefixes -------------------------------------------------------------------------------------

COMPUTE_PREFIX: Final = "compute.datumapis.com/"
META_PREFIX: Final = "meta.datumapis.com/"

RESERVED_PREFIXES: Final = (COMPUTE_PREFIX, META_PREFIX)
"""Keys below these belong to the platform; no tenant's template may carry one (rules 57, 58)."""

# --- labels (api.md 10.1) -------------------------------------------------------------------------

WORKLOAD_UID: Final = "compute.datumapis.com/workload-uid"
WORKLOAD_NAME: Final = "compute.datumapis.com/workload-name"
PLACEMENT_NAME: Final = "compute.datumapis.com/placement-name"
CITY_CODE: Final = "compute.datumapis.com/city-code"
WORKLOAD_DEPLOYMENT_NAME: Final = "compute.datumapis.com/workload-deployment-name"
WORKLOAD_DEPLOYMENT_UID: Final = "compute.datumapis.com/workload-deployment-uid"
INSTANCE_INDEX: Final = "compute.datumapis.com/instance-index"

LINKING_LABELS: Final = (
    WORKLOAD_UID,
    WORKLOAD_NAME,
    WORKLOAD_DEPLOYMENT_UID,
    WORKLOAD_DEPLOYMENT_NAME,
    PLACEMENT_NAME,
    CITY_CODE,
    INSTANCE_INDEX,
)
"""The seven labels that tie an Instance to its slot, in the order of cell.md 5.1."""

CELL: Final = "compute.datumapis.com/cell"
"""Which cell a hub or project Instance came from; equals the name of its Karmada Cluster."""

TOPOLOGY_CITY_CODE: Final = "topology.datum.net/city-code"
"""The routing key: on hub WorkloadDeployments and Clusters, and in `Location.spec.topology`."""

UPSTREAM_CLUSTER_NAME: Final = "meta.datumapis.com/upstream-cluster-name"
UPSTREAM_NAMESPACE: Final = "meta.datumapis.com/upstream-namespace"
IDENTITY_LABELS: Final = (UPSTREAM_CLUSTER_NAME, UPSTREAM_NAMESPACE)
"""Which project and namespace a hub object stands for; never the only evidence (decision 6)."""

SOURCE_CLUSTER: Final = "compute.datumapis.com/source-cluster"
INSTANCE_NAMESPACE: Final = "compute.datumapis.com/instance-namespace"

# --- annotations (api.md 10.2) --------------------------------------------------------------------

SSH_KEYS: Final = "compute.datumapis.com/ssh-keys"
RESTARTED_AT: Final = "compute.datumapis.com/restartedAt"
USER_ANNOTATIONS: Final = (SSH_KEYS, RESTARTED_AT)
"""The only reserved keys that a user's template may carry; both go on to the Instances."""

FEDERATION_NAMESPACE: Final = "compute.datumapis.com/federation-namespace"
PROJECT_GENERATION: Final = "compute.datumapis.com/project-generation"
ADOPTED_TEMPLATE_HASH: Final = "compute.datumapis.com/adopted-template-hash"
"""On an Instance of another operator: hash of the template that its content equals."""
INSTANCE_UID: Final = "compute.datumapis.com/instance-uid"
IDENTITY_REPAIRED: Final = "compute.datumapis.com/identity-repaired"

QUARANTINE_REASON: Final = "compute.datumapis.com/quarantine-reason"
QUARANTINE_MESSAGE: Final = "compute.datumapis.com/quarantine-message"
QUARANTINED_AT: Final = "compute.datumapis.com/quarantined-at"
QUARANTINE_FINGERPRINT: Final = "compute.datumapis.com/quarantine-fingerprint"
QUARANTINE_ANNOTATIONS: Final = (
    QUARANTINE_REASON,
    QUARANTINE_MESSAGE,
    QUARANTINED_AT,
    QUARANTINE_FINGERPRINT,
)
"""Set and removed together (api.md 10.2)."""

PARENT_CONTEXTS: Final = "discovery.miloapis.com/parent-contexts"
"""On each CRD, with the value `Project`: the kinds are served in project planes (api.md 1)."""

KARMADA_DEPENDENCIES: Final = "resourcebinding.karmada.io/dependencies"
"""Karmada's, on a ResourceBinding: what its object depends on; absent while the hub gate
`PropagateDeps` is off.
"""

KARMADA_TEMPLATE_UID: Final = "resourcetemplate.karmada.io/uid"
KARMADA_TEMPLATE_GENERATION: Final = "resourcetemplate.karmada.io/generation"
"""Karmada's, on a member's copy: UID and generation of the hub object it was made from."""

SUSPENDED: Final = "compute.datumapis.com/suspended"
"""On a WorkloadDeployment, exactly `"true"`: it is suspended; any other value is none."""
IS_SUSPENDED: Final = "true"

UNREACHABLE: Final = "compute.datumapis.com/unreachable"
"""On a Cluster, by a person: `"true"`, its cell is shown as unreachable; `"false"`, it never is."""

# --- referenced data (referenced-data.md 2) -------------------------------------------------------

REFERENCED_DATA: Final = "compute.datumapis.com/referenced-data"
"""Label of a companion on the hub and of its copy in a cell, exactly `"true"`."""
IS_REFERENCED_DATA: Final = "true"
SOURCE_VERSION: Final = "compute.datumapis.com/source-version"
"""On a companion: `<uid>/<resourceVersion>` of the object that its values were read from."""
SOURCE_BYTES: Final = "compute.datumapis.com/source-bytes"
REFERENCED_BY: Final = "compute.datumapis.com/referenced-by"

EXPECTED_REFERENCED_DATA: Final = "compute.datumapis.com/expected-referenced-data"
EXPECTED_REFERENCED_VERSIONS: Final = "compute.datumapis.com/expected-referenced-versions"
REFERENCED_DATA_ERROR: Final = "compute.datumapis.com/referenced-data-error"
REFERENCED_DATA_ANNOTATIONS: Final = (
    EXPECTED_REFERENCED_DATA,
    EXPECTED_REFERENCED_VERSIONS,
    REFERENCED_DATA_ERROR,
)
"""Of a hub WorkloadDeployment and its copy in a cell; a cell reads them (referenced-data.md 4)."""

# --- autoscaling (autoscaling.md 3) ---------------------------------------------------------------

SERVICE_NAME: Final = "services.miloapis.com/service-name"
OUR_SERVICE: Final = "compute.datumapis.com"
"""On a HorizontalPodAutoscaler of ours; the cell lists those alone."""

# --- passed on unread (api.md 15) -----------------------------------------------------------------

PASSED_ON_ANNOTATIONS: Final = (EXPECTED_REFERENCED_DATA,)
"""Of a project WorkloadDeployment, handed to the hub copy without being read."""

# --- finalizers (api.md 10.3) ---------------------------------------------------------------------

WORKLOAD_FINALIZER: Final = "compute.datumapis.com/workload-controller"
FEDERATION_FINALIZER: Final = "compute.datumapis.com/federator"

RETIRED_INSTANCE_FINALIZERS: Final = (
    "compute.datumapis.com/instance-controller",
    "quota.compute.datumapis.com/claim-cleanup",
)
"""Of an older operator: never added, removed where they exist; they would stop a cut-off cell."""

REFERENCED_DATA_FINALIZER: Final = "compute.datumapis.com/referenced-data-controller"
"""Of an older operator, on a deployment of a project: never added, removed where it exists. What it
stood for goes by ownership (referenced-data.md 2).
"""
RETIRED_DEPLOYMENT_FINALIZERS: Final = (WORKLOAD_FINALIZER, REFERENCED_DATA_FINALIZER)
"""Of an older operator, on a deployment of a cell, in a single cluster on that of the project:
never added there, removed once its Instances are gone.
"""
PROVIDER_FINALIZER: Final = "unikraft.datumapis.com/finalizer"
"""The provider's, on an Instance of a cell: what runs is torn down first."""
POD_PROVIDER_FINALIZER: Final = "pods.compute.datumapis.com/finalizer"
"""Of the pod provider, on an Instance of its cluster: the Pod is deleted first."""
LOOK_AGAIN: Final = "pods.compute.datumapis.com/look-again"
"""Annotation of the pod provider on a deleting Instance whose teardown it lost; its time."""

# --- scheduling gates (api.md 10.4) ---------------------------------------------------------------

NETWORK_GATE: Final = "Network"
QUOTA_GATE: Final = "Quota"
REFERENCED_DATA_GATE: Final = "ReferencedData"

# --- field managers (management.md 1.1, cell.md 1) ------------------------------------------------

WORKLOAD_MANAGER: Final = "compute-workload"
FEDERATION_MANAGER: Final = "compute-federation"
POLICY_MANAGER: Final = "compute-policy"
PROJECTION_MANAGER: Final = "compute-projection"
CLAIMS_MANAGER: Final = "compute-claims"
REFERENCED_DATA_MANAGER: Final = "compute-referenced-data"
DEPLOYMENT_MANAGER: Final = "compute-deployment"
INSTANCE_MANAGER: Final = "compute-instance"
AUTOSCALING_MANAGER: Final = "compute-autoscaling"
HEARTBEAT_MANAGER: Final = "compute-heartbeat"
WRITE_BACK_MANAGER: Final = "compute-write-back"
QUOTA_MANAGER: Final = "compute-quota"
POD_PROVIDER_MANAGER: Final = "compute-pod-provider"

# --- quota resource types (api.md 11.1) -----------------------------------------------------------

INSTANCES_RESOURCE: Final = "compute.datumapis.com/instances"
VCPUS_RESOURCE: Final = "compute.datumapis.com/vcpus"
MEMORY_RESOURCE: Final = "compute.datumapis.com/memory"

# --- user extras of a request (api.md 12.1) -------------------------------------------------------

PARENT_NAME_EXTRA: Final = "iam.miloapis.com/parent-name"
PARENT_TYPE_EXTRA: Final = "iam.miloapis.com/parent-type"


def is_suspended(annotations: Mapping[str, str]) -> bool:
    """Whether a WorkloadDeployment with these annotations is suspended (suspension.md 3, 4)."""
    return annotations.get(SUSPENDED) == IS_SUSPENDED


def is_reserved(key: str) -> bool:
    """Whether a label or annotation key belongs to the platform."""
    return key.startswith(RESERVED_PREFIXES)
