"""Status conditions: how they are read and merged, which reason wins, which write may be deferred.

The rules of `docs/spec/api.md` 8.1 in one place, so that the operators cannot differ on them: one
writer per type, `lastTransitionTime` moves exactly when `status` does, the most specific blocker
wins by one rank table. Pure: the clock is an argument, and the caller decides what a status means.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Final, Literal, Protocol, TypeAlias, TypeVar

from pydantic import Field

from compute_api_types import reasons
from compute_api_types.meta import EPOCH, format_timestamp
from compute_api_types.model import Model
from compute_api_types.scalars import Integer, Timestamp
from compute_api_types.wire import JsonObject, JsonValue

# Condition types, in the order of api.md 8.2 to 8.4. A type is a positive state.
PROGRAMMED: Final = "Programmed"
AVAILABLE: Final = "Available"
QUOTA_GRANTED: Final = "QuotaGranted"
READY: Final = "Ready"
REFERENCED_DATA_READY: Final = "ReferencedDataReady"
REPLICAS_READY: Final = "ReplicasReady"
AUTOSCALING_READY: Final = "AutoscalingReady"
AUTOSCALING_LIMITED: Final = "AutoscalingLimited"
"""True is the bad one: a limit keeps the autoscaler from the number that the load asks for."""
AUTOSCALING: Final = (AUTOSCALING_READY, AUTOSCALING_LIMITED)
"""Only while a deployment is autoscaled (autoscaling.md 4)."""
RUNNING: Final = "Running"
"""Retired: of an older operator; never written, and left as it is where it exists."""
CELLS_REPORTING: Final = "CellsReporting"
"""On a hub WorkloadDeployment only; it belongs to the interpreter and never reaches a project."""

# api.md 15: written by former releases of the Go operators, by nothing since.
RETIRED: Final = frozenset({"Running"})

ConditionStatus: TypeAlias = Literal["True", "False", "Unknown"]

LONGEST_MESSAGE: Final = 1024
# By Unicode category: controls, lone surrogates (which no UTF-8 document can carry), line and
# paragraph separators become a space; format characters (bidi controls, zero width, tags) are
# removed.
_REPLACEMENTS: Final = MappingProxyType({"Cc": " ", "Cs": " ", "Zl": " ", "Zp": " ", "Cf": ""})


class Condition(Model):
    """One observation about an object: what holds, why, and since when."""

    type: Annotated[
        str,
        Field(
            description="What is observed, a positive state such as Available.",
            max_length=316,
            pattern=(
                r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
                r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
            ),
        ),
    ]
    status: ConditionStatus = Field(description="Whether it holds: True, False or Unknown.")
    reason: Annotated[
        str,
        Field(
            description="One word for machines that tells this situation from others.",
            min_length=1,
            max_length=1024,
            pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        ),
    ]
    message: Annotated[
        str, Field(description="A sentence for people: what blocks, what to do.", max_length=32768)
    ]
    last_transition_time: Timestamp = Field(description="When the status last changed.")
    observed_generation: Annotated[int, Integer(64, minimum=0)] | None = Field(
        default=None,
        description="The generation of the object that this observation answers to.",
    )


@dataclass(frozen=True, slots=True)
class Statement:
    """A condition as its writer states it now; `merge` adds `lastTransitionTime`."""

    type: str
    status: ConditionStatus
    reason: str
    message: str
    observed_generation: int | None = None


class HasType(Protocol):
    """Anything that names a condition type."""

    @property
    def type(self) -> str: ...


class HasReason(Protocol):
    """Anything that carries a reason."""

    @property
    def reason(self) -> str: ...


class ConditionLike(HasType, HasReason, Protocol):
    """Type, status and reason: a Condition, a Statement and an ObservedCondition have them."""

    @property
    def status(self) -> str: ...


@dataclass(frozen=True, slots=True)
class ObservedCondition:
    """A condition of any writer, read without validation; a missing member is empty or 0."""

    type: str
    status: str
    reason: str
    message: str
    observed_generation: int = 0

    @property
    def is_true(self) -> bool:
        return self.status == "True"


Typed = TypeVar("Typed", bound=HasType)
Reasoned = TypeVar("Reasoned", bound=HasReason)
Entry = TypeVar("Entry")


def read(status: Mapping[str, JsonValue]) -> tuple[ObservedCondition, ...]:
    """The conditions of a raw status; an entry that is no object or has no type is left out."""
    entries = status.get("conditions")
    if not isinstance(entries, list):
        return ()
    return tuple(_read_entry(entry) for entry in entries if _type_of(entry))


def _read_entry(entry: JsonValue) -> ObservedCondition:
    members: Mapping[str, JsonValue] = entry if isinstance(entry, dict) else {}

    def text(name: str) -> str:
        value = members.get(name)
        return value if isinstance(value, str) else ""

    generation = members.get("observedGeneration")
    if not isinstance(generation, int) or isinstance(generation, bool):
        generation = 0
    return ObservedCondition(
        text("type"), text("status"), text("reason"), text("message"), generation
    )


def find(conditions: Iterable[Typed] | None, condition_type: str) -> Typed | None:
    """The condition of a type; the first one where the list has two."""
    return next((entry for entry in conditions or () if entry.type == condition_type), None)


def is_true(conditions: Iterable[ConditionLike] | None, condition_type: str) -> bool:
    """Whether a condition exists and is True; absent and Unknown are not."""
    condition = find(conditions, condition_type)
    return condition is not None and condition.status == "True"


# --- writing (api.md 8.1, rules 1 to 3) -----------------------------------------------------------


def merge(
    existing: Iterable[Condition] | None, statements: Iterable[Statement], now: datetime
) -> tuple[Condition, ...]:
    """The existing list with our statements: entries of other types unchanged, ours once each.

    A type keeps its place and its time while its status stays; a new type comes last, with `now`.
    """

    def restate(entry: Condition | None, statement: Statement) -> Condition:
        status, since = (entry.status, entry.last_transition_time) if entry else (None, None)
        return Condition(
            type=statement.type,
            status=statement.status,
            reason=statement.reason,
            message=derive_message(statement.message),
            last_transition_time=_since(statement, status, since, now),
            observed_generation=statement.observed_generation,
        )

    entries = tuple(existing or ())
    return tuple(_merged(entries, tuple(statements), lambda entry: entry.type, restate))


def merge_documents(
    existing: Sequence[JsonValue] | None, statements: Iterable[Statement], now: datetime
) -> list[JsonValue]:
    """As `merge`, on the raw list of a status: unknown fields of every entry are kept."""

    def restate(entry: JsonValue, statement: Statement) -> JsonValue:
        before: Mapping[str, JsonValue] = entry if isinstance(entry, dict) else {}
        since = _since(statement, before.get("status"), before.get("lastTransitionTime"), now)
        after: JsonObject = {
            key: value for key, value in before.items() if key != "observedGeneration"
        }
        after |= {
            "type": statement.type,
            "status": statement.status,
            "reason": statement.reason,
            "message": derive_message(statement.message),
            "lastTransitionTime": since,
        }
        if statement.observed_generation is not None:
            after["observedGeneration"] = statement.observed_generation
        return after

    return _merged(list(existing or ()), tuple(statements), _type_of, restate)


def _merged(
    existing: Sequence[Entry],
    statements: Sequence[Statement],
    type_of: Callable[[Entry], str | None],
    restate: Callable[[Entry | None, Statement], Entry],
) -> list[Entry]:
    by_type = {statement.type: statement for statement in statements}
    merged: list[Entry] = []
    placed: set[str] = set()
    for entry in existing:
        statement = by_type.get(type_of(entry) or "")
        if statement is None:
            merged.append(entry)
        elif statement.type not in placed:  # a second entry of a type we own is dropped (rule 1)
            placed.add(statement.type)
            merged.append(restate(entry, statement))
    missing = (statement for statement in by_type.values() if statement.type not in placed)
    return merged + [restate(None, statement) for statement in missing]


def _type_of(entry: JsonValue) -> str | None:
    """The type of a raw entry of any shape; an entry without one is not ours and is kept."""
    named = entry.get("type") if isinstance(entry, dict) else None
    return named if isinstance(named, str) else None


def _since(statement: Statement, status: JsonValue, since: JsonValue, now: datetime) -> str:
    """Rule 2: the time moves exactly when the status does, also away from the schema's 1970."""
    if status == statement.status and isinstance(since, str):
        return since
    return format_timestamp(now)


def derive_message(text: str) -> str:
    """A message as rule 5 allows it: visible characters only, cut to 1024 ending in `...`."""
    cut = text if len(text) <= LONGEST_MESSAGE else f"{text[: LONGEST_MESSAGE - 3]}..."
    # Nearly every message is printable, and a Workload with thousands of placements has as many.
    return cut if cut.isprintable() else "".join(_visible(char) for char in cut)


def _visible(char: str) -> str:
    return _REPLACEMENTS.get(unicodedata.category(char), char)


# --- which reason wins (api.md 8.1, rank) ---------------------------------------------------------

RANKS: Final[Mapping[str, int]] = MappingProxyType(
    {
        reasons.SUSPENDED: 9,
        reasons.CITY_CODE_MISMATCH: 8,
        reasons.NAME_COLLISION: 7,
        reasons.NETWORK_FAILED_TO_CREATE: 7,
        reasons.NETWORK_NOT_FOUND: 6,
        reasons.INSTANCE_FAILED_TO_CREATE: 6,
        reasons.IMAGE_UNAVAILABLE: 5,
        reasons.INSTANCE_CRASHING: 5,
        reasons.CONFIGURATION_ERROR: 5,
        reasons.UNKNOWN_INSTANCE_TYPE: 5,
        reasons.SOURCE_NOT_FOUND: 5,
        reasons.SOURCE_UNAUTHORIZED: 5,
        reasons.SOURCE_TOO_LARGE: 5,
        reasons.SOURCE_NAME_TOO_LONG: 5,
        reasons.SOURCE_NAME_TAKEN: 5,
        reasons.SOURCE_NOT_SUPPORTED: 5,
        reasons.CELL_UNREACHABLE: 4,
        reasons.REFERENCED_DATA_NOT_READY: 4,
        reasons.AWAITING_PROPAGATION: 4,
        reasons.RESOLVING: 4,
        reasons.PENDING_QUOTA: 3,
        reasons.QUOTA_NOT_GRANTED: 3,
        reasons.QUOTA_EXCEEDED: 3,
        reasons.NO_MATCHING_LOCATION: 2,
        reasons.NETWORK_PROVISIONING: 2,
        reasons.INSTANCES_PROVISIONING: 1,
        reasons.PROVISIONING: 1,
        reasons.SCHEDULING_GATES_PRESENT: 0,
        reasons.NO_AVAILABLE_DEPLOYMENTS: 0,
        reasons.NO_AVAILABLE_PLACEMENTS: 0,
    }
)
"""The one rank table, for all kinds and the hub's interpreter; a reason not in it has rank 0."""

NEVER_COMPETES: Final = frozenset({reasons.PENDING, reasons.PENDING_PROGRAMMING})
"""Used only when there is no other reason."""


def rank(reason: str) -> int:
    """How specific a blocking reason is; below 0 for those that never compete."""
    return -1 if reason in NEVER_COMPETES else RANKS.get(reason, 0)


def summarise(blockers: Iterable[Reasoned]) -> Reasoned | None:
    """The most specific of several blockers: strictly higher wins, ties go to the first.

    The caller gives the order that ties need: placement name, deployment name, ordinal. Within one
    deployment that has both, `NoMatchingLocation` comes before `NetworkProvisioning`.
    """
    # max() keeps the first of equals, as ties require.
    return max(blockers, key=lambda blocker: rank(blocker.reason), default=None)


# --- which write may be deferred (api.md 8.1, rule 8) ---------------------------------------------

_ON_ITS_WAY: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "Workload": frozenset({reasons.INSTANCES_PROVISIONING, reasons.NETWORK_PROVISIONING}),
        "WorkloadDeployment": frozenset(
            {reasons.INSTANCES_PROVISIONING, reasons.NETWORK_PROVISIONING}
        ),
        "Instance": frozenset(
            {
                reasons.SCHEDULING_GATES_PRESENT,
                reasons.PENDING_PROGRAMMING,
                reasons.PENDING,
                reasons.PROGRAMMING_IN_PROGRESS,
                reasons.PROVISIONING,
                reasons.STARTING,
                reasons.AWAITING_PROPAGATION,
                reasons.RESOLVING,
            }
        ),
    }
)


def provisional(
    kind: Literal["Workload", "WorkloadDeployment", "Instance"],
    wanted: Sequence[ConditionLike],
    stored: Sequence[ConditionLike] = (),
    *,
    is_terminating: bool = False,
    opens_gate: bool = False,
) -> bool:
    """Whether a status only reports progress, so that its write may be deferred (`statusSettle`).

    `wanted` is the status to be written, `stored` the present one. `opens_gate` marks the write
    that a gate waits for (cell.md 8), which is never deferred.
    """
    if opens_gate or (kind == "Instance" and is_terminating):
        return False
    # A user must see at once that an object is no longer ready or available.
    if any(_loses(wanted, stored, lost) for lost in (READY, AVAILABLE)):
        return False
    ready = find(wanted, READY)
    if ready is None or ready.status == "True" or ready.reason not in _ON_ITS_WAY[kind]:
        return False
    return kind != "Instance" or _quota_is_open(wanted)


def _loses(
    wanted: Sequence[ConditionLike], stored: Sequence[ConditionLike], condition_type: str
) -> bool:
    return is_true(stored, condition_type) and not is_true(wanted, condition_type)


def _quota_is_open(wanted: Sequence[ConditionLike]) -> bool:
    """Granted or not evaluated yet; any other result is shown to the user at once."""
    quota = find(wanted, QUOTA_GRANTED)
    if quota is None:
        return False
    pending = quota.status == "Unknown" and quota.reason == reasons.PENDING_EVALUATION
    return quota.status == "True" or pending


# --- schema defaults (api.md 7) -------------------------------------------------------------------


def defaulted(condition_type: str, reason: str, message: str) -> Condition:
    """A condition as the schema sets it, before the first write of a controller."""
    return Condition(
        type=condition_type,
        status="Unknown",
        reason=reason,
        message=message,
        last_transition_time=EPOCH,
    )
