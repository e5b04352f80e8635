"""Stages 1 and 2: the Workload is planned, and its WorkloadDeployment is taken up by federation.

Both are visible in the project alone. A reason on the Workload counts only while the deployment it
is about is missing or old: it may be left over from the generation before.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from compute_api_types import conditions, labels, reasons
from compute_kubectl.explain.causes import CAUSES, is_cause
from compute_kubectl.explain.chain import Chain
from compute_kubectl.explain.diagnosis import Evidence, Finding, Level, ObjectName
from compute_kubectl.explain.stage_result import (
    Blocked,
    Hidden,
    Passed,
    StageResult,
    hidden_by,
    seen,
)
from compute_kubectl.explain.stages import STAGES, Owner, Stage
from compute_kubectl.snapshot.objects import (
    SeenCondition,
    SeenDeployment,
    SeenEvent,
    SeenObject,
    SeenWorkload,
)

_WORKLOAD_EVENTS: Final = (
    reasons.DEPLOYMENT_REJECTED,
    reasons.NAME_COLLISION,
    reasons.NETWORK_NOT_FOUND,
    reasons.NO_MATCHING_LOCATION,
)


def judge_planned(chain: Chain) -> StageResult:
    """1: the Workload was observed, and a deployment has its template and scale."""
    project = chain.snapshot.project
    hidden = hidden_by(Stage.PLANNED, project.facts, project.workloads, project.deployments)
    if hidden is not None or chain.workload is None:
        return hidden or hidden_in_project(chain, Stage.PLANNED)
    workload, deployment = chain.workload, chain.deployment
    if workload.unreadable:
        return Blocked(_unreadable(chain, workload, Level.WORKLOAD))
    if not chain.is_wanted and deployment is not None:
        return Blocked(_left_over(chain, deployment))
    is_observed = workload.observed_generation >= workload.meta.generation
    if deployment is not None and is_observed and _carries(deployment, workload, chain):
        return Passed(Stage.PLANNED)
    if deployment is None and not project.deployments.proves_absence:
        return hidden_in_project(chain, Stage.PLANNED)
    return Blocked(_not_planned(chain, workload))


def hidden_in_project(chain: Chain, stage: Stage) -> StageResult:
    """A stage that needs an object which an incomplete list may have left out."""
    project = chain.snapshot.project
    return Hidden(stage, project.facts.name, project.workloads.access, "the list is incomplete")


def _carries(deployment: SeenDeployment, workload: SeenWorkload, chain: Chain) -> bool:
    placement = next((one for one in workload.placements if one.name == chain.placement), None)
    return (
        placement is not None
        and deployment.min_replicas == placement.min_replicas
        and deployment.template_hash == workload.template_hash
    )


def _not_planned(chain: Chain, workload: SeenWorkload) -> Finding:
    plane = chain.snapshot.project.facts.name
    blocker = _find_blocker(chain, workload)
    evidence = [
        seen(
            plane, workload, "status.observedGeneration", workload.observed_generation, "Workload"
        ),
        seen(plane, workload, "metadata.generation", workload.meta.generation, "Workload"),
    ]
    if chain.deployment is None:
        what = f"no WorkloadDeployment for placement {chain.placement!r} in {chain.city}"
    else:
        what = "the WorkloadDeployment does not carry the current template and scale"
    if blocker is None:
        return Finding(
            Stage.PLANNED,
            STAGES[Stage.PLANNED].owner,
            what,
            since=workload.meta.spec_changed,
            level=Level.PLACEMENT,
            object=ObjectName.of(plane, workload.meta, "Workload"),
            evidence=tuple(evidence),
        )
    cause = CAUSES[blocker.reason]
    return Finding(
        Stage.PLANNED,
        cause.owner,
        what,
        reason=blocker.reason,
        message=blocker.message,
        since=blocker.since or workload.meta.spec_changed,
        level=Level.PLACEMENT,
        object=ObjectName.of(plane, workload.meta, "Workload"),
        condition_type=blocker.type,
        status=blocker.status,
        turn=cause.turn,
        evidence=(*evidence, _condition_evidence(plane, workload, blocker, "Workload")),
    )


def _find_blocker(chain: Chain, workload: SeenWorkload) -> SeenCondition | None:
    """The most specific cause at this stage that the placement, the Workload or an Event names."""
    stated = [
        *workload.placement_conditions.get(chain.placement, ()),
        *workload.conditions,
        *(_as_condition(one) for one in _events(chain, workload, _WORKLOAD_EVENTS)),
    ]
    causes = [
        one
        for one in stated
        if not one.is_true and is_cause(one.reason) and CAUSES[one.reason].stage is Stage.PLANNED
    ]
    return conditions.summarise(causes)


def _as_condition(event: SeenEvent) -> SeenCondition:
    return SeenCondition("Event", "", event.reason, event.message, event.last)


def _events(chain: Chain, about: SeenObject, words: tuple[str, ...]) -> Iterator[SeenEvent]:
    """Events about this very object, newest first; one about a predecessor has another UID."""
    listed = chain.snapshot.project.events
    found = [
        one
        for one in listed
        if one.about_name == about.meta.name
        and one.about_uid in {"", about.meta.uid}
        and one.reason in words
    ]
    return iter(sorted(found, key=_last, reverse=True))


def _last(event: SeenEvent) -> str:
    return event.last.isoformat() if event.last else ""


def _condition_evidence(
    plane: str, one: SeenObject, condition: SeenCondition, kind: str
) -> Evidence:
    value = f"{condition.status} {condition.reason}".strip()
    return seen(plane, one, condition.type, value, kind)


def _left_over(chain: Chain, deployment: SeenDeployment) -> Finding:
    plane = chain.snapshot.project.facts.name
    return Finding(
        Stage.PLANNED,
        Owner.WORKLOAD,
        f"the Workload no longer names {chain.city} in placement {chain.placement!r}; "
        "its WorkloadDeployment is to be deleted",
        since=chain.workload.meta.spec_changed if chain.workload else None,
        object=ObjectName.of(plane, deployment.meta, "WorkloadDeployment"),
        evidence=(seen(plane, deployment, "spec.cityCode", chain.city, "WorkloadDeployment"),),
    )


def _unreadable(chain: Chain, one: SeenObject, level: Level) -> Finding:
    plane = chain.snapshot.project.facts.name
    return Finding(
        Stage.PLANNED,
        Owner.PLATFORM,
        f"unreadable: {one.unreadable}",
        level=level,
        object=ObjectName.of(plane, one.meta, level.value),
        evidence=(seen(plane, one, "spec", "unreadable", level.value),),
    )


def judge_placed(chain: Chain) -> StageResult:
    """2: federation has put its finalizer on the deployment and chosen its place on the hub."""
    project = chain.snapshot.project
    if chain.is_single_cluster:
        return Passed(Stage.PLACED, Stage.DELIVERED)
    hidden = hidden_by(Stage.PLACED, project.facts, project.deployments)
    deployment = chain.deployment
    if hidden is not None or deployment is None:
        return hidden or hidden_in_project(chain, Stage.PLACED)
    has_finalizer = labels.FEDERATION_FINALIZER in deployment.meta.finalizers
    if has_finalizer and deployment.hub_namespace:
        return Passed(Stage.PLACED)
    missing = "finalizer" if not has_finalizer else "annotation"
    key = labels.FEDERATION_FINALIZER if not has_finalizer else labels.FEDERATION_NAMESPACE
    finding = Finding(
        Stage.PLACED,
        STAGES[Stage.PLACED].owner,
        f"the {missing} {key} is not set yet",
        since=deployment.meta.created,
        object=ObjectName.of(project.facts.name, deployment.meta, "WorkloadDeployment"),
        evidence=(seen(project.facts.name, deployment, f"metadata.{missing}s", f"no {key}"),),
    )
    return Blocked(with_federation_event(chain, finding))


_FEDERATION_EVENTS: Final = (
    reasons.HUB_IDENTITY_CONFLICT,
    reasons.FEDERATION_REFUSED,
    reasons.FEDERATION_NAMESPACE_UNRESOLVED,
    reasons.FEDERATION_RELEASE_DELAYED,
)


def with_federation_event(chain: Chain, finding: Finding) -> Finding:
    """The finding with the Event that federation recorded about the deployment, if there is one."""
    deployment = chain.deployment
    if deployment is None:
        return finding
    event = next(_events(chain, deployment, _FEDERATION_EVENTS), None)
    if event is None or not _is_current(event, finding.since):
        return finding
    cause = CAUSES[event.reason]
    plane = chain.snapshot.project.facts.name
    return Finding(
        finding.stage,
        cause.owner,
        finding.text,
        reason=event.reason,
        message=event.message,
        since=event.first or finding.since,
        object=finding.object,
        condition_type="Event",
        turn=cause.turn,
        evidence=(*finding.evidence, seen(plane, event, "reason", event.reason, "Event")),
    )


def _is_current(event: SeenEvent, since: datetime | None) -> bool:
    """Whether the Event is not older than the change that is waited for."""
    return since is None or event.last is None or event.last >= since
