"""`explain`: a snapshot and a moment in, the diagnosis of one Workload out. Pure.

No clock and no plane is read here, so that the same snapshot gives the same answer in the command,
in a test and on the page. No input raises: an object of any shape was decoded before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from difflib import get_close_matches

from compute_api_types import conditions
from compute_kubectl.explain.causes import Actionability
from compute_kubectl.explain.cell_stages import judge_acted_on, judge_delivered, slots_of
from compute_kubectl.explain.chain import Chain, build_chains
from compute_kubectl.explain.contradictions import find_contradictions
from compute_kubectl.explain.deletion import explain_deletion, is_deleting
from compute_kubectl.explain.diagnosis import (
    CityDiagnosis,
    Diagnosis,
    Evidence,
    Finding,
    Level,
    ObjectName,
    Verdict,
)
from compute_kubectl.explain.hub_stages import (
    judge_applied,
    judge_claimed,
    judge_federated,
    judge_scheduled,
)
from compute_kubectl.explain.instance_stages import judge_instances
from compute_kubectl.explain.project_stages import judge_placed, judge_planned
from compute_kubectl.explain.report_stages import judge_reported, judge_shown
from compute_kubectl.explain.stage_result import (
    Blocked,
    Hidden,
    StageResult,
    Standing,
    find_standing,
)
from compute_kubectl.explain.stages import STAGES, Owner, Stage
from compute_kubectl.snapshot.access import Access
from compute_kubectl.snapshot.objects import SeenWorkload
from compute_kubectl.snapshot.planes import Snapshot

ZERO = timedelta()
_MOST_SIMILAR = 3


@dataclass(frozen=True, slots=True)
class Subject:
    """The Workload that is asked about; the UID alone where only the hub could be read."""

    name: str
    uid: str = ""


def explain(snapshot: Snapshot, now: datetime, subject: Subject) -> Diagnosis:
    """Where the Workload stands in each city, and what two planes disagree about."""
    workload = next(
        (one for one in snapshot.project.workloads if one.meta.name == subject.name), None
    )
    uid = workload.meta.uid if workload else subject.uid or _uid_elsewhere(snapshot, subject.name)
    chains = build_chains(snapshot, workload, uid) if uid else ()
    cities = tuple(_explain_city(chain, now) for chain in chains)
    diagnosis = Diagnosis(
        namespace=snapshot.namespace,
        name=subject.name,
        uid=uid,
        generation=workload.meta.generation if workload else 0,
        verdict=Verdict.READY,
        at=now,
        cities=cities,
        contradictions=find_contradictions(snapshot, chains),
        planes=snapshot.planes,
        unread=snapshot.unread,
        conditions=_conditions(snapshot, workload),
    )
    if workload is None:
        return _without_workload(snapshot, diagnosis)
    return _summed_up(snapshot, diagnosis, workload)


def _uid_elsewhere(snapshot: Snapshot, name: str) -> str:
    """The UID that a deployment on another plane names: the project may be unreadable."""
    listings = [snapshot.project.deployments, snapshot.hub.deployments]
    listings += [snapshot.cells[cell].deployments for cell in sorted(snapshot.cells)]
    for listing in listings:
        for one in listing:
            if one.workload_name == name and one.workload_uid:
                return one.workload_uid
    return ""


# --- one city -------------------------------------------------------------------------------------


def judge(chain: Chain) -> tuple[StageResult, ...]:
    """The result of every stage, in order."""
    return (
        judge_planned(chain),
        judge_placed(chain),
        judge_federated(chain),
        judge_claimed(chain),
        judge_scheduled(chain),
        judge_applied(chain),
        judge_delivered(chain),
        judge_acted_on(chain),
        *judge_instances(chain),
        judge_reported(chain),
        judge_shown(chain),
    )


def _explain_city(chain: Chain, now: datetime) -> CityDiagnosis:
    ready = _count_ready(chain)
    city = CityDiagnosis(
        placement=chain.placement,
        city=chain.city,
        cell=chain.cell_name,
        deployment=chain.deployment_name,
        verdict=Verdict.READY,
        desired=_desired(chain),
        ready=ready,
        blocked=max(_desired(chain) - ready, 0),
    )
    if is_deleting(chain):
        finding = explain_deletion(chain)
        return _with_finding(replace(city, verdict=Verdict.DELETING), finding, now)
    standing = find_standing(judge(chain))
    city = replace(city, hidden=_hidden_before(standing), notes=standing.notes)
    return _standing_at(city, chain, standing, now)


def _hidden_before(standing: Standing) -> tuple[str, ...]:
    """Hidden stages up to the one where it stands, those of one plane together.

    Example: `3-6 federated to applied (hub: not asked)`.
    """
    groups: list[list[Hidden]] = []
    for one in standing.hidden:
        if isinstance(standing.result, Blocked) and one.stage > standing.result.stage:
            break
        last = groups[-1][-1] if groups else None
        if last and (last.plane, last.access, last.stage + 1) == (one.plane, one.access, one.stage):
            groups[-1].append(one)
        else:
            groups.append([one])
    return tuple(_range_text(group[0], group[-1]) for group in groups)


def _range_text(first: Hidden, last: Hidden) -> str:
    where = f"({first.plane}: {first.access.value})"
    if first is last:
        return f"{first.stage.value} {first.stage.label} {where}"
    stages = f"{first.stage.value}-{last.stage.value}"
    return f"{stages} {first.stage.label} to {last.stage.label} {where}"


def _standing_at(
    city: CityDiagnosis, chain: Chain, standing: Standing, now: datetime
) -> CityDiagnosis:
    match standing.result:
        case None:
            return city
        case Blocked(finding=finding, others=others):
            waiting = replace(city, verdict=Verdict.WAITING, others=others)
            return _with_finding(waiting, finding, now)
        case Hidden() as hidden:
            return _with_finding(
                replace(city, verdict=Verdict.NOT_VISIBLE), _not_visible(chain, hidden), now
            )


def _not_visible(chain: Chain, hidden: Hidden) -> Finding:
    """A stage that cannot be seen from here, with the time since its input changed."""
    deployment = chain.deployment or chain.hub_deployment
    facts = STAGES[hidden.stage]
    plane = chain.snapshot.project.facts.name
    return Finding(
        hidden.stage,
        facts.owner,
        f"stage {hidden.stage.value} {hidden.stage.label} is not visible from here "
        f"({hidden.plane}: {hidden.access.value}); platform operators can look",
        since=deployment.meta.spec_changed if deployment else None,
        object=ObjectName.of(plane, deployment.meta, "WorkloadDeployment") if deployment else None,
        message=hidden.detail,
    )


def _with_finding(city: CityDiagnosis, finding: Finding, now: datetime) -> CityDiagnosis:
    age = age_of(finding, now)
    return replace(
        city, finding=finding, age=age, actionability=classify(finding, age, city.verdict)
    )


def age_of(finding: Finding, now: datetime) -> timedelta | None:
    """How long it has been so; planes' clocks differ, so never below zero."""
    return None if finding.since is None else max(now - finding.since, ZERO)


def within_of(finding: Finding) -> timedelta:
    return finding.within or STAGES[finding.stage].within


def classify(finding: Finding, age: timedelta | None, verdict: Verdict) -> Actionability:
    """A cause has its own turn; else within the stage's time it is transient, after it stalled."""
    if finding.turn is not None:
        return finding.turn
    if age is None or age <= within_of(finding):
        return Actionability.TRANSIENT
    return Actionability.PLATFORM if verdict is Verdict.NOT_VISIBLE else Actionability.STALLED


def _desired(chain: Chain) -> int:
    if chain.workload is not None and chain.is_wanted:
        for placement in chain.workload.placements:
            if placement.name == chain.placement and not placement.is_autoscaled:
                return placement.min_replicas
    return chain.desired if chain.is_wanted else 0


def _count_ready(chain: Chain) -> int:
    _, listing, _ = chain.instances
    if listing.access is Access.READ:
        slots = slots_of(chain)
        return sum(one.is_true(conditions.READY) for one in slots.by_ordinal.values())
    nearest = chain.nearest_deployment
    return nearest.counters.ready if nearest else 0


# --- the whole ------------------------------------------------------------------------------------


def _conditions(snapshot: Snapshot, workload: SeenWorkload | None) -> tuple[Evidence, ...]:
    if workload is None:
        return ()
    name = ObjectName.of(snapshot.project.facts.name, workload.meta, "Workload")
    return tuple(
        Evidence(name, one.type, f"{one.status} {one.reason}") for one in workload.conditions
    )


def _without_workload(snapshot: Snapshot, diagnosis: Diagnosis) -> Diagnosis:
    """The Workload is absent, or the project could not be read."""
    listed = snapshot.project.workloads
    if listed.proves_absence:
        names_there = [one.meta.name for one in listed]
        similar = get_close_matches(diagnosis.name, names_there, n=_MOST_SIMILAR)
        return replace(diagnosis, verdict=Verdict.NOT_FOUND, similar=tuple(similar))
    verdicts = {city.verdict for city in diagnosis.cities}
    if not verdicts or Verdict.NOT_VISIBLE in verdicts:
        return replace(_with_worst(diagnosis), verdict=Verdict.NOT_VISIBLE)
    verdict = Verdict.READY if verdicts == {Verdict.READY} else Verdict.WAITING
    return replace(_with_worst(diagnosis), verdict=verdict)


def _summed_up(snapshot: Snapshot, diagnosis: Diagnosis, workload: SeenWorkload) -> Diagnosis:
    if workload.meta.is_terminating:
        return replace(_with_worst(diagnosis), verdict=Verdict.DELETING)
    if any(city.verdict is not Verdict.READY for city in diagnosis.cities):
        return replace(_with_worst(diagnosis), verdict=Verdict.WAITING)
    ready = workload.condition(conditions.READY)
    if (ready is not None and ready.is_true) or not diagnosis.cities:
        return replace(diagnosis, verdict=Verdict.READY if diagnosis.cities else Verdict.WAITING)
    return _lagging_workload(snapshot, diagnosis, workload)


def _lagging_workload(
    snapshot: Snapshot, diagnosis: Diagnosis, workload: SeenWorkload
) -> Diagnosis:
    """Every city is ready; only the Workload's own status is behind."""
    plane = snapshot.project.facts.name
    ready = workload.condition(conditions.READY)
    finding = Finding(
        Stage.SHOWN,
        Owner.WORKLOAD,
        "every city is ready; the Workload's own status is not up to date",
        reason=ready.reason if ready else "",
        message=ready.message if ready else "",
        since=ready.since if ready else workload.meta.spec_changed,
        level=Level.WORKLOAD,
        object=ObjectName.of(plane, workload.meta, "Workload"),
        condition_type=conditions.READY,
        status=ready.status if ready else "",
    )
    age = age_of(finding, diagnosis.at)
    return replace(
        diagnosis,
        verdict=Verdict.WAITING,
        finding=finding,
        age=age,
        actionability=classify(finding, age, Verdict.WAITING),
    )


_ORDER = (
    Actionability.USER,
    Actionability.PLATFORM,
    Actionability.STALLED,
    Actionability.TRANSIENT,
)


def rank_cities(cities: Sequence[CityDiagnosis]) -> tuple[CityDiagnosis, ...]:
    """Causes before stalls before waits; then rank; then placement, city, cell, ordinal."""

    def key(city: CityDiagnosis) -> tuple[bool, bool, int, int, str, str, str, int]:
        finding, act = city.finding, city.actionability
        is_caused = finding is not None and finding.turn is not None
        return (
            finding is None,
            not is_caused,
            -conditions.rank(finding.reason) if finding and is_caused else 0,
            _ORDER.index(act) if act else len(_ORDER),
            city.placement,
            city.city,
            city.cell,
            finding.ordinal if finding else 0,
        )

    return tuple(sorted(cities, key=key))


def _with_worst(diagnosis: Diagnosis) -> Diagnosis:
    """The finding of the city that needs attention first becomes that of the Workload."""
    ranked = [one for one in rank_cities(diagnosis.cities) if one.finding is not None]
    if not ranked:
        return diagnosis
    worst = ranked[0]
    return replace(
        diagnosis, finding=worst.finding, age=worst.age, actionability=worst.actionability
    )
