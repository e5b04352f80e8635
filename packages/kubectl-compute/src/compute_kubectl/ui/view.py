"""Snapshot and moment → everything the page shows: cities, cells, Workloads, Instances. Pure.

The page draws this document and decides nothing: states and words are derived here, where they can
be tested. Moments are absolute, so that the document of an unchanged system stays the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from compute_api_types import conditions
from compute_kubectl.explain.causes import explanation_of
from compute_kubectl.explain.chain import Chain, build_chains
from compute_kubectl.explain.diagnosis import CityDiagnosis, Diagnosis, Verdict
from compute_kubectl.explain.explain import Subject, explain
from compute_kubectl.render import words
from compute_kubectl.snapshot.access import Access
from compute_kubectl.snapshot.objects import SeenCluster, SeenDeployment, SeenInstance
from compute_kubectl.snapshot.planes import Snapshot
from compute_kubectl.ui.places import Place, place_of

# More would make a page that is neither drawn quickly nor read.
MOST_WORKLOADS: Final = 200
MOST_INSTANCES: Final = 50
NEVER_SILENT: Final[Mapping[str, datetime]] = MappingProxyType({})


class State(StrEnum):
    """How a city, a cell, a Workload or an Instance is doing; each has a shape of its own."""

    READY = "ready"
    WAITING = "waiting"
    UNREACHABLE = "unreachable"
    DELETING = "deleting"
    HIDDEN = "hidden"
    EMPTY = "empty"


_OF_VERDICT: Final = {
    Verdict.READY: State.READY,
    Verdict.WAITING: State.WAITING,
    Verdict.DELETING: State.DELETING,
    Verdict.NOT_VISIBLE: State.HIDDEN,
    Verdict.NOT_FOUND: State.HIDDEN,
}
_WORDS: Final = {
    State.READY: "Ready",
    State.WAITING: "Waiting",
    State.UNREACHABLE: "Unreachable",
    State.DELETING: "Being deleted",
    State.HIDDEN: "Not visible",
    State.EMPTY: "No Workload",
}
# The state of a city is the first of these that one of its parts has.
_WORST: Final = (
    State.UNREACHABLE,
    State.WAITING,
    State.DELETING,
    State.HIDDEN,
    State.READY,
    State.EMPTY,
)


@dataclass(frozen=True, slots=True)
class InstanceView:
    """One Instance, as the plane nearest to it shows it."""

    name: str
    state: State
    words: str
    reason: str = ""
    message: str = ""
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class WorkloadView:
    """One placement of a Workload in one city, on one cell."""

    name: str
    placement: str
    cell: str
    state: State
    words: str
    ready: int
    total: int
    stage: int = 0
    blocker: str = ""
    reason: str = ""
    turn: str = ""
    since: datetime | None = None
    instances: tuple[InstanceView, ...] = ()
    more: int = 0
    """How many Instances are left out."""


@dataclass(frozen=True, slots=True)
class CellView:
    """A cell by its Karmada Cluster and by its own API."""

    name: str
    state: State
    words: str
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class CityView:
    """A city with its cells, and what runs there."""

    code: str
    place: Place | None
    state: State
    words: str
    since: datetime | None = None
    ready: int = 0
    total: int = 0
    cells: tuple[CellView, ...] = ()
    workloads: tuple[WorkloadView, ...] = ()

    @property
    def name(self) -> str:
        return self.place.name if self.place else self.code


@dataclass(frozen=True, slots=True)
class ContradictionView:
    """Two planes that disagree about a Workload."""

    workload: str
    text: str


@dataclass(frozen=True, slots=True)
class PageView:
    """The whole page."""

    project: str
    namespace: str
    cities: tuple[CityView, ...]
    contradictions: tuple[ContradictionView, ...] = ()
    unplaced: tuple[WorkloadView, ...] = ()
    """Workloads that no city has: none was planned, or none can be seen."""
    unread: tuple[str, ...] = ()
    more: int = field(default=0)
    """How many Workloads are left out."""


def view_of(
    snapshot: Snapshot, now: datetime, silent: Mapping[str, datetime] = NEVER_SILENT
) -> PageView:
    """What the page shows of one snapshot; `silent`: planes that do not answer, since when."""
    names = workload_names(snapshot)
    parts: dict[str, list[WorkloadView]] = {}
    unplaced: list[WorkloadView] = []
    contradictions: list[ContradictionView] = []
    unread: tuple[str, ...] = ()
    for name in names[:MOST_WORKLOADS]:
        diagnosis = explain(snapshot, now, Subject(name))
        contradictions += [ContradictionView(name, one.text) for one in diagnosis.contradictions]
        unread = tuple(words.unread_lines(diagnosis))
        if not diagnosis.cities:
            unplaced.append(_unplaced(diagnosis))
        chains = chains_of(snapshot, diagnosis)
        for city in diagnosis.cities:
            chain = chains.get((city.placement, city.city, city.cell))
            parts.setdefault(city.city, []).append(_workload(name, city, chain))
    return PageView(
        project=snapshot.project.facts.name,
        namespace=snapshot.namespace,
        cities=tuple(_cities(snapshot, parts, silent)),
        contradictions=tuple(dict.fromkeys(contradictions)),
        unplaced=tuple(unplaced),
        unread=unread or _unread_alone(snapshot, now),
        more=max(len(names) - MOST_WORKLOADS, 0),
    )


def workload_names(snapshot: Snapshot) -> tuple[str, ...]:
    """Workloads of the project, and those that only their deployments name."""
    found = {one.meta.name for one in snapshot.project.workloads}
    listings = [snapshot.project.deployments]
    if snapshot.project.workloads.access is not Access.READ:
        listings.append(snapshot.hub.deployments)
    found |= {one.workload_name for listing in listings for one in listing}
    return tuple(sorted(found - {""}))


def _unread_alone(snapshot: Snapshot, now: datetime) -> tuple[str, ...]:
    """Without a Workload there is no diagnosis that names the unread parts."""
    return tuple(words.unread_lines(explain(snapshot, now, Subject(""))))


def chains_of(snapshot: Snapshot, diagnosis: Diagnosis) -> dict[tuple[str, str, str], Chain]:
    """The chains of a diagnosed Workload by placement, city and cell."""
    named = (one for one in snapshot.project.workloads if one.meta.name == diagnosis.name)
    chains = build_chains(snapshot, next(named, None), diagnosis.uid) if diagnosis.uid else ()
    return {(one.placement, one.city, one.cell_name): one for one in chains}


# --- Workloads and Instances ----------------------------------------------------------------------


def _workload(name: str, city: CityDiagnosis, chain: Chain | None) -> WorkloadView:
    state, finding = _OF_VERDICT[city.verdict], city.finding
    shown = _instances(chain) if chain else ()
    instances = sorted(shown, key=lambda one: one.state is State.READY)
    return WorkloadView(
        name=name,
        placement=city.placement,
        cell=city.cell,
        state=state,
        words=_WORDS[state],
        ready=city.ready,
        total=city.desired,
        stage=finding.stage.value if finding else 0,
        blocker=finding.text if finding else "",
        reason=finding.reason if finding else "",
        turn=words.turn_of(finding, city.actionability) if finding else "",
        since=finding.since if finding else None,
        instances=tuple(instances[:MOST_INSTANCES]),
        more=max(len(instances) - MOST_INSTANCES, 0),
    )


def _unplaced(diagnosis: Diagnosis) -> WorkloadView:
    state, finding = _OF_VERDICT[diagnosis.verdict], diagnosis.finding
    return WorkloadView(
        name=diagnosis.name,
        placement="",
        cell="",
        state=state,
        words=_WORDS[state],
        ready=0,
        total=0,
        stage=finding.stage.value if finding else 0,
        blocker=finding.text if finding else words.headline(diagnosis),
        reason=finding.reason if finding else "",
        turn=words.turn_of(finding, diagnosis.actionability) if finding else "",
        since=finding.since if finding else None,
    )


def _instances(chain: Chain) -> Iterator[InstanceView]:
    _, _, instances = chain.instances
    for one in sorted(instances, key=_ordinal):
        yield _instance(one)


def _ordinal(one: SeenInstance) -> tuple[int, str]:
    ending = one.meta.name.rpartition("-")[2]
    return (int(ending) if ending.isdecimal() else 0, one.meta.name)


def _instance(one: SeenInstance) -> InstanceView:
    ready = one.condition(conditions.READY)
    name = one.meta.name
    if one.meta.is_terminating:
        return InstanceView(name, State.DELETING, _WORDS[State.DELETING], since=one.meta.deleted)
    if ready is not None and ready.is_true:
        return InstanceView(name, State.READY, _WORDS[State.READY], since=ready.since)
    reason = ready.reason if ready else ""
    message = (ready.message if ready else "") or explanation_of(reason)
    if not message and one.gates:
        message = f"gates: {', '.join(one.gates)}"
    since = (ready.since if ready else None) or one.meta.created
    return InstanceView(name, State.WAITING, _WORDS[State.WAITING], reason, message, since)


# --- cities and cells -----------------------------------------------------------------------------


def _cities(
    snapshot: Snapshot, parts: dict[str, list[WorkloadView]], silent: Mapping[str, datetime]
) -> Iterator[CityView]:
    codes = set(parts) | {one.city for one in snapshot.hub.clusters}
    for code in sorted(codes - {""}):
        workloads = parts.get(code, [])
        yield _city(code, tuple(_cells(snapshot, code, workloads, silent)), workloads)


def _city(code: str, cells: tuple[CellView, ...], workloads: list[WorkloadView]) -> CityView:
    away = [one for one in cells if one.state is State.UNREACHABLE]
    states = {one.state for one in workloads} | {State.EMPTY}
    if away:
        states.add(State.UNREACHABLE)
    state = next(one for one in _WORST if one in states)
    causes = [one.since for one in (away or workloads) if one.state is state and one.since]
    return CityView(
        code=code,
        place=place_of(code),
        state=state,
        words=_city_words(state, away, cells),
        since=min(causes, default=None),
        ready=sum(one.ready for one in workloads),
        total=sum(one.total for one in workloads),
        cells=cells,
        workloads=tuple(workloads),
    )


def _city_words(state: State, away: list[CellView], cells: tuple[CellView, ...]) -> str:
    if away and len(away) < len(cells):
        return f"{len(away)} of {len(cells)} cells unreachable"
    return _WORDS[state]


def _cells(
    snapshot: Snapshot, code: str, workloads: list[WorkloadView], silent: Mapping[str, datetime]
) -> Iterator[CellView]:
    clusters = {one.meta.name: one for one in snapshot.hub.clusters if one.city == code}
    locations = {
        name for name, cell in snapshot.cells.items() if _is_of_city(cell.deployments.items, code)
    }
    named = {one.cell for one in workloads if one.cell}
    for name in sorted(set(clusters) | locations | named):
        yield _cell(snapshot, name, clusters.get(name), silent.get(name))


def _is_of_city(deployments: Sequence[SeenDeployment], code: str) -> bool:
    return any(one.city == code for one in deployments)


def _cell(
    snapshot: Snapshot, name: str, cluster: SeenCluster | None, silent: datetime | None
) -> CellView:
    access = snapshot.cell(name).facts.access
    ready = cluster.condition(conditions.READY) if cluster else None
    if cluster is not None and (ready is None or not ready.is_true):
        why = ready.reason if ready else "no report"
        since = ready.since if ready else cluster.meta.created
        return CellView(name, State.UNREACHABLE, f"not reachable for Karmada: {why}", since)
    if access is Access.UNREACHABLE:
        return CellView(name, State.UNREACHABLE, "its API does not answer", silent)
    api = f"API {access.value}"
    if ready is not None:
        return CellView(name, State.READY, f"ready for Karmada, {api}", ready.since)
    state = State.READY if access is Access.READ else State.HIDDEN
    return CellView(name, state, f"hub not visible, {api}")
