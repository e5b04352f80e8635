"""Writes of status: `SetStatus` replaces `.status` if it differs.

The request carries the resourceVersion that the status was derived from: without it, a status of an
old spec would overwrite a newer one.
"""

from __future__ import annotations

from compute_operator_kit.apply.context import ApplyContext, moved_on
from compute_operator_kit.apply.write_memory import ObjectSection
from compute_operator_kit.core.json import (
    Encoded,
    JsonMapping,
    JsonObject,
    JsonValue,
    decode_json_object,
    encode_canonical,
)
from compute_operator_kit.core.objects import Absent, Snapshot
from compute_operator_kit.intents.compare import digest, is_same
from compute_operator_kit.intents.intents import SetStatus
from compute_operator_kit.intents.outcomes import Effect, Outcome


async def set_status(context: ApplyContext, intent: SetStatus) -> Outcome:
    existing = await _find_object(context, intent)
    if isinstance(existing, Absent):
        return Outcome(intent, Effect.SKIPPED, "Vanished")
    if _has_status(existing, intent) or context.memory.is_residue(
        intent.key, ObjectSection.STATUS, lambda: digest(_status_of(existing), intent.status)
    ):
        return context.equal(intent, ObjectSection.STATUS)
    held = context.defer(intent, ObjectSection.STATUS)
    return held or await _send(context, intent, existing)


async def _find_object(context: ApplyContext, intent: SetStatus) -> Snapshot | Absent:
    if intent.uid is None:
        # Created by this reconcile or absent: an older object of the name is not meant.
        own = context.own_write.get(intent.key)
        return own.after if own else Absent()
    existing = await context.find_object(intent.key)
    if isinstance(existing, Snapshot) and existing.metadata.uid != intent.uid:
        raise moved_on(intent.key)
    return existing


def _has_status(existing: Snapshot, intent: SetStatus) -> bool:
    """Compares bytes first, which nearly always suffices, then values."""
    stored = existing.member("status")
    if stored == encode_canonical(intent.status):
        return True
    return bool(stored) and is_same(_status_of(existing), intent.status)


async def _send(context: ApplyContext, intent: SetStatus, existing: Snapshot) -> Outcome:
    version = _base_version(context, intent, existing)
    context.log_write("Writing status", intent)
    body = _build(existing, intent, version)
    answer = await context.or_read(
        context.kube_to_write(intent.key).update_status(
            intent.key, body, is_terminating=existing.metadata.is_deleting
        ),
        intent.key,
        is_done=lambda live: isinstance(live, Absent) or _has_status(live, intent),
    )
    if isinstance(answer, Absent):
        # Deleted on the server, still cached: holds the key until the cache has seen it.
        context.note_write(existing, answer)
        return Outcome(intent, Effect.SKIPPED, "Vanished")
    context.memory.end_deferral(intent.key, ObjectSection.STATUS)
    is_stored = _has_status(answer, intent)
    # If the server changed the status, its event must enqueue the key.
    context.note_write(existing, answer, ignore_own_event=intent.ignore_own_event and is_stored)
    if is_stored:
        context.memory.drop_residue(intent.key, ObjectSection.STATUS)
    else:
        stored = _status_of(answer)
        context.memory.set_residue(intent.key, ObjectSection.STATUS, digest(stored, intent.status))
    return Outcome(intent, Effect.WRITTEN)


def _build(existing: Snapshot, intent: SetStatus, version: str) -> JsonMapping:
    """The whole object with another status. A server takes members that are left out of `metadata`
    as removed by their owner.
    """
    members: dict[str, JsonValue] = {
        name: Encoded(bytes(member)) for name, member in existing.members().items()
    }
    metadata = {**decode_json_object(existing.member("metadata")), "resourceVersion": version}
    return {**members, "metadata": metadata, "status": intent.status}


def _base_version(context: ApplyContext, intent: SetStatus, existing: Snapshot) -> str:
    """The version to send: the one that the status was derived from, or that of an own write since.

    After an own write the status still holds, unless that write's response shows another writer's
    status. Any other version is a conflict, found without a request.
    """
    version = existing.metadata.resource_version
    if intent.uid is None or version == intent.resource_version:
        return version
    own = context.own_write.get(intent.key)
    if own is None or own.before.metadata.resource_version != intent.resource_version:
        raise moved_on(intent.key)
    if not is_same(_status_of(own.before), _status_of(own.after)):
        raise moved_on(intent.key)
    return version


def _status_of(snapshot: Snapshot) -> JsonObject:
    stored = snapshot.member("status")
    return decode_json_object(stored) if stored.startswith(b"{") else {}
