"""Stages 9 and 10: per Instance no gate is left, and the provider runs it.

Of several Instances the one with the most specific cause is named first, by the one rank table;
ties go to the lowest ordinal.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from compute_api_types import conditions, labels, names, reasons
from compute_kubectl.explain.causes import CAUSES, is_cause
from compute_kubectl.explain.cell_stages import (
    Slots,
    find_data_awaited,
    find_deployment_cause,
    slots_of,
)
from compute_kubectl.explain.chain import Chain
from compute_kubectl.explain.diagnosis import Finding, Level, ObjectName
from compute_kubectl.explain.network import describe_network
from compute_kubectl.explain.quota_facts import describe_quota
from compute_kubectl.explain.stage_result import Blocked, Hidden, Passed, StageResult, seen
from compute_kubectl.explain.stages import NETWORK_WITHIN, STAGES, Owner, Stage
from compute_kubectl.snapshot.access import Access
from compute_kubectl.snapshot.objects import SeenCondition, SeenInstance

_KIND: Final = "Instance"
REFERENCED_DATA_GATE: Final = "ReferencedData"
_OF_GATES: Final = {
    labels.QUOTA_GATE: conditions.QUOTA_GRANTED,
}


def judge_instances(chain: Chain) -> tuple[StageResult, ...]:
    """9 and 10: the Instances that are not Ready, most specific cause first."""
    plane, listing, _ = chain.instances
    if listing.access is not Access.READ:
        return _without_instances(chain, Hidden(Stage.RELEASED, plane, listing.access))
    slots = slots_of(chain)
    findings = rank_findings(_find_all(chain, plane, slots))
    if not findings:
        findings = _of_held_roll(chain, slots) or _of_deployment(chain)
    if not findings:
        return Passed(Stage.RELEASED), Passed(Stage.RUNNING)
    through = Stage.ACTED_ON if _shows_current(chain, slots) else 0
    blocked = Blocked(findings[0], through, findings[1:])
    if blocked.stage is Stage.RELEASED:
        return (blocked,)
    return Passed(Stage.RELEASED), blocked


def _without_instances(chain: Chain, hidden: Hidden) -> tuple[StageResult, ...]:
    """What the deployment reports about its Instances, where they cannot be listed."""
    deployment = chain.nearest_deployment
    if deployment is None or not deployment.answers_its_generation:
        return hidden, replace(hidden, stage=Stage.RUNNING)
    findings = _of_deployment(chain)
    if findings:
        return (Blocked(findings[0], Stage.ACTED_ON),)
    return Passed(Stage.RELEASED, Stage.ACTED_ON), Passed(Stage.RUNNING)


def _shows_current(chain: Chain, slots: Slots) -> bool:
    """Whether an Instance in flight was made from the template that the project wants now."""
    wanted = chain.deployment.template_hash if chain.deployment else slots.template_hash
    return any(slots.by_ordinal[one].template_hash == wanted for one in slots.in_flight)


def rank_findings(findings: list[Finding]) -> tuple[Finding, ...]:
    """Causes first, then by rank of the reason, then by ordinal."""
    return tuple(
        sorted(
            findings,
            key=lambda one: (one.turn is None, -conditions.rank(one.reason), one.ordinal),
        )
    )


def _find_all(chain: Chain, plane: str, slots: Slots) -> list[Finding]:
    found: list[Finding] = []
    for ordinal in slots.in_flight:
        instance = slots.by_ordinal[ordinal]
        found.append(replace(_find_one(chain, plane, instance), ordinal=ordinal))
    return found


def _find_one(chain: Chain, plane: str, instance: SeenInstance) -> Finding:
    if instance.unreadable:
        return _plain(plane, instance, Stage.RELEASED, f"unreadable: {instance.unreadable}")
    if instance.meta.is_terminating:
        finding = _plain(plane, instance, Stage.RUNNING, "is being deleted")
        return replace(finding, since=instance.meta.deleted, reason=reasons.TERMINATING)
    if instance.gates:
        return _gated(chain, plane, instance)
    return _not_running(chain, plane, instance)


def _plain(plane: str, instance: SeenInstance, stage: Stage, text: str) -> Finding:
    return Finding(
        stage,
        STAGES[stage].owner,
        f"Instance {instance.meta.name} {text}",
        since=instance.meta.created,
        level=Level.INSTANCE,
        object=ObjectName.of(plane, instance.meta, _KIND),
        evidence=(seen(plane, instance, "Ready", _status(instance), _KIND),),
    )


def _status(instance: SeenInstance) -> str:
    ready = instance.condition(conditions.READY)
    return f"{ready.status} {ready.reason}" if ready else "absent"


# --- 9: released ----------------------------------------------------------------------------------


def _gated(chain: Chain, plane: str, instance: SeenInstance) -> Finding:
    """The gate that decides: the one with a cause, else the first in the list."""
    found = [_of_gate(chain, plane, instance, gate) for gate in instance.gates]
    return rank_findings(found)[0]


def _of_gate(chain: Chain, plane: str, instance: SeenInstance, gate: str) -> Finding:
    text = f"waits for {gate.lower() if gate in {'Network', 'Quota'} else gate}"
    finding = replace(
        _plain(plane, instance, Stage.RELEASED, text),
        evidence=(seen(plane, instance, "schedulingGates", ", ".join(instance.gates), _KIND),),
    )
    if gate == labels.NETWORK_GATE:
        return describe_network(
            chain, instance, replace(finding, owner=Owner.NETWORK, within=NETWORK_WITHIN)
        )
    if gate == labels.QUOTA_GATE:
        condition = instance.condition(conditions.QUOTA_GRANTED)
        described = _with_condition(plane, instance, finding, condition)
        return describe_quota(chain.snapshot, instance, described)
    return _with_condition(plane, instance, finding, _of_data(instance))


def _of_data(instance: SeenInstance) -> SeenCondition | None:
    """A condition of another owner than provider and quota, which explains an unknown gate."""
    ours = {conditions.PROGRAMMED, conditions.AVAILABLE, conditions.QUOTA_GRANTED, conditions.READY}
    foreign = [one for one in instance.conditions if not one.is_true and one.type not in ours]
    return conditions.summarise(foreign)


def _with_condition(
    plane: str, instance: SeenInstance, finding: Finding, condition: SeenCondition | None
) -> Finding:
    if condition is None or condition.is_true:
        return finding
    cause = CAUSES.get(condition.reason)
    shown = seen(plane, instance, condition.type, f"{condition.status} {condition.reason}", _KIND)
    times = [one for one in (condition.since, instance.meta.created) if one]
    return replace(
        finding,
        text=f"{finding.text}: {condition.reason}" if condition.reason else finding.text,
        reason=condition.reason,
        message=condition.message,
        since=max(times, default=None),
        owner=cause.owner if cause else finding.owner,
        turn=cause.turn if cause else None,
        condition_type=condition.type,
        status=condition.status,
        evidence=(*finding.evidence, shown),
    )


# --- 10: running ----------------------------------------------------------------------------------


def _not_running(chain: Chain, plane: str, instance: SeenInstance) -> Finding:
    blocking = _blocking_condition(instance)
    finding = _with_condition(
        plane, instance, _plain(plane, instance, Stage.RUNNING, "does not run"), blocking
    )
    if blocking is None and _is_up(instance):
        # The provider is done; only the summary of the cell operator is missing.
        finding = replace(finding, owner=Owner.INSTANCE)
    return replace(finding, details=(*finding.details, *_pod_details(chain, instance)))


def _blocking_condition(instance: SeenInstance) -> SeenCondition | None:
    """The most specific condition that is not True; `Ready` only repeats one of them."""
    unmet = [one for one in instance.conditions if not one.is_true and one.reason]
    own = [one for one in unmet if one.type != conditions.READY]
    causes = [one for one in own if is_cause(one.reason)]
    return conditions.summarise(causes) or conditions.summarise(own) or conditions.summarise(unmet)


def _is_up(instance: SeenInstance) -> bool:
    return instance.is_true(conditions.PROGRAMMED) and instance.is_true(conditions.AVAILABLE)


def _pod_details(chain: Chain, instance: SeenInstance) -> tuple[str, ...]:
    pod = next((one for one in chain.cell.pods if one.instance == instance.meta.name), None)
    if pod is None:
        return ()
    parts = [f"Pod {pod.meta.name} is {pod.phase or 'of unknown phase'}"]
    if pod.waiting:
        parts.append(f"waits: {pod.waiting}")
    parts.append(f"{pod.restarts} restarts")
    if pod.last_exit is not None:
        parts.append(f"last exit code {pod.last_exit}")
    return (", ".join(parts),)


# --- a roll that waits for its data ---------------------------------------------------------------


def _of_held_roll(chain: Chain, slots: Slots) -> tuple[Finding, ...]:
    """A healthy Instance is not replaced before the data of the new template is there."""
    awaited = find_data_awaited(chain) if slots.stale else None
    if awaited is None:
        return ()
    plane, deployment, condition = awaited
    cause = CAUSES[condition.reason]
    shown = f"{condition.status} {condition.reason}"
    ordinal = slots.stale[-1]
    finding = Finding(
        Stage.RELEASED,
        cause.owner,
        f"slot {ordinal} keeps running the former template: {condition.type} is {shown}",
        reason=condition.reason,
        message=condition.message,
        since=condition.since or deployment.meta.spec_changed,
        object=ObjectName.of(plane, deployment.meta, "WorkloadDeployment"),
        condition_type=condition.type,
        status=condition.status,
        turn=cause.turn,
        evidence=(seen(plane, deployment, condition.type, shown, "WorkloadDeployment"),),
    )
    return (finding,)


# --- the deployment's own word --------------------------------------------------------------------


def _of_deployment(chain: Chain) -> tuple[Finding, ...]:
    """The cause that only the deployment carries, such as a missing Network; else what it reports
    while it is not Ready although every listed Instance is.
    """
    deployment = chain.nearest_deployment
    if deployment is None:
        return ()
    plane = _plane_of(chain)
    cause = find_deployment_cause(deployment)
    ready = deployment.condition(conditions.READY)
    blocker = cause or (ready if ready is not None and not ready.is_true else None)
    if blocker is None or deployment.observed_generation < deployment.meta.generation:
        return ()
    known = CAUSES.get(blocker.reason)
    stage = known.stage if known else Stage.RUNNING
    if stage not in {Stage.RELEASED, Stage.RUNNING}:
        stage = Stage.RELEASED if blocker.reason in _NETWORK else Stage.RUNNING
    finding = Finding(
        stage,
        known.owner if known else STAGES[stage].owner,
        f"WorkloadDeployment {deployment.meta.name} reports {blocker.reason}",
        reason=blocker.reason,
        message=blocker.message,
        since=blocker.since or deployment.meta.spec_changed,
        object=ObjectName.of(plane, deployment.meta, "WorkloadDeployment"),
        condition_type=blocker.type,
        status=blocker.status,
        turn=known.turn if known else None,
        evidence=(seen(plane, deployment, blocker.type, f"{blocker.status} {blocker.reason}"),),
    )
    return (finding,)


_NETWORK: Final = frozenset({reasons.NETWORK_NOT_FOUND, reasons.NETWORK_FAILED_TO_CREATE})


def _plane_of(chain: Chain) -> str:
    if chain.cell_deployment is not None:
        return chain.cell_name
    hub = chain.snapshot.hub.facts.name
    return hub if chain.hub_deployment is not None else chain.snapshot.project.facts.name


def ordinal_of(chain: Chain, instance: SeenInstance) -> int:
    """The slot of an Instance; -1 for a stray."""
    ordinal = names.parse_ordinal(chain.deployment_name, instance.meta.name)
    return -1 if ordinal is None else ordinal
