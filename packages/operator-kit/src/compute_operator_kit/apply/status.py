"""Carries out `SetStatus`: the whole status, on the version it was derived from, and only
if it differs.
"""

from __future__ import annotations

from compute_operator_kit.apply.desk import Desk, moved_on
from compute_operator_kit.compare import digest, is_same
from compute_operator_kit.holding import Part
from compute_operator_kit.intents import SetStatus
from compute_operator_kit.objects import Absent, Snapshot
from compute_operator_kit.outcomes import Effect, Outcome
from compute_operator_kit.wire import (
    Encoded,
    JsonMapping,
    JsonObject,
    JsonValue,
    decode_object,
    encode_canonical,
)


async def set_status(desk: Desk, intent: SetStatus) -> Outcome:
    found = await _find(desk, intent)
    if isinstance(found, Absent):
        return Outcome(intent, Effect.SKIPPED, "Vanished")
    if _has_status(found, intent) or desk.memory.is_residue(
        intent.key, Part.STATUS, lambda: digest(_status_of(found), intent.status)
    ):
        return desk.equal(intent, Part.STATUS)
    held = desk.hold(intent, Part.STATUS)
    return held or await _send(desk, intent, found)


async def _find(desk: Desk, intent: SetStatus) -> Snapshot | Absent:
    if intent.uid is None:
        # Made by this very pass, or not there: what stood under the name before is not meant.
        own = desk.own.get(intent.key)
        return own.after if own else Absent()
    found = await desk.find(intent.key)
    if isinstance(found, Snapshot) and found.metadata.uid != intent.uid:
        raise moved_on(intent.key)
    return found


def _has_status(found: Snapshot, intent: SetStatus) -> bool:
    """Nearly always equal bytes say so; others may still be the same value."""
    stored = found.member("status")
    if stored == encode_canonical(intent.status):
        return True
    return bool(stored) and is_same(_status_of(found), intent.status)


async def _send(desk: Desk, intent: SetStatus, found: Snapshot) -> Outcome:
    version = _base_version(desk, intent, found)
    desk.announce("Writing status", intent)
    answer = await desk.or_read(
        desk.kube_to_write(intent.key).update_status(intent.key, _build(found, intent, version)),
        intent.key,
        is_done=lambda live: isinstance(live, Absent) or _has_status(live, intent),
    )
    if isinstance(answer, Absent):
        # Gone on the server and not in the cache: the key waits until the cache has seen it.
        desk.note(found, answer)
        return Outcome(intent, Effect.SKIPPED, "Vanished")
    desk.memory.settle(intent.key, Part.STATUS)
    is_kept = _has_status(answer, intent)
    # What the server made something else of is for the next pass to see.
    desk.note(found, answer, is_final=intent.is_final and is_kept)
    if is_kept:
        desk.memory.drop_residue(intent.key, Part.STATUS)
    else:
        left = _status_of(answer)
        desk.memory.keep_residue(intent.key, Part.STATUS, digest(left, intent.status))
    return Outcome(intent, Effect.WRITTEN)


def _build(found: Snapshot, intent: SetStatus, version: str) -> JsonMapping:
    """The object as it was found, with another status. All of it: a server counts what is left out
    of `metadata` as given up by whoever set it.
    """
    members: dict[str, JsonValue] = {
        name: Encoded(bytes(member)) for name, member in found.members().items()
    }
    metadata = {**decode_object(found.member("metadata")), "resourceVersion": version}
    return {**members, "metadata": metadata, "status": intent.status}


def _base_version(desk: Desk, intent: SetStatus, found: Snapshot) -> str:
    """The version to write on: the one the status was derived from, or our own next one.

    A write of this pass moved the version on; if it did not bring somebody else's status with it,
    the derivation still holds. Anything else is a conflict, told without asking the server.
    """
    version = found.metadata.resource_version
    if intent.uid is None or version == intent.resource_version:
        return version
    own = desk.own.get(intent.key)
    if own is None or own.before.metadata.resource_version != intent.resource_version:
        raise moved_on(intent.key)
    if not is_same(_status_of(own.before), _status_of(own.after)):
        raise moved_on(intent.key)
    return version


def _status_of(snapshot: Snapshot) -> JsonObject:
    stored = snapshot.member("status")
    return decode_object(stored) if stored.startswith(b"{") else {}
