"""Counters in the status of a deployment, and its echoes of Karmada's annotations. Pure (cell.md
7).

Only Instances that a provider reports to run the current template count as updated: a rollout must
not end before the new template runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from compute_api_types import conditions, labels
from compute_api_types.template_hash import HashVerdict
from compute_cell_operator.deployment.observe import ObservedDeployment
from compute_cell_operator.deployment.slots import SlotInstance
from compute_operator_kit.core.json import JsonObject
from compute_operator_kit.core.objects import Metadata

_LARGEST: Final = 2**63 - 1  # the field is an int64
_LONGEST_UID: Final = 64  # a UID has 36 characters


@dataclass(frozen=True, slots=True)
class Counters:
    """Instances as observed; those that this reconcile creates are not among them."""

    replicas: int
    updated: int
    current: int
    ready: int
    desired: int

    @property
    def is_converged(self) -> bool:
        return self.replicas == self.ready == self.updated == self.desired

    def as_json(self) -> JsonObject:
        """All counters, zeros included: an absent one would read as not reported."""
        return {
            "replicas": self.replicas,
            "currentReplicas": self.current,
            "updatedReplicas": self.updated,
            "desiredReplicas": self.desired,
            "readyReplicas": self.ready,
        }


def count(observed: ObservedDeployment) -> Counters:
    updated = [instance for instance in observed.owned if is_updated(instance)]
    return Counters(
        replicas=len(observed.owned),
        updated=len(updated),
        current=sum(_is_programmed(instance) for instance in updated),
        ready=sum(instance.is_ready for instance in observed.owned),
        desired=observed.desired,
    )


def is_updated(instance: SlotInstance) -> bool:
    """The provider reports the current template; no report does not count."""
    return instance.reported_revision is HashVerdict.CURRENT


def _is_programmed(instance: SlotInstance) -> bool:
    return conditions.is_true(instance.conditions, conditions.PROGRAMMED)


def read_template_generation(metadata: Metadata) -> int | None:
    """The generation of the hub object in Karmada's annotation; None where it is illegible."""
    text = metadata.annotations.get(labels.KARMADA_TEMPLATE_GENERATION, "")
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(_LARGEST)):
        return None
    return int(text) if int(text) <= _LARGEST else None


def read_template_uid(metadata: Metadata, *, is_deleting: bool) -> str | None:
    """The UID of the hub object that this status belongs to; None without Karmada's annotation.

    Empty while this deployment is being deleted: Karmada writes the UID of a recreated hub object
    onto a terminating copy, and the status of that copy must not count for the new object.
    """
    uid = metadata.annotations.get(labels.KARMADA_TEMPLATE_UID, "")
    if not uid or len(uid) > _LONGEST_UID:
        return None
    return "" if is_deleting else uid
