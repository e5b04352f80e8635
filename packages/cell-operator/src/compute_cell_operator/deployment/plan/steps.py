"""Steps on the slots of a deployment, as values: create, remove, wait, hold.

Steps that do nothing now are values too, so that stories and tests can show what is held back.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from compute_cell_operator.deployment.slots import SlotInstance

AWAITING_DATA: Final = "referenced-data"
"""Reason of a `WaitStep` for a roll that waits for referenced data."""


class Purpose(StrEnum):
    """Why an Instance is removed."""

    SURPLUS = "surplus"
    RECREATE = "recreate"  # a successor in its slot follows once it is gone
    DELETING = "deleting"  # the deployment itself is deleted


@dataclass(frozen=True, slots=True)
class CreateStep:
    """Create the Instance of a slot."""

    ordinal: int


@dataclass(frozen=True, slots=True)
class RemoveStep:
    """Delete this Instance, by its UID."""

    instance: SlotInstance
    purpose: Purpose


@dataclass(frozen=True, slots=True)
class WaitStep:
    """Wait until the change in this slot has ended."""

    ordinal: int
    reason: str


@dataclass(frozen=True, slots=True)
class HoldStep:
    """This slot is the next to be created, once the wait is over."""

    ordinal: int


Step: TypeAlias = CreateStep | RemoveStep | HoldStep | WaitStep
