"""Namespaces: defaults, deletion, and requests that are refused meanwhile."""

from __future__ import annotations

from compute_sim_planes.api_server.testing import (
    Api,
    a_config_map,
    a_widget,
    eventually,
    generation_of,
    metadata_of,
)
from compute_sim_planes.json_types import JsonObject, object_at, objects_at, string_at

NAMESPACES = "/api/v1/namespaces"


async def test_a_namespace_comes_active_and_labelled_with_its_name(
    api: Api, namespace: str
) -> None:
    existing = (await api.get(f"{NAMESPACES}/{namespace}")).expect(200)
    assert object_at(existing, "status") == {"phase": "Active"}
    assert object_at(existing, "spec") == {"finalizers": ["kubernetes"]}
    assert metadata_of(existing)["labels"] == {"kubernetes.io/metadata.name": namespace}
    assert generation_of(existing) is None


async def test_the_label_of_the_name_cannot_be_removed(api: Api, namespace: str) -> None:
    desired: JsonObject = {"metadata": {"labels": {"kubernetes.io/metadata.name": None, "a": "b"}}}
    existing = (await api.merge(f"{NAMESPACES}/{namespace}", desired)).expect(200)
    assert metadata_of(existing)["labels"] == {"kubernetes.io/metadata.name": namespace, "a": "b"}


async def test_nothing_is_created_in_a_namespace_that_does_not_exist(
    api: Api, widgets: str, namespace: str
) -> None:
    refused = await api.post(widgets.replace(namespace, "nowhere"), a_widget())
    refused.expect(404)
    assert refused.message == 'namespaces "nowhere" not found'
    assert refused.details == {"name": "nowhere", "kind": "namespaces"}


async def test_a_list_in_a_namespace_that_does_not_exist_is_empty(
    api: Api, widgets: str, namespace: str
) -> None:
    listed = (await api.get(widgets.replace(namespace, "nowhere"))).expect(200)
    assert listed["items"] == []


async def test_a_namespace_takes_its_content_along(api: Api, widgets: str, namespace: str) -> None:
    (await api.post(widgets, a_widget())).expect(201)
    (await api.post(f"{NAMESPACES}/{namespace}/configmaps", a_config_map())).expect(201)
    marked = (await api.delete(f"{NAMESPACES}/{namespace}")).expect(200)
    assert object_at(marked, "status")["phase"] == "Terminating"
    assert "deletionTimestamp" in metadata_of(marked)
    await eventually(
        lambda: api.get(f"{NAMESPACES}/{namespace}"), lambda response: response.status == 404
    )
    (await api.get(f"{widgets}/one")).expect(404)


async def test_while_content_remains_a_namespace_lists_it_and_refuses_new_objects(
    api: Api, widgets: str, namespace: str
) -> None:
    held = a_widget(finalizers=["contract.example.com/f"])
    (await api.post(widgets, held)).expect(201)
    (await api.delete(f"{NAMESPACES}/{namespace}")).expect(200)
    response = await eventually(
        lambda: api.get(f"{NAMESPACES}/{namespace}"),
        lambda response: any(
            condition["type"] == "NamespaceFinalizersRemaining" and condition["status"] == "True"
            for condition in objects_at(response.body, "status", "conditions")
        ),
    )
    messages = {
        string_at(condition, "type"): string_at(condition, "message")
        for condition in objects_at(response.body, "status", "conditions")
    }
    assert messages["NamespaceContentRemaining"] == (
        "Some resources are remaining: widgets.contract.example.com has 1 resource instances"
    )
    assert messages["NamespaceFinalizersRemaining"] == (
        "Some content in the namespace has finalizers remaining: contract.example.com/f in 1 "
        "resource instances"
    )
    refused = await api.post(widgets, a_widget("late"))
    refused.expect(403)
    assert refused.reason == "Forbidden"
    assert refused.message == (
        'widgets.contract.example.com "late" is forbidden: unable to create new content in '
        f"namespace {namespace} because it is being terminated"
    )
    assert objects_at(refused.details, "causes") == [
        {
            "reason": "NamespaceTerminating",
            "message": f"namespace {namespace} is being terminated",
            "field": "metadata.namespace",
        }
    ]
    # Existing objects may be changed: otherwise a finalizer could not be removed.
    (await api.merge(f"{widgets}/one", {"metadata": {"finalizers": None}})).expect(200)
    await eventually(
        lambda: api.get(f"{NAMESPACES}/{namespace}"), lambda response: response.status == 404
    )


async def test_the_default_namespace_cannot_be_deleted(api: Api) -> None:
    refused = await api.delete(f"{NAMESPACES}/default")
    refused.expect(403)
    assert refused.message == 'namespaces "default" is forbidden: this namespace may not be deleted'


async def test_namespaces_are_not_deleted_by_collection(api: Api) -> None:
    refused = await api.delete(NAMESPACES)
    refused.expect(405)
    assert refused.reason == "MethodNotAllowed"
