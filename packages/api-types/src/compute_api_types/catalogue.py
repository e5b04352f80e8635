"""The catalogue of conditions and events: which reason appears on which kind, with which status.

The tables of `docs/spec/api.md` 8.2 to 8.4 and `docs/spec/operations.md` 7 as data, so that the
reference for users is generated from them and a test compares them with `reasons.py`. Nothing reads
them at run time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from compute_api_types import conditions, reasons


@dataclass(frozen=True, slots=True)
class ShownCondition:
    """One row: a condition type of a kind, one status, the reasons it may carry, its writer."""

    kind: str
    type: str
    status: str
    reasons: tuple[str, ...]
    writer: str


@dataclass(frozen=True, slots=True)
class ShownEvents:
    """Events on one kind of object, by importance."""

    on: str
    normal: tuple[str, ...]
    warning: tuple[str, ...]


_SOURCE: Final = (
    reasons.SOURCE_NOT_FOUND,
    reasons.SOURCE_UNAUTHORIZED,
    reasons.SOURCE_TOO_LARGE,
    reasons.SOURCE_NAME_TOO_LONG,
    reasons.SOURCE_NAME_TAKEN,
    reasons.SOURCE_NOT_SUPPORTED,
)
"""Why a ConfigMap or Secret cannot be delivered (referenced-data.md 4)."""

_BLOCKERS: Final = (
    reasons.SUSPENDED,
    reasons.CITY_CODE_MISMATCH,
    reasons.NETWORK_FAILED_TO_CREATE,
    reasons.NETWORK_NOT_FOUND,
    reasons.INSTANCE_FAILED_TO_CREATE,
    reasons.IMAGE_UNAVAILABLE,
    reasons.INSTANCE_CRASHING,
    reasons.CONFIGURATION_ERROR,
    reasons.UNKNOWN_INSTANCE_TYPE,
    *_SOURCE,
    reasons.REFERENCED_DATA_NOT_READY,
    reasons.QUOTA_NOT_GRANTED,
    reasons.NO_MATCHING_LOCATION,
    reasons.NETWORK_PROVISIONING,
    reasons.INSTANCES_PROVISIONING,
)
"""What can keep a deployment from being available, most specific first (api.md 8.3)."""

_WAITING: Final = (reasons.PENDING,)
_TROUBLE: Final = (
    reasons.IMAGE_UNAVAILABLE,
    reasons.INSTANCE_CRASHING,
    reasons.CONFIGURATION_ERROR,
)
_GOING: Final = (reasons.STOPPING, reasons.STOPPED, reasons.FAILED)
_PROVIDER: Final = "provider"
_CELL_INSTANCE: Final = "cell / instance"
_CELL_DEPLOYMENT: Final = "cell / deployment"
_WORKLOAD: Final = "management / workload"
_SCHEMA: Final = "schema default"
_INTERPRETER: Final = "interpreter on the hub"
_SILENT: Final = (reasons.INSTANCES_PROVISIONING,)
_NO_AUTOSCALER: Final = (
    reasons.AUTOSCALER_RECONCILE_FAILED,
    reasons.FAILED_GET_RESOURCE_METRIC,
    reasons.FAILED_GET_SCALE,
    reasons.FAILED_UPDATE_SCALE,
    reasons.INVALID_SELECTOR,
    reasons.SCALING_DISABLED,
)
"""Why an autoscaler does not work; its own reasons are passed on, whatever they are."""
_WAITING_AUTOSCALER: Final = (reasons.AWAITING_AUTOSCALER, reasons.SUSPENDED)

INSTANCE_CONDITIONS: Final = (
    ShownCondition("Instance", conditions.PROGRAMMED, "Unknown", _WAITING, _SCHEMA),
    ShownCondition(
        "Instance",
        conditions.PROGRAMMED,
        "False or Unknown",
        (*_TROUBLE, reasons.PENDING_PROGRAMMING, reasons.PROGRAMMING_IN_PROGRESS),
        _PROVIDER,
    ),
    ShownCondition("Instance", conditions.PROGRAMMED, "True", (reasons.PROGRAMMED,), _PROVIDER),
    ShownCondition("Instance", conditions.PROGRAMMED, "False", _GOING, _PROVIDER),
    ShownCondition("Instance", conditions.AVAILABLE, "Unknown", _WAITING, _SCHEMA),
    ShownCondition(
        "Instance",
        conditions.AVAILABLE,
        "False or Unknown",
        (*_TROUBLE, reasons.PROVISIONING, reasons.STARTING, reasons.NODE_UNREACHABLE),
        _PROVIDER,
    ),
    ShownCondition("Instance", conditions.AVAILABLE, "True", (reasons.AVAILABLE,), _PROVIDER),
    ShownCondition("Instance", conditions.AVAILABLE, "False", _GOING, _PROVIDER),
    ShownCondition(
        "Instance",
        conditions.AVAILABLE,
        "False",
        (reasons.SUSPENDED, reasons.STARTING),
        "cell / instance around a suspension",
    ),
    ShownCondition(
        "Instance",
        conditions.QUOTA_GRANTED,
        "True",
        (reasons.QUOTA_AVAILABLE, reasons.QUOTA_DISABLED),
        _CELL_INSTANCE,
    ),
    ShownCondition(
        "Instance",
        conditions.QUOTA_GRANTED,
        "Unknown",
        (reasons.PENDING_EVALUATION, reasons.QUOTA_NO_BUDGET),
        _CELL_INSTANCE,
    ),
    ShownCondition(
        "Instance",
        conditions.QUOTA_GRANTED,
        "False",
        (
            reasons.QUOTA_EXCEEDED,
            reasons.VALIDATION_FAILED,
            reasons.QUOTA_BACKEND_UNAVAILABLE,
            reasons.QUOTA_PROJECT_NOT_FOUND,
            reasons.QUOTA_NAMESPACE_NOT_FOUND,
            reasons.QUOTA_MISCONFIGURED,
            reasons.QUOTA_PROJECT_ID_UNRESOLVABLE,
            reasons.UNKNOWN_INSTANCE_TYPE,
        ),
        _CELL_INSTANCE,
    ),
    ShownCondition(
        "Instance", conditions.REFERENCED_DATA_READY, "True", (reasons.READY,), _CELL_INSTANCE
    ),
    ShownCondition(
        "Instance",
        conditions.REFERENCED_DATA_READY,
        "False or Unknown",
        (
            *_SOURCE,
            reasons.AWAITING_PROPAGATION,
            reasons.RESOLVING,
            reasons.REFERENCED_DATA_NOT_READY,
        ),
        _CELL_INSTANCE,
    ),
    ShownCondition("Instance", conditions.READY, "True", (reasons.AVAILABLE,), _CELL_INSTANCE),
    ShownCondition(
        "Instance",
        conditions.READY,
        "False or Unknown",
        (
            reasons.TERMINATING,
            reasons.SUSPENDED,
            reasons.SCHEDULING_GATES_PRESENT,
            reasons.PENDING_QUOTA,
            reasons.UNKNOWN_INSTANCE_TYPE,
            reasons.NETWORK_FAILED_TO_CREATE,
            *_SOURCE,
            reasons.AWAITING_PROPAGATION,
            reasons.RESOLVING,
            *_TROUBLE,
            reasons.PENDING_PROGRAMMING,
            reasons.PROGRAMMING_IN_PROGRESS,
            reasons.PENDING,
            reasons.PROVISIONING,
            reasons.STARTING,
            reasons.NODE_UNREACHABLE,
            *_GOING,
        ),
        _CELL_INSTANCE,
    ),
)
"""Conditions of an Instance (api.md 8.2)."""

DEPLOYMENT_CONDITIONS: Final = (
    ShownCondition("WorkloadDeployment", conditions.AVAILABLE, "Unknown", _WAITING, _SCHEMA),
    ShownCondition(
        "WorkloadDeployment",
        conditions.AVAILABLE,
        "True",
        (reasons.STABLE_INSTANCE_FOUND,),
        _CELL_DEPLOYMENT,
    ),
    ShownCondition(
        "WorkloadDeployment", conditions.AVAILABLE, "False", _BLOCKERS, _CELL_DEPLOYMENT
    ),
    ShownCondition("WorkloadDeployment", conditions.REPLICAS_READY, "Unknown", _WAITING, _SCHEMA),
    ShownCondition(
        "WorkloadDeployment", conditions.REPLICAS_READY, "Unknown", _SILENT, _INTERPRETER
    ),
    ShownCondition(
        "WorkloadDeployment",
        conditions.REPLICAS_READY,
        "True",
        (reasons.REPLICAS_AVAILABLE,),
        _CELL_DEPLOYMENT,
    ),
    ShownCondition(
        "WorkloadDeployment",
        conditions.REPLICAS_READY,
        "False",
        (reasons.DELETION_BLOCKED, reasons.QUOTA_EXCEEDED, *_BLOCKERS),
        _CELL_DEPLOYMENT,
    ),
    ShownCondition("WorkloadDeployment", conditions.READY, "Unknown", _WAITING, _SCHEMA),
    ShownCondition("WorkloadDeployment", conditions.READY, "Unknown", _SILENT, _INTERPRETER),
    ShownCondition(
        "WorkloadDeployment",
        conditions.READY,
        "True",
        (reasons.REPLICAS_AVAILABLE,),
        _CELL_DEPLOYMENT,
    ),
    ShownCondition(
        "WorkloadDeployment",
        conditions.READY,
        "False",
        (reasons.DELETION_BLOCKED, *_BLOCKERS),
        _CELL_DEPLOYMENT,
    ),
    ShownCondition(
        "WorkloadDeployment",
        conditions.AUTOSCALING_READY,
        "True",
        (reasons.AUTOSCALER_READY,),
        _CELL_DEPLOYMENT,
    ),
    ShownCondition(
        "WorkloadDeployment",
        conditions.AUTOSCALING_READY,
        "Unknown",
        _WAITING_AUTOSCALER,
        _CELL_DEPLOYMENT,
    ),
    ShownCondition(
        "WorkloadDeployment",
        conditions.AUTOSCALING_READY,
        "False",
        _NO_AUTOSCALER,
        _CELL_DEPLOYMENT,
    ),
    ShownCondition(
        "WorkloadDeployment",
        conditions.AUTOSCALING_LIMITED,
        "True",
        (reasons.TOO_MANY_REPLICAS, reasons.TOO_FEW_REPLICAS),
        _CELL_DEPLOYMENT,
    ),
    ShownCondition(
        "WorkloadDeployment",
        conditions.AUTOSCALING_LIMITED,
        "Unknown",
        (reasons.AWAITING_AUTOSCALER,),
        _CELL_DEPLOYMENT,
    ),
    ShownCondition(
        "WorkloadDeployment",
        conditions.AUTOSCALING_LIMITED,
        "False",
        (reasons.DESIRED_WITHIN_RANGE,),
        _CELL_DEPLOYMENT,
    ),
    ShownCondition(
        "WorkloadDeployment",
        conditions.CELLS_REPORTING,
        "True, False or Unknown; on the hub only",
        (reasons.ALL_CELLS_REPORT, reasons.CELLS_SILENT, reasons.NO_CELL_PLACED),
        _INTERPRETER,
    ),
)
"""Conditions of a WorkloadDeployment (api.md 8.3)."""

SANITISED_CONDITIONS: Final = (
    ShownCondition(
        "WorkloadDeployment, Instance",
        "any type a cell reports",
        "as the cell reports it",
        (reasons.UNKNOWN,),
        "management / federation, management / projection",
    ),
)
"""What a project shows in place of a word that is none (management.md 8.3)."""

WORKLOAD_CONDITIONS: Final = (
    ShownCondition(
        "placement",
        conditions.AVAILABLE,
        "True",
        (reasons.AVAILABLE_DEPLOYMENT_FOUND,),
        _WORKLOAD,
    ),
    ShownCondition(
        "placement",
        conditions.AVAILABLE,
        "False",
        (reasons.NAME_COLLISION, *_BLOCKERS, reasons.NO_AVAILABLE_DEPLOYMENTS),
        _WORKLOAD,
    ),
    ShownCondition("Workload", conditions.AVAILABLE, "Unknown", _WAITING, _SCHEMA),
    ShownCondition(
        "Workload", conditions.AVAILABLE, "True", (reasons.AVAILABLE_PLACEMENT_FOUND,), _WORKLOAD
    ),
    ShownCondition(
        "Workload",
        conditions.AVAILABLE,
        "False",
        (reasons.NAME_COLLISION, *_BLOCKERS, reasons.NO_AVAILABLE_PLACEMENTS),
        _WORKLOAD,
    ),
    ShownCondition(
        "Workload, placement",
        conditions.READY,
        "Unknown",
        _WAITING,
        "schema default of the Workload",
    ),
    ShownCondition(
        "Workload, placement", conditions.READY, "True", (reasons.PLACEMENTS_READY,), _WORKLOAD
    ),
    ShownCondition(
        "Workload, placement",
        conditions.READY,
        "False",
        (reasons.NAME_COLLISION, *_BLOCKERS, reasons.TERMINATING),
        _WORKLOAD,
    ),
    ShownCondition(
        "Workload, placement",
        conditions.AUTOSCALING_READY,
        "True",
        (reasons.AUTOSCALERS_READY,),
        _WORKLOAD,
    ),
    ShownCondition(
        "Workload, placement",
        conditions.AUTOSCALING_READY,
        "Unknown",
        _WAITING_AUTOSCALER,
        _WORKLOAD,
    ),
    ShownCondition(
        "Workload, placement", conditions.AUTOSCALING_READY, "False", _NO_AUTOSCALER, _WORKLOAD
    ),
    ShownCondition(
        "Workload, placement",
        conditions.AUTOSCALING_LIMITED,
        "True",
        (reasons.TOO_MANY_REPLICAS, reasons.TOO_FEW_REPLICAS),
        _WORKLOAD,
    ),
    ShownCondition(
        "Workload, placement",
        conditions.AUTOSCALING_LIMITED,
        "Unknown",
        (reasons.AWAITING_AUTOSCALER,),
        _WORKLOAD,
    ),
    ShownCondition(
        "Workload, placement",
        conditions.AUTOSCALING_LIMITED,
        "False",
        (reasons.WITHIN_SCALING_LIMITS,),
        _WORKLOAD,
    ),
)
"""Conditions of a Workload and of its placements (api.md 8.4)."""

CONDITIONS: Final = (
    *WORKLOAD_CONDITIONS,
    *DEPLOYMENT_CONDITIONS,
    *INSTANCE_CONDITIONS,
    *SANITISED_CONDITIONS,
)

EVENTS: Final = (
    ShownEvents(
        "Workload",
        (reasons.DEPLOYMENT_CREATED, reasons.DEPLOYMENT_DELETED),
        (
            reasons.NO_MATCHING_LOCATION,
            reasons.NETWORK_NOT_FOUND,
            reasons.NAME_COLLISION,
            reasons.DEPLOYMENT_REJECTED,
        ),
    ),
    ShownEvents(
        "WorkloadDeployment in a project",
        (reasons.FEDERATED, reasons.REROUTED, reasons.CELL_REACHABLE),
        (
            reasons.CELL_UNREACHABLE,
            reasons.FEDERATION_REFUSED,
            reasons.FEDERATION_NAMESPACE_UNRESOLVED,
            reasons.HUB_IDENTITY_CONFLICT,
            reasons.FEDERATION_RELEASE_DELAYED,
        ),
    ),
    ShownEvents("Project at the root", (), (reasons.CACHE_BUDGET_EXCEEDED,)),
    ShownEvents(
        "PropagationPolicy on the hub", (reasons.POLICY_REPAIRED,), (reasons.AMBIGUOUS_CITY,)
    ),
    ShownEvents(
        "Instance on the hub", (), tuple(reason.event for reason in reasons.QuarantineReason)
    ),
    ShownEvents(
        "Cluster on the hub, or Deployment of the operator",
        (),
        (reasons.MISPLACED_CLAIM_REMOVED, reasons.UNBACKED_CLAIMS),
    ),
    ShownEvents(
        "WorkloadDeployment on a cell",
        (
            reasons.SCALED,
            reasons.ROLLOUT_STARTED,
            reasons.INSTANCE_REPLACED,
            reasons.ROLLOUT_COMPLETED,
            reasons.PROJECT_PAUSED,
            reasons.PROJECT_RESUMED,
        ),
        (
            reasons.INSTANCE_FAILED_TO_CREATE,
            reasons.UNSUPPORTED_MANAGEMENT_POLICY,
            reasons.CITY_CODE_MISMATCH,
            reasons.AMBIGUOUS_LOCATION,
            reasons.NO_MATCHING_LOCATION,
            reasons.NETWORK_FAILED_TO_CREATE,
            reasons.DELETION_BLOCKED,
            reasons.PAUSE_FAILED,
            *_NO_AUTOSCALER,
        ),
    ),
    ShownEvents(
        "Instance on a cell",
        (reasons.QUOTA_GRANTED, reasons.REFERENCED_DATA_READY),
        (
            *_SOURCE,
            reasons.QUOTA_EXCEEDED,
            reasons.VALIDATION_FAILED,
            reasons.QUOTA_NO_BUDGET,
            reasons.QUOTA_BACKEND_UNAVAILABLE,
            reasons.QUOTA_PROJECT_NOT_FOUND,
            reasons.QUOTA_NAMESPACE_NOT_FOUND,
            reasons.QUOTA_MISCONFIGURED,
            reasons.QUOTA_PROJECT_ID_UNRESOLVABLE,
            reasons.UNKNOWN_INSTANCE_TYPE,
            reasons.DELETION_BLOCKED,
            reasons.QUOTA_CLAIM_LOST,
            reasons.QUOTA_CLAIM_ORPHANED,
            reasons.NETWORK_FAILED_TO_CREATE,
        ),
    ),
    ShownEvents(
        "Deployment of an operator",
        (),
        (
            reasons.WRITE_BACK_DELAYED,
            reasons.MASS_DELETE_REFUSED,
            reasons.QUOTA_ENFORCEMENT_DISABLED,
        ),
    ),
)
"""Events by what they are on (operations.md 7)."""

PASSED_ON: Final = (
    *_NO_AUTOSCALER[1:],
    *(reasons.TOO_MANY_REPLICAS, reasons.TOO_FEW_REPLICAS, reasons.DESIRED_WITHIN_RANGE),
)
"""Of Kubernetes' autoscaler: repeated in our conditions as it reports them."""
