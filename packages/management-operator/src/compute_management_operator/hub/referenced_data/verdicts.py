"""Verdicts: whether a ConfigMap or Secret of a project can be delivered, with the reason if not.

They are in memory alone, per process: after a restart those of what is delivered follow from the
companions on the hub, without a read of values. A verdict holds a version and a size, no value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from compute_api_types import reasons
from compute_operator_kit.core.keys import ObjectKey, PlaneName

LARGEST_OBJECT: Final = 262_144
LARGEST_DEPLOYMENT: Final = 1_048_576

TERMINAL: Final = frozenset(
    {
        reasons.SOURCE_NOT_FOUND,
        reasons.SOURCE_UNAUTHORIZED,
        reasons.SOURCE_TOO_LARGE,
        reasons.SOURCE_NAME_TOO_LONG,
        reasons.SOURCE_NAME_TAKEN,
        reasons.SOURCE_NOT_SUPPORTED,
    }
)
# Errors even where every reference to the object is optional (referenced-data.md 4).
NEVER_OPTIONAL: Final = frozenset({reasons.SOURCE_NAME_TOO_LONG, reasons.SOURCE_NAME_TAKEN})


@dataclass(frozen=True, slots=True)
class SourceVerdict:
    """What is known about one source."""

    reason: str = ""  # "": it can be delivered
    message: str = ""
    version: str = ""  # `<uid>/<resourceVersion>` of the source
    size: int = 0
    is_materialised: bool = False  # the hub has its companion

    @property
    def is_deliverable(self) -> bool:
        return not self.reason

    @property
    def is_terminal(self) -> bool:
        return self.reason in TERMINAL


def too_long(key: ObjectKey) -> SourceVerdict:
    name = f'{_named(key)} in namespace "{key.namespace}"'
    return SourceVerdict(
        reasons.SOURCE_NAME_TOO_LONG, f"{name} has a name longer than 243 characters"
    )


def reserved(key: ObjectKey) -> SourceVerdict:
    return SourceVerdict(reasons.SOURCE_NOT_SUPPORTED, f'the name "{key.name}" is reserved')


def not_found(key: ObjectKey) -> SourceVerdict:
    message = f'{_named(key)} not found in namespace "{key.namespace}"'
    return SourceVerdict(reasons.SOURCE_NOT_FOUND, message)


def unauthorized(key: ObjectKey) -> SourceVerdict:
    message = f'not authorized to read {_named(key)} in namespace "{key.namespace}"'
    return SourceVerdict(reasons.SOURCE_UNAUTHORIZED, message)


def name_taken(key: ObjectKey) -> SourceVerdict:
    message = (
        f'an object named "{key.name}" that is not ours is in the way on the hub; '
        f"rename the {key.kind.kind}, or ask the platform"
    )
    return SourceVerdict(reasons.SOURCE_NAME_TAKEN, message)


def unsupported(key: ObjectKey, given: str, version: str) -> SourceVerdict:
    message = f'{_named(key)} of type "{given}" cannot be delivered'
    return SourceVerdict(reasons.SOURCE_NOT_SUPPORTED, message, version)


def too_large(key: ObjectKey, size: int, version: str) -> SourceVerdict:
    message = (
        f'{_named(key)} in namespace "{key.namespace}" exceeds per-object size limit '
        f"({size} bytes > {LARGEST_OBJECT} bytes)"
    )
    return SourceVerdict(reasons.SOURCE_TOO_LARGE, message, version, size)


def unread(key: ObjectKey) -> SourceVerdict:
    return SourceVerdict(reasons.RESOLVING, f"failed to read {_named(key)}")


def _named(key: ObjectKey) -> str:
    return f'{key.kind.kind} "{key.name}"'


class Verdicts:
    """The last verdict of each object, by its key in the project."""

    def __init__(self) -> None:
        self._known: dict[ObjectKey, SourceVerdict] = {}
        self._refused: Counter[PlaneName] = Counter()

    def find(self, key: ObjectKey) -> SourceVerdict | None:
        return self._known.get(key)

    def record(self, key: ObjectKey, verdict: SourceVerdict) -> bool:
        """Whether it differs from the last one."""
        if self._known.get(key) == verdict:
            return False
        self.drop(key)
        self._known[key] = verdict
        self._refused[key.plane] += verdict.reason == reasons.SOURCE_UNAUTHORIZED
        return True

    def count_refused(self, plane: PlaneName) -> int:
        """The objects of a project that may not be read."""
        return self._refused.get(plane, 0)

    def drop(self, key: ObjectKey) -> None:
        verdict = self._known.pop(key, None)
        if verdict is not None and verdict.reason == reasons.SOURCE_UNAUTHORIZED:
            self._refused[key.plane] -= 1

    def forget(self, is_gone: Callable[[ObjectKey], bool]) -> None:
        for key in [key for key in self._known if is_gone(key)]:
            self.drop(key)
        self._refused += Counter()  # without the projects that have none
