"""Values of an answer: findings with their evidence, the standing of each city, contradictions.

Text and JSON are rendered from these values alone, so that both outputs and the page show the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from compute_kubectl.explain.causes import Actionability
from compute_kubectl.explain.stages import Stage
from compute_kubectl.snapshot.objects import Meta
from compute_kubectl.snapshot.planes import PlaneFacts, Unread


class Verdict(StrEnum):
    """How a Workload or one of its cities is doing."""

    READY = "ready"
    WAITING = "waiting"
    DELETING = "deleting"
    NOT_VISIBLE = "not visible"
    NOT_FOUND = "not found"


class Level(StrEnum):
    """What kind of object a finding is about."""

    WORKLOAD = "Workload"
    PLACEMENT = "Placement"
    DEPLOYMENT = "WorkloadDeployment"
    INSTANCE = "Instance"


@dataclass(frozen=True, slots=True)
class ObjectName:
    """An object on a plane."""

    plane: str
    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, plane: str, meta: Meta, kind: str = "") -> ObjectName:
        return cls(plane, meta.kind or kind, meta.namespace, meta.name)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One value that was read, with its place."""

    object: ObjectName
    field: str
    value: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Why a stage is not passed.

    `reason` is a word of `reasons.py` or of a neighbour, or empty where nothing is reported; `text`
    is our own sentence about it, `message` what the object carries.
    """

    stage: Stage
    owner: str
    text: str
    reason: str = ""
    message: str = ""
    since: datetime | None = None
    within: timedelta | None = None
    level: Level = Level.DEPLOYMENT
    object: ObjectName | None = None
    condition_type: str = ""
    status: str = ""
    turn: Actionability | None = None
    ordinal: int = -1
    evidence: tuple[Evidence, ...] = ()
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CityDiagnosis:
    """Where one placement stands in one city, on one cell."""

    placement: str
    city: str
    cell: str
    deployment: str
    verdict: Verdict
    desired: int
    ready: int
    blocked: int = 0
    finding: Finding | None = None
    actionability: Actionability | None = None
    age: timedelta | None = None
    hidden: tuple[str, ...] = ()
    """Stages that cannot be seen from here, each with the plane and the state of its read."""
    notes: tuple[str, ...] = ()
    """What could not be proved and what was assumed instead."""
    others: tuple[Finding, ...] = ()
    """Further findings of the same city, less specific than the first."""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two planes that show different things about one object."""

    text: str
    first: Evidence
    second: Evidence
    first_at: datetime | None = None
    second_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The answer to why a Workload does not run."""

    namespace: str
    name: str
    uid: str
    generation: int
    verdict: Verdict
    at: datetime
    cities: tuple[CityDiagnosis, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    planes: tuple[PlaneFacts, ...] = ()
    unread: tuple[Unread, ...] = ()
    finding: Finding | None = None
    actionability: Actionability | None = None
    age: timedelta | None = None
    similar: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    conditions: tuple[Evidence, ...] = field(default=())

    @property
    def desired(self) -> int:
        return sum(city.desired for city in self.cities)

    @property
    def ready(self) -> int:
        return sum(city.ready for city in self.cities)
