from __future__ import annotations

import json

from compute_sim_planes.api_server.kinds import discovery, openapi
from compute_sim_planes.api_server.kinds.kind import Kind
from compute_sim_planes.json_types import JsonObject, object_at, objects_at, string_at, strings_at

SCHEMA: JsonObject = {
    "type": "object",
    "description": "A thing.",
    "properties": {
        "spec": {
            "type": "object",
            "description": "What is wanted.",
            "properties": {"size": {"type": "integer", "description": "How big."}},
        }
    },
}
THING = Kind(
    "shop.example.com",
    "v1alpha",
    "Thing",
    "things",
    "thing",
    "ThingList",
    True,
    short_names=("th",),
    categories=("all",),
    has_status=True,
    schema_document=SCHEMA,
)
PLACE = Kind("shop.example.com", "v1", "Place", "places", "place", "PlaceList", False)
CONFIG = Kind(
    "", "v1", "ConfigMap", "configmaps", "configmap", "ConfigMapList", True, built_in=True
)
KINDS = [THING, PLACE, CONFIG]


def test_versions_are_offered_stable_first() -> None:
    versions = ["v1alpha1", "v2", "v1beta2", "v10", "v1beta10", "v1alpha", "foo"]

    assert discovery.order_versions(versions) == [
        "v10", "v2", "v1beta10", "v1beta2", "v1alpha1", "v1alpha", "foo",
    ]  # fmt: skip


def test_groups_list_their_versions_and_leave_the_core_group_out() -> None:
    (group,) = objects_at(discovery.api_group_list(KINDS), "groups")

    assert group == {
        "name": "shop.example.com",
        "versions": [
            {"groupVersion": "shop.example.com/v1", "version": "v1"},
            {"groupVersion": "shop.example.com/v1alpha", "version": "v1alpha"},
        ],
        "preferredVersion": {"groupVersion": "shop.example.com/v1", "version": "v1"},
    }
    assert string_at(discovery.api_group(KINDS, "shop.example.com"), "kind") == "APIGroup"
    assert discovery.api_group(KINDS, "absent.example.com") is None


def test_resources_list_kinds_and_their_subresources() -> None:
    listing = discovery.api_resource_list(KINDS, "shop.example.com", "v1alpha")

    thing, status = objects_at(listing, "resources")
    assert thing["shortNames"] == ["th"]
    assert thing["categories"] == ["all"]
    assert thing["namespaced"] is True
    assert "deletecollection" in strings_at(thing, "verbs")
    assert status["name"] == "things/status"
    assert status["verbs"] == ["get", "patch", "update"]
    assert discovery.api_resource_list(KINDS, "shop.example.com", "v9") is None


def test_aggregated_discovery_equals_the_single_documents() -> None:
    gathered = discovery.aggregated_discovery(KINDS, core=False)
    (group,) = objects_at(gathered, "items")

    for version in objects_at(group, "versions"):
        single = discovery.api_resource_list(
            KINDS, "shop.example.com", string_at(version, "version")
        )
        names: list[str] = []
        for resource in objects_at(version, "resources"):
            names.append(string_at(resource, "resource"))
            names += [
                f"{string_at(resource, 'resource')}/{string_at(sub, 'subresource')}"
                for sub in objects_at(resource, "subresources")
            ]
        assert names == [
            string_at(resource, "name") for resource in objects_at(single, "resources")
        ]


def test_core_kinds_are_gathered_apart() -> None:
    (core,) = objects_at(discovery.aggregated_discovery(KINDS, core=True), "items")

    assert core["metadata"] == {"name": "", "creationTimestamp": None}


def test_the_index_names_a_document_per_version_and_changes_with_its_content() -> None:
    changed = Kind(
        "shop.example.com", "v1alpha", "Thing", "things", "thing", "ThingList", True,
        schema_document={"type": "object"},
    )  # fmt: skip
    before = object_at(openapi.openapi_index(KINDS), "paths")
    after = object_at(openapi.openapi_index([changed, PLACE, CONFIG]), "paths")

    assert list(before) == ["api/v1", "apis/shop.example.com/v1", "apis/shop.example.com/v1alpha"]
    assert before["api/v1"] == after["api/v1"]
    key = "apis/shop.example.com/v1alpha"
    assert before[key] != after[key]
    assert string_at(before, key, "serverRelativeURL").startswith(f"/openapi/v3/{key}?hash=")


def test_a_document_explains_its_kinds_by_group_version_and_kind() -> None:
    document = openapi.openapi_document(KINDS, "shop.example.com", "v1alpha")

    schema = object_at(document, "components", "schemas", "com.example.shop.v1alpha.Thing")
    assert schema["x-kubernetes-group-version-kind"] == [
        {"group": "shop.example.com", "version": "v1alpha", "kind": "Thing"}
    ]
    size = object_at(schema, "properties", "spec", "properties", "size")
    assert size == {"type": "integer", "description": "How big."}


def test_paths_say_which_patches_and_parameters_they_take() -> None:
    custom = openapi.openapi_document(KINDS, "shop.example.com", "v1alpha")
    built_in = openapi.openapi_document(KINDS, "", "v1")

    def patch_of(document: JsonObject | None, path: str) -> JsonObject:
        return object_at(document, "paths", path, "patch")

    thing = patch_of(custom, "/apis/shop.example.com/v1alpha/namespaces/{namespace}/things/{name}")
    config = patch_of(built_in, "/api/v1/namespaces/{namespace}/configmaps/{name}")
    names = {string_at(parameter, "name") for parameter in objects_at(thing, "parameters")}
    assert names >= {"fieldManager", "fieldValidation", "dryRun", "force"}
    strategic = "application/strategic-merge-patch+json"
    assert strategic not in object_at(thing, "requestBody", "content")
    assert strategic in object_at(config, "requestBody", "content")


def test_every_reference_of_a_document_leads_somewhere() -> None:
    for group, version in [("shop.example.com", "v1alpha"), ("", "v1")]:
        document = openapi.openapi_document(KINDS, group, version)
        schemas = object_at(document, "components", "schemas")
        named = json.dumps(document).split('"#/components/schemas/')[1:]

        assert {text.partition('"')[0] for text in named} <= set(schemas)


def test_a_version_that_is_not_served_has_no_document() -> None:
    assert openapi.openapi_document(KINDS, "shop.example.com", "v9") is None
