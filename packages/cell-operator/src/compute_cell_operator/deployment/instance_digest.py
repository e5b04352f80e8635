"""A digest of the fields of an Instance that its deployment reads, as an index value. Pure.

Most updates of a starting Instance (a gate, a finalizer, a provider's message) change nothing for
its deployment. `observe` must read no field of an Instance that is missing here: a change of it
would not enqueue the deployment.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

from compute_api_types import conditions
from compute_api_types.template_hash import is_template_hash
from compute_cell_operator.conditions import ReportedCondition, read_conditions
from compute_cell_operator.deployment.slots import SlotSuspension
from compute_cell_operator.instance_facts import read_gates
from compute_cell_operator.suspension import read_suspended
from compute_operator_kit.cache.store import Change
from compute_operator_kit.core.json import (
    JsonObject,
    encode_canonical,
    member_list,
    member_object,
    member_text,
)
from compute_operator_kit.core.objects import Metadata

DIGEST: Final = "digest"
"""Index of Instances: the digest of their bodies."""

CONDITIONS: Final = frozenset({conditions.READY, conditions.PROGRAMMED, conditions.QUOTA_GRANTED})
"""The conditions of an Instance that its deployment reads."""


def read_digest_conditions(status: JsonObject) -> tuple[ReportedCondition, ...]:
    return tuple(condition for condition in read_conditions(status) if condition.type in CONDITIONS)


def read_reported_hash(status: JsonObject) -> str:
    """The hash of the template that the provider reports to run; "" where it reports none."""
    return member_text(member_object(status, "controller"), "observedTemplateHash")


def read_suspension(status: JsonObject) -> SlotSuspension:
    if not read_suspended(status):
        return SlotSuspension.NONE
    is_stopped = member_object(status, "controller").get("suspendedObserved") is True
    return SlotSuspension.STOPPED if is_stopped else SlotSuspension.SUSPENDED


def index_by_digest(_: Metadata, body: JsonObject) -> Iterable[str]:
    spec, status = member_object(body, "spec"), member_object(body, "status")
    recorded = member_text(member_object(spec, "controller"), "templateHash")
    fields = (
        recorded,
        # With another operator's hash the content is compared (`template.py`).
        None if is_template_hash(recorded) else spec,
        read_reported_hash(status),
        read_gates(spec),
        member_text(member_object(spec, "location"), "name"),
        len(member_list(spec, "networkInterfaces")),
        [
            (condition.type, condition.status, condition.reason, condition.message)
            for condition in read_digest_conditions(status)
        ],
        read_suspension(status),
    )
    return (blake2b(encode_canonical(fields), digest_size=12).hexdigest(),)


def is_relevant_change(change: Change) -> bool:
    """Whether a field that the deployment reads has changed."""
    before, after = change.before, change.after
    if before is None or after is None:
        return True
    is_same_body = before.index_values.get(DIGEST, ()) == after.index_values.get(DIGEST, ())
    return not is_same_body or _read_header(before.metadata) != _read_header(after.metadata)


def _read_header(metadata: Metadata) -> tuple[object, ...]:
    return (
        metadata.uid,
        metadata.is_deleting,
        metadata.labels,
        metadata.annotations,
        metadata.owners,
    )
