"""What a deployment states about its referenced data: three annotations of its copy on the hub, and
one condition in the project. Pure (referenced-data.md 4).

```
a verdict is missing      as recorded with this generation, else no annotation: the cell waits
one stops the delivery    the error of the first token, in token order
all can be delivered      the tokens, and the versions that the user had when the roll was asked for
```

Versions are those of the moment of the generation: an edit of a ConfigMap alone changes nothing
here, so that it writes no deployment. They are replaced where they could never be reached: the
source was recreated, or its plane was restored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from compute_api_types import conditions, labels, reasons
from compute_api_types.conditions import ConditionStatus, Statement
from compute_api_types.referenced_data.annotations import (
    DataError,
    is_at_least,
    parse_versions,
    render_error,
    render_expected,
    render_versions,
)
from compute_api_types.referenced_data.references import Reference
from compute_management_operator.hub.referenced_data.verdicts import (
    LARGEST_DEPLOYMENT,
    NEVER_OPTIONAL,
    SourceVerdict,
)
from compute_operator_kit.core.clock import ZERO

UNSTATED: Final[Mapping[str, str | None]] = dict.fromkeys(labels.REFERENCED_DATA_ANNOTATIONS)


@dataclass(frozen=True, slots=True)
class DeploymentData:
    """What is known about the data of one deployment."""

    references: tuple[Reference, ...]
    verdicts: Mapping[str, SourceVerdict]  # by token
    # Annotations of the copy, if it has the present generation of the project.
    recorded: Mapping[str, str] | None = None
    # Versions by token, read for a generation that the hub does not have yet.
    fresh: Mapping[str, str] = field(default_factory=dict[str, str])
    left: timedelta = ZERO  # how long a new generation may still wait for verdicts


@dataclass(frozen=True, slots=True)
class DataExpectation:
    """What federation writes."""

    annotations: Mapping[str, str | None]
    # In the project: None removes the condition; `is_kept`: neither it nor the annotation changes.
    condition: Statement | None = None
    is_kept: bool = False
    awaited: timedelta = ZERO  # the copy is not written before, unless a verdict arrives

    @property
    def error(self) -> Statement | None:
        """A reason that only the user can end."""
        stated = self.condition
        return stated if stated is not None and stated.status == "False" else None


NO_DATA: Final = DataExpectation(UNSTATED)


def derive_expectation(data: DeploymentData) -> DataExpectation:
    if not data.references:
        return NO_DATA
    unread = _find_unjudged(data)
    if unread is not None:
        return _unjudged(data, unread)
    delivered = _delivered(data)
    versions = _versions(data, delivered)
    error = _find_error(data, delivered)
    annotations = {
        labels.EXPECTED_REFERENCED_DATA: render_expected(delivered),
        labels.EXPECTED_REFERENCED_VERSIONS: render_versions(versions),
        labels.REFERENCED_DATA_ERROR: None if error is None else render_error(error),
    }
    if error is not None:
        stated = _state("False", error.reason, error.message)
        return DataExpectation(annotations, stated)
    if not all(data.verdicts[token].is_materialised for token in delivered):
        # Its companions are being written; their events enqueue the deployment again.
        return DataExpectation(annotations, is_kept=True)
    message = f"All {len(delivered)} referenced companion(s) are materialised"
    return DataExpectation(annotations, _state("True", reasons.READY, message))


def _find_unjudged(data: DeploymentData) -> SourceVerdict | None:
    """The first object without a verdict; an empty verdict where nothing was read yet."""
    for one in data.references:
        verdict = data.verdicts.get(one.token)
        if verdict is None:
            return SourceVerdict()
        if verdict.reason == reasons.RESOLVING:
            return verdict
    return None


def _unjudged(data: DeploymentData, unread: SourceVerdict) -> DataExpectation:
    recorded = data.recorded
    annotations = UNSTATED if recorded is None else {**UNSTATED, **recorded}
    stated = None
    if unread.reason and recorded is None:
        stated = _state("Unknown", unread.reason, unread.message)
    return DataExpectation(annotations, stated, is_kept=stated is None, awaited=data.left)


def _delivered(data: DeploymentData) -> tuple[str, ...]:
    """All required tokens, and optional ones that can be delivered."""
    return tuple(
        one.token
        for one in data.references
        if not one.is_optional or data.verdicts[one.token].is_deliverable
    )


def _find_error(data: DeploymentData, delivered: tuple[str, ...]) -> DataError | None:
    for one in data.references:
        verdict = data.verdicts[one.token]
        is_skipped = one.is_optional and verdict.reason not in NEVER_OPTIONAL
        if verdict.is_terminal and not is_skipped:
            return DataError(verdict.reason, verdict.message)
    size = sum(data.verdicts[token].size for token in delivered)
    if size <= LARGEST_DEPLOYMENT:
        return None
    message = (
        "aggregate referenced data for WorkloadDeployment exceeds limit "
        f"({size} bytes > {LARGEST_DEPLOYMENT} bytes)"
    )
    return DataError(reasons.SOURCE_TOO_LARGE, message)


def _versions(data: DeploymentData, delivered: tuple[str, ...]) -> dict[str, str]:
    """The versions that a cell must have, of objects that exist."""
    recorded: Mapping[str, str] = {}
    if data.recorded is not None:
        text = data.recorded.get(labels.EXPECTED_REFERENCED_VERSIONS)
        recorded = parse_versions(text) or {}
    versions: dict[str, str] = {}
    for token in delivered:
        existing = data.verdicts[token].version
        expected = recorded.get(token) or data.fresh.get(token, "")
        if existing and (not expected or _is_unreachable(expected, existing, recorded, token)):
            expected = existing
        if expected and existing:
            versions[token] = expected
    return versions


def _is_unreachable(expected: str, existing: str, recorded: Mapping[str, str], token: str) -> bool:
    """Whether the source is older than what was recorded, or another object; a verdict may be older
    than a version that was read for this generation.
    """
    return token in recorded and not is_at_least(existing, expected)


def _state(status: ConditionStatus, reason: str, message: str) -> Statement:
    return Statement(conditions.REFERENCED_DATA_READY, status, reason, message)
