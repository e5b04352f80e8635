"""Slots of a deployment: the Instance in each of them, and its state. Pure (cell.md 5.2, 5.4).

```
 name web-0   web-1          web-x        web-2            web-3
 owner us     none, our      us           another uid      us
              uid label
 ──────────── ────────────── ──────────── ──────────────── ───────────────────────────
 slot 0       slot 1, owner  stray:       foreign in slot  slot 3: surplus, if 3 are
              is restored    surplus      2: waited for    desired
```

Only the controller reference decides ownership. A label may be wrong and is repaired; an Instance
deleted for its label could be another deployment's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from compute_api_types import conditions, labels, names
from compute_api_types.template_hash import HashVerdict
from compute_cell_operator.conditions import ReportedCondition
from compute_operator_kit.core.keys import ObjectKey, Uid
from compute_operator_kit.core.objects import Metadata


class SlotSuspension(StrEnum):
    """How far an Instance is suspended."""

    NONE = "none"
    SUSPENDED = "suspended"  # its provider has the order to stop it
    STOPPED = "stopped"  # its provider reports that nothing of it runs


@dataclass(frozen=True, slots=True)
class SlotInstance:
    """An Instance of the deployment, or another one in a slot of it."""

    key: ObjectKey
    metadata: Metadata
    revision: HashVerdict  # of the template it was made from
    reported_revision: HashVerdict | None = None  # of the template its provider reports, if any
    gates: tuple[str, ...] = ()
    location: str = ""
    interfaces: int = 0
    conditions: tuple[ReportedCondition, ...] = ()  # those in `instance_digest.CONDITIONS`
    is_unmarked: bool = False  # current by its content alone: it does not carry our hash yet
    suspension: SlotSuspension = SlotSuspension.NONE

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def is_terminating(self) -> bool:
        return self.metadata.is_deleting

    @property
    def is_ready(self) -> bool:
        return conditions.is_true(self.conditions, conditions.READY)

    def condition(self, condition_type: str) -> ReportedCondition | None:
        return conditions.find(self.conditions, condition_type)


class Belonging(StrEnum):
    """Relation of an Instance to a deployment."""

    SLOT = "slot"
    UNOWNED_SLOT = "unowned slot"  # ours by label and name, its owner reference lost
    STRAY = "stray"
    FOREIGN = "foreign"
    NOTHING = "nothing"


class DeploymentSlotState(StrEnum):
    """State of a desired slot."""

    MISSING = "missing"
    FOREIGN = "foreign"
    TERMINATING = "terminating"
    FRESH_UNREADY = "fresh-unready"
    STALE_UNREADY = "stale-unready"
    STALE_READY = "stale-ready"
    OK = "ok"

    @property
    def is_in_flight(self) -> bool:
        """A change is in progress that has to end before another slot is touched."""
        return self in {
            DeploymentSlotState.FOREIGN,
            DeploymentSlotState.TERMINATING,
            DeploymentSlotState.FRESH_UNREADY,
        }

    @property
    def is_ready(self) -> bool:
        return self in {DeploymentSlotState.OK, DeploymentSlotState.STALE_READY}


@dataclass(frozen=True, slots=True)
class Slots:
    """All Instances around a deployment, by what they are to it."""

    by_ordinal: Mapping[int, SlotInstance] = field(default_factory=dict[int, SlotInstance])
    foreign: Mapping[int, SlotInstance] = field(default_factory=dict[int, SlotInstance])
    strays: tuple[SlotInstance, ...] = ()
    unowned: frozenset[str] = frozenset()  # names of Instances that lost their owner reference

    @property
    def owned(self) -> tuple[SlotInstance, ...]:
        """All Instances of the deployment: slots by ordinal, then strays by name."""
        return (*(self.by_ordinal[ordinal] for ordinal in sorted(self.by_ordinal)), *self.strays)

    def state(self, ordinal: int) -> DeploymentSlotState:
        instance = self.by_ordinal.get(ordinal)
        if instance is None:
            is_foreign = ordinal in self.foreign
            return DeploymentSlotState.FOREIGN if is_foreign else DeploymentSlotState.MISSING
        if instance.is_terminating:
            return DeploymentSlotState.TERMINATING
        if instance.revision is HashVerdict.STALE:
            is_ready = instance.is_ready
            return (
                DeploymentSlotState.STALE_READY if is_ready else DeploymentSlotState.STALE_UNREADY
            )
        return DeploymentSlotState.OK if instance.is_ready else DeploymentSlotState.FRESH_UNREADY


def derive_slots(deployment: str, uid: Uid, instances: Iterable[SlotInstance]) -> Slots:
    """Sorts Instances of a namespace by what they are to one deployment."""
    by_ordinal: dict[int, SlotInstance] = {}
    foreign: dict[int, SlotInstance] = {}
    strays: list[SlotInstance] = []
    unowned: set[str] = set()
    for instance in instances:
        ordinal = names.parse_ordinal(deployment, instance.name)
        match derive_belonging(instance.metadata, uid, ordinal):
            case Belonging.STRAY:
                strays.append(instance)
            case Belonging.FOREIGN if ordinal is not None:
                foreign[ordinal] = instance
            case Belonging.SLOT | Belonging.UNOWNED_SLOT as belonging if ordinal is not None:
                by_ordinal[ordinal] = instance
                if belonging is Belonging.UNOWNED_SLOT:
                    unowned.add(instance.name)
            case _:
                continue
    strays.sort(key=lambda stray: stray.name)
    return Slots(by_ordinal, foreign, tuple(strays), frozenset(unowned))


def derive_belonging(metadata: Metadata, uid: Uid, ordinal: int | None) -> Belonging:
    """Relation of one Instance to the deployment with this UID; first match (cell.md 5.2)."""
    controller = metadata.controller
    if controller is not None and controller.uid == uid:
        return Belonging.STRAY if ordinal is None else Belonging.SLOT
    if ordinal is None:
        return Belonging.NOTHING
    if controller is None and metadata.labels.get(labels.WORKLOAD_DEPLOYMENT_UID) == uid:
        return Belonging.UNOWNED_SLOT
    return Belonging.FOREIGN
