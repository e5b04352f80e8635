"""Stages 7 and 8: the cell has the current deployment, and its slots exist or are rightly held.

A slot is held while another one is in flight (`docs/spec/cell.md` 5.4); a missing slot is a block
only where nothing is waited for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compute_api_types import conditions, labels, names
from compute_api_types.template_hash import is_template_hash
from compute_kubectl.explain.causes import ABOUT_DATA, CAUSES, is_cause
from compute_kubectl.explain.chain import Chain
from compute_kubectl.explain.diagnosis import Finding, ObjectName
from compute_kubectl.explain.stage_result import Blocked, Hidden, Passed, StageResult, seen
from compute_kubectl.explain.stages import STAGES, Stage
from compute_kubectl.snapshot.access import Access
from compute_kubectl.snapshot.objects import SeenCondition, SeenDeployment, SeenInstance

_KIND = "WorkloadDeployment"


def judge_delivered(chain: Chain) -> StageResult:
    """7: the cell's deployment is made from the hub copy's generation."""
    if chain.is_single_cluster:
        return Passed(Stage.DELIVERED)
    copy, cell = chain.hub_deployment, chain.cell
    delivered = chain.cell_deployment
    # One that is being deleted on the cell has reported before; a new one has to follow it.
    is_former = delivered is not None and delivered.meta.is_terminating
    if copy is not None and not is_former and _reports_generation(chain, copy):
        return Passed(Stage.DELIVERED, Stage.DELIVERED)
    if cell.deployments.access is not Access.READ:
        return Hidden(
            Stage.DELIVERED,
            chain.cell_name or "cell",
            cell.deployments.access,
            cell.deployments.detail,
        )
    if delivered is None and not cell.deployments.proves_absence:
        return Hidden(Stage.DELIVERED, cell.name, Access.READ, "the list is incomplete")
    if delivered is None or delivered.meta.is_terminating:
        return Blocked(_not_delivered(chain, delivered))
    if copy is None:  # the hub is not visible: what the cell has is all that is known
        return Passed(Stage.DELIVERED, Stage.DELIVERED, "not provable: the hub was not read")
    generation = delivered.meta.annotations.get(labels.KARMADA_TEMPLATE_GENERATION, "")
    if generation == str(copy.meta.generation):
        return Passed(Stage.DELIVERED, Stage.DELIVERED)
    if not generation and delivered.template_hash == copy.template_hash:
        return Passed(
            Stage.DELIVERED,
            Stage.DELIVERED,
            "not provable: the cell's copy has no template generation; its template is equal",
        )
    return Blocked(_not_delivered(chain, delivered))


def _reports_generation(chain: Chain, copy: SeenDeployment) -> bool:
    """Whether the cell has reported, through Karmada or itself, that it acted on the hub's spec."""
    reported = [
        one.observed_template_generation
        for one in (chain.binding.applied if chain.binding else ())
        if one.cluster == chain.cell_name
    ]
    cell = chain.cell_deployment
    if cell is not None and cell.observed_template_uid in {None, copy.meta.uid}:
        reported.append(cell.observed_template_generation)
    return copy.meta.generation in reported


def _not_delivered(chain: Chain, delivered: SeenDeployment | None) -> Finding:
    copy, cell = chain.hub_deployment, chain.cell
    known = delivered or copy or chain.deployment
    if delivered is None:
        text, field, value = f"{cell.name} does not have the deployment", "on the cell", "absent"
    elif delivered.meta.is_terminating:
        text = f"the former deployment on {cell.name} is still being deleted"
        field, value = "metadata.deletionTimestamp", str(delivered.meta.deleted)
    else:
        field = labels.KARMADA_TEMPLATE_GENERATION
        value = delivered.meta.annotations.get(field, "absent")
        hub = copy.meta.generation if copy else "?"
        text = f"{cell.name} has generation {value} of the hub copy, the hub has {hub}"
    return Finding(
        Stage.DELIVERED,
        STAGES[Stage.DELIVERED].owner,
        text,
        since=copy.meta.spec_changed if copy else None,
        object=ObjectName.of(cell.name, known.meta, _KIND) if known else None,
        evidence=(seen(cell.name, known, field, value, _KIND),) if known else (),
    )


# --- 8: acted on ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Slots:
    """The Instances of a deployment by ordinal, and what is waited for."""

    by_ordinal: Mapping[int, SeenInstance]
    desired: int
    template_hash: str

    @property
    def missing(self) -> tuple[int, ...]:
        # Bounded by what exists: the first missing slot is enough for an answer.
        gaps = (one for one in range(self.desired) if one not in self.by_ordinal)
        return tuple(one for one, _ in zip(gaps, range(1), strict=False))

    @property
    def in_flight(self) -> tuple[int, ...]:
        """Slots that are waited for: terminating, or not Ready."""
        return tuple(
            ordinal
            for ordinal, one in sorted(self.by_ordinal.items())
            if one.meta.is_terminating or not one.is_true(conditions.READY)
        )

    @property
    def stale(self) -> tuple[int, ...]:
        """Slots with an Instance of another template; foreign hashes are not judged."""
        return tuple(
            ordinal
            for ordinal, one in sorted(self.by_ordinal.items())
            if is_template_hash(one.template_hash) and one.template_hash != self.template_hash
        )

    @property
    def surplus(self) -> tuple[int, ...]:
        return tuple(one for one in sorted(self.by_ordinal) if one >= self.desired)


def slots_of(chain: Chain) -> Slots:
    """The slots as the nearest readable plane shows them."""
    deployment = chain.nearest_deployment
    name = deployment.meta.name if deployment else chain.deployment_name
    _, _, instances = chain.instances
    numbered = ((names.parse_ordinal(name, one.meta.name), one) for one in instances)
    by_ordinal = {ordinal: one for ordinal, one in numbered if ordinal is not None}
    wanted = deployment.template_hash if deployment else ""
    return Slots(by_ordinal, deployment.desired if deployment else 0, wanted)


_ABOUT_DEPLOYMENT = (Stage.ACTED_ON, Stage.PLANNED)


def judge_acted_on(chain: Chain) -> StageResult:
    """8: the cell operator has observed the deployment and filled its slots, or holds them."""
    deployment = _acting_deployment(chain)
    if deployment is None:
        return Hidden(
            Stage.ACTED_ON,
            chain.cell_name or "cell",
            chain.cell.deployments.access,
            chain.cell.deployments.detail,
        )
    plane, one = deployment
    blocker = find_deployment_cause(one)
    if blocker is not None and CAUSES[blocker.reason].stage in _ABOUT_DEPLOYMENT:
        return Blocked(_caused(plane, one, blocker), Stage.DELIVERED)
    if one.observed_generation < one.meta.generation:
        return _not_observed(chain, plane, one)
    return _judge_slots(chain, plane, one)


def _acting_deployment(chain: Chain) -> tuple[str, SeenDeployment] | None:
    """The deployment on which a status of the cell is visible, nearest first."""
    if chain.is_single_cluster and chain.deployment is not None:
        return chain.snapshot.project.facts.name, chain.deployment
    if chain.cell_deployment is not None:
        return chain.cell.name, chain.cell_deployment
    for facts, one in (
        (chain.snapshot.hub.facts, chain.hub_deployment),
        (chain.snapshot.project.facts, chain.deployment),
    ):
        if one is not None and one.observed_generation > 0:
            return facts.name, one
    return None


def find_deployment_cause(deployment: SeenDeployment) -> SeenCondition | None:
    """The most specific cause that the deployment itself carries."""
    causes = [one for one in deployment.conditions if not one.is_true and is_cause(one.reason)]
    ready = [one for one in causes if one.type == conditions.READY]
    return conditions.summarise([*ready, *causes])


def find_data_awaited(chain: Chain) -> tuple[str, SeenDeployment, SeenCondition] | None:
    """The condition that shows a roll to be held until its referenced data is there, with its
    deployment: `ReferencedDataReady` of the project names the object, `Ready` of a cell the slot.
    """
    stated = [
        (plane, one, condition)
        for plane, one in _shown_deployments(chain)
        for condition in one.conditions
        if not condition.is_true and condition.reason in ABOUT_DATA
    ]
    of_project = [one for one in stated if one[2].type == conditions.REFERENCED_DATA_READY]
    return next(iter([*of_project, *stated]), None)


def _shown_deployments(chain: Chain) -> list[tuple[str, SeenDeployment]]:
    """The deployment on each plane that shows it, nearest to what runs first."""
    snapshot = chain.snapshot
    every = (
        (chain.cell_name, chain.cell_deployment),
        (snapshot.hub.facts.name, chain.hub_deployment),
        (snapshot.project.facts.name, chain.deployment),
    )
    return [(plane, one) for plane, one in every if one is not None]


def _caused(plane: str, one: SeenDeployment, blocker: SeenCondition) -> Finding:
    cause = CAUSES[blocker.reason]
    return Finding(
        Stage.ACTED_ON,
        cause.owner,
        f"WorkloadDeployment {one.meta.name} reports {blocker.reason}",
        reason=blocker.reason,
        message=blocker.message,
        since=blocker.since or one.meta.spec_changed,
        object=ObjectName.of(plane, one.meta, _KIND),
        condition_type=blocker.type,
        status=blocker.status,
        turn=cause.turn,
        evidence=(seen(plane, one, blocker.type, f"{blocker.status} {blocker.reason}", _KIND),),
    )


def _not_observed(chain: Chain, plane: str, one: SeenDeployment) -> StageResult:
    if plane != chain.cell_name and not chain.is_single_cluster:
        # A status in hub or project that lags is a matter of stages 7 or 11 and 12.
        return Hidden(Stage.ACTED_ON, chain.cell_name or "cell", chain.cell.deployments.access)
    return Blocked(
        Finding(
            Stage.ACTED_ON,
            STAGES[Stage.ACTED_ON].owner,
            f"the cell operator has observed generation {one.observed_generation} "
            f"of {one.meta.generation}",
            since=one.meta.spec_changed,
            object=ObjectName.of(plane, one.meta, _KIND),
            evidence=(
                seen(plane, one, "status.observedGeneration", one.observed_generation, _KIND),
            ),
        ),
        Stage.DELIVERED,
    )


def _judge_slots(chain: Chain, plane: str, one: SeenDeployment) -> StageResult:
    _, listing, _ = chain.instances
    through = Stage.ACTED_ON if _is_current(chain, one) else 0
    if listing.access is not Access.READ:
        return Passed(Stage.ACTED_ON, through)
    slots = slots_of(chain)
    if slots.in_flight or not listing.proves_absence:
        return Passed(Stage.ACTED_ON, through)
    if slots.missing:
        what = f"slot {slots.missing[0]} has no Instance, and no other slot is waited for"
    elif slots.stale and find_data_awaited(chain) is not None:
        return Passed(Stage.ACTED_ON, through)  # rightly held; stage 9 names what is waited for
    elif slots.stale:
        what = f"slot {slots.stale[-1]} runs an older template, and no other slot is waited for"
    elif slots.surplus:
        what = f"slot {slots.surplus[-1]} is beyond the wanted {slots.desired}"
    else:
        return Passed(Stage.ACTED_ON, through)
    return Blocked(
        Finding(
            Stage.ACTED_ON,
            STAGES[Stage.ACTED_ON].owner,
            what,
            since=one.meta.spec_changed,
            object=ObjectName.of(plane, one.meta, _KIND),
            evidence=(seen(plane, one, "Instances", len(slots.by_ordinal), _KIND),),
        ),
        Stage.DELIVERED if through else 0,
    )


def _is_current(chain: Chain, one: SeenDeployment) -> bool:
    """Whether the status that is shown answers to what the project wants now."""
    if one is chain.deployment:
        return one.answers_its_generation
    wanted = chain.deployment or chain.hub_deployment or one
    return (wanted.template_hash, wanted.min_replicas) == (one.template_hash, one.min_replicas)
