"""Carries out `Ensure` and `Delete`: objects that should be there in a certain form, or
not at all.
"""

from __future__ import annotations

from compute_operator_kit.apply.desk import Desk, moved_on, test_of
from compute_operator_kit.compare import Difference, compare_stored, fingerprint
from compute_operator_kit.errors import ConflictError
from compute_operator_kit.holding import Part
from compute_operator_kit.intents import Delete, Ensure, build_new
from compute_operator_kit.kube import AlreadyExists, Preconditions
from compute_operator_kit.objects import Absent, Snapshot
from compute_operator_kit.outcomes import Effect, Outcome


async def ensure(desk: Desk, intent: Ensure) -> Outcome:
    """Creates what the plan did not see; brings in line what it saw, and nothing else."""
    if intent.uid is None:
        return await _create(desk, intent)
    found = await desk.find_same(intent.key, intent.uid)
    difference = compare_stored(found, intent.wanted)
    if not difference or desk.memory.is_residue(
        intent.key, Part.OBJECT, lambda: fingerprint(found.read(), intent.wanted)
    ):
        return desk.equal(intent, Part.OBJECT)
    held = desk.hold(intent, Part.OBJECT)
    return held or await _update(desk, intent, found, difference)


async def _update(desk: Desk, intent: Ensure, found: Snapshot, difference: Difference) -> Outcome:
    version = intent.resource_version
    if not version and difference.needs_version:
        version = found.metadata.resource_version
    tests = (test_of(version, "metadata", "resourceVersion"),) if version else ()
    async with desk.guarded(intent.guards) as refusal:
        if refusal is not None:
            return refusal.outcome(intent)
        desk.announce("Patching object", intent, [step.path for step in difference.steps])
        answer = await desk.patch(
            found, [*tests, *difference.steps], is_done=lambda live: _is_wanted(live, intent)
        )
    if isinstance(answer, Absent):
        raise moved_on(intent.key)
    return _written(desk, intent, answer)


async def _create(desk: Desk, intent: Ensure) -> Outcome:
    # What no cache has is made without a look: a server refuses a second one of the name.
    found = await desk.find(intent.key, is_known=False)
    if isinstance(found, Snapshot):
        return _judge_taken(desk, intent, found)
    held = desk.hold(intent, Part.OBJECT)
    if held is not None:
        return held
    async with desk.guarded(intent.guards) as refusal:
        if refusal is not None:
            return refusal.outcome(intent)
        desk.announce("Creating object", intent)
        answer = await desk.or_read(
            desk.kube_to_write(intent.key).create(intent.key, build_new(intent)),
            intent.key,
            is_done=lambda live: _is_wanted(live, intent),
        )
    if isinstance(answer, AlreadyExists):
        live = await desk.kube_to_read(intent.key).get(intent.key)
        if isinstance(live, Snapshot):
            return _judge_taken(desk, intent, live)
        raise moved_on(intent.key)  # there a moment ago and gone again
    if isinstance(answer, Absent):
        raise moved_on(intent.key)
    desk.note(answer, answer, is_final=intent.is_final)
    return _written(desk, intent, answer)


def _is_wanted(live: Snapshot | Absent, intent: Ensure) -> bool:
    return isinstance(live, Snapshot) and not compare_stored(live, intent.wanted)


def _judge_taken(desk: Desk, intent: Ensure, live: Snapshot) -> Outcome:
    """The name is taken: by what we wanted to make, or by something the plan must see first.

    Never adopted here. An object that somebody else made, or that we made in another form, is for
    the plan to judge, and it is not asked again before its caches have seen that object.
    """
    desk.gate.wrote_at(desk.root, live)
    if not _is_wanted(live, intent) or live.metadata.is_deleting:
        raise ConflictError(
            "AlreadyExists", f"creating {intent.key}: the name is taken", plane=intent.key.plane
        )
    return desk.equal(intent, Part.OBJECT)


def _written(desk: Desk, intent: Ensure, answer: Snapshot) -> Outcome:
    desk.memory.settle(intent.key, Part.OBJECT)
    if compare_stored(answer, intent.wanted):
        mark = fingerprint(answer.read(), intent.wanted)
        desk.memory.keep_residue(intent.key, Part.OBJECT, mark)
    else:
        desk.memory.drop_residue(intent.key, Part.OBJECT)
    return Outcome(intent, Effect.WRITTEN)


async def delete(desk: Desk, intent: Delete) -> Outcome:
    """Deletes this very object; gone, replaced or on its way out is success without a request."""
    found = await desk.find(intent.key)
    if isinstance(found, Absent) or _is_leaving(found, intent):
        return Outcome(intent, Effect.EQUAL)
    async with desk.guarded(intent.guards) as refusal:
        if refusal is not None:
            return refusal.outcome(intent)
        desk.announce("Deleting object", intent)
        conditions = Preconditions(intent.uid, intent.resource_version)
        await desk.or_read(
            desk.kube_to_write(intent.key).delete(intent.key, preconditions=conditions),
            intent.key,
            is_done=lambda live: isinstance(live, Absent) or _is_leaving(live, intent),
        )
    desk.gate.deleted(desk.root, intent.key, intent.uid)
    return Outcome(intent, Effect.WRITTEN)


def _is_leaving(live: Snapshot, intent: Delete) -> bool:
    return live.metadata.uid != intent.uid or live.metadata.is_deleting
