"""Conditions `AutoscalingReady` and `AutoscalingLimited` of a deployment. Pure (autoscaling.md 4).

They repeat what the autoscaler reports of itself, and why there is none. A report about earlier
settings counts as none: it would show an edit as done before it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from compute_api_types import conditions, reasons
from compute_api_types.conditions import ConditionStatus, Statement
from compute_api_types.neighbours import autoscaling as kubernetes
from compute_cell_operator.autoscaling.demand import find_fault
from compute_cell_operator.autoscaling.observe import (
    AutoscalerReport,
    ObservedAutoscaling,
    ObservedScaling,
)
from compute_cell_operator.conditions import ReportedCondition
from compute_cell_operator.planes import AUTOSCALER
from compute_operator_kit.core.errors import ReconcileError, RejectedError
from compute_operator_kit.core.objects import Absent
from compute_operator_kit.intents.outcomes import Applied

SWITCHED_OFF: Final = "autoscaling is switched off in this cell"
AWAITING: Final = "Waiting for the autoscaler to evaluate the current scaling settings"
AWAITING_LIMITS: Final = "Waiting for the autoscaler to report scaling limits"
WORKS: Final = "The autoscaler can evaluate and apply scaling decisions"
RESTS: Final = "Autoscaling rests while the project is suspended"
_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_LONGEST_REASON: Final = 128


def state_scaling(
    scaling: ObservedScaling, generation: int, *, is_suspended: bool
) -> tuple[Statement, ...] | None:
    """Both conditions; none where the deployment is not autoscaled; None where nothing is known and
    the stored ones stand.
    """
    if not scaling.demand.is_autoscaled:
        return ()
    if scaling.is_on and not scaling.is_known and not is_suspended:
        return None
    status, reason, message = _ready(scaling, is_suspended=is_suspended)
    ready = Statement(conditions.AUTOSCALING_READY, status, reason, message, generation)
    status, reason, message = _limited(scaling.report)
    return ready, Statement(conditions.AUTOSCALING_LIMITED, status, reason, message, generation)


def _ready(scaling: ObservedScaling, *, is_suspended: bool) -> tuple[ConditionStatus, str, str]:
    if is_suspended:
        return "Unknown", reasons.SUSPENDED, RESTS
    failure = find_fault(scaling.demand) or scaling.failure
    if not scaling.is_on:
        failure = SWITCHED_OFF
    if failure:
        return "False", reasons.AUTOSCALER_RECONCILE_FAILED, failure
    reported = [_find(scaling.report, one) for one in _OF_READY]
    for condition in reported:
        if condition is not None and condition.status == "False":
            return "False", _clean(condition.reason), condition.message
    if all(condition is not None and condition.is_true for condition in reported):
        return "True", reasons.AUTOSCALER_READY, WORKS
    return "Unknown", reasons.AWAITING_AUTOSCALER, AWAITING


_OF_READY: Final = (kubernetes.ABLE_TO_SCALE, kubernetes.SCALING_ACTIVE)


def _limited(report: AutoscalerReport | Absent) -> tuple[ConditionStatus, str, str]:
    limited = _find(report, kubernetes.SCALING_LIMITED)
    if limited is None:
        return "Unknown", reasons.AWAITING_AUTOSCALER, AWAITING_LIMITS
    status: ConditionStatus = "Unknown"
    if limited.status == "True":
        status = "True"
    elif limited.status == "False":
        status = "False"
    return status, _clean(limited.reason), limited.message


def _find(report: AutoscalerReport | Absent, condition_type: str) -> ReportedCondition | None:
    if isinstance(report, Absent) or not report.is_current:
        return None
    return conditions.find(report.conditions, condition_type)


def _clean(reason: str) -> str:
    """A reason that the schema of a condition accepts; messages are cleaned where they are
    merged.
    """
    is_reason = len(reason) <= _LONGEST_REASON and _REASON.fullmatch(reason)
    return reason if is_reason else reasons.UNKNOWN


# --- why a pass failed ----------------------------------------------------------------------------


def derive_failure(observed: ObservedAutoscaling, applied: Applied) -> str | None:
    """Why the deployment has no working autoscaler; "" where it has one; None where the last
    answer stands, because a plane did not answer now.
    """
    name = f"{observed.key.namespace}/{observed.key.name}"
    if not observed.is_served:
        return f"{AUTOSCALER.plural} are not served in this cell"
    if observed.is_name_taken:
        return f"HPA {name} already exists and is not controlled by WorkloadDeployment {name}"
    errors = applied.errors
    refused = next((error for error in errors if isinstance(error, RejectedError)), None)
    if refused is not None:
        return _describe(refused)
    return None if errors else ""


def _describe(error: ReconcileError) -> str:
    """Never the server's own text: it repeats field values, and a refusal of rights names this
    operator (faults.md G10, O10).
    """
    if error.answer is None:
        return error.message
    fields = (f"{cause.field}: {cause.reason}" for cause in error.answer.causes if cause.field)
    code = f"the API server answered {error.answer.status} {error.answer.reason}".rstrip()
    return f"the autoscaler could not be written: {_join(fields) or code}"


def _join(texts: Iterable[str]) -> str:
    return ", ".join(texts)


def is_only_limited(
    stated: Iterable[ReportedCondition | Statement], stored: Iterable[ReportedCondition]
) -> bool:
    """Whether `AutoscalingLimited` is the one condition that differs."""
    before = {one.type: _words(one) for one in stored}
    differing = {one.type for one in stated if before.get(one.type) != _words(one)}
    return differing == {conditions.AUTOSCALING_LIMITED}


def _words(condition: ReportedCondition | Statement) -> tuple[str, str, str]:
    text = conditions.derive_message(condition.message)
    return condition.status, condition.reason, text
