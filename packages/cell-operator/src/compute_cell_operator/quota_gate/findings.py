"""What is known about the quota of an Instance, as values. Pure (quota.md B3, B4).

A quota worker leaves them in a cache and the instance pass reads them: this is all the pass knows
of quota. A finding holds for the Instance and the size it was made for and for no other, so that
the grant of a predecessor opens nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from compute_operator_kit.keys import Uid

Step: TypeAlias = Literal["building", "getting", "creating", "adopting"]


@dataclass(frozen=True, slots=True)
class Disabled:
    """Row 1: quota is switched off."""


@dataclass(frozen=True, slots=True)
class Unresolvable:
    """Row 2: whose quota it is cannot be told, or is not proven."""

    what: Literal["ID", "namespace"]
    detail: str


@dataclass(frozen=True, slots=True)
class BackendUnavailable:
    """Row 3: the project plane could not be asked, and no held grant covers the Instance."""

    project: str
    step: Step
    detail: str


@dataclass(frozen=True, slots=True)
class SizeUnknown:
    """Row 4."""

    instance_type: str


@dataclass(frozen=True, slots=True)
class Undecided:
    """Row 5: nothing is known yet, or something has to go first."""


@dataclass(frozen=True, slots=True)
class Unevaluated:
    """Rows 5 and 6: the claim stands and waits for its verdict."""

    since: datetime


@dataclass(frozen=True, slots=True)
class NamespaceNotFound:
    """Row 7."""

    project: str
    namespace: str


@dataclass(frozen=True, slots=True)
class ProjectNotFound:
    """Row 8."""

    project: str


@dataclass(frozen=True, slots=True)
class AdmissionRejected:
    """Row 9."""

    project: str
    detail: str


@dataclass(frozen=True, slots=True)
class HeldByOtherCell:
    """Row 10: the name is taken by a claim that is never ours to touch."""

    namespace: str
    claim: str
    cell: str


@dataclass(frozen=True, slots=True)
class HeldByOtherService:
    """Row 10: the name is taken by a claim on what is not compute's."""

    namespace: str
    claim: str
    resource_type: str


@dataclass(frozen=True, slots=True)
class Granted:
    """Row 11; the only one, with `Disabled`, that opens a gate."""

    message: str
    is_held: bool = False  # on the last verdict, while the plane is away (quota.md B6)


@dataclass(frozen=True, slots=True)
class ClaimInvalid:
    """Row 12: the quota service calls the claim invalid."""

    message: str


@dataclass(frozen=True, slots=True)
class Shortage:
    """One request that was denied."""

    resource_type: str
    message: str


@dataclass(frozen=True, slots=True)
class ClaimDenied:
    """Row 12: it does not fit."""

    message: str
    shortages: tuple[Shortage, ...] = ()


Said: TypeAlias = (
    Disabled
    | Unresolvable
    | BackendUnavailable
    | SizeUnknown
    | Undecided
    | Unevaluated
    | NamespaceNotFound
    | ProjectNotFound
    | AdmissionRejected
    | HeldByOtherCell
    | HeldByOtherService
    | Granted
    | ClaimInvalid
    | ClaimDenied
)


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found, and what for."""

    uid: Uid
    requests: Mapping[str, int]
    said: Said

    def holds_for(self, uid: Uid, requests: Mapping[str, int]) -> bool:
        return self.uid == uid and self.requests == requests


def is_held_by_others(said: Said) -> bool:
    """Whether the name is taken by a claim that no watch of ours shows: only a look notices that
    it is gone.
    """
    return isinstance(said, HeldByOtherCell | HeldByOtherService)


def opens_gate(said: Said) -> bool:
    """Whether an Instance may start on it. An error never grants."""
    return isinstance(said, Granted | Disabled)
