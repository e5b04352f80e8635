"""Version, discovery in both formats, OpenAPI, tables, and metadata-only reads."""

from __future__ import annotations

import re

from compute_sim_planes.api_server.testing import (
    Api,
    a_widget,
    eventually,
    metadata_of,
    version_of,
)
from compute_sim_planes.json_types import JsonObject, array_at, object_at, objects_at, string_at

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


async def test_the_version_is_told(api: Api) -> None:
    version = (await api.get("/version")).expect(200)
    assert re.fullmatch(r"v\d+\.\d+\.\d+.*", string_at(version, "gitVersion"))
    assert string_at(version, "major") == "1"


async def test_groups_and_their_versions_are_listed(api: Api, widgets: str) -> None:
    del widgets
    core = (await api.get("/api")).expect(200)
    assert core["versions"] == ["v1"]
    listed = await eventually(
        lambda: api.get("/apis"),
        lambda response: any(
            group["name"] == "contract.example.com" for group in objects_at(response.body, "groups")
        ),
    )
    assert listed.body["kind"] == "APIGroupList"
    group = (await api.get("/apis/contract.example.com")).expect(200)
    assert group["kind"] == "APIGroup"
    assert object_at(group, "preferredVersion") == {
        "groupVersion": "contract.example.com/v1",
        "version": "v1",
    }


async def test_the_resources_of_a_version_are_listed(api: Api, widgets: str) -> None:
    del widgets
    listed = (await api.get("/apis/contract.example.com/v1")).expect(200)
    assert listed["kind"] == "APIResourceList"
    resources = {string_at(entry, "name"): entry for entry in objects_at(listed, "resources")}
    widget = resources["widgets"]
    assert widget["kind"] == "Widget"
    assert widget["namespaced"] is True
    assert widget["singularName"] == "widget"
    assert widget["shortNames"] == ["wdgt"]
    assert array_at(widget, "verbs") == [
        "delete", "deletecollection", "get", "list", "patch", "create", "update", "watch",
    ]  # fmt: skip
    assert resources["widgets/status"]["verbs"] == ["get", "patch", "update"]


async def test_all_of_discovery_comes_in_one_document(api: Api, widgets: str) -> None:
    del widgets
    asking = api.with_headers(Accept=AGGREGATED)
    reply = await eventually(
        lambda: asking.get("/apis"),
        lambda response: any(
            string_at(item, "metadata", "name") == "contract.example.com"
            for item in objects_at(response.body, "items")
        ),
    )
    assert reply.headers["Content-Type"] == (
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    )
    assert reply.body["kind"] == "APIGroupDiscoveryList"
    group = next(
        item
        for item in objects_at(reply.body, "items")
        if string_at(item, "metadata", "name") == "contract.example.com"
    )
    (version,) = objects_at(group, "versions")
    assert version["version"] == "v1"
    (resource,) = objects_at(version, "resources")
    assert resource["resource"] == "widgets"
    assert resource["scope"] == "Namespaced"
    core = (await asking.get("/api")).expect(200)
    resources = objects_at(objects_at(objects_at(core, "items")[0], "versions")[0], "resources")
    assert "namespaces" in {string_at(entry, "resource") for entry in resources}


async def test_openapi_describes_the_kind_and_how_it_is_patched(api: Api, widgets: str) -> None:
    del widgets
    index = await eventually(
        lambda: api.get("/openapi/v3"),
        lambda response: "apis/contract.example.com/v1" in object_at(response.body, "paths"),
    )
    where = string_at(index.body, "paths", "apis/contract.example.com/v1", "serverRelativeURL")
    document = (await api.get(where)).expect(200)
    schemas = object_at(document, "components", "schemas")
    widget = object_at(schemas, "com.example.contract.v1.Widget")
    size = object_at(widget, "properties", "spec", "properties", "size")
    assert size["type"] == "integer"
    assert objects_at(widget, "x-kubernetes-group-version-kind") == [
        {"group": "contract.example.com", "version": "v1", "kind": "Widget"}
    ]
    path = "/apis/contract.example.com/v1/namespaces/{namespace}/widgets/{name}"
    operation = object_at(document, "paths", path, "patch")
    assert "application/apply-patch+yaml" in object_at(operation, "requestBody", "content")
    parameters = {string_at(entry, "name") for entry in objects_at(operation, "parameters")}
    assert {"dryRun", "fieldManager", "fieldValidation", "force"} <= parameters


async def test_a_list_is_shown_as_a_table_of_its_columns(api: Api, widgets: str) -> None:
    (await api.post(widgets, a_widget(spec={"size": 7}))).expect(201)
    table = (await api.with_headers(Accept=TABLE).get(widgets)).expect(200)
    assert table["kind"] == "Table"
    assert table["apiVersion"] == "meta.k8s.io/v1"
    columns = objects_at(table, "columnDefinitions")
    assert [(column["name"], column["type"], column["priority"]) for column in columns] == [
        ("Name", "string", 0),
        ("Size", "integer", 0),
        ("Phase", "string", 0),
        ("Color", "string", 1),
        ("Age", "date", 0),
    ]
    (row,) = objects_at(table, "rows")
    assert array_at(row, "cells")[:4] == ["one", 7, "Pending", "red"]
    assert re.fullmatch(r"\d+s", str(array_at(row, "cells")[4]))
    shown = object_at(row, "object")
    assert shown["kind"] == "PartialObjectMetadata"
    assert metadata_of(shown)["name"] == "one"


async def test_one_object_is_shown_as_a_table_too(api: Api, widgets: str) -> None:
    made = (await api.post(widgets, a_widget())).expect(201)
    table = (
        await api.with_headers(Accept=TABLE).get(f"{widgets}/one", includeObject="None")
    ).expect(200)
    (row,) = objects_at(table, "rows")
    assert not object_at(row, "object")
    assert version_of(table) == version_of(made)


async def test_metadata_alone_can_be_had(api: Api, widgets: str) -> None:
    made = (await api.post(widgets, a_widget(labels={"a": "b"}))).expect(201)
    accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    bare = (await api.with_headers(Accept=accept).get(f"{widgets}/one")).expect(200)
    assert bare == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": made["metadata"],
    }
    accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    listed = (await api.with_headers(Accept=accept).get(widgets)).expect(200)
    assert listed["kind"] == "PartialObjectMetadataList"
    assert [metadata_of(item)["name"] for item in objects_at(listed, "items")] == ["one"]


async def test_a_watch_can_show_metadata_alone(api: Api, widgets: str) -> None:
    (await api.post(widgets, a_widget())).expect(201)
    accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    async with api.with_headers(Accept=accept).watch(widgets) as watch:
        event: JsonObject = await watch.next_event()
    assert object_at(event, "object")["kind"] == "PartialObjectMetadata"
    assert "spec" not in object_at(event, "object")
