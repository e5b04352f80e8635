"""Merge patch, JSON patch, strategic merge patch."""

from __future__ import annotations

import pytest

from compute_sim_planes.api_server.testing import (
    JSON_PATCH,
    STRATEGIC_PATCH,
    Api,
    a_config_map,
    a_widget,
    generation_of,
    metadata_of,
    version_of,
)
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, objects_at, string_at


async def test_a_merge_patch_merges_objects_replaces_lists_and_removes_by_null(
    api: Api, widgets: str
) -> None:
    spec: JsonObject = {"size": 1, "tags": ["a", "b"], "limits": {"cpu": "1", "memory": "2"}}
    (await api.post(widgets, a_widget(spec=spec))).expect(201)
    patch: JsonObject = {"spec": {"tags": ["c"], "limits": {"cpu": None, "disk": "3"}}}
    patched = (await api.merge(f"{widgets}/one", patch)).expect(200)
    assert patched["spec"] == {
        "size": 1,
        "color": "red",
        "tags": ["c"],
        "limits": {"memory": "2", "disk": "3"},
    }


async def test_a_merge_patch_with_a_stale_version_is_a_conflict(api: Api, widgets: str) -> None:
    made = (await api.post(widgets, a_widget())).expect(201)
    (await api.merge(f"{widgets}/one", {"spec": {"size": 2}})).expect(200)
    stale: JsonObject = {"metadata": {"resourceVersion": version_of(made)}, "spec": {"size": 3}}
    refused = await api.merge(f"{widgets}/one", stale)
    refused.expect(409)
    assert refused.reason == "Conflict"


async def test_a_json_patch_tests_adds_replaces_moves_and_removes(api: Api, widgets: str) -> None:
    (await api.post(widgets, a_widget(spec={"size": 1, "tags": ["a"]}))).expect(201)
    operations: JsonValue = [
        {"op": "test", "path": "/spec/size", "value": 1},
        {"op": "replace", "path": "/spec/size", "value": 2},
        {"op": "add", "path": "/spec/tags/-", "value": "b"},
        {"op": "add", "path": "/spec/tags/0", "value": "z"},
        {"op": "add", "path": "/metadata/labels", "value": {"a~b": "c"}},
        {"op": "copy", "from": "/spec/size", "path": "/spec/quantity"},
        {"op": "remove", "path": "/metadata/labels/a~0b"},
        {"op": "move", "from": "/spec/tags", "path": "/spec/tags"},
    ]
    patched = (await api.json_patch(f"{widgets}/one", operations)).expect(200)
    assert patched["spec"] == {
        "size": 2,
        "color": "red",
        "tags": ["z", "a", "b"],
        "quantity": 2,
    }
    assert "labels" not in metadata_of(patched)


@pytest.mark.parametrize(
    "path", ["/metadata/generation", "/metadata/resourceVersion", "/metadata/uid", "/spec/size"]
)
async def test_a_failed_test_changes_nothing_and_gives_no_details(
    api: Api, widgets: str, path: str
) -> None:
    made = (await api.post(widgets, a_widget())).expect(201)
    operations: JsonValue = [
        {"op": "replace", "path": "/spec/size", "value": 9},
        {"op": "test", "path": path, "value": "something else"},
    ]
    refused = await api.json_patch(f"{widgets}/one", operations)
    refused.expect(422)
    assert refused.reason == "Invalid"
    assert refused.message == "the server rejected our request due to an error in our request"
    assert (await api.get(f"{widgets}/one")).expect(200) == made


async def test_a_test_of_the_generation_guards_a_change(api: Api, widgets: str) -> None:
    (await api.post(widgets, a_widget())).expect(201)
    operations: JsonValue = [
        {"op": "test", "path": "/metadata/generation", "value": 1},
        {"op": "replace", "path": "/spec/size", "value": 2},
    ]
    patched = (await api.json_patch(f"{widgets}/one", operations)).expect(200)
    assert generation_of(patched) == 2
    (await api.json_patch(f"{widgets}/one", operations)).expect(422)


async def test_removing_what_is_absent_is_refused(api: Api, widgets: str) -> None:
    (await api.post(widgets, a_widget())).expect(201)
    operations: JsonValue = [{"op": "remove", "path": "/metadata/finalizers/0"}]
    (await api.json_patch(f"{widgets}/one", operations)).expect(422)


async def test_a_patch_that_is_none_is_a_bad_request(api: Api, widgets: str) -> None:
    (await api.post(widgets, a_widget())).expect(201)
    (await api.json_patch(f"{widgets}/one", {"op": "remove"})).expect(400)
    (await api.merge(f"{widgets}/one", ["a"])).expect(400)
    refused = await api.send("PATCH", f"{widgets}/one", b"{nonsense", JSON_PATCH)
    refused.expect(400)
    assert refused.reason == "BadRequest"


async def test_a_patch_of_the_status_leaves_the_rest_alone(api: Api, widgets: str) -> None:
    made = (await api.post(widgets, a_widget())).expect(201)
    patch: JsonObject = {"spec": {"size": 9}, "status": {"phase": "Running"}}
    patched = (await api.merge(f"{widgets}/one/status", patch)).expect(200)
    assert patched["spec"] == made["spec"]
    assert object_at(patched, "status") == {"phase": "Running", "ready": 0}


async def test_a_patch_of_the_object_leaves_the_status_alone(api: Api, widgets: str) -> None:
    (await api.post(widgets, a_widget())).expect(201)
    patched = (await api.merge(f"{widgets}/one", {"status": {"phase": "Running"}})).expect(200)
    assert object_at(patched, "status") == {"phase": "Pending", "ready": 0}


async def test_a_patch_of_what_is_absent_is_not_found(api: Api, widgets: str) -> None:
    (await api.merge(f"{widgets}/nobody", {"spec": {"size": 2}})).expect(404)


async def test_a_patch_cannot_rename(api: Api, widgets: str) -> None:
    (await api.post(widgets, a_widget())).expect(201)
    refused = await api.merge(f"{widgets}/one", {"metadata": {"name": "two"}})
    refused.expect(400)
    assert "does not match the name on the URL" in refused.message


async def test_custom_kinds_take_no_strategic_merge_patch(api: Api, widgets: str) -> None:
    (await api.post(widgets, a_widget())).expect(201)
    patch: JsonObject = {"spec": {"size": 2}}
    refused = await api.send("PATCH", f"{widgets}/one", patch, STRATEGIC_PATCH)
    refused.expect(415)
    assert refused.reason == "UnsupportedMediaType"
    assert refused.message == (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )


async def test_a_strategic_merge_patch_merges_lists_by_their_key(api: Api, namespace: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    (await api.post(path, a_deployment())).expect(201)
    patch: JsonObject = {
        "spec": {
            "template": {
                "spec": {
                    "containers": [
                        {"name": "app", "env": [{"name": "B", "value": "2"}], "image": "new"},
                        {"name": "more", "image": "x"},
                    ]
                }
            }
        }
    }
    patched = await api.send("PATCH", f"{path}/web", patch, STRATEGIC_PATCH)
    template = object_at(patched.expect(200), "spec", "template", "spec")
    containers = {
        string_at(container, "name"): container for container in objects_at(template, "containers")
    }
    assert set(containers) == {"app", "more"}
    assert containers["app"]["image"] == "new"
    env = {string_at(entry, "name") for entry in objects_at(containers["app"], "env")}
    assert env == {"A", "B"}


async def test_a_strategic_merge_patch_of_a_config_map_merges_its_data(
    api: Api, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    (await api.post(path, a_config_map(data={"a": "1", "b": "2"}))).expect(201)
    patch: JsonObject = {"data": {"b": None, "c": "3"}}
    patched = await api.send("PATCH", f"{path}/one", patch, STRATEGIC_PATCH)
    assert patched.expect(200)["data"] == {"a": "1", "c": "3"}


def a_deployment() -> JsonObject:
    container: JsonObject = {"name": "app", "image": "old", "env": [{"name": "A", "value": "1"}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [container]},
            },
        },
    }
