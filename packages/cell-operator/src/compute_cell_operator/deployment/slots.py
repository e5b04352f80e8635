"""Which Instances belong to a deployment, and how each slot is doing. Pure (cell.md 5.2, 5.4).

```
 name web-0   web-1          web-x        web-2            web-3
 owner us     nobody, our    us           another uid      us
              uid label
 ──────────── ────────────── ──────────── ──────────────── ───────────────────────────
 slot 0       slot 1, owner  stray:       foreign in slot  slot 3: surplus, if 3 are
              is restored    surplus      2: waited for    wanted
```

Ownership is what counts. A label may be wrong and is repaired; nothing is deleted for a label.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from compute_api_types import labels, names
from compute_api_types.template_hash import HashVerdict
from compute_operator_kit.keys import Uid
from compute_operator_kit.objects import Metadata


@dataclass(frozen=True, slots=True)
class Candidate:
    """An Instance in the deployment's namespace, as far as planning needs it."""

    metadata: Metadata
    revision: HashVerdict
    is_ready: bool

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def is_terminating(self) -> bool:
        return self.metadata.is_deleting


class Belonging(StrEnum):
    """What an Instance is to a deployment."""

    SLOT = "slot"
    UNOWNED_SLOT = "unowned slot"  # ours by label and name, its owner reference lost
    STRAY = "stray"
    FOREIGN = "foreign"
    NOTHING = "nothing"


class SlotState(StrEnum):
    """How a wanted slot is doing."""

    MISSING = "missing"
    FOREIGN = "foreign"
    TERMINATING = "terminating"
    FRESH_UNREADY = "fresh-unready"
    STALE_UNREADY = "stale-unready"
    STALE_READY = "stale-ready"
    OK = "ok"

    @property
    def is_in_flight(self) -> bool:
        """Something is under way there that has to end before another slot is touched."""
        return self in {SlotState.FOREIGN, SlotState.TERMINATING, SlotState.FRESH_UNREADY}

    @property
    def is_ready(self) -> bool:
        return self in {SlotState.OK, SlotState.STALE_READY}


@dataclass(frozen=True, slots=True)
class Slots:
    """All Instances around a deployment, sorted out."""

    by_ordinal: Mapping[int, Candidate] = field(default_factory=dict[int, Candidate])
    foreign: Mapping[int, Candidate] = field(default_factory=dict[int, Candidate])
    strays: tuple[Candidate, ...] = ()
    unowned: frozenset[str] = frozenset()  # names of slots whose owner reference has to come back

    @property
    def owned(self) -> tuple[Candidate, ...]:
        """Everything that is ours, slots by ordinal and then strays by name."""
        return (*(self.by_ordinal[ordinal] for ordinal in sorted(self.by_ordinal)), *self.strays)

    def state(self, ordinal: int) -> SlotState:
        found = self.by_ordinal.get(ordinal)
        if found is None:
            return SlotState.FOREIGN if ordinal in self.foreign else SlotState.MISSING
        if found.is_terminating:
            return SlotState.TERMINATING
        if found.revision is HashVerdict.STALE:
            return SlotState.STALE_READY if found.is_ready else SlotState.STALE_UNREADY
        return SlotState.OK if found.is_ready else SlotState.FRESH_UNREADY


def derive_slots(deployment: str, uid: Uid, candidates: Iterable[Candidate]) -> Slots:
    """Sorts the Instances of a namespace by what they are to one deployment."""
    by_ordinal: dict[int, Candidate] = {}
    foreign: dict[int, Candidate] = {}
    strays: list[Candidate] = []
    unowned: set[str] = set()
    for candidate in candidates:
        ordinal = names.parse_ordinal(deployment, candidate.name)
        match derive_belonging(candidate.metadata, uid, ordinal):
            case Belonging.STRAY:
                strays.append(candidate)
            case Belonging.FOREIGN if ordinal is not None:
                foreign[ordinal] = candidate
            case Belonging.SLOT | Belonging.UNOWNED_SLOT as belonging if ordinal is not None:
                by_ordinal[ordinal] = candidate
                if belonging is Belonging.UNOWNED_SLOT:
                    unowned.add(candidate.name)
            case _:
                continue
    strays.sort(key=lambda stray: stray.name)
    return Slots(by_ordinal, foreign, tuple(strays), frozenset(unowned))


def derive_belonging(metadata: Metadata, uid: Uid, ordinal: int | None) -> Belonging:
    """What one Instance is to the deployment with this uid; first match (cell.md 5.2)."""
    controller = metadata.controller
    if controller is not None and controller.uid == uid:
        return Belonging.STRAY if ordinal is None else Belonging.SLOT
    if ordinal is None:
        return Belonging.NOTHING
    if controller is None and metadata.labels.get(labels.WORKLOAD_DEPLOYMENT_UID) == uid:
        return Belonging.UNOWNED_SLOT
    return Belonging.FOREIGN
