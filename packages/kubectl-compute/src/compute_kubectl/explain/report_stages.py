"""Stages 11 and 12: what the cell reports is on the hub, and the project shows it.

The way back has its own faults: a write-back that is cut, a copy in quarantine, a mirror that lags.
What runs is not affected, but its user sees an old picture.
"""

from __future__ import annotations

from typing import Final

from compute_api_types import conditions, labels, reasons
from compute_kubectl.explain.causes import CAUSES
from compute_kubectl.explain.chain import Chain
from compute_kubectl.explain.diagnosis import Evidence, Finding, Level, ObjectName
from compute_kubectl.explain.stage_result import (
    Blocked,
    Hidden,
    Passed,
    StageResult,
    hidden_by,
    latest,
    seen,
)
from compute_kubectl.explain.stages import STAGES, Owner, Stage
from compute_kubectl.snapshot.access import Access
from compute_kubectl.snapshot.objects import SeenDeployment, SeenInstance

_KIND: Final = "WorkloadDeployment"


def judge_reported(chain: Chain) -> StageResult:
    """11: the hub copy's status answers to its generation, and every Instance has its copy."""
    hub = chain.snapshot.hub
    if chain.is_single_cluster:
        return Passed(Stage.REPORTED)
    hidden = hidden_by(Stage.REPORTED, hub.facts, hub.deployments)
    copy = chain.hub_deployment
    if hidden is not None or copy is None:
        return hidden or Hidden(Stage.REPORTED, hub.facts.name, hub.deployments.access)
    if not copy.answers_its_generation:
        return Blocked(_silent(chain, copy))
    if chain.cell.instances.access is Access.READ and hub.instances.access is Access.READ:
        for instance in chain.cell_instances:
            lag = _copy_lag(chain, instance)
            if lag is not None:
                return Blocked(lag)
    return Passed(Stage.REPORTED, Stage.DELIVERED)


def _silent(chain: Chain, copy: SeenDeployment) -> Finding:
    plane = chain.snapshot.hub.facts.name
    reporting = copy.condition(conditions.CELLS_REPORTING)
    reason = reporting.reason if reporting and not reporting.is_true else ""
    cause = CAUSES.get(reason)
    cell = chain.cell_deployment
    times = [copy.meta.spec_changed, cell.meta.spec_changed if cell else None]
    return Finding(
        Stage.REPORTED,
        cause.owner if cause else Owner.KARMADA,
        f"the hub copy's status answers to generation {copy.observed_generation} "
        f"of {copy.meta.generation}",
        reason=reason,
        message=reporting.message if reporting and reason else "",
        since=latest(*times),
        object=ObjectName.of(plane, copy.meta, _KIND),
        condition_type=conditions.CELLS_REPORTING if reason else "",
        status=reporting.status if reporting and reason else "",
        # A silent cell is a cause only once the cell could not be asked itself.
        turn=cause.turn if cause and chain.cell.instances.access is not Access.READ else None,
        evidence=(seen(plane, copy, "status.observedGeneration", copy.observed_generation, _KIND),),
    )


def _copy_lag(chain: Chain, instance: SeenInstance) -> Finding | None:
    """Why the hub copy of a cell's Instance is missing or old; None where it is neither."""
    hub = chain.snapshot.hub
    copy = next((one for one in chain.hub_instances if one.meta.name == instance.meta.name), None)
    if copy is None:
        if not hub.instances.proves_absence:
            return None
        return _lagging(chain, instance, "has no copy on the hub", "absent")
    if copy.source_uid and copy.source_uid != instance.meta.uid:
        return _lagging(chain, instance, "has a hub copy of its predecessor", copy.source_uid, copy)
    if _ready(copy) != _ready(instance):
        return _lagging(
            chain,
            instance,
            f"is {_ready(instance)} on the cell and {_ready(copy)} on the hub",
            _ready(copy),
            copy,
        )
    return None


def _lagging(
    chain: Chain,
    instance: SeenInstance,
    what: str,
    value: str,
    copy: SeenInstance | None = None,
) -> Finding:
    hub = chain.snapshot.hub.facts.name
    ready = instance.condition(conditions.READY)
    evidence: list[Evidence] = [
        seen(chain.cell.name, instance, conditions.READY, _ready(instance), "Instance")
    ]
    if copy is not None:
        evidence.append(seen(hub, copy, conditions.READY, value, "Instance"))
    return Finding(
        Stage.REPORTED,
        STAGES[Stage.REPORTED].owner,
        f"Instance {instance.meta.name} {what}",
        since=latest(ready.since if ready else None, instance.meta.created),
        level=Level.INSTANCE,
        object=ObjectName.of(hub, instance.meta, "Instance"),
        condition_type=conditions.READY,
        status=value,
        evidence=tuple(evidence),
    )


def _ready(instance: SeenInstance) -> str:
    ready = instance.condition(conditions.READY)
    if ready is None:
        return "without Ready"
    return "Ready" if ready.is_true else f"not Ready ({ready.reason})"


# --- 12: shown ------------------------------------------------------------------------------------


def judge_shown(chain: Chain) -> StageResult:
    """12: the project's status answers to its generation, and every copy has its projection."""
    project = chain.snapshot.project
    hidden = hidden_by(Stage.SHOWN, project.facts, project.deployments)
    deployment = chain.deployment
    if hidden is not None or deployment is None:
        return hidden or Hidden(Stage.SHOWN, project.facts.name, project.deployments.access)
    for copy in chain.hub_instances:
        quarantined = _quarantine(chain, copy)
        if quarantined is not None:
            return Blocked(quarantined)
    if not deployment.answers_its_generation:
        return Blocked(_not_mirrored(chain, deployment))
    if project.instances.access is Access.READ:
        for copy in chain.hub_instances:
            lag = _projection_lag(chain, copy)
            if lag is not None:
                return Blocked(lag)
    # A mirrored status answers to this generation only after hub and cell have acted on it.
    return Passed(Stage.SHOWN, Stage.ACTED_ON)


def _quarantine(chain: Chain, copy: SeenInstance) -> Finding | None:
    word = copy.meta.annotations.get(labels.QUARANTINE_REASON, "")
    if not word:
        return None
    plane = chain.snapshot.hub.facts.name
    try:
        reason = reasons.QuarantineReason(word).event
    except ValueError:  # of another release
        reason = word
    cause = CAUSES.get(reason)
    return Finding(
        Stage.SHOWN,
        cause.owner if cause else Owner.PLATFORM,
        f"the hub copy of Instance {copy.meta.name} is in quarantine",
        reason=reason,
        message=copy.meta.annotations.get(labels.QUARANTINE_MESSAGE, ""),
        since=copy.meta.created,
        level=Level.INSTANCE,
        object=ObjectName.of(plane, copy.meta, "Instance"),
        turn=cause.turn if cause else None,
        evidence=(seen(plane, copy, labels.QUARANTINE_REASON, word, "Instance"),),
    )


def _not_mirrored(chain: Chain, deployment: SeenDeployment) -> Finding:
    plane = chain.snapshot.project.facts.name
    copy = chain.hub_deployment
    return Finding(
        Stage.SHOWN,
        Owner.FEDERATION,
        f"the project's status answers to generation {deployment.observed_generation} "
        f"of {deployment.meta.generation}",
        since=latest(
            deployment.meta.spec_changed,
            max((one.at for one in copy.meta.writes if one.at and one.is_status), default=None)
            if copy
            else None,
        ),
        object=ObjectName.of(plane, deployment.meta, _KIND),
        evidence=(
            seen(
                plane,
                deployment,
                "status.observedGeneration",
                deployment.observed_generation,
                _KIND,
            ),
        ),
    )


def _projection_lag(chain: Chain, copy: SeenInstance) -> Finding | None:
    project = chain.snapshot.project
    name = copy.meta.name
    shown = next((one for one in chain.project_instances if one.meta.name == name), None)
    ready = copy.condition(conditions.READY)
    hub = chain.snapshot.hub.facts.name
    if shown is None:
        if not project.instances.proves_absence:
            return None
        what, value = "has no projection", "absent"
    elif shown.source_uid and copy.source_uid and shown.source_uid != copy.source_uid:
        what, value = "has a projection of its predecessor", shown.source_uid
    elif _ready(shown) != _ready(copy):
        what = f"is {_ready(copy)} on the hub and {_ready(shown)} in the project"
        value = _ready(shown)
    else:
        return None
    return Finding(
        Stage.SHOWN,
        STAGES[Stage.SHOWN].owner,
        f"Instance {name} {what}",
        since=latest(ready.since if ready else None, copy.meta.created),
        level=Level.INSTANCE,
        object=ObjectName.of(project.facts.name, copy.meta, "Instance"),
        evidence=(
            seen(hub, copy, conditions.READY, _ready(copy), "Instance"),
            seen(project.facts.name, copy, "in the project", value, "Instance"),
        ),
    )
