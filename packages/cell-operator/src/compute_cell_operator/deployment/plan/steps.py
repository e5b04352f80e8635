"""The steps a plan is made of. Values, no behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from compute_cell_operator.deployment.slots import Candidate


class Purpose(StrEnum):
    """Why an Instance is removed."""

    SURPLUS = "surplus"
    RECREATE = "recreate"  # its slot gets a successor once it is gone
    DELETING = "deleting"  # the deployment itself goes


@dataclass(frozen=True, slots=True)
class Create:
    """Fill a slot."""

    ordinal: int


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete this very Instance; whoever carries it out names its uid."""

    candidate: Candidate
    purpose: Purpose


@dataclass(frozen=True, slots=True)
class Wait:
    """A slot has to come to rest first."""

    ordinal: int
    reason: str


@dataclass(frozen=True, slots=True)
class Hold:
    """This slot is next to be created, once what the plan waits for has happened."""

    ordinal: int
