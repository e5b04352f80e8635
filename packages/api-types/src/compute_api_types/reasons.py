"""Every reason that is written or read: the word, what it means, what the reader can do.

The same constant is used in condition, event, log line, metric label and test, so that no two of
them differ. `docs/reference/conditions.md` is generated from this module. Internal reasons are for
logs and plans; no condition of a user's object carries one. Which of several reasons wins is
decided in `conditions.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class Meaning:
    """A reason, what it means and what its reader can do."""

    reason: str
    means: str
    act: str
    internal: bool = False


_meanings: dict[str, Meaning] = {}


def _define(reason: str, means: str, act: str) -> str:
    _meanings[reason] = Meaning(reason, means, act)
    return reason


def _define_internal(reason: str, means: str) -> str:
    _meanings[reason] = Meaning(
        reason, means, "Nothing for a user; platform operators read logs.", True
    )
    return reason


_WAIT: Final = "Wait; it goes on by itself."
_NOTHING: Final = "Nothing; all is well."
_PLATFORM: Final = "Tell the platform operators; nothing in the Workload is wrong."

# --- Instance: what the provider reports (api.md 8.2) ---------------------------------------------

PENDING: Final = _define("Pending", "Nobody has reported anything yet.", _WAIT)
PENDING_PROGRAMMING: Final = _define(
    "PendingProgramming", "The provider has not begun to realise the instance.", _WAIT
)
PROGRAMMING_IN_PROGRESS: Final = _define(
    "ProgrammingInProgress", "The provider is realising the instance.", _WAIT
)
PROGRAMMED: Final = _define("Programmed", "The provider has realised the instance.", _NOTHING)
PROVISIONING: Final = _define("Provisioning", "The instance is coming up.", _WAIT)
STARTING: Final = _define("Starting", "The instance is starting.", _WAIT)
AVAILABLE: Final = _define("Available", "The instance is serving.", _NOTHING)
IMAGE_UNAVAILABLE: Final = _define(
    "ImageUnavailable",
    "The image cannot be pulled.",
    "Correct the image reference or the pull secret in the template.",
)
INSTANCE_CRASHING: Final = _define(
    "InstanceCrashing",
    "The instance ends again and again shortly after it started.",
    "Look at what the program does at its start; correct image, command or configuration.",
)
CONFIGURATION_ERROR: Final = _define(
    "ConfigurationError",
    "The runtime refused the configuration of the instance.",
    "Correct the part of the template that the message names.",
)
NODE_UNREACHABLE: Final = _define(
    "NodeUnreachable",
    "The node of the instance does not answer; the instance may still run.",
    "Wait; ask the operator of the cell where it lasts.",
)
STOPPING: Final = _define("Stopping", "The instance is going down.", _WAIT)
STOPPED: Final = _define("Stopped", "The instance has stopped.", "Look at why the program ended.")
FAILED: Final = _define("Failed", "The instance has failed.", "Look at why the program failed.")

# --- Instance: quota (api.md 8.2) -----------------------------------------------------------------

PENDING_EVALUATION: Final = _define(
    "PendingEvaluation", "Quota for the instance has been asked for; no verdict yet.", _WAIT
)
QUOTA_AVAILABLE: Final = _define(
    "QuotaAvailable",
    "Quota is granted to the instance, or to its predecessor in the slot.",
    _NOTHING,
)
QUOTA_DISABLED: Final = _define(
    "QuotaDisabled", "Quota is switched off in the configuration of the cell.", _NOTHING
)
QUOTA_EXCEEDED: Final = _define(
    "QuotaExceeded",
    "The project's quota does not cover the instance.",
    "Delete instances, ask for fewer, or ask your account administrator for more quota.",
)
VALIDATION_FAILED: Final = _define(
    "ValidationFailed", "The quota service holds the claim of the instance for invalid.", _PLATFORM
)
QUOTA_NO_BUDGET: Final = _define(
    "QuotaNoBudget", "The quota service has not evaluated the claim for a while.", _PLATFORM
)
QUOTA_BACKEND_UNAVAILABLE: Final = _define(
    "QuotaBackendUnavailable",
    "The quota service cannot be reached; nothing new starts until it can.",
    "Wait; what runs goes on running.",
)
QUOTA_PROJECT_NOT_FOUND: Final = _define(
    "QuotaProjectNotFound", "The project does not exist where quota is claimed.", _PLATFORM
)
QUOTA_NAMESPACE_NOT_FOUND: Final = _define(
    "QuotaNamespaceNotFound",
    "The namespace of the Workload does not exist where quota is claimed.",
    "Check that the namespace still exists; otherwise tell the platform operators.",
)
QUOTA_MISCONFIGURED: Final = _define(
    "QuotaMisconfigured",
    "The quota service refuses the claim, or another cell holds a claim of that name.",
    _PLATFORM,
)
QUOTA_PROJECT_ID_UNRESOLVABLE: Final = _define(
    "QuotaProjectIDUnresolvable",
    "The cell cannot tell, or cannot prove, which project the instance belongs to.",
    _PLATFORM,
)
UNKNOWN_INSTANCE_TYPE: Final = _define(
    "UnknownInstanceType",
    "The size of the instance cannot be determined, so no quota is claimed and nothing starts.",
    "Use an instance type of the catalogue.",
)

# --- Instance: Ready (api.md 8.2) -----------------------------------------------------------------

TERMINATING: Final = _define("Terminating", "The object is being deleted.", _WAIT)
DELETION_BLOCKED: Final = _define(
    "DeletionBlocked",
    "The object is being deleted, and a finalizer of another owner holds it.",
    "Look for the owner of the finalizer that the message names; it has to remove it.",
)
SUSPENDED: Final = _define(
    "Suspended",
    "The project is suspended: nothing of it runs, and instances, names and quota are kept.",
    "Ask the platform operators why; it starts again by itself once the project resumes.",
)
SCHEDULING_GATES_PRESENT: Final = _define(
    "SchedulingGatesPresent", "The instance waits for the gates that the message lists.", _WAIT
)
PENDING_QUOTA: Final = _define(
    "PendingQuota",
    "The instance is held because no quota is granted to it.",
    "Read the message; with QuotaExceeded ask for less or for more quota.",
)

# --- network (api.md 8.2, 8.3) --------------------------------------------------------------------

NETWORK_FAILED_TO_CREATE: Final = _define(
    "NetworkFailedToCreate",
    "The network could not be set up in the city.",
    "Read the message; correct the Network it names or tell the platform operators.",
)
NETWORK_NOT_FOUND: Final = _define(
    "NetworkNotFound",
    "A Network that the Workload refers to does not exist.",
    "Create the Network or correct its name in the template.",
)
NETWORK_PROVISIONING: Final = _define(
    "NetworkProvisioning", "The network is being set up in the city.", _WAIT
)

# --- WorkloadDeployment (api.md 8.3) --------------------------------------------------------------

STABLE_INSTANCE_FOUND: Final = _define(
    "StableInstanceFound", "At least one instance is ready.", _NOTHING
)
REPLICAS_AVAILABLE: Final = _define(
    "ReplicasAvailable", "All replicas run the current template and are ready.", _NOTHING
)
INSTANCES_PROVISIONING: Final = _define(
    "InstancesProvisioning", "Instances are being brought up or replaced.", _WAIT
)
QUOTA_NOT_GRANTED: Final = _define(
    "QuotaNotGranted",
    "At least one instance is held because no quota is granted to it.",
    "Read the message; ask for less or for more quota.",
)
NO_MATCHING_LOCATION: Final = _define(
    "NoMatchingLocation",
    "No location or no cell serves the city.",
    "Choose another city, or wait until the city is served.",
)
INSTANCE_FAILED_TO_CREATE: Final = _define(
    "InstanceFailedToCreate",
    "The cell refused to create an instance for good.",
    "Read the message; correct the template or tell the platform operators.",
)
CITY_CODE_MISMATCH: Final = _define(
    "CityCodeMismatch", "The deployment was delivered to a cell of another city.", _PLATFORM
)

# --- a dark city: Instance, WorkloadDeployment, Workload (dark-sites.md 1) ------------------------

CELL_UNREACHABLE: Final = _define(
    "CellUnreachable",
    "The city has not been heard of; what runs there may still run.",
    "Wait; nothing is deleted, moved or restarted, and the state returns with the city.",
)

CELL_REACHABLE: Final = _define(
    "CellReachable", "The city is heard of again.", "Nothing; what is shown is what it reports."
)

# --- hub WorkloadDeployment, never in a project (api.md 8.3) --------------------------------------

ALL_CELLS_REPORT: Final = _define(
    "AllCellsReport", "Every cell that has the deployment reports on it.", _NOTHING
)
CELLS_SILENT: Final = _define(
    "CellsSilent", "A cell that has the deployment does not report on it.", _PLATFORM
)
NO_CELL_PLACED: Final = _define("NoCellPlaced", "No cell has the deployment.", _PLATFORM)

# --- Workload and its placements (api.md 8.4) -----------------------------------------------------

AVAILABLE_DEPLOYMENT_FOUND: Final = _define(
    "AvailableDeploymentFound", "At least one deployment of the placement is available.", _NOTHING
)
AVAILABLE_PLACEMENT_FOUND: Final = _define(
    "AvailablePlacementFound", "At least one placement is available.", _NOTHING
)
NO_AVAILABLE_DEPLOYMENTS: Final = _define(
    "NoAvailableDeployments", "No deployment of the placement is available yet.", _WAIT
)
NO_AVAILABLE_PLACEMENTS: Final = _define(
    "NoAvailablePlacements", "No placement is available yet.", _WAIT
)
NAME_COLLISION: Final = _define(
    "NameCollision",
    "Both names the deployment could have belong to another Workload.",
    "Rename the placement or the Workload.",
)
PLACEMENTS_READY: Final = _define(
    "PlacementsReady", "Everything the Workload asks for runs on its current spec.", _NOTHING
)

UNKNOWN: Final = _define(
    "Unknown", "A cell gave a reason that is not one; it is not passed on.", _PLATFORM
)

# --- autoscaling (autoscaling.md 4) ---------------------------------------------------------------

AUTOSCALER_READY: Final = _define(
    "AutoscalerReady", "The autoscaler reads its metrics and can change the number.", _NOTHING
)
AWAITING_AUTOSCALER: Final = _define(
    "AwaitingAutoscaler", "The autoscaler has not evaluated the present settings yet.", _WAIT
)
AUTOSCALER_RECONCILE_FAILED: Final = _define(
    "AutoscalerReconcileFailed",
    "The cell cannot set up the autoscaler; the number of instances stands.",
    "Correct the scale settings that the message names; otherwise tell the platform operators.",
)
AUTOSCALERS_READY: Final = _define(
    "AutoscalersReady", "The autoscalers of all cities work.", _NOTHING
)
WITHIN_SCALING_LIMITS: Final = _define(
    "WithinScalingLimits", "No limit keeps an autoscaler from the wanted number.", _NOTHING
)
FAILED_GET_RESOURCE_METRIC: Final = _define(
    "FailedGetResourceMetric",
    "The autoscaler cannot read the metrics of the instances; the number of instances stands.",
    _PLATFORM,
)
FAILED_GET_SCALE: Final = _define(
    "FailedGetScale", "The autoscaler cannot read the deployment.", _PLATFORM
)
FAILED_UPDATE_SCALE: Final = _define(
    "FailedUpdateScale", "The autoscaler cannot change the number of instances.", _PLATFORM
)
INVALID_SELECTOR: Final = _define(
    "InvalidSelector", "The autoscaler cannot find the instances of the deployment.", _PLATFORM
)
SCALING_DISABLED: Final = _define(
    "ScalingDisabled", "The autoscaler rests, because it found the number 0.", _WAIT
)
TOO_MANY_REPLICAS: Final = _define(
    "TooManyReplicas",
    "The load asks for more instances than maxReplicas allows.",
    "Raise maxReplicas, or use larger instances.",
)
TOO_FEW_REPLICAS: Final = _define(
    "TooFewReplicas", "The load asks for fewer instances than minReplicas.", _NOTHING
)
DESIRED_WITHIN_RANGE: Final = _define(
    "DesiredWithinRange", "The number that the load asks for is allowed.", _NOTHING
)

# --- referenced data (referenced-data.md 4, 6) ----------------------------------------------------

READY: Final = _define("Ready", "All ConfigMaps and Secrets that are needed are there.", _NOTHING)
REFERENCED_DATA_READY: Final = _define(
    "ReferencedDataReady", "The ConfigMaps and Secrets of an instance are there.", _NOTHING
)
SOURCE_NOT_FOUND: Final = _define(
    "SourceNotFound", "A ConfigMap or Secret does not exist.", "Create it or correct the reference."
)
SOURCE_UNAUTHORIZED: Final = _define(
    "SourceUnauthorized", "A ConfigMap or Secret may not be read.", "Grant the right to read it."
)
SOURCE_TOO_LARGE: Final = _define(
    "SourceTooLarge", "A ConfigMap or Secret is too large to deliver.", "Make it smaller."
)
SOURCE_NAME_TOO_LONG: Final = _define(
    "SourceNameTooLong", "The name of a ConfigMap or Secret is too long.", "Use a shorter name."
)
SOURCE_NAME_TAKEN: Final = _define(
    "SourceNameTaken",
    "Another object has the name of a ConfigMap or Secret where it must be delivered.",
    "Rename it, or ask the platform operators.",
)
SOURCE_NOT_SUPPORTED: Final = _define(
    "SourceNotSupported",
    "A ConfigMap or Secret of this name or type cannot be delivered.",
    "Use another name or type.",
)
REFERENCED_DATA_NOT_READY: Final = _define(
    "ReferencedDataNotReady", "Referenced data has not arrived in the cell.", _WAIT
)
AWAITING_PROPAGATION: Final = _define(
    "AwaitingPropagation", "Referenced data is on its way to the cell.", _WAIT
)
RESOLVING: Final = _define("Resolving", "References to data are being resolved.", _WAIT)

# --- events of the management operator (management.md 15) -----------------------------------------

DEPLOYMENT_CREATED: Final = _define(
    "DeploymentCreated", "A deployment for a city was created.", _NOTHING
)
DEPLOYMENT_DELETED: Final = _define(
    "DeploymentDeleted", "A deployment that the Workload no longer asks for was deleted.", _NOTHING
)
DEPLOYMENT_REJECTED: Final = _define(
    "DeploymentRejected",
    "The API server refused a deployment of the Workload.",
    "Read the message; correct the Workload.",
)
FEDERATED: Final = _define("Federated", "The deployment is on its way to its city.", _NOTHING)
REROUTED: Final = _define(
    "Rerouted", "The city of the deployment changed, so it is delivered anew.", _NOTHING
)
FEDERATION_REFUSED: Final = _define(
    "FederationRefused",
    "The deployment cannot be delivered: its city code is no legal label, a map key of its "
    "template cannot be used with autoscaling, or the hub refuses it.",
    "Correct what the message names; otherwise tell the platform operators.",
)
FEDERATION_NAMESPACE_UNRESOLVED: Final = _define(
    "FederationNamespaceUnresolved",
    "The deployment is being deleted and its place on the hub cannot be determined.",
    _PLATFORM,
)
HUB_IDENTITY_CONFLICT: Final = _define(
    "HubIdentityConflict", "The place of this namespace on the hub names somebody else.", _PLATFORM
)
FEDERATION_RELEASE_DELAYED: Final = _define(
    "FederationReleaseDelayed", "Removing the deployment takes longer than five minutes.", _PLATFORM
)
POLICY_REPAIRED: Final = _define(
    "PolicyRepaired",
    "A propagation policy was changed by somebody and has been put right.",
    _NOTHING,
)
AMBIGUOUS_CITY: Final = _define(
    "AmbiguousCity",
    "More than one cluster carries the city code, so each runs every replica.",
    "Decide which cluster serves the city and take the label off the others.",
)
MISPLACED_CLAIM_REMOVED: Final = _define(
    "MisplacedClaimRemoved",
    "A quota claim that named a cell of another city took the place of a slot and was removed.",
    "Find out which credential wrote it; a cell that does so is compromised or misconfigured.",
)
UNBACKED_CLAIMS: Final = _define(
    "UnbackedClaims",
    "Quota claims name a cell, and no deployment in the city of that cell backs them.",
    "Look whether the cell is away; else find out which credential wrote them.",
)
MASS_DELETE_REFUSED: Final = _define(
    "MassDeleteRefused",
    "A removal of unusually many objects is held until a second look agrees.",
    "Check whether the objects are really gone before the second look.",
)
CACHE_BUDGET_EXCEEDED: Final = _define(
    "CacheBudgetExceeded",
    "The compute objects of the project are more than the platform keeps at hand for one project.",
    "Delete Workloads that are not needed, or make their templates smaller.",
)

# --- events of the cell operator (cell.md 14) -----------------------------------------------------

SCALED: Final = _define("Scaled", "The number of wanted replicas changed.", _NOTHING)
ROLLOUT_STARTED: Final = _define(
    "RolloutStarted", "Instances are being replaced to run a new template.", _NOTHING
)
INSTANCE_REPLACED: Final = _define(
    "InstanceReplaced", "An instance was deleted to be made anew in its slot.", _NOTHING
)
ROLLOUT_COMPLETED: Final = _define(
    "RolloutCompleted", "All replicas run the new template.", _NOTHING
)
PROJECT_PAUSED: Final = _define(
    "ProjectPaused", "The project was suspended, and the instances with it.", _NOTHING
)
PROJECT_RESUMED: Final = _define(
    "ProjectResumed", "The project resumed, and its instances start again.", _WAIT
)
PAUSE_FAILED: Final = _define(
    "PauseFailed",
    "An instance could not be shown as suspended, or its provider shows something else.",
    "Look whether the provider still runs the instance that the message names.",
)
UNSUPPORTED_MANAGEMENT_POLICY: Final = _define(
    "UnsupportedManagementPolicy",
    "The instance management policy is unknown; OrderedReady is used.",
    "Set instanceManagementPolicy to OrderedReady.",
)
AMBIGUOUS_LOCATION: Final = _define(
    "AmbiguousLocation",
    "Several Locations carry the city code; the first by name is used.",
    "Leave the city code on one Location.",
)
QUOTA_GRANTED: Final = _define(
    "QuotaGranted", "Quota is granted and the instance may start.", _NOTHING
)
QUOTA_CLAIM_LOST: Final = _define(
    "QuotaClaimLost",
    "The quota claim of a running instance is gone and will be made again.",
    "Nothing; the instance goes on running.",
)
QUOTA_CLAIM_ORPHANED: Final = _define(
    "QuotaClaimOrphaned",
    "A quota claim could not be released because its project cannot be determined.",
    _PLATFORM,
)
WRITE_BACK_DELAYED: Final = _define(
    "WriteBackDelayed",
    "The hub has been away for five minutes; instances run on, the view of them is old.",
    "Bring the hub back.",
)
QUOTA_ENFORCEMENT_DISABLED: Final = _define(
    "QuotaEnforcementDisabled",
    "The cell was started with quota switched off.",
    "Set quota.mode to enforce unless this is meant.",
)

# --- quarantine of hub Instances (api.md 10.2, management.md 8.5) ---------------------------------


class QuarantineReason(StrEnum):
    """Why a hub Instance is not projected: the value of the annotation and of the metric label."""

    UNIDENTIFIABLE = "unidentifiable"
    MISSING_NAMESPACE_LABEL = "missing_namespace_label"
    MISSING_DEPLOYMENT_NAME = "missing_deployment_name"
    IDENTITY_MISMATCH = "identity_mismatch"
    DEPLOYMENT_ABSENT = "deployment_absent"
    CELL_UNKNOWN = "cell_unknown"
    CELL_CITY_MISMATCH = "cell_city_mismatch"
    NAME_TAKEN = "name_taken"
    OVERSIZED = "oversized"
    NAME_MISMATCH = "name_mismatch"
    BEYOND_SCALE = "beyond_scale"

    @property
    def event(self) -> str:
        """The reason of the event: `cell_city_mismatch` becomes `QuarantinedCellCityMismatch`."""
        return "Quarantined" + "".join(word.capitalize() for word in self.value.split("_"))


QUARANTINED_UNIDENTIFIABLE: Final = _define(
    "QuarantinedUnidentifiable", "The project label is missing or cannot be decoded.", _PLATFORM
)
QUARANTINED_MISSING_NAMESPACE_LABEL: Final = _define(
    "QuarantinedMissingNamespaceLabel", "The label of the project namespace is missing.", _PLATFORM
)
QUARANTINED_MISSING_DEPLOYMENT_NAME: Final = _define(
    "QuarantinedMissingDeploymentName", "The label of the deployment is missing.", _PLATFORM
)
QUARANTINED_IDENTITY_MISMATCH: Final = _define(
    "QuarantinedIdentityMismatch",
    "The labels name a project that the place does not prove.",
    _PLATFORM,
)
QUARANTINED_DEPLOYMENT_ABSENT: Final = _define(
    "QuarantinedDeploymentAbsent",
    "The project has had no such deployment for 15 minutes.",
    _PLATFORM,
)
QUARANTINED_CELL_UNKNOWN: Final = _define(
    "QuarantinedCellUnknown", "The label of the cell is missing.", _PLATFORM
)
QUARANTINED_CELL_CITY_MISMATCH: Final = _define(
    "QuarantinedCellCityMismatch", "The cell serves another city than the deployment's.", _PLATFORM
)
QUARANTINED_NAME_TAKEN: Final = _define(
    "QuarantinedNameTaken", "The project has an Instance of that name that is not ours.", _PLATFORM
)
QUARANTINED_OVERSIZED: Final = _define(
    "QuarantinedOversized", "Spec and status together are larger than 256 KiB.", _PLATFORM
)
QUARANTINED_NAME_MISMATCH: Final = _define(
    "QuarantinedNameMismatch", "The name is not that of a slot of the deployment.", _PLATFORM
)
QUARANTINED_BEYOND_SCALE: Final = _define(
    "QuarantinedBeyondScale",
    "The ordinal is beyond the scale of the deployment and a margin of 10.",
    _PLATFORM,
)

# --- internal: errors and steps of a plan -----------------------------------------------

PLANE_UNREADABLE: Final = _define_internal(
    "PlaneUnreadable", "A plane cannot be read; nothing is changed."
)
PLANE_GONE: Final = _define_internal("PlaneGone", "The plane was disengaged while we worked.")
CACHE_NOT_SYNCED: Final = _define_internal("CacheNotSynced", "A cache has not seen the plane yet.")
CONFLICT: Final = _define_internal("Conflict", "Somebody wrote first; the object is read again.")
FORBIDDEN: Final = _define_internal("Forbidden", "The server refused us a right we need.")
REFUSED: Final = _define_internal("Refused", "The server refused what we sent, for good.")

FINALIZER_MISSING: Final = _define_internal(
    "FinalizerMissing", "Our finalizer is added before anything else."
)
FINALIZER_DONE: Final = _define_internal("FinalizerDone", "What the finalizer guarded is gone.")
RETIRED_FINALIZER: Final = _define_internal(
    "RetiredFinalizer", "A finalizer of an older operator is removed."
)
ABSENT: Final = _define_internal("Absent", "The wanted object does not exist.")
DRIFTED: Final = _define_internal(
    "Drifted", "The object differs from what is wanted in fields we own."
)
NEED_CHANGED: Final = _define_internal(
    "NeedChanged", "Deployments need more of the object than before, or less."
)
NOT_WANTED: Final = _define_internal("NotWanted", "Nobody asks for the object any more.")
NOT_FEDERATED: Final = _define_internal("NotFederated", "The deployment is not on the hub yet.")
OWNER_ABSENT: Final = _define_internal("OwnerAbsent", "The owner the copy needs does not exist.")
POLICY_ABSENT: Final = _define_internal("PolicyAbsent", "No live policy for the city exists yet.")
STILL_TERMINATING: Final = _define_internal(
    "StillTerminating", "The object is going and not gone yet."
)
STATUS_CHANGED: Final = _define_internal("StatusChanged", "The status differs from what is stored.")
BINDING_LEFT_OVER: Final = _define_internal(
    "BindingLeftOver", "Karmada has not removed the binding of the copy before yet."
)
POLICY_STILL_THERE: Final = _define_internal(
    "PolicyStillThere", "A policy that nobody needs any more is not gone yet."
)
CELL_REPORT_AWAITED: Final = _define_internal(
    "CellReportAwaited", "No cell has reported on the deployment yet."
)
ORPHANED: Final = _define_internal("Orphaned", "A copy on the hub has no root in the project.")
REPLACED: Final = _define_internal("Replaced", "The name belongs to another instance now.")
NOT_ENGAGED: Final = _define_internal("NotEngaged", "The project is not engaged.")
IDENTITY_INCOMPLETE: Final = _define_internal(
    "IdentityIncomplete", "The hub namespace does not say whose it is."
)
DEPLOYMENT_MISSING: Final = _define_internal(
    "DeploymentMissing", "The project does not have the deployment of an Instance."
)
CELL_MISSING: Final = _define_internal(
    "CellMissing", "The hub does not know the cell of an Instance."
)
NUMBER_ABSENT: Final = _define_internal(
    "NumberAbsent", "An autoscaled deployment has no number for its autoscaler to start from."
)
AUTOSCALER_MISSING: Final = _define_internal(
    "AutoscalerMissing", "An autoscaled deployment has no autoscaler."
)
NOT_AUTOSCALED: Final = _define_internal(
    "NotAutoscaled", "A deployment without autoscaling has an autoscaler."
)
SLOT_MISSING: Final = _define_internal("SlotMissing", "A slot has no Instance.")
STALE_TEMPLATE: Final = _define_internal(
    "StaleTemplate", "An Instance does not run the current template."
)
SURPLUS: Final = _define_internal("Surplus", "An Instance is above the wanted number.")
NETWORK_READY: Final = _define_internal("NetworkReady", "The network is ready, so its gate goes.")
NETWORKING_OFF: Final = _define_internal("NetworkingOff", "Networking is off, so its gate goes.")
REFERENCED_DATA_OFF: Final = _define_internal(
    "ReferencedDataOff", "Instances do not wait for referenced data, so its gate goes."
)


MEANINGS: Final[Mapping[str, Meaning]] = MappingProxyType(_meanings)
"""Every reason of this module by its word."""
