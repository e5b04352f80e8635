"""Carries out `AddFinalizer`, `RemoveFinalizer` and `RemoveGate`: single entries of lists that
others write too.

Never a whole list: two writers of one list would bring each other's entries back. A place in a list
is tested together with what stands there, because places move when others edit.
"""

from __future__ import annotations

from typing import TypeGuard

from compute_operator_kit.apply.desk import Desk, moved_on, test_of
from compute_operator_kit.compare import compare
from compute_operator_kit.intents import AddFinalizer, Owned, RemoveFinalizer, RemoveGate
from compute_operator_kit.json_patch import PatchOp, PatchStep, pointer
from compute_operator_kit.objects import Absent, Snapshot
from compute_operator_kit.outcomes import Effect, Outcome
from compute_operator_kit.wire import Json, JsonObject


async def add_finalizer(desk: Desk, intent: AddFinalizer) -> Outcome:
    found = await desk.find_same(intent.key, intent.uid)
    if found.metadata.is_deleting:  # the server takes no new finalizers then
        return Outcome(intent, Effect.SKIPPED, "Deleting")
    steps = _missing(found, intent)
    if not steps:
        return Outcome(intent, Effect.EQUAL)
    desk.announce("Adding finalizer", intent, [step.path for step in steps])
    test = test_of(found.metadata.resource_version, "metadata", "resourceVersion")
    answer = await desk.patch(
        found,
        [test, *steps],
        is_done=lambda live: isinstance(live, Snapshot) and not _missing(live, intent),
    )
    if isinstance(answer, Absent):
        raise moved_on(intent.key)
    return Outcome(intent, Effect.WRITTEN)


def _missing(found: Snapshot, intent: AddFinalizer) -> tuple[PatchStep, ...]:
    """The steps to the finalizer and its annotations, which travel together."""
    steps = _missing_annotations(found, intent) if intent.annotations else ()
    held = found.metadata.finalizers
    if intent.finalizer in held:
        return steps
    if held:
        add = PatchStep(PatchOp.ADD, pointer("metadata", "finalizers", "-"), intent.finalizer)
    else:
        add = PatchStep(PatchOp.ADD, pointer("metadata", "finalizers"), [intent.finalizer])
    return (add, *steps)


def _missing_annotations(found: Snapshot, intent: AddFinalizer) -> tuple[PatchStep, ...]:
    """By the header alone: nothing else of the object is looked at."""
    held = found.metadata.annotations
    header: JsonObject = {"annotations": {**held}} if held else {}
    return compare({"metadata": header}, Owned(annotations=dict(intent.annotations))).steps


async def remove_finalizer(desk: Desk, intent: RemoveFinalizer) -> Outcome:
    found = await desk.find(intent.key)
    if not _has_finalizer(found, intent):
        return Outcome(intent, Effect.EQUAL)
    place = ("metadata", "finalizers", found.metadata.finalizers.index(intent.finalizer))
    steps = (test_of(intent.finalizer, *place), PatchStep(PatchOp.REMOVE, pointer(*place)))
    async with desk.guarded(intent.guards) as refusal:
        if refusal is not None:
            return refusal.outcome(intent)
        desk.announce("Removing finalizer", intent, [pointer(*place)])
        await desk.patch(found, steps, is_done=lambda live: not _has_finalizer(live, intent))
    return Outcome(intent, Effect.WRITTEN)


def _has_finalizer(found: Snapshot | Absent, intent: RemoveFinalizer) -> TypeGuard[Snapshot]:
    return (
        isinstance(found, Snapshot)
        and found.metadata.uid == intent.uid
        and intent.finalizer in found.metadata.finalizers
    )


async def remove_gate(desk: Desk, intent: RemoveGate) -> Outcome:
    found = await desk.find(intent.key)
    if isinstance(found, Absent):
        return Outcome(intent, Effect.SKIPPED, "Vanished")
    if found.metadata.uid != intent.uid:
        raise moved_on(intent.key)
    place = _find_gate(found, intent)
    if place is None:
        return Outcome(intent, Effect.EQUAL)
    at: tuple[str | int, ...] = (*intent.path, place)
    steps = [test_of(intent.gate, *at, "name"), PatchStep(PatchOp.REMOVE, pointer(*at))]
    if intent.generation is not None:
        # A resize or a delete since the judgement is another generation: the gate stays.
        steps.insert(0, test_of(intent.generation, "metadata", "generation"))
    desk.announce("Removing gate", intent, [pointer(*at)])
    answer = await desk.patch(
        found,
        steps,
        is_done=lambda live: isinstance(live, Snapshot) and _find_gate(live, intent) is None,
    )
    if isinstance(answer, Absent):
        return Outcome(intent, Effect.SKIPPED, "Vanished")
    return Outcome(intent, Effect.WRITTEN)


def _find_gate(found: Snapshot, intent: RemoveGate) -> int | None:
    """The place of the gate in its list; None where there is no such gate, list or parent."""
    at: Json = found.read()
    for name in intent.path:
        at = at.get(name) if isinstance(at, dict) else None
    entries = at if isinstance(at, list) else []
    return next(
        (
            place
            for place, entry in enumerate(entries)
            if isinstance(entry, dict) and entry.get("name") == intent.gate
        ),
        None,
    )
