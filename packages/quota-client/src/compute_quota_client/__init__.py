"""Claims on Milo quota, as a library for any Datum service.

    quota = QuotaClient.from_kubeconfig("/etc/quota/kubeconfig")
    match await quota.project("acme").claim(wanted):
        case Granted(): ...

Verdicts are values, errors are exceptions (`_exceptions` draws the tree), and an error never
grants. Async only. All modules but `testing` are private; the public names are in `__all__`.
"""

from __future__ import annotations

from compute_quota_client._backoff import DenialBackoff
from compute_quota_client._client import QuotaClient
from compute_quota_client._config import QuotaSettings, own_version
from compute_quota_client._dependencies import Surroundings
from compute_quota_client._exceptions import (
    Cause,
    Operation,
    QuotaAuthError,
    QuotaError,
    QuotaNamespaceNotFoundError,
    QuotaProjectNotFoundError,
    QuotaProjectSuspendedError,
    QuotaProtocolError,
    QuotaRejectedError,
    QuotaThrottledError,
    QuotaUnavailableError,
    QuotaUsageError,
)
from compute_quota_client._judge import judge
from compute_quota_client._models import (
    Allocation,
    Claim,
    FoundClaim,
    GrantedCondition,
    ObjectRef,
    ResourceRequest,
    project_ref,
)
from compute_quota_client._project import ProjectQuota
from compute_quota_client._telemetry import Outcome, Telemetry
from compute_quota_client._tracker import ClaimTracker, Following
from compute_quota_client._verdicts import (
    Absent,
    Changed,
    ClaimKey,
    Denied,
    Foreign,
    Gone,
    Granted,
    Invalid,
    Mismatch,
    NotOurs,
    Pending,
    Released,
    Releasing,
    Synced,
    Verdict,
    WatchEvent,
)

__all__ = [
    "Absent",
    "Allocation",
    "Cause",
    "Changed",
    "Claim",
    "ClaimKey",
    "ClaimTracker",
    "DenialBackoff",
    "Denied",
    "Following",
    "Foreign",
    "FoundClaim",
    "Gone",
    "Granted",
    "GrantedCondition",
    "Invalid",
    "Mismatch",
    "NotOurs",
    "ObjectRef",
    "Operation",
    "Outcome",
    "Pending",
    "ProjectQuota",
    "QuotaAuthError",
    "QuotaClient",
    "QuotaError",
    "QuotaNamespaceNotFoundError",
    "QuotaProjectNotFoundError",
    "QuotaProjectSuspendedError",
    "QuotaProtocolError",
    "QuotaRejectedError",
    "QuotaSettings",
    "QuotaThrottledError",
    "QuotaUnavailableError",
    "QuotaUsageError",
    "Released",
    "Releasing",
    "ResourceRequest",
    "Surroundings",
    "Synced",
    "Telemetry",
    "Verdict",
    "WatchEvent",
    "judge",
    "project_ref",
]

__version__ = own_version()
del own_version
