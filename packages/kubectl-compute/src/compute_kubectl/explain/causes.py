"""Reasons as causes: the stage at which a reason blocks, its owner, and which side acts next.

What a reason means and what to do about it is in `compute_api_types.reasons` and not spelled again.
A reason of another release is passed through with the stage at which it was met.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from compute_api_types import reasons
from compute_kubectl.explain.stages import Owner, Stage


class Actionability(StrEnum):
    """The kind of an answer, in the words of the assistants that read it."""

    USER = "user"
    PLATFORM = "platform"
    TRANSIENT = "transient"
    STALLED = "stalled"


@dataclass(frozen=True, slots=True)
class Cause:
    """A reason that explains why a stage is not passed. `turn` None: it goes on by itself."""

    stage: Stage
    owner: str
    turn: Actionability | None = None


_USER: Final = Actionability.USER
_PLATFORM: Final = Actionability.PLATFORM


def _each(words: tuple[str, ...], cause: Cause) -> dict[str, Cause]:
    return dict.fromkeys(words, cause)


CAUSES: Final[Mapping[str, Cause]] = MappingProxyType(
    {
        # 1: the Workload itself
        **_each(
            (
                reasons.NO_MATCHING_LOCATION,
                reasons.NAME_COLLISION,
                reasons.DEPLOYMENT_REJECTED,
                reasons.NETWORK_NOT_FOUND,
            ),
            Cause(Stage.PLANNED, Owner.USER, _USER),
        ),
        reasons.NO_AVAILABLE_DEPLOYMENTS: Cause(Stage.PLANNED, Owner.WORKLOAD),
        reasons.NO_AVAILABLE_PLACEMENTS: Cause(Stage.PLANNED, Owner.WORKLOAD),
        # 3: between project and hub
        reasons.FEDERATION_REFUSED: Cause(Stage.FEDERATED, Owner.USER, _USER),
        reasons.HUB_IDENTITY_CONFLICT: Cause(Stage.FEDERATED, Owner.PLATFORM, _PLATFORM),
        reasons.FEDERATION_NAMESPACE_UNRESOLVED: Cause(Stage.FEDERATED, Owner.PLATFORM, _PLATFORM),
        reasons.FEDERATION_RELEASE_DELAYED: Cause(Stage.FEDERATED, Owner.PLATFORM, _PLATFORM),
        # 8: the cell's WorkloadDeployment
        reasons.SUSPENDED: Cause(Stage.ACTED_ON, Owner.PLATFORM, _PLATFORM),
        reasons.CITY_CODE_MISMATCH: Cause(Stage.ACTED_ON, Owner.PLATFORM, _PLATFORM),
        reasons.INSTANCE_FAILED_TO_CREATE: Cause(Stage.ACTED_ON, Owner.USER, _USER),
        reasons.INSTANCES_PROVISIONING: Cause(Stage.ACTED_ON, Owner.DEPLOYMENT),
        reasons.DELETION_BLOCKED: Cause(Stage.ACTED_ON, Owner.USER, _USER),
        reasons.TERMINATING: Cause(Stage.ACTED_ON, Owner.DEPLOYMENT),
        # 9: gates
        reasons.NETWORK_FAILED_TO_CREATE: Cause(Stage.RELEASED, Owner.NETWORK, _USER),
        reasons.NETWORK_PROVISIONING: Cause(Stage.RELEASED, Owner.NETWORK),
        reasons.SCHEDULING_GATES_PRESENT: Cause(Stage.RELEASED, Owner.INSTANCE),
        reasons.PENDING_EVALUATION: Cause(Stage.RELEASED, Owner.QUOTA),
        **_each(
            (
                reasons.QUOTA_EXCEEDED,
                reasons.QUOTA_NOT_GRANTED,
                reasons.PENDING_QUOTA,
                reasons.QUOTA_NAMESPACE_NOT_FOUND,
                reasons.UNKNOWN_INSTANCE_TYPE,
                reasons.SOURCE_NOT_FOUND,
                reasons.SOURCE_UNAUTHORIZED,
                reasons.SOURCE_TOO_LARGE,
                reasons.SOURCE_NAME_TOO_LONG,
                reasons.SOURCE_NAME_TAKEN,
                reasons.SOURCE_NOT_SUPPORTED,
            ),
            Cause(Stage.RELEASED, Owner.USER, _USER),
        ),
        **_each(
            (
                reasons.VALIDATION_FAILED,
                reasons.QUOTA_NO_BUDGET,
                reasons.QUOTA_BACKEND_UNAVAILABLE,
                reasons.QUOTA_PROJECT_NOT_FOUND,
                reasons.QUOTA_MISCONFIGURED,
                reasons.QUOTA_PROJECT_ID_UNRESOLVABLE,
            ),
            Cause(Stage.RELEASED, Owner.QUOTA, _PLATFORM),
        ),
        **_each(
            (
                reasons.REFERENCED_DATA_NOT_READY,
                reasons.AWAITING_PROPAGATION,
                reasons.RESOLVING,
            ),
            Cause(Stage.RELEASED, Owner.INSTANCE),
        ),
        # 10: the provider
        **_each(
            (
                reasons.IMAGE_UNAVAILABLE,
                reasons.INSTANCE_CRASHING,
                reasons.CONFIGURATION_ERROR,
                reasons.STOPPED,
                reasons.FAILED,
            ),
            Cause(Stage.RUNNING, Owner.USER, _USER),
        ),
        **_each(
            (
                reasons.PENDING,
                reasons.PENDING_PROGRAMMING,
                reasons.PROGRAMMING_IN_PROGRESS,
                reasons.PROVISIONING,
                reasons.STARTING,
                reasons.NODE_UNREACHABLE,
                reasons.STOPPING,
            ),
            Cause(Stage.RUNNING, Owner.PROVIDER),
        ),
        reasons.UNKNOWN: Cause(Stage.RUNNING, Owner.PLATFORM, _PLATFORM),
        reasons.CELL_UNREACHABLE: Cause(Stage.RUNNING, Owner.PLATFORM, _PLATFORM),
        # 11: reports on the hub
        reasons.CELLS_SILENT: Cause(Stage.REPORTED, Owner.PLATFORM, _PLATFORM),
        reasons.NO_CELL_PLACED: Cause(Stage.SCHEDULED, Owner.PLATFORM, _PLATFORM),
        # 12: projection
        **_each(
            tuple(reason.event for reason in reasons.QuarantineReason),
            Cause(Stage.SHOWN, Owner.PLATFORM, _PLATFORM),
        ),
    }
)
"""Every reason of ours that can block; one with a turn is a cause, one without is progress."""


ABOUT_DATA: Final = frozenset(
    {
        reasons.SOURCE_NOT_FOUND,
        reasons.SOURCE_UNAUTHORIZED,
        reasons.SOURCE_TOO_LARGE,
        reasons.SOURCE_NAME_TOO_LONG,
        reasons.SOURCE_NAME_TAKEN,
        reasons.SOURCE_NOT_SUPPORTED,
        reasons.REFERENCED_DATA_NOT_READY,
        reasons.AWAITING_PROPAGATION,
        reasons.RESOLVING,
    }
)
"""Reasons of ConfigMaps and Secrets that a template names; a roll waits for them."""


def is_cause(reason: str) -> bool:
    """Whether a reason explains a block, so that it is more than a wait."""
    cause = CAUSES.get(reason)
    return cause is not None and cause.turn is not None


def explanation_of(reason: str) -> str:
    meaning = reasons.MEANINGS.get(reason)
    return meaning.means if meaning else ""


def remediation_of(reason: str) -> str:
    meaning = reasons.MEANINGS.get(reason)
    return meaning.act if meaning else ""
