"""Deletes: finalizers, preconditions, collections, owners and dependents."""

from __future__ import annotations

from datetime import timedelta

from compute_sim_planes.api_server.testing import (
    Api,
    a_config_map,
    a_widget,
    eventually,
    generation_of,
    metadata_of,
    uid_of,
    version_of,
)
from compute_sim_planes.json_types import JsonObject, objects_at, string_at

FINALIZER = "contract.example.com/hold"
# A real garbage collector discovers kinds twice a minute and ignores newer ones until then.
COLLECTED_WITHIN = timedelta(seconds=90)


def owned_by(owner: JsonObject, *, blocks: bool = False) -> list[JsonObject]:
    return [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": string_at(owner, "metadata", "name"),
            "uid": uid_of(owner),
            "blockOwnerDeletion": blocks,
            "controller": True,
        }
    ]


async def let_go(api: Api, path: str) -> None:
    (await api.merge(path, {"metadata": {"finalizers": None}})).expect(200)


async def gone(api: Api, path: str) -> None:
    await eventually(
        lambda: api.get(path), lambda response: response.status == 404, COLLECTED_WITHIN
    )


async def test_an_object_without_finalizers_goes_at_once(api: Api, widgets: str) -> None:
    made = (await api.post(widgets, a_widget())).expect(201)
    answered = (await api.delete(f"{widgets}/one")).expect(200)
    assert answered == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {
            "name": "one",
            "group": "contract.example.com",
            "kind": "widgets",
            "uid": uid_of(made),
        },
    }
    (await api.get(f"{widgets}/one")).expect(404)
    (await api.delete(f"{widgets}/one")).expect(404)


async def test_a_finalizer_holds_the_object_and_the_generation_rises(
    api: Api, widgets: str
) -> None:
    made = (await api.post(widgets, a_widget(finalizers=[FINALIZER]))).expect(201)
    marked = (await api.delete(f"{widgets}/one")).expect(200)
    assert marked["kind"] == "Widget"
    assert "deletionTimestamp" in metadata_of(marked)
    assert metadata_of(marked)["deletionGracePeriodSeconds"] == 0
    assert generation_of(marked) == 2
    assert int(version_of(marked)) > int(version_of(made))
    again = (await api.delete(f"{widgets}/one")).expect(200)
    assert again == marked
    await let_go(api, f"{widgets}/one")
    (await api.get(f"{widgets}/one")).expect(404)


async def test_what_is_being_deleted_can_still_be_changed(api: Api, widgets: str) -> None:
    (await api.post(widgets, a_widget(finalizers=[FINALIZER]))).expect(201)
    (await api.delete(f"{widgets}/one")).expect(200)
    changed = (await api.merge(f"{widgets}/one", {"spec": {"size": 2}})).expect(200)
    assert generation_of(changed) == 3
    (await api.merge(f"{widgets}/one/status", {"status": {"phase": "Going"}})).expect(200)
    await let_go(api, f"{widgets}/one")


async def test_no_finalizer_can_be_added_to_what_is_being_deleted(api: Api, widgets: str) -> None:
    (await api.post(widgets, a_widget(finalizers=[FINALIZER]))).expect(201)
    (await api.delete(f"{widgets}/one")).expect(200)
    desired: JsonObject = {"metadata": {"finalizers": [FINALIZER, "contract.example.com/late"]}}
    refused = await api.merge(f"{widgets}/one", desired)
    refused.expect(422)
    assert (
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being "
        'deleted, found new finalizers []string{"contract.example.com/late"}'
    ) in refused.message
    await let_go(api, f"{widgets}/one")


async def test_the_time_of_deletion_cannot_be_taken_back(api: Api, widgets: str) -> None:
    (await api.post(widgets, a_widget(finalizers=[FINALIZER]))).expect(201)
    marked = (await api.delete(f"{widgets}/one")).expect(200)
    patched = (await api.merge(f"{widgets}/one", {"metadata": {"deletionTimestamp": None}})).expect(
        200
    )
    assert metadata_of(patched)["deletionTimestamp"] == metadata_of(marked)["deletionTimestamp"]
    await let_go(api, f"{widgets}/one")


async def test_a_delete_can_mean_one_incarnation(api: Api, widgets: str) -> None:
    made = (await api.post(widgets, a_widget())).expect(201)
    stranger = "11111111-1111-1111-1111-111111111111"
    refused = await api.delete(f"{widgets}/one", {"preconditions": {"uid": stranger}})
    refused.expect(409)
    assert refused.reason == "Conflict"
    assert refused.message == (
        'Operation cannot be fulfilled on Widget.contract.example.com "one": the UID in the '
        f"precondition ({stranger}) does not match the UID in record ({uid_of(made)}). The object "
        "might have been deleted and then recreated"
    )
    (await api.delete(f"{widgets}/one", {"preconditions": {"uid": uid_of(made)}})).expect(200)


async def test_a_delete_can_mean_one_version(api: Api, widgets: str) -> None:
    made = (await api.post(widgets, a_widget())).expect(201)
    newer = (await api.merge(f"{widgets}/one", {"spec": {"size": 2}})).expect(200)
    stale: JsonObject = {"preconditions": {"resourceVersion": version_of(made)}}
    refused = await api.delete(f"{widgets}/one", stale)
    refused.expect(409)
    assert "The object might have been modified" in refused.message
    fresh: JsonObject = {"preconditions": {"resourceVersion": version_of(newer)}}
    (await api.delete(f"{widgets}/one", fresh)).expect(200)


async def test_a_collection_is_deleted_by_selector(api: Api, widgets: str) -> None:
    for name, color in (("a", "red"), ("b", "blue"), ("c", "red")):
        (await api.post(widgets, a_widget(name, labels={"color": color}))).expect(201)
    deleted = (await api.delete(widgets, labelSelector="color=red")).expect(200)
    assert deleted["kind"] == "WidgetList"
    left = (await api.get(widgets)).expect(200)
    assert [string_at(item, "metadata", "name") for item in objects_at(left, "items")] == ["b"]


async def test_dependents_follow_their_owner(api: Api, widgets: str, namespace: str) -> None:
    owner = (await api.post(widgets, a_widget())).expect(201)
    config_maps = f"/api/v1/namespaces/{namespace}/configmaps"
    child = a_config_map("child", ownerReferences=[*owned_by(owner)])
    made = (await api.post(config_maps, child)).expect(201)
    grandchild = a_config_map("grandchild", ownerReferences=[*owned_by(made)])
    (await api.post(config_maps, grandchild)).expect(201)
    (await api.post(config_maps, a_config_map("bystander"))).expect(201)
    (await api.delete(f"{widgets}/one")).expect(200)
    for name in ("child", "grandchild"):
        await gone(api, f"{config_maps}/{name}")
    (await api.get(f"{config_maps}/bystander")).expect(200)


async def test_an_owner_that_never_was_takes_its_dependents_along(api: Api, namespace: str) -> None:
    config_maps = f"/api/v1/namespaces/{namespace}/configmaps"
    owner = (await api.post(config_maps, a_config_map("owner"))).expect(201)
    reference = {**owned_by(owner)[0], "uid": "11111111-1111-1111-1111-111111111111"}
    (await api.post(config_maps, a_config_map("child", ownerReferences=[reference]))).expect(201)
    await gone(api, f"{config_maps}/child")
    (await api.get(f"{config_maps}/owner")).expect(200)


async def test_one_owner_of_two_is_enough_to_stay(api: Api, namespace: str) -> None:
    config_maps = f"/api/v1/namespaces/{namespace}/configmaps"
    first = (await api.post(config_maps, a_config_map("first"))).expect(201)
    second = (await api.post(config_maps, a_config_map("second"))).expect(201)
    references = [{**owned_by(owner)[0], "controller": False} for owner in (first, second)]
    (await api.post(config_maps, a_config_map("child", ownerReferences=[*references]))).expect(201)
    (await api.delete(f"{config_maps}/first")).expect(200)
    response = await eventually(
        lambda: api.get(f"{config_maps}/child"),
        lambda response: len(objects_at(response.body, "metadata", "ownerReferences")) == 1,
    )
    assert uid_of(second) == string_at(
        objects_at(response.body, "metadata", "ownerReferences")[0], "uid"
    )


async def test_orphans_stay_and_forget_their_owner(api: Api, namespace: str) -> None:
    config_maps = f"/api/v1/namespaces/{namespace}/configmaps"
    owner = (await api.post(config_maps, a_config_map("owner"))).expect(201)
    child = a_config_map("child", ownerReferences=[*owned_by(owner)])
    (await api.post(config_maps, child)).expect(201)
    await api.delete(f"{config_maps}/owner", {"propagationPolicy": "Orphan"})
    await gone(api, f"{config_maps}/owner")
    left = (await api.get(f"{config_maps}/child")).expect(200)
    assert "ownerReferences" not in metadata_of(left)


async def test_foreground_deletion_waits_for_blocking_dependents(api: Api, namespace: str) -> None:
    config_maps = f"/api/v1/namespaces/{namespace}/configmaps"
    owner = (await api.post(config_maps, a_config_map("owner"))).expect(201)
    child = a_config_map(
        "child", ownerReferences=[*owned_by(owner, blocks=True)], finalizers=[FINALIZER]
    )
    (await api.post(config_maps, child)).expect(201)
    marked = (await api.delete(f"{config_maps}/owner", {"propagationPolicy": "Foreground"})).expect(
        200
    )
    assert metadata_of(marked)["finalizers"] == ["foregroundDeletion"]
    await eventually(
        lambda: api.get(f"{config_maps}/child"),
        lambda response: "deletionTimestamp" in metadata_of(response.body),
    )
    (await api.get(f"{config_maps}/owner")).expect(200)
    await let_go(api, f"{config_maps}/child")
    await gone(api, f"{config_maps}/owner")


async def test_foreground_deletion_does_not_wait_for_other_dependents(
    api: Api, namespace: str
) -> None:
    config_maps = f"/api/v1/namespaces/{namespace}/configmaps"
    owner = (await api.post(config_maps, a_config_map("owner"))).expect(201)
    child = a_config_map(
        "child", ownerReferences=[*owned_by(owner, blocks=False)], finalizers=[FINALIZER]
    )
    (await api.post(config_maps, child)).expect(201)
    await api.delete(f"{config_maps}/owner", {"propagationPolicy": "Foreground"})
    await gone(api, f"{config_maps}/owner")
    await eventually(
        lambda: api.get(f"{config_maps}/child"),
        lambda response: "deletionTimestamp" in metadata_of(response.body),
    )
    await let_go(api, f"{config_maps}/child")


async def test_an_unknown_propagation_is_refused(api: Api, widgets: str) -> None:
    (await api.post(widgets, a_widget())).expect(201)
    refused = await api.delete(f"{widgets}/one", {"propagationPolicy": "Sideways"})
    refused.expect(422)
    assert refused.reason == "Invalid"
