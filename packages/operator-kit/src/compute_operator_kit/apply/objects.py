"""Writes of objects: `Ensure` creates or patches, `Delete` deletes.

Only owned fields are compared and sent, and only the object with the UID that the plan observed is
changed or deleted; an object of the same name made since is a conflict.
"""

from __future__ import annotations

from compute_operator_kit.apply.context import ApplyContext, moved_on, test_of
from compute_operator_kit.apply.write_memory import ObjectSection
from compute_operator_kit.client.interface import AlreadyExists, Preconditions
from compute_operator_kit.core.errors import ConflictError
from compute_operator_kit.core.objects import Absent, Snapshot
from compute_operator_kit.intents.compare import Difference, compare_stored, fingerprint
from compute_operator_kit.intents.intents import Delete, Ensure, build_new
from compute_operator_kit.intents.outcomes import Effect, Outcome


async def ensure(context: ApplyContext, intent: Ensure) -> Outcome:
    """Creates the object if the plan observed none, else patches the observed one."""
    if intent.uid is None:
        return await _create(context, intent)
    existing = await context.find_same(intent.key, intent.uid)
    difference = compare_stored(existing, intent.desired)
    if not difference or context.memory.is_residue(
        intent.key, ObjectSection.OBJECT, lambda: fingerprint(existing.read(), intent.desired)
    ):
        return context.equal(intent, ObjectSection.OBJECT)
    held = context.defer(intent, ObjectSection.OBJECT)
    return held or await _update(context, intent, existing, difference)


async def _update(
    context: ApplyContext, intent: Ensure, existing: Snapshot, difference: Difference
) -> Outcome:
    version = intent.resource_version
    if not version and difference.needs_version:
        version = existing.metadata.resource_version
    tests = (test_of(version, "metadata", "resourceVersion"),) if version else ()
    async with context.guarded(intent.guards) as refusal:
        if refusal is not None:
            return refusal.outcome(intent)
        context.log_write("Patching object", intent, [step.path for step in difference.steps])
        answer = await context.patch(
            existing, [*tests, *difference.steps], is_done=lambda live: _has_desired(live, intent)
        )
    if isinstance(answer, Absent):
        raise moved_on(intent.key)
    return _written(context, intent, answer)


async def _create(context: ApplyContext, intent: Ensure) -> Outcome:
    # No live read first: the server refuses a second object of the name.
    existing = await context.find_object(intent.key, is_known=False)
    if isinstance(existing, Snapshot):
        return _accept_if_equal(context, intent, existing)
    held = context.defer(intent, ObjectSection.OBJECT)
    if held is not None:
        return held
    async with context.guarded(intent.guards) as refusal:
        if refusal is not None:
            return refusal.outcome(intent)
        context.log_write("Creating object", intent)
        answer = await context.or_read(
            context.kube_to_write(intent.key).create(intent.key, build_new(intent)),
            intent.key,
            is_done=lambda live: _has_desired(live, intent),
        )
    if isinstance(answer, AlreadyExists):
        live = await context.kube_to_read(intent.key).get(intent.key)
        if isinstance(live, Snapshot):
            return _accept_if_equal(context, intent, live)
        raise moved_on(intent.key)  # deleted between create and read
    if isinstance(answer, Absent):
        raise moved_on(intent.key)
    context.note_write(answer, answer, ignore_own_event=intent.ignore_own_event)
    return _written(context, intent, answer)


def _has_desired(live: Snapshot | Absent, intent: Ensure) -> bool:
    return isinstance(live, Snapshot) and not compare_stored(live, intent.desired)


def _accept_if_equal(context: ApplyContext, intent: Ensure, live: Snapshot) -> Outcome:
    """The name is taken: equal if the object has the desired fields, else a conflict.

    An object that differs is not adopted here: that is for the plan, which runs again once its
    caches have the object.
    """
    context.expectations.expect_written(context.root, live)
    if not _has_desired(live, intent) or live.metadata.is_deleting:
        raise ConflictError(
            "AlreadyExists", f"creating {intent.key}: the name is taken", plane=intent.key.plane
        )
    return context.equal(intent, ObjectSection.OBJECT)


def _written(context: ApplyContext, intent: Ensure, answer: Snapshot) -> Outcome:
    context.memory.end_deferral(intent.key, ObjectSection.OBJECT)
    if intent.key.kind.is_confidential:
        return Outcome(intent, Effect.WRITTEN)  # not even a digest is kept
    if compare_stored(answer, intent.desired):
        mark = fingerprint(answer.read(), intent.desired)
        context.memory.set_residue(intent.key, ObjectSection.OBJECT, mark)
    else:
        context.memory.drop_residue(intent.key, ObjectSection.OBJECT)
    return Outcome(intent, Effect.WRITTEN)


async def delete(context: ApplyContext, intent: Delete) -> Outcome:
    """Deletes the object; if it is absent, replaced or deleting, no request is sent."""
    existing = await context.find_object(intent.key)
    if isinstance(existing, Absent) or _is_going(existing, intent):
        return Outcome(intent, Effect.EQUAL)
    async with context.guarded(intent.guards) as refusal:
        if refusal is not None:
            return refusal.outcome(intent)
        context.log_write("Deleting object", intent)
        conditions = Preconditions(intent.uid, intent.resource_version)
        await context.or_read(
            context.kube_to_write(intent.key).delete(intent.key, preconditions=conditions),
            intent.key,
            is_done=lambda live: isinstance(live, Absent) or _is_going(live, intent),
        )
    context.expectations.expect_deleting(context.root, intent.key, intent.uid)
    return Outcome(intent, Effect.WRITTEN)


def _is_going(live: Snapshot, intent: Delete) -> bool:
    return live.metadata.uid != intent.uid or live.metadata.is_deleting
