"""`docs/spec/neighbours.md` 1.4: Work, member object, namespaces."""

from __future__ import annotations

from functools import partial

import pytest
from karmada_builders.documents import GADGETS
from karmada_builders.fixture import (
    WEB,
    StackFixture,
    annotation_of,
    has_size,
    is_applied,
    is_refused,
    size_of,
)

from compute_sim_planes.json_types import (
    JsonObject,
    integer_at,
    object_at,
    objects_at,
    string_at,
    strings_at,
)
from compute_sim_planes.karmada.kinds import MANAGED, NAMESPACES, TEMPLATE_GENERATION

NOTE = "contract.example.com/note"
FINALIZER = "contract.example.com/held"


async def deliver(karmada: StackFixture) -> JsonObject:
    """Wait until Karmada watches the copy: earlier changes go unnoticed."""
    await karmada.place("dfw-1")
    await karmada.make(karmada.policy(), karmada.gadget())
    await karmada.arrives(
        lambda: karmada.work("dfw-1"),
        lambda existing: bool(objects_at(existing, "status", "manifestStatuses")),
    )
    return await karmada.arrives(lambda: karmada.copy("dfw-1"))


def generation_sent(existing: JsonObject) -> str:
    return annotation_of(existing, TEMPLATE_GENERATION)


async def patch_copy(karmada: StackFixture, patch: JsonObject) -> None:
    await karmada.members["dfw-1"].patch(GADGETS, WEB, patch, namespace=karmada.namespace)


async def test_the_generation_sent_follows_every_spec_change(karmada: StackFixture) -> None:
    assert generation_sent(await deliver(karmada)) == "1"
    for size in (2, 3):
        await karmada.edit({"spec": {"size": size}})
        existing = await karmada.arrives(lambda: karmada.copy("dfw-1"), has_size(size))
        assert generation_sent(existing) == str(size)


async def test_a_change_and_its_undoing_move_the_generation_sent_alone(
    karmada: StackFixture,
) -> None:
    await deliver(karmada)
    await karmada.take_away("dfw-1")
    await karmada.edit({"spec": {"size": 2}})
    await karmada.edit({"spec": {"size": 1}})
    await karmada.bring_back("dfw-1")
    existing = await karmada.arrives(
        lambda: karmada.copy("dfw-1"), lambda existing: generation_sent(existing) == "3"
    )
    assert size_of(existing) == 1
    assert integer_at(existing, "metadata", "generation") == 1


async def test_metadata_changes_travel_with_the_generation_sent_unchanged(
    karmada: StackFixture,
) -> None:
    await deliver(karmada)
    await karmada.edit({"metadata": {"annotations": {NOTE: "1"}}})
    existing = await karmada.arrives(
        lambda: karmada.copy("dfw-1"), lambda existing: annotation_of(existing, NOTE) == "1"
    )
    assert generation_sent(existing) == "1"
    # A removed key is removed in the copy too.
    await karmada.edit({"metadata": {"annotations": {NOTE: None}}})
    await karmada.arrives(
        lambda: karmada.copy("dfw-1"), lambda existing: annotation_of(existing, NOTE) == ""
    )


async def test_spec_drift_in_a_member_is_reverted(karmada: StackFixture) -> None:
    await deliver(karmada)
    await patch_copy(karmada, {"spec": {"size": 99}})
    await karmada.arrives(lambda: karmada.copy("dfw-1"), has_size(1))


async def test_a_deleted_copy_is_made_again(karmada: StackFixture) -> None:
    before = string_at(await deliver(karmada), "metadata", "uid")
    await karmada.members["dfw-1"].delete(GADGETS, WEB, namespace=karmada.namespace)
    existing = await karmada.arrives(
        lambda: karmada.copy("dfw-1"),
        lambda existing: string_at(existing, "metadata", "uid") != before,
    )
    assert size_of(existing) == 1
    await karmada.arrives(lambda: karmada.work("dfw-1"), is_applied)


async def test_what_a_member_adds_is_kept(karmada: StackFixture) -> None:
    await deliver(karmada)
    marks: JsonObject = {
        "labels": {NOTE: "member"},
        "annotations": {NOTE: "member"},
        "finalizers": [FINALIZER],
    }
    await patch_copy(karmada, {"metadata": marks})
    await karmada.edit({"spec": {"size": 2}})
    existing = await karmada.arrives(lambda: karmada.copy("dfw-1"), has_size(2))
    assert string_at(existing, "metadata", "labels", NOTE) == "member"
    assert annotation_of(existing, NOTE) == "member"
    assert strings_at(existing, "metadata", "finalizers") == [FINALIZER]
    await patch_copy(karmada, {"metadata": {"finalizers": None}})


async def plant(karmada: StackFixture, labels: JsonObject) -> None:
    """Create a foreign object in the member at the name of the copy."""
    desired = karmada.gadget(size=7)
    object_at(desired, "metadata")["labels"] = labels
    object_at(desired, "metadata")["finalizers"] = [FINALIZER]
    await karmada.members["dfw-1"].create(GADGETS, desired)
    await karmada.report("dfw-1", {"phase": "Planted"})
    await karmada.place("dfw-1")


async def pull_up(karmada: StackFixture) -> None:
    await patch_copy(karmada, {"metadata": {"finalizers": None}})


async def test_abort_leaves_an_unmanaged_object_alone(karmada: StackFixture) -> None:
    await plant(karmada, {NOTE: "mine"})
    await karmada.make(karmada.policy(conflictResolution="Abort"), karmada.gadget())
    await karmada.arrives(lambda: karmada.work("dfw-1"), is_refused)
    existing = await karmada.arrives(lambda: karmada.copy("dfw-1"))
    assert size_of(existing) == 7
    await pull_up(karmada)


async def test_overwrite_replaces_the_spec_of_an_unmanaged_object_and_keeps_the_rest(
    karmada: StackFixture,
) -> None:
    await plant(karmada, {NOTE: "mine"})
    await karmada.make(karmada.policy(conflictResolution="Overwrite"), karmada.gadget())
    await karmada.arrives(lambda: karmada.work("dfw-1"), is_applied)
    existing = await karmada.arrives(lambda: karmada.copy("dfw-1"))
    assert size_of(existing) == 1
    assert string_at(existing, "status", "phase") == "Planted"
    assert string_at(existing, "metadata", "labels", NOTE) == "mine"
    assert strings_at(existing, "metadata", "finalizers") == [FINALIZER]
    await pull_up(karmada)


@pytest.mark.parametrize("resolution", ["Abort", "Overwrite"])
async def test_an_object_labelled_managed_by_whomever_is_taken_over(
    karmada: StackFixture, resolution: str
) -> None:
    await plant(karmada, {MANAGED: "true"})
    await karmada.make(karmada.policy(conflictResolution=resolution), karmada.gadget())
    await karmada.arrives(lambda: karmada.work("dfw-1"), is_applied)
    existing = await karmada.arrives(lambda: karmada.copy("dfw-1"))
    assert size_of(existing) == 1
    await pull_up(karmada)


async def test_a_namespace_is_on_every_member_with_its_labels_and_follows_the_hub(
    karmada: StackFixture,
) -> None:
    patch: JsonObject = {"metadata": {"labels": {NOTE: "hub"}}}
    await karmada.hub.patch(NAMESPACES, karmada.namespace, patch)
    for client in karmada.members.values():
        await karmada.arrives(
            partial(client.get, NAMESPACES, karmada.namespace),
            lambda existing: string_at(existing, "metadata", "labels", NOTE) == "hub",
        )
