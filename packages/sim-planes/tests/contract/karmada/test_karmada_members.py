"""`docs/spec/neighbours.md` 1.4: Work, member object, namespaces."""

from __future__ import annotations

from functools import partial

import pytest
from karmada_builders.documents import GADGETS
from karmada_builders.hands import (
    WEB,
    Hands,
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


async def deliver(karmada: Hands) -> JsonObject:
    """Until Karmada follows the copy: what happens to it before that, nobody notices."""
    await karmada.place("dfw-1")
    await karmada.make(karmada.policy(), karmada.gadget())
    await karmada.arrives(
        lambda: karmada.work("dfw-1"),
        lambda found: bool(objects_at(found, "status", "manifestStatuses")),
    )
    return await karmada.arrives(lambda: karmada.copy("dfw-1"))


def generation_sent(found: JsonObject) -> str:
    return annotation_of(found, TEMPLATE_GENERATION)


async def patch_copy(karmada: Hands, patch: JsonObject) -> None:
    await karmada.members["dfw-1"].patch(GADGETS, WEB, patch, namespace=karmada.namespace)


async def test_the_generation_sent_follows_every_spec_change(karmada: Hands) -> None:
    assert generation_sent(await deliver(karmada)) == "1"
    for size in (2, 3):
        await karmada.edit({"spec": {"size": size}})
        found = await karmada.arrives(lambda: karmada.copy("dfw-1"), has_size(size))
        assert generation_sent(found) == str(size)


async def test_a_change_and_its_undoing_move_the_generation_sent_alone(karmada: Hands) -> None:
    await deliver(karmada)
    await karmada.take_away("dfw-1")
    await karmada.edit({"spec": {"size": 2}})
    await karmada.edit({"spec": {"size": 1}})
    await karmada.bring_back("dfw-1")
    found = await karmada.arrives(
        lambda: karmada.copy("dfw-1"), lambda found: generation_sent(found) == "3"
    )
    assert size_of(found) == 1
    assert integer_at(found, "metadata", "generation") == 1


async def test_metadata_changes_travel_with_the_generation_sent_unchanged(karmada: Hands) -> None:
    await deliver(karmada)
    await karmada.edit({"metadata": {"annotations": {NOTE: "1"}}})
    found = await karmada.arrives(
        lambda: karmada.copy("dfw-1"), lambda found: annotation_of(found, NOTE) == "1"
    )
    assert generation_sent(found) == "1"
    # And so does a key that goes.
    await karmada.edit({"metadata": {"annotations": {NOTE: None}}})
    await karmada.arrives(
        lambda: karmada.copy("dfw-1"), lambda found: annotation_of(found, NOTE) == ""
    )


async def test_spec_drift_in_a_member_is_reverted(karmada: Hands) -> None:
    await deliver(karmada)
    await patch_copy(karmada, {"spec": {"size": 99}})
    await karmada.arrives(lambda: karmada.copy("dfw-1"), has_size(1))


async def test_a_deleted_copy_is_made_again(karmada: Hands) -> None:
    before = string_at(await deliver(karmada), "metadata", "uid")
    await karmada.members["dfw-1"].delete(GADGETS, WEB, namespace=karmada.namespace)
    found = await karmada.arrives(
        lambda: karmada.copy("dfw-1"),
        lambda found: string_at(found, "metadata", "uid") != before,
    )
    assert size_of(found) == 1
    await karmada.arrives(lambda: karmada.work("dfw-1"), is_applied)


async def test_what_a_member_adds_is_kept(karmada: Hands) -> None:
    await deliver(karmada)
    marks: JsonObject = {
        "labels": {NOTE: "member"},
        "annotations": {NOTE: "member"},
        "finalizers": [FINALIZER],
    }
    await patch_copy(karmada, {"metadata": marks})
    await karmada.edit({"spec": {"size": 2}})
    found = await karmada.arrives(lambda: karmada.copy("dfw-1"), has_size(2))
    assert string_at(found, "metadata", "labels", NOTE) == "member"
    assert annotation_of(found, NOTE) == "member"
    assert strings_at(found, "metadata", "finalizers") == [FINALIZER]
    await patch_copy(karmada, {"metadata": {"finalizers": None}})


async def plant(karmada: Hands, labels: JsonObject) -> None:
    """Somebody else's object in the member, where Karmada wants its own."""
    wanted = karmada.gadget(size=7)
    object_at(wanted, "metadata")["labels"] = labels
    object_at(wanted, "metadata")["finalizers"] = [FINALIZER]
    await karmada.members["dfw-1"].create(GADGETS, wanted)
    await karmada.report("dfw-1", {"phase": "Planted"})
    await karmada.place("dfw-1")


async def pull_up(karmada: Hands) -> None:
    await patch_copy(karmada, {"metadata": {"finalizers": None}})


async def test_abort_leaves_an_unmanaged_object_alone(karmada: Hands) -> None:
    await plant(karmada, {NOTE: "mine"})
    await karmada.make(karmada.policy(conflictResolution="Abort"), karmada.gadget())
    await karmada.arrives(lambda: karmada.work("dfw-1"), is_refused)
    found = await karmada.arrives(lambda: karmada.copy("dfw-1"))
    assert size_of(found) == 7
    await pull_up(karmada)


async def test_overwrite_replaces_the_spec_of_an_unmanaged_object_and_keeps_the_rest(
    karmada: Hands,
) -> None:
    await plant(karmada, {NOTE: "mine"})
    await karmada.make(karmada.policy(conflictResolution="Overwrite"), karmada.gadget())
    await karmada.arrives(lambda: karmada.work("dfw-1"), is_applied)
    found = await karmada.arrives(lambda: karmada.copy("dfw-1"))
    assert size_of(found) == 1
    assert string_at(found, "status", "phase") == "Planted"
    assert string_at(found, "metadata", "labels", NOTE) == "mine"
    assert strings_at(found, "metadata", "finalizers") == [FINALIZER]
    await pull_up(karmada)


@pytest.mark.parametrize("resolution", ["Abort", "Overwrite"])
async def test_an_object_labelled_managed_by_whomever_is_taken_over(
    karmada: Hands, resolution: str
) -> None:
    await plant(karmada, {MANAGED: "true"})
    await karmada.make(karmada.policy(conflictResolution=resolution), karmada.gadget())
    await karmada.arrives(lambda: karmada.work("dfw-1"), is_applied)
    found = await karmada.arrives(lambda: karmada.copy("dfw-1"))
    assert size_of(found) == 1
    await pull_up(karmada)


async def test_a_namespace_is_on_every_member_with_its_labels_and_follows_the_hub(
    karmada: Hands,
) -> None:
    patch: JsonObject = {"metadata": {"labels": {NOTE: "hub"}}}
    await karmada.hub.patch(NAMESPACES, karmada.namespace, patch)
    for client in karmada.members.values():
        await karmada.arrives(
            partial(client.get, NAMESPACES, karmada.namespace),
            lambda found: string_at(found, "metadata", "labels", NOTE) == "hub",
        )
