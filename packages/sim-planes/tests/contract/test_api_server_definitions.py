"""CustomResourceDefinitions that are created, changed and deleted while the server runs."""

from __future__ import annotations

import secrets

import pytest

from compute_sim_planes.api_server.testing import (
    Api,
    eventually,
    generation_of,
    metadata_of,
    version_of,
)
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, objects_at, string_at

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Gadgets:
    """A kind of the test's own, which it may change and remove on a shared server."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.group = f"g{secrets.token_hex(4)}.example.com"
        self.definition = f"{CRDS}/gadgets.{self.group}"

    def document(self, *versions: JsonObject, scope: str = "Namespaced") -> JsonObject:
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"gadgets.{self.group}"},
            "spec": {
                "group": self.group,
                "scope": scope,
                "names": {"plural": "gadgets", "kind": "Gadget"},
                "versions": [*versions],
            },
        }

    def path(self, version: str = "v1", namespace: str = "default") -> str:
        return f"/apis/{self.group}/{version}/namespaces/{namespace}/gadgets"

    def one(self, name: str = "one", version: str = "v1", **fields: JsonValue) -> JsonObject:
        return {
            "apiVersion": f"{self.group}/{version}",
            "kind": "Gadget",
            "metadata": {"name": name},
            **fields,
        }

    async def install(self, *versions: JsonObject) -> None:
        (await self.api.post(CRDS, self.document(*versions))).expect(201)
        await eventually(lambda: self.api.get(self.path()), lambda response: response.status == 200)

    async def change(self, *versions: JsonObject) -> None:
        (await self.api.merge(self.definition, {"spec": {"versions": [*versions]}})).expect(200)


@pytest.fixture
def gadgets(api: Api) -> Gadgets:
    return Gadgets(api)


def a_version(
    name: str = "v1", spec: JsonObject | None = None, *, storage: bool = True, served: bool = True
) -> JsonObject:
    properties: JsonObject = {"spec": {"type": "object", "properties": spec or {}}}
    return {
        "name": name,
        "served": served,
        "storage": storage,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    }


async def test_a_kind_is_served_once_its_definition_is_established(
    api: Api, gadgets: Gadgets
) -> None:
    (await api.get(gadgets.path())).expect(404)
    made = (await api.post(CRDS, gadgets.document(a_version()))).expect(201)
    names = object_at(made, "spec", "names")
    assert names["singular"] == "gadget"
    assert names["listKind"] == "GadgetList"
    assert object_at(made, "spec", "conversion") == {"strategy": "None"}
    established = await eventually(
        lambda: api.get(gadgets.definition),
        lambda response: (
            {
                string_at(condition, "type"): condition["status"]
                for condition in objects_at(response.body, "status", "conditions")
            }.items()
            >= {"NamesAccepted": "True", "Established": "True"}.items()
        ),
    )
    status = object_at(established.body, "status")
    assert status["storedVersions"] == ["v1"]
    assert object_at(status, "acceptedNames")["plural"] == "gadgets"
    assert generation_of(established.body) == 1
    listed = await eventually(
        lambda: api.get(gadgets.path()), lambda response: response.status == 200
    )
    assert listed.body["kind"] == "GadgetList"
    (await api.delete(gadgets.definition)).expect(200)


async def test_a_definition_that_goes_takes_its_objects_and_its_kind_along(
    api: Api, gadgets: Gadgets
) -> None:
    await gadgets.install(a_version())
    held = gadgets.one()
    held["metadata"] = {"name": "one", "finalizers": ["contract.example.com/f"]}
    (await api.post(gadgets.path(), held)).expect(201)
    (await api.delete(gadgets.definition)).expect(200)
    marked = await eventually(
        lambda: api.get(f"{gadgets.path()}/one"),
        lambda response: "deletionTimestamp" in metadata_of(response.body),
    )
    assert marked.status == 200
    definition = (await api.get(gadgets.definition)).expect(200)
    assert metadata_of(definition)["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    conditions = objects_at(definition, "status", "conditions")
    assert any(condition["type"] == "Terminating" for condition in conditions)
    refused = await api.post(gadgets.path(), gadgets.one("two"))
    refused.expect(403)
    assert refused.message == (
        f'gadgets.{gadgets.group} "two" is forbidden: create not allowed while custom resource '
        "definition is terminating"
    )
    (await api.merge(f"{gadgets.path()}/one", {"metadata": {"finalizers": None}})).expect(200)
    await eventually(lambda: api.get(gadgets.definition), lambda response: response.status == 404)
    await eventually(lambda: api.get(gadgets.path()), lambda response: response.status == 404)


async def test_a_watch_ends_with_its_kind(api: Api, gadgets: Gadgets) -> None:
    await gadgets.install(a_version())
    async with api.watch(gadgets.path()) as watch:
        (await api.delete(gadgets.definition)).expect(200)
        assert await watch.rest() == []


async def test_a_field_that_is_declared_later_is_kept_from_then_on(
    api: Api, gadgets: Gadgets
) -> None:
    await gadgets.install(a_version(spec={"a": {"type": "string"}}))
    sent = gadgets.one(spec={"a": "1", "b": "2"})
    made = (await api.post(gadgets.path(), sent)).expect(201)
    assert made["spec"] == {"a": "1"}
    await gadgets.change(
        a_version(spec={"a": {"type": "string"}, "b": {"type": "string", "default": "new"}})
    )
    # Objects stored earlier are read with the new default.
    response = await eventually(
        lambda: api.get(f"{gadgets.path()}/one"),
        lambda response: object_at(response.body, "spec") == {"a": "1", "b": "new"},
    )
    assert version_of(response.body) == version_of(made)
    later = (await api.post(gadgets.path(), gadgets.one("two", spec={"b": "3"}))).expect(201)
    assert later["spec"] == {"b": "3"}
    (await api.delete(gadgets.definition)).expect(200)


async def test_a_field_that_is_no_longer_declared_is_no_longer_read(
    api: Api, gadgets: Gadgets
) -> None:
    await gadgets.install(a_version(spec={"a": {"type": "string"}, "b": {"type": "string"}}))
    (await api.post(gadgets.path(), gadgets.one(spec={"a": "1", "b": "2"}))).expect(201)
    await gadgets.change(a_version(spec={"a": {"type": "string"}}))
    await eventually(
        lambda: api.get(f"{gadgets.path()}/one"),
        lambda response: object_at(response.body, "spec") == {"a": "1"},
    )
    (await api.delete(gadgets.definition)).expect(200)


async def test_an_object_that_became_invalid_can_be_edited_where_it_is_valid(
    api: Api, gadgets: Gadgets
) -> None:
    await gadgets.install(a_version(spec={"a": {"type": "string"}, "b": {"type": "string"}}))
    (await api.post(gadgets.path(), gadgets.one(spec={"a": "long", "b": "x"}))).expect(201)
    tightened: JsonObject = {"a": {"type": "string", "maxLength": 2}, "b": {"type": "string"}}
    await gadgets.change(a_version(spec=tightened))
    await eventually(
        lambda: api.post(gadgets.path(), gadgets.one("two", spec={"a": "long"}), dryRun="All"),
        lambda response: response.status == 422,
    )
    path = f"{gadgets.path()}/one"
    (await api.merge(path, {"metadata": {"labels": {"a": "b"}}})).expect(200)
    (await api.merge(path, {"spec": {"b": "y"}})).expect(200)
    (await api.merge(path, {"spec": {"a": "longer"}})).expect(422)
    (await api.merge(path, {"spec": {"a": "ok"}})).expect(200)
    (await api.delete(gadgets.definition)).expect(200)


@pytest.mark.parametrize(
    ("items", "marker", "duplicates"),
    [
        ({"type": "string"}, {"x-kubernetes-list-type": "set"}, ["DFW", "DFW"]),
        (
            {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "b": {"type": "string"}},
            },
            {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
            [{"name": "x"}, {"name": "x", "b": "y"}],
        ),
    ],
    ids=["set", "map"],
)
async def test_an_object_with_duplicates_stays_writable_after_its_list_became_a_set_or_a_map(
    api: Api, gadgets: Gadgets, items: JsonObject, marker: JsonObject, duplicates: list[JsonValue]
) -> None:
    """What `placements` and `cityCodes` rely on: an object without duplicates is held to it."""
    plain: JsonObject = {"type": "array", "items": items}
    await gadgets.install(a_version(spec={"a": plain, "b": {"type": "string"}}))
    for name in ("one", "sound"):
        kept = duplicates if name == "one" else duplicates[:1]
        stored = gadgets.one(name, spec={"a": kept, "b": "x"})
        object_at(stored, "metadata")["finalizers"] = ["example.com/held"]
        (await api.post(gadgets.path(), stored)).expect(201)
    await gadgets.change(a_version(spec={"a": {**plain, **marker}, "b": {"type": "string"}}))
    await eventually(
        lambda: api.post(gadgets.path(), gadgets.one("two", spec={"a": duplicates}), dryRun="All"),
        lambda response: response.status == 422,
    )
    path = f"{gadgets.path()}/one"
    assert object_at((await api.get(path)).expect(200), "spec")["a"] == duplicates
    (await api.merge(path, {"metadata": {"labels": {"a": "b"}}})).expect(200)
    (await api.merge(path, {"spec": {"b": "y"}})).expect(200)
    # Not only unchanged ones: as long as the stored object has duplicates, none is looked for.
    (await api.merge(path, {"spec": {"a": [*duplicates, duplicates[0]]}})).expect(200)
    (await api.merge(path, {"metadata": {"finalizers": None}})).expect(200)
    (await api.merge(path, {"spec": {"a": duplicates[:1]}})).expect(200)
    (await api.merge(path, {"spec": {"a": duplicates}})).expect(422)
    (await api.merge(f"{gadgets.path()}/sound", {"spec": {"a": duplicates}})).expect(422)
    (await api.merge(f"{gadgets.path()}/sound", {"metadata": {"finalizers": None}})).expect(200)
    (await api.delete(gadgets.definition)).expect(200)


RULES = "x-kubernetes-validations"


async def test_a_rule_refuses_a_new_object_and_a_change_and_warns_of_a_stored_one(
    api: Api, gadgets: Gadgets
) -> None:
    plain: JsonObject = {"low": {"type": "integer"}, "high": {"type": "integer"}}
    await gadgets.install(a_version(spec={"range": {"type": "object", "properties": plain}}))
    stored = gadgets.one(spec={"range": {"low": 3, "high": 1}})
    (await api.post(gadgets.path(), stored)).expect(201)
    rule: JsonObject = {
        "rule": "!has(self.high) || self.low <= self.high",
        "message": "must not be less than low",
        "fieldPath": ".high",
        "reason": "FieldValueForbidden",
    }
    ruled: JsonObject = {"type": "object", "properties": plain, RULES: [rule]}
    await gadgets.change(a_version(spec={"range": ruled, "other": {"type": "string"}}))
    refused = await eventually(
        lambda: api.post(gadgets.path(), {**stored, "metadata": {"name": "two"}}, dryRun="All"),
        lambda response: response.status == 422,
    )
    (cause,) = objects_at(refused.details, "causes")
    assert cause == {
        "field": "spec.range.high",
        "reason": "FieldValueForbidden",
        "message": "Forbidden: must not be less than low",
    }
    path = f"{gadgets.path()}/one"
    elsewhere = await api.merge(path, {"spec": {"other": "x"}})
    elsewhere.expect(200)
    assert any("must not be less than low" in warning for warning in elsewhere.warnings)
    (await api.merge(path, {"spec": {"range": {"high": 2}}})).expect(422)
    (await api.merge(path, {"spec": {"range": {"high": 3}}})).expect(200)
    # A rule is not evaluated for an object of other types than it was written for.
    wrong = await api.merge(path, {"spec": {"range": {"high": 1, "low": "x"}}})
    fields = {string_at(each, "field") for each in objects_at(wrong.details, "causes")}
    assert fields == {"spec.range.low", "<nil>"}
    (await api.delete(gadgets.definition)).expect(200)


async def test_a_transition_rule_compares_with_the_stored_object(
    api: Api, gadgets: Gadgets
) -> None:
    rule: JsonObject = {"rule": "self == oldSelf", "message": "never changes"}
    city: JsonObject = {"type": "string", RULES: [rule]}
    entry: JsonObject = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "city": city},
    }
    entries: JsonObject = {
        "type": "array",
        "maxItems": 10,
        "items": entry,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    await gadgets.install(a_version(spec={"city": city, "places": entries}))
    made = gadgets.one(spec={"city": "DFW", "places": [{"name": "a", "city": "DFW"}]})
    (await api.post(gadgets.path(), made)).expect(201)
    path = f"{gadgets.path()}/one"
    refused = await api.merge(path, {"spec": {"city": "LHR"}})
    assert (refused.status, "spec.city" in refused.message) == (422, True)
    moved: list[JsonValue] = [{"name": "b", "city": "LHR"}, {"name": "a", "city": "DFW"}]
    (await api.merge(path, {"spec": {"places": moved}})).expect(200)
    changed: list[JsonValue] = [{"name": "b", "city": "DFW"}, {"name": "a", "city": "DFW"}]
    refused = await api.merge(path, {"spec": {"places": changed}})
    assert (refused.status, "spec.places[0].city" in refused.message) == (422, True)
    # Where there is no stored value, there is nothing to compare.
    (await api.merge(path, {"spec": {"city": None}})).expect(200)
    (await api.merge(path, {"spec": {"city": "LHR"}})).expect(200)
    (await api.delete(gadgets.definition)).expect(200)


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        ({"rule": "self.size >"}, "rule"),
        ({"rule": "1 + 1"}, "rule"),
        ({"rule": "has(self.sise)"}, "rule"),
        ({"rule": "true", "reason": "FieldValueOther"}, "reason"),
        ({"rule": "true", "fieldPath": ".sise"}, "fieldPath"),
    ],
)
async def test_a_rule_that_cannot_be_evaluated_is_refused_with_its_definition(
    api: Api, gadgets: Gadgets, rule: JsonObject, field: str
) -> None:
    version = a_version(spec={"size": {"type": "integer"}})
    spec = object_at(version, "schema", "openAPIV3Schema", "properties", "spec")
    spec[RULES] = [rule]
    refused = await api.post(CRDS, gadgets.document(version))
    refused.expect(422)
    (cause, *_) = objects_at(refused.details, "causes")
    expected = f"spec.validation.openAPIV3Schema.properties[spec].{RULES}[0].{field}"
    assert string_at(cause, "field") == expected


async def test_a_transition_rule_in_a_list_without_keys_is_refused(
    api: Api, gadgets: Gadgets
) -> None:
    item: JsonObject = {"type": "string", "maxLength": 9, RULES: [{"rule": "self == oldSelf"}]}
    listed: JsonObject = {"type": "array", "maxItems": 9, "items": item}
    refused = await api.post(CRDS, gadgets.document(a_version(spec={"a": listed})))
    refused.expect(422)
    assert "oldSelf cannot be used on the uncorrelatable portion" in refused.message


async def test_two_versions_show_the_same_object(api: Api, gadgets: Gadgets) -> None:
    field: JsonObject = {"a": {"type": "string"}}
    await gadgets.install(a_version("v1", field), a_version("v2", field, storage=False))
    (await api.post(gadgets.path("v1"), gadgets.one(spec={"a": "1"}))).expect(201)
    response = await eventually(
        lambda: api.get(f"{gadgets.path('v2')}/one"), lambda response: response.status == 200
    )
    assert response.body["apiVersion"] == f"{gadgets.group}/v2"
    assert response.body["spec"] == {"a": "1"}
    (await api.merge(f"{gadgets.path('v2')}/one", {"spec": {"a": "2"}})).expect(200)
    shown = (await api.get(f"{gadgets.path('v1')}/one")).expect(200)
    assert shown["apiVersion"] == f"{gadgets.group}/v1"
    assert shown["spec"] == {"a": "2"}
    (await api.delete(gadgets.definition)).expect(200)


async def test_a_version_that_is_not_served_is_not_found(api: Api, gadgets: Gadgets) -> None:
    await gadgets.install(a_version("v1"), a_version("v2", storage=False, served=False))
    (await api.get(gadgets.path("v2"))).expect(404)
    (await api.delete(gadgets.definition)).expect(200)


async def test_without_a_status_subresource_the_status_is_a_field_like_others(
    api: Api, gadgets: Gadgets
) -> None:
    version = a_version()
    object_at(version, "schema", "openAPIV3Schema", "properties")["status"] = {
        "type": "object",
        "properties": {"phase": {"type": "string"}},
    }
    await gadgets.install(version)
    made = (await api.post(gadgets.path(), gadgets.one(status={"phase": "Up"}))).expect(201)
    assert made["status"] == {"phase": "Up"}
    changed = (await api.merge(f"{gadgets.path()}/one", {"status": {"phase": "Down"}})).expect(200)
    assert generation_of(changed) == 2
    (await api.get(f"{gadgets.path()}/one/status")).expect(404)
    (await api.delete(gadgets.definition)).expect(200)


async def test_a_cluster_scoped_kind_lies_in_no_namespace(api: Api, gadgets: Gadgets) -> None:
    (await api.post(CRDS, gadgets.document(a_version(), scope="Cluster"))).expect(201)
    path = f"/apis/{gadgets.group}/v1/gadgets"
    await eventually(lambda: api.get(path), lambda response: response.status == 200)
    made = (await api.post(path, gadgets.one())).expect(201)
    assert "namespace" not in metadata_of(made)
    (await api.get(gadgets.path())).expect(404)
    (await api.delete(gadgets.definition)).expect(200)


def broken(change: JsonObject) -> JsonObject:
    version = a_version()
    version["schema"] = change
    return version


@pytest.mark.parametrize(
    ("version", "field"),
    [
        (broken({}), "spec.versions[0].schema.openAPIV3Schema"),
        (
            broken({"openAPIV3Schema": {"properties": {"spec": {"type": "object"}}}}),
            "spec.validation.openAPIV3Schema.type",
        ),
        (
            broken(
                {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"properties": {}}}}}
            ),
            "spec.validation.openAPIV3Schema.properties[spec].type",
        ),
        (
            broken(
                {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"a": {"type": "string", "default": 1}},
                            }
                        },
                    }
                }
            ),
            "spec.validation.openAPIV3Schema.properties[spec].properties[a].default",
        ),
    ],
)
async def test_a_schema_that_is_not_structural_is_refused(
    api: Api, gadgets: Gadgets, version: JsonObject, field: str
) -> None:
    refused = await api.post(CRDS, gadgets.document(version))
    refused.expect(422)
    fields = [string_at(cause, "field") for cause in objects_at(refused.details, "causes")]
    assert any(path.startswith(field) for path in fields), refused.message


async def test_a_definition_is_named_after_its_kind(api: Api, gadgets: Gadgets) -> None:
    document = gadgets.document(a_version())
    document["metadata"] = {"name": "other.example.com"}
    refused = await api.post(CRDS, document)
    refused.expect(422)
    assert 'metadata.name: Invalid value: "other.example.com"' in refused.message


async def test_a_definition_stores_exactly_one_version(api: Api, gadgets: Gadgets) -> None:
    document = gadgets.document(a_version("v1"), a_version("v2"))
    refused = await api.post(CRDS, document)
    refused.expect(422)
    assert "must have exactly one version marked as storage version" in refused.message
