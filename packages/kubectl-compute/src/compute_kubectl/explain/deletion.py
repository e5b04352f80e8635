"""What a Workload that is being deleted waits for: which plane still has what, and which finalizer.

The stages are passed in the other direction: the cell gives up its Instances, then its deployment,
then the hub its copy, then the project its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from compute_api_types import conditions, labels, reasons
from compute_kubectl.explain.causes import CAUSES, Actionability
from compute_kubectl.explain.chain import Chain
from compute_kubectl.explain.diagnosis import Evidence, Finding, Level, ObjectName
from compute_kubectl.explain.stage_result import seen
from compute_kubectl.explain.stages import Owner, Stage
from compute_kubectl.snapshot.objects import SeenObject, SeenWorkload


@dataclass(frozen=True, slots=True)
class _Remaining:
    """An object that is still there, with the stage at which it holds the deletion."""

    plane: str
    kind: str
    one: SeenObject
    stage: Stage
    owner: str


_OWNERS = {
    labels.FEDERATION_FINALIZER: Owner.FEDERATION,
    labels.WORKLOAD_FINALIZER: Owner.WORKLOAD,
    labels.PROVIDER_FINALIZER: Owner.PROVIDER,
}


def is_deleting(chain: Chain) -> bool:
    workload, deployment = chain.workload, chain.deployment
    if workload is not None and workload.meta.is_terminating:
        return True
    return deployment is not None and deployment.meta.is_terminating


def explain_deletion(chain: Chain) -> Finding:
    """The deepest object that is still there, and what holds it."""
    remaining = list(_remaining(chain))
    if not remaining:
        return _of_workload(chain)
    deepest = remaining[0]
    named = _summary(remaining)
    blocked = deepest.one.condition(conditions.READY)
    is_blocked = blocked is not None and blocked.reason == reasons.DELETION_BLOCKED
    finalizers = deepest.one.meta.finalizers
    waits = f"; finalizer {', '.join(finalizers)}" if finalizers else ""
    owner = next((_OWNERS[one] for one in finalizers if one in _OWNERS), deepest.owner)
    event = _unresolved(chain)
    return Finding(
        deepest.stage,
        Owner.USER if is_blocked else owner,
        f"being deleted; still there: {named}{waits}",
        reason=_reason(event, is_blocked=is_blocked),
        message=blocked.message if is_blocked and blocked else (event.value if event else ""),
        since=deepest.one.meta.deleted or _requested(chain),
        level=Level.INSTANCE if deepest.kind == "Instance" else Level.DEPLOYMENT,
        object=ObjectName.of(deepest.plane, deepest.one.meta, deepest.kind),
        turn=_turn(event, is_blocked=is_blocked),
        evidence=tuple(
            seen(one.plane, one.one, "metadata.finalizers", _finalizers(one.one), one.kind)
            for one in remaining[:5]
        ),
    )


def _reason(event: Evidence | None, *, is_blocked: bool) -> str:
    if is_blocked:
        return reasons.DELETION_BLOCKED
    return event.field if event else reasons.TERMINATING


def _turn(event: Evidence | None, *, is_blocked: bool) -> Actionability | None:
    if is_blocked:
        return Actionability.USER
    return CAUSES[event.field].turn if event else None


def _remaining(chain: Chain) -> Iterator[_Remaining]:
    """Deepest first."""
    cell, hub, project = chain.cell_name, chain.snapshot.hub, chain.snapshot.project
    for one in chain.cell_instances:
        yield _Remaining(cell, "Instance", one, Stage.RUNNING, Owner.PROVIDER)
    if chain.cell_deployment is not None:
        yield _Remaining(
            cell, "WorkloadDeployment", chain.cell_deployment, Stage.ACTED_ON, Owner.DEPLOYMENT
        )
    for one in chain.hub_instances:
        yield _Remaining(hub.facts.name, "Instance", one, Stage.REPORTED, Owner.WRITE_BACK)
    if chain.hub_deployment is not None:
        yield _Remaining(
            hub.facts.name,
            "WorkloadDeployment",
            chain.hub_deployment,
            Stage.FEDERATED,
            Owner.KARMADA if chain.hub_deployment.meta.is_terminating else Owner.FEDERATION,
        )
    for one in chain.project_instances:
        yield _Remaining(project.facts.name, "Instance", one, Stage.SHOWN, Owner.PROJECTION)
    if chain.deployment is not None:
        yield _Remaining(
            project.facts.name,
            "WorkloadDeployment",
            chain.deployment,
            Stage.PLACED,
            Owner.FEDERATION,
        )


def _summary(remaining: list[_Remaining]) -> str:
    counts: dict[tuple[str, str], int] = {}
    for one in remaining:
        counts[one.plane, one.kind] = counts.get((one.plane, one.kind), 0) + 1
    return ", ".join(f"{number} {kind} on {plane}" for (plane, kind), number in counts.items())


def _finalizers(one: SeenObject) -> str:
    return ", ".join(one.meta.finalizers) or "none"


def _requested(chain: Chain) -> datetime | None:
    for one in (chain.deployment, chain.workload):
        if one is not None and one.meta.deleted is not None:
            return one.meta.deleted
    return None


def _unresolved(chain: Chain) -> Evidence | None:
    """The Event about a place on the hub that federation cannot determine, or a slow removal."""
    deployment = chain.deployment
    if deployment is None:
        return None
    words = (reasons.FEDERATION_NAMESPACE_UNRESOLVED, reasons.FEDERATION_RELEASE_DELAYED)
    plane = chain.snapshot.project.facts.name
    for event in chain.snapshot.project.events:
        if event.about_name == deployment.meta.name and event.reason in words:
            return Evidence(ObjectName.of(plane, event.meta, "Event"), event.reason, event.message)
    return None


def _of_workload(chain: Chain) -> Finding:
    """Nothing of the city is left: only the Workload's own finalizer remains."""
    workload: SeenWorkload | None = chain.workload
    plane = chain.snapshot.project.facts.name
    return Finding(
        Stage.PLANNED,
        Owner.WORKLOAD,
        "being deleted; nothing of this city is left",
        reason=reasons.TERMINATING,
        since=workload.meta.deleted if workload else None,
        level=Level.WORKLOAD,
        object=ObjectName.of(plane, workload.meta, "Workload") if workload else None,
        evidence=(
            (seen(plane, workload, "metadata.finalizers", _finalizers(workload), "Workload"),)
            if workload
            else ()
        ),
    )
