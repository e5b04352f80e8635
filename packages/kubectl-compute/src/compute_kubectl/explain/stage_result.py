"""The result of one stage: passed, blocked or hidden, and how far its evidence proves the way.

Evidence of a later stage proves the earlier ones: a cell that reports the hub's generation has been
reached, whatever a plane in between shows or hides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from compute_kubectl.explain.diagnosis import Evidence, Finding, ObjectName
from compute_kubectl.explain.stages import Stage
from compute_kubectl.snapshot.access import Access, Listing
from compute_kubectl.snapshot.objects import SeenObject
from compute_kubectl.snapshot.planes import PlaneFacts

NOTHING_PROVED = 0


@dataclass(frozen=True, slots=True)
class Passed:
    """The stage is passed; `through` is the last stage that its evidence proves."""

    stage: Stage
    through: int = NOTHING_PROVED
    note: str = ""


@dataclass(frozen=True, slots=True)
class Blocked:
    """The stage is not passed; `through` is the last stage that the evidence proves as passed."""

    finding: Finding
    through: int = NOTHING_PROVED
    others: tuple[Finding, ...] = ()

    @property
    def stage(self) -> Stage:
        return self.finding.stage


@dataclass(frozen=True, slots=True)
class Hidden:
    """The plane of the stage could not be read, so nothing is known about it."""

    stage: Stage
    plane: str
    access: Access
    detail: str = ""


StageResult: TypeAlias = Passed | Blocked | Hidden


@dataclass(frozen=True, slots=True)
class Standing:
    """The first stage that is not passed, and the stages before it that nothing shows."""

    result: Blocked | Hidden | None
    hidden: tuple[Hidden, ...] = ()
    notes: tuple[str, ...] = ()


def find_standing(results: Sequence[StageResult]) -> Standing:
    """The first stage that is not passed and that no later evidence proves as passed.

    Example: 3 hidden, 4 to 7 hidden, 9 blocked by an Instance that runs the current template: the
    Instance proves 3 to 8, so the standing is 9. A cause that is seen beats a stage that is not.
    """
    notes = tuple(one.note for one in results if isinstance(one, Passed) and one.note)
    open_ones = [
        one
        for place, one in enumerate(results)
        if not isinstance(one, Passed) and not _is_proved(one, results[place + 1 :])
    ]
    hidden = tuple(one for one in open_ones if isinstance(one, Hidden))
    # What a project shows is the last step: without access to it the rest is judged all the same.
    standing = [one for one in open_ones if isinstance(one, Blocked) or one.stage < Stage.SHOWN]
    first = standing[0] if standing else None
    if isinstance(first, Hidden):
        causes = (one for one in standing if isinstance(one, Blocked) and one.finding.turn)
        return Standing(next(causes, first), hidden, notes)
    return Standing(first, hidden, notes)


_KARMADA: Final = (Stage.CLAIMED, Stage.SCHEDULED, Stage.APPLIED, Stage.DELIVERED)


def _is_proved(result: Blocked | Hidden, later: Sequence[StageResult]) -> bool:
    """Whether later evidence shows that the stage was passed.

    A block is only outdone at a stage of Karmada, and only by a stage that is passed: what is
    delivered was scheduled, whatever the binding shows. What project, hub copy and cell show of
    themselves stands. A hidden stage is proved by any later evidence.
    """
    if isinstance(result, Blocked):
        proofs = [one.through for one in later if isinstance(one, Passed)]
        return result.stage in _KARMADA and max(proofs, default=0) >= result.stage
    if result.stage is Stage.REPORTED:
        # What the project shows was reported, even where the hub cannot be read.
        return any(isinstance(one, Passed) and one.stage is Stage.SHOWN for one in later)
    proofs = [one.through for one in later if not isinstance(one, Hidden)]
    return max(proofs, default=0) >= result.stage


def hidden_by(stage: Stage, facts: PlaneFacts, *listings: Listing[SeenObject]) -> Hidden | None:
    """The stage as hidden where one of the listings it needs was not read."""
    for listing in listings:
        if listing.access is not Access.READ:
            return Hidden(stage, facts.name, listing.access, listing.detail)
    return None


def seen(plane: str, one: SeenObject, field: str, value: object, kind: str = "") -> Evidence:
    """A value of an object as evidence."""
    return Evidence(ObjectName.of(plane, one.meta, kind), field, str(value))


def latest(*times: datetime | None) -> datetime | None:
    """The latest of the known times."""
    return max((one for one in times if one is not None), default=None)
