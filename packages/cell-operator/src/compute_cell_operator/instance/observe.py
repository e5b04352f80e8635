"""Cache reads of one Instance, its quota result and its network's refusal, at one moment.

Objects may have bypassed admission, so a member of a wrong type counts as absent. No plane is asked
here: the quota result is the last one that the quota controller left.
"""

from __future__ import annotations

from dataclasses import dataclass

from compute_cell_operator.conditions import ReportedCondition
from compute_cell_operator.instance_facts import (
    InstanceState,
    has_foreign_controller,
    read_instance,
)
from compute_cell_operator.network.observe import observe_refusal
from compute_cell_operator.network.state import NetworkingState
from compute_cell_operator.planes import INSTANCE, NAMESPACE
from compute_cell_operator.quota.project_ref import (
    BillingProject,
    ProjectUnresolvable,
    derive_billing_project,
)
from compute_cell_operator.quota.result import (
    ClaimState,
    QuotaFacts,
    QuotaResults,
    derive_claim_state,
)
from compute_cell_operator.quota.size import derive_size
from compute_cell_operator.referenced_data.judgement import DataMode, DataVerdict
from compute_cell_operator.referenced_data.observe import observe_data_of
from compute_cell_operator.suspension import observe_suspension
from compute_operator_kit.cache.store import Caches
from compute_operator_kit.core.json import member_object
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import Snapshot


@dataclass(frozen=True, slots=True)
class ObservedInstance:
    """One Instance at one moment, with what others know of it."""

    instance: InstanceState
    quota_result: ClaimState  # of this UID and size; a predecessor's result is none
    refusal: ReportedCondition | None = None  # of its network; None also where it is unreadable
    is_suspended: bool = False  # its deployment is (suspension.md 4)
    data: DataVerdict | None = None  # of an Instance behind the gate; None where it is not judged
    is_data_awaited: bool = False  # False: a gate from before the switch is removed


@dataclass(frozen=True, slots=True)
class InstanceContext:
    """Inputs that are in no cache: the cell's configuration and the quota results."""

    quota_results: QuotaResults
    is_quota_enforced: bool
    networking: NetworkingState
    data: DataMode = DataMode.OFF


def observe(key: ObjectKey, caches: Caches, context: InstanceContext) -> ObservedInstance | None:
    """None where the Instance is absent, has a foreign controller, or its cache is incomplete."""
    snapshot = caches.lister(key.plane, INSTANCE).get(key.namespace, key.name)
    if not isinstance(snapshot, Snapshot) or has_foreign_controller(snapshot.metadata):
        return None
    body = snapshot.read()  # shared with other readers: must not be changed
    facts = QuotaFacts(
        is_enforced=context.is_quota_enforced,
        size=derive_size(member_object(body, "spec")),
        billing_project=_observe_billing_project(key, caches),
        result=context.quota_results.result(key),
    )
    return ObservedInstance(
        read_instance(snapshot, body),
        derive_claim_state(snapshot.metadata.uid, facts),
        _observe_refusal(snapshot, caches, context.networking),
        is_suspended=observe_suspension(snapshot, body, caches),
        data=observe_data_of(snapshot, body, caches, context.data),
        is_data_awaited=context.data is not DataMode.OFF,
    )


def _observe_billing_project(
    key: ObjectKey, caches: Caches
) -> BillingProject | ProjectUnresolvable | None:
    namespace = caches.lister(key.plane, NAMESPACE).get("", key.namespace)
    return derive_billing_project(namespace.metadata) if isinstance(namespace, Snapshot) else None


def _observe_refusal(
    instance: Snapshot, caches: Caches, networking: NetworkingState
) -> ReportedCondition | None:
    """The refusal of its deployment's network; none without a deployment or networking."""
    owner = instance.metadata.controller
    if owner is None or networking is not NetworkingState.ON:
        return None
    return observe_refusal(owner.uid, caches, instance.key.plane)
