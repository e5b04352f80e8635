"""Cache reads of a slot, and translation of the quota client's answers into `ClaimState`.

`plan` and `status` see only values made here, so they need neither a cache nor the client. A cache
that is incomplete gives no slot at all: an absent Instance would release its claim.

```
Instance in the cache                        ─► OccupiedSlot   its claim is reconciled
none, slot wanted (between two Instances)    ─► EmptySlot      its claim is kept
none, slot not wanted                        ─► EmptySlot      its claim is released
```
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Final, assert_never

from compute_api_types import labels, names, reasons
from compute_api_types.sizes import Size
from compute_api_types.template_hash import is_template_hash
from compute_cell_operator.autoscaling.demand import derive_desired, read_demand
from compute_cell_operator.instance_facts import (
    has_foreign_controller,
    read_denied_since,
    read_instance,
)
from compute_cell_operator.planes import DEPLOYMENT, INSTANCE, NAMESPACE
from compute_cell_operator.quota.claim import find_other_resource
from compute_cell_operator.quota.plan import is_slot_wanted
from compute_cell_operator.quota.project_ref import (
    BillingProject,
    ClaimSubject,
    InstanceRef,
    ProjectUnresolvable,
    derive_billing_project,
)
from compute_cell_operator.quota.result import (
    AdmissionRejected,
    BackendUnavailable,
    ClaimAbsent,
    ClaimDenied,
    ClaimGranted,
    ClaimHolder,
    ClaimInvalid,
    ClaimMismatched,
    ClaimPending,
    ClaimReleasing,
    ClaimState,
    ClaimUnlabelled,
    FailedStep,
    HeldByOtherCell,
    HeldByOtherService,
    NamespaceNotFound,
    ProjectNotFound,
    ProjectSuspended,
    Shortage,
)
from compute_cell_operator.quota.size import UnknownSize, derive_size
from compute_cell_operator.quota.status import is_denial
from compute_cell_operator.suspension import observe_suspension
from compute_operator_kit.cache.lister import Caches
from compute_operator_kit.core import objects
from compute_operator_kit.core.json import JsonObject, member_object, member_text
from compute_operator_kit.core.keys import ObjectKey, Uid
from compute_operator_kit.core.objects import OwnerReference, Snapshot, Unreadable
from compute_quota_client import (
    Absent,
    Allocation,
    Denied,
    Foreign,
    FoundClaim,
    Granted,
    Invalid,
    Mismatch,
    Operation,
    Pending,
    QuotaError,
    QuotaNamespaceNotFoundError,
    QuotaProjectNotFoundError,
    QuotaProjectSuspendedError,
    QuotaRejectedError,
    Releasing,
    Verdict,
)

DENIED: Final = "Denied"
_STEPS: Final[Mapping[Operation | None, FailedStep]] = MappingProxyType(
    {Operation.CREATE: "creating", Operation.ADOPT: "adopting"}
)

# --- the slot, from caches ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InstanceFacts:
    """The Instance in a slot, as far as its claim depends on it."""

    ref: InstanceRef
    size: Size | UnknownSize
    is_started: bool
    is_terminating: bool
    had_claim: bool  # a grant on a claim is stored for it
    denied_since: datetime | None  # a denial is stored for it
    owner: OwnerReference | None
    is_taken_over: bool = False  # another operator made it: its template hash is not of our form

    @property
    def uid(self) -> Uid:
        return self.ref.uid

    @property
    def requests(self) -> Mapping[str, int]:
        return self.size.requests


@dataclass(frozen=True, slots=True)
class OccupiedSlot:
    """A slot with an Instance; `billing` is None while its Namespace is not in the cache."""

    instance: InstanceFacts
    billing: BillingProject | ProjectUnresolvable | None
    is_suspended: bool = False  # its deployment is: no claim of it changes (suspension.md 4)


@dataclass(frozen=True, slots=True)
class EmptySlot:
    """A slot without an Instance in the cache."""

    billing: BillingProject | ProjectUnresolvable | None
    is_wanted: bool


def observe_slot(key: ObjectKey, caches: Caches) -> OccupiedSlot | EmptySlot | None:
    """The slot of this name; None where a cache is incomplete, or the Instance has a foreign
    controller.
    """
    instance = caches.lister(key.plane, INSTANCE).get(key.namespace, key.name)
    namespace = caches.lister(key.plane, NAMESPACE).get("", key.namespace)
    if isinstance(instance, Unreadable) or isinstance(namespace, Unreadable):
        return None
    labelled = namespace if isinstance(namespace, Snapshot) else None
    billing = derive_billing_project(labelled.metadata) if labelled is not None else None
    if isinstance(instance, Snapshot):
        if has_foreign_controller(instance.metadata):
            return None
        is_suspended = observe_suspension(instance, instance.read(), caches)
        return OccupiedSlot(read_instance_facts(instance), billing, is_suspended)
    desired = observe_desired(key, caches)
    if isinstance(desired, Unreadable):
        return None
    return EmptySlot(billing, is_wanted=is_wanted(key, desired))


def read_instance_facts(snapshot: Snapshot) -> InstanceFacts:
    body = snapshot.read()
    instance = read_instance(snapshot, body)
    quota = instance.quota
    denied_since = read_denied_since(instance.status.document) if is_denial(quota) else None
    return InstanceFacts(
        ref=InstanceRef(snapshot.key.namespace, snapshot.key.name, snapshot.metadata.uid),
        size=derive_size(member_object(body, "spec")),
        is_started=instance.is_started,
        is_terminating=snapshot.metadata.is_deleting,
        had_claim=quota is not None and quota.reason == reasons.QUOTA_AVAILABLE,
        denied_since=denied_since,
        owner=snapshot.metadata.controller,
        is_taken_over=_is_taken_over(body),
    )


def _is_taken_over(body: JsonObject) -> bool:
    controller = member_object(member_object(body, "spec"), "controller")
    recorded = member_text(controller, "templateHash")
    return bool(recorded) and not is_template_hash(recorded)


def derive_deployment_key(key: ObjectKey) -> ObjectKey | None:
    """The deployment of the slot with this name; None for a name that is no slot's."""
    parsed = names.parse_instance_name(key.name)
    return ObjectKey(key.plane, DEPLOYMENT, key.namespace, parsed[0]) if parsed else None


def observe_desired(key: ObjectKey, caches: Caches) -> int | Unreadable | None:
    """The number of slots that the deployment wants; None without a deployment."""
    owner = derive_deployment_key(key)
    if owner is None:
        return None
    deployment = caches.lister(key.plane, DEPLOYMENT).get(owner.namespace, owner.name)
    if isinstance(deployment, Unreadable):
        return deployment
    return read_desired(deployment, is_namespace_deleting=is_namespace_deleting(key, caches))


def is_namespace_deleting(key: ObjectKey, caches: Caches) -> bool:
    namespace = caches.lister(key.plane, NAMESPACE).get("", key.namespace)
    return isinstance(namespace, Snapshot) and namespace.metadata.is_deleting


def read_desired(
    deployment: Snapshot | objects.Absent, *, is_namespace_deleting: bool
) -> int | None:
    """`desired` of cell.md 3; None without a deployment.

    An autoscaled one may be without its number for a moment, in which no slot within its limit is
    given up: a claim that is released must be granted anew.
    """
    if not isinstance(deployment, Snapshot):
        return None
    if deployment.metadata.is_deleting or is_namespace_deleting:
        return 0
    body = deployment.read()
    demand = read_demand(member_object(body, "spec"))
    # Reported by this cell while it autoscales the deployment (autoscaling.md 1).
    if not member_text(member_object(body, "status"), "selector"):
        return max(0, demand.min_replicas)
    return derive_desired(demand, demand.max_replicas or 0)


def is_wanted(key: ObjectKey, desired: int | None) -> bool:
    parsed = names.parse_instance_name(key.name)
    return is_slot_wanted(parsed[1] if parsed else None, desired)


# --- the claim, from answers of the client --------------------------------------------------------


def derive_holder(
    subject: ClaimSubject, instance: InstanceRef, live_uid: Uid | objects.Absent | None
) -> ClaimHolder:
    """The holder of a claim with this subject, seen from the Instance in the claim's slot.

    In the Instance's own namespace it is that Instance or gone: two cannot have one name there.
    Elsewhere only a live read shows it; `live_uid` is None where none was made.
    """
    if not subject.uid:
        is_ours = subject.namespace == instance.namespace
        return ClaimHolder.UNRECORDED if is_ours else ClaimHolder.NONE
    if subject.namespace == instance.namespace:
        return ClaimHolder.SELF if subject.uid == instance.uid else ClaimHolder.GONE
    if live_uid is None:
        return ClaimHolder.UNKNOWN
    return ClaimHolder.LIVE if live_uid == subject.uid else ClaimHolder.GONE


def observe_claim(verdict: Verdict | Absent, holder: ClaimHolder) -> ClaimState:
    """The state of a claim that was compared with the desired one (`judge`)."""
    match verdict:
        case Absent():
            return ClaimAbsent()
        case Foreign(found=claim, owner=owner):
            cell = owner.get(labels.SOURCE_CLUSTER)
            if cell:
                return HeldByOtherCell(claim.namespace, claim.name, cell)
            return _observe_service(claim) or ClaimUnlabelled()
        case Releasing():
            return ClaimReleasing()
        case Mismatch(found=claim, fields=fields):
            is_same_size = set(fields) == {"subject"}
            return _observe_service(claim) or ClaimMismatched(holder, is_same_size)
        case _:
            return _observe_evaluation(verdict)


def _observe_service(claim: FoundClaim) -> HeldByOtherService | None:
    other = find_other_resource(claim)
    return HeldByOtherService(claim.namespace, claim.name, other) if other is not None else None


def _observe_evaluation(verdict: Granted | Pending | Invalid | Denied) -> ClaimState:
    match verdict:
        case Granted(message=message):
            return ClaimGranted(message)
        case Pending(since=since):
            return ClaimPending(since)
        case Invalid(message=message):
            return ClaimInvalid(message)
        case Denied(message=message, allocations=allocations):
            return ClaimDenied(message, _derive_shortages(allocations))
        case _:
            assert_never(verdict)


def _derive_shortages(allocations: tuple[Allocation, ...]) -> tuple[Shortage, ...]:
    return tuple(
        Shortage(one.resource_type, one.message) for one in allocations if one.status == DENIED
    )


def observe_failure(error: QuotaError, billing: BillingProject) -> ClaimState:
    """The state after a failed request; never a grant (quota.md B4)."""
    step = _STEPS.get(error.operation, "getting")
    match error:
        case QuotaNamespaceNotFoundError():
            return NamespaceNotFound(billing.project, billing.namespace)
        case QuotaProjectNotFoundError():
            return ProjectNotFound(billing.project)
        case QuotaProjectSuspendedError():
            return ProjectSuspended()
        # A refused read is about rights and not about the claim: only writes meet admission.
        case QuotaRejectedError() if step != "getting":
            return AdmissionRejected(billing.project, str(error))
        case _:
            return BackendUnavailable(billing.project, step, str(error))
