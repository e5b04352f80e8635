"""The numbers in the status of a deployment. Pure (cell.md 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from compute_api_types import conditions, labels
from compute_api_types.template_hash import HashVerdict
from compute_cell_operator.deployment.observe import FoundInstance, Seen
from compute_operator_kit.objects import Metadata
from compute_operator_kit.wire import JsonObject

_LARGEST: Final = 2**63 - 1  # the field is an int64
_LONGEST_UID: Final = 64  # a UID has 36 characters


@dataclass(frozen=True, slots=True)
class Counters:
    """Instances as observed in this pass; what the pass itself creates is not among them."""

    replicas: int
    updated: int
    current: int
    ready: int
    desired: int

    @property
    def is_converged(self) -> bool:
        return self.replicas == self.ready == self.updated == self.desired

    def as_json(self) -> JsonObject:
        """All of them, always: zeros are data."""
        return {
            "replicas": self.replicas,
            "currentReplicas": self.current,
            "updatedReplicas": self.updated,
            "desiredReplicas": self.desired,
            "readyReplicas": self.ready,
        }


def count(seen: Seen) -> Counters:
    updated = [found for found in seen.owned if is_updated(found)]
    return Counters(
        replicas=len(seen.owned),
        updated=len(updated),
        current=sum(_is_programmed(found) for found in updated),
        ready=sum(found.is_ready for found in seen.owned),
        desired=seen.desired,
    )


def is_updated(found: FoundInstance) -> bool:
    """The provider says that it runs the current template; silence does not count."""
    return found.echo is HashVerdict.CURRENT


def _is_programmed(found: FoundInstance) -> bool:
    return conditions.is_true(found.conditions, conditions.PROGRAMMED)


def read_template_generation(metadata: Metadata) -> int | None:
    """The generation of the hub object that this one was made from, as Karmada says."""
    text = metadata.annotations.get(labels.KARMADA_TEMPLATE_GENERATION, "")
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(_LARGEST)):
        return None
    return int(text) if int(text) <= _LARGEST else None


def read_template_uid(metadata: Metadata, *, is_deleting: bool) -> str | None:
    """The UID of the hub object that this status belongs to; None where Karmada names none.

    Empty while this one is being deleted: Karmada writes the UID of a recreated hub object onto a
    copy that still terminates, whose status must not count for the new one.
    """
    uid = metadata.annotations.get(labels.KARMADA_TEMPLATE_UID, "")
    if not uid or len(uid) > _LONGEST_UID:
        return None
    return "" if is_deleting else uid
