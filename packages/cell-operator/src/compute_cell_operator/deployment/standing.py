"""What a deployment's pass reads of an Instance: two versions of one standing look alike. Pure.

Most changes of an Instance on its way up are of no interest to its deployment: a gate that goes, a
finalizer, a word of the provider. Whatever `observe.py` reads of an Instance stands in here, so
that a change of anything else need not be looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

from compute_api_types import conditions
from compute_api_types.template_hash import is_template_hash
from compute_cell_operator.told import Told, read_conditions
from compute_operator_kit.cache import Change
from compute_operator_kit.objects import Metadata
from compute_operator_kit.wire import (
    JsonObject,
    encode_canonical,
    member_list,
    member_object,
    member_text,
)

STANDING: Final = "standing"
"""Index of Instances: a digest of what their deployment reads in their bodies."""

LOOKED_AT: Final = frozenset({conditions.READY, conditions.PROGRAMMED, conditions.QUOTA_GRANTED})
"""The conditions of an Instance that say anything about its deployment."""


def read_standing_conditions(status: JsonObject) -> tuple[Told, ...]:
    return tuple(told for told in read_conditions(status) if told.type in LOOKED_AT)


def read_gates(controller: JsonObject) -> tuple[str, ...]:
    entries = member_list(controller, "schedulingGates")
    return tuple(member_text(entry, "name") for entry in entries if isinstance(entry, dict))


def read_echo(status: JsonObject) -> str:
    """The template that the provider says it runs; "" where it says nothing."""
    return member_text(member_object(status, "controller"), "observedTemplateHash")


def index_by_standing(_: Metadata, body: JsonObject) -> Iterable[str]:
    spec, status = member_object(body, "spec"), member_object(body, "status")
    controller = member_object(spec, "controller")
    recorded = member_text(controller, "templateHash")
    read = (
        recorded,
        # With another operator's hash the content is read (`adoption.py`).
        None if is_template_hash(recorded) else spec,
        read_echo(status),
        read_gates(controller),
        member_text(member_object(spec, "location"), "name"),
        len(member_list(spec, "networkInterfaces")),
        [
            (told.type, told.status, told.reason, told.message)
            for told in read_standing_conditions(status)
        ],
    )
    return (blake2b(encode_canonical(read), digest_size=12).hexdigest(),)


def is_alike(change: Change) -> bool:
    """Whether the Instance looks to its deployment as it did before."""
    before, after = change.before, change.after
    if before is None or after is None:
        return False
    is_same_body = before.values.get(STANDING, ()) == after.values.get(STANDING, ())
    return is_same_body and _read_header(before.metadata) == _read_header(after.metadata)


def _read_header(found: Metadata) -> tuple[object, ...]:
    return (found.uid, found.is_deleting, found.labels, found.annotations, found.owners)
