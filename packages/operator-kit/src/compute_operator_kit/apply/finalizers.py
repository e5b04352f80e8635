"""Writes of single list entries: `AddFinalizer`, `RemoveFinalizer` and `RemoveGate`.

A whole list is never written: two writers of one list would restore each other's removed entries.
A patch of a list index tests the entry there, because indexes move when others edit the list.
"""

from __future__ import annotations

from typing import TypeGuard

from compute_operator_kit.apply.context import ApplyContext, moved_on, test_of
from compute_operator_kit.core.json import Json, JsonObject
from compute_operator_kit.core.json_patch import PatchOp, PatchStep, pointer
from compute_operator_kit.core.objects import Absent, Snapshot
from compute_operator_kit.intents.compare import compare
from compute_operator_kit.intents.intents import (
    AddFinalizer,
    OwnedFields,
    RemoveFinalizer,
    RemoveGate,
)
from compute_operator_kit.intents.outcomes import Effect, Outcome


async def add_finalizer(context: ApplyContext, intent: AddFinalizer) -> Outcome:
    existing = await context.find_same(intent.key, intent.uid)
    if existing.metadata.is_deleting:  # the server takes no new finalizers then
        return Outcome(intent, Effect.SKIPPED, "Deleting")
    steps = _missing(existing, intent)
    if not steps:
        return Outcome(intent, Effect.EQUAL)
    context.log_write("Adding finalizer", intent, [step.path for step in steps])
    test = test_of(existing.metadata.resource_version, "metadata", "resourceVersion")
    answer = await context.patch(
        existing,
        [test, *steps],
        is_done=lambda live: isinstance(live, Snapshot) and not _missing(live, intent),
    )
    if isinstance(answer, Absent):
        raise moved_on(intent.key)
    return Outcome(intent, Effect.WRITTEN)


def _missing(existing: Snapshot, intent: AddFinalizer) -> tuple[PatchStep, ...]:
    """The patch steps for the finalizer and its annotations, sent in one request."""
    steps = _missing_annotations(existing, intent) if intent.annotations else ()
    held = existing.metadata.finalizers
    if intent.finalizer in held:
        return steps
    if held:
        add = PatchStep(PatchOp.ADD, pointer("metadata", "finalizers", "-"), intent.finalizer)
    else:
        add = PatchStep(PatchOp.ADD, pointer("metadata", "finalizers"), [intent.finalizer])
    return (add, *steps)


def _missing_annotations(existing: Snapshot, intent: AddFinalizer) -> tuple[PatchStep, ...]:
    """The patch steps for annotations, by the header alone, so that no body is decoded."""
    held = existing.metadata.annotations
    header: JsonObject = {"annotations": {**held}} if held else {}
    return compare({"metadata": header}, OwnedFields(annotations=dict(intent.annotations))).steps


async def remove_finalizer(context: ApplyContext, intent: RemoveFinalizer) -> Outcome:
    existing = await context.find_object(intent.key)
    if not _has_finalizer(existing, intent):
        return Outcome(intent, Effect.EQUAL)
    position = ("metadata", "finalizers", existing.metadata.finalizers.index(intent.finalizer))
    steps = (test_of(intent.finalizer, *position), PatchStep(PatchOp.REMOVE, pointer(*position)))
    async with context.guarded(intent.guards) as refusal:
        if refusal is not None:
            return refusal.outcome(intent)
        context.log_write("Removing finalizer", intent, [pointer(*position)])
        await context.patch(existing, steps, is_done=lambda live: not _has_finalizer(live, intent))
    return Outcome(intent, Effect.WRITTEN)


def _has_finalizer(existing: Snapshot | Absent, intent: RemoveFinalizer) -> TypeGuard[Snapshot]:
    return (
        isinstance(existing, Snapshot)
        and existing.metadata.uid == intent.uid
        and intent.finalizer in existing.metadata.finalizers
    )


async def remove_gate(context: ApplyContext, intent: RemoveGate) -> Outcome:
    existing = await context.find_object(intent.key)
    if isinstance(existing, Absent):
        return Outcome(intent, Effect.SKIPPED, "Vanished")
    if existing.metadata.uid != intent.uid:
        raise moved_on(intent.key)
    position = _find_gate(existing, intent)
    if position is None:
        return Outcome(intent, Effect.EQUAL)
    at: tuple[str | int, ...] = (*intent.path, position)
    steps = [test_of(intent.gate, *at, "name"), PatchStep(PatchOp.REMOVE, pointer(*at))]
    if intent.generation is not None:
        # After a resize or a delete the generation is another one: the gate stays.
        steps.insert(0, test_of(intent.generation, "metadata", "generation"))
    context.log_write("Removing gate", intent, [pointer(*at)])
    answer = await context.patch(
        existing,
        steps,
        is_done=lambda live: isinstance(live, Snapshot) and _find_gate(live, intent) is None,
    )
    if isinstance(answer, Absent):
        return Outcome(intent, Effect.SKIPPED, "Vanished")
    return Outcome(intent, Effect.WRITTEN)


def _find_gate(existing: Snapshot, intent: RemoveGate) -> int | None:
    """The index of the gate in its list; None if there is no such gate, list or parent."""
    at: Json = existing.read()
    for name in intent.path:
        at = at.get(name) if isinstance(at, dict) else None
    entries = at if isinstance(at, list) else []
    return next(
        (
            position
            for position, entry in enumerate(entries)
            if isinstance(entry, dict) and entry.get("name") == intent.gate
        ),
        None,
    )
