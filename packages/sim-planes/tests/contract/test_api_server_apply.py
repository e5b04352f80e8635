"""Server-side apply: ownership, conflicts, and removal of fields that are no longer applied."""

from __future__ import annotations

from compute_sim_planes.api_server.testing import (
    APPLY_PATCH,
    Api,
    a_config_map,
    a_widget,
    generation_of,
    metadata_of,
    version_of,
)
from compute_sim_planes.json_types import JsonObject, object_at, objects_at, string_at


def managers_of(existing: JsonObject) -> dict[tuple[str, str, str], JsonObject]:
    """Owned fields by manager, operation and subresource."""
    return {
        (
            string_at(entry, "manager"),
            string_at(entry, "operation"),
            string_at(entry, "subresource"),
        ): object_at(entry, "fieldsV1")
        for entry in objects_at(existing, "metadata", "managedFields")
    }


async def test_apply_creates_what_is_absent(api: Api, widgets: str) -> None:
    made = (await api.apply(f"{widgets}/one", a_widget(), "us")).expect(201)
    assert generation_of(made) == 1
    assert made["spec"] == {"size": 1, "color": "red"}
    # Defaults of the schema have no owner.
    assert managers_of(made) == {("us", "Apply", ""): {"f:spec": {"f:size": {}}}}


async def test_applying_the_same_again_changes_nothing(api: Api, widgets: str) -> None:
    (await api.apply(f"{widgets}/one", a_widget(), "us")).expect(201)
    first = (await api.apply(f"{widgets}/one", a_widget(), "us")).expect(200)
    second = (await api.apply(f"{widgets}/one", a_widget(), "us")).expect(200)
    assert version_of(first) == version_of(second)


async def test_what_is_no_longer_applied_goes(api: Api, widgets: str) -> None:
    spec: JsonObject = {"size": 1, "tags": ["a"], "limits": {"cpu": "1", "disk": "2"}}
    (await api.apply(f"{widgets}/one", a_widget(spec=spec, labels={"a": "b"}), "us")).expect(201)
    left = a_widget(spec={"size": 1, "limits": {"cpu": "1"}})
    existing = (await api.apply(f"{widgets}/one", left, "us")).expect(200)
    assert existing["spec"] == {"size": 1, "color": "red", "limits": {"cpu": "1"}}
    assert "labels" not in metadata_of(existing)


async def test_another_value_for_a_foreign_field_is_a_conflict(api: Api, widgets: str) -> None:
    (await api.apply(f"{widgets}/one", a_widget(), "us")).expect(201)
    refused = await api.apply(f"{widgets}/one", a_widget(spec={"size": 2}), "them")
    refused.expect(409)
    assert refused.reason == "Conflict"
    assert refused.message == ('Apply failed with 1 conflict: conflict with "us": .spec.size')
    assert refused.details["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "us"', "field": ".spec.size"}
    ]


async def test_several_conflicts_are_listed_by_manager(api: Api, widgets: str) -> None:
    spec: JsonObject = {"size": 1, "code": "ABC"}
    (await api.apply(f"{widgets}/one", a_widget(spec=spec), "us")).expect(201)
    desired: JsonObject = {"size": 2, "code": "XYZ"}
    refused = await api.apply(f"{widgets}/one", a_widget(spec=desired), "them")
    refused.expect(409)
    assert refused.message == (
        'Apply failed with 2 conflicts: conflicts with "us":\n- .spec.code\n- .spec.size'
    )


async def test_the_same_value_is_shared(api: Api, widgets: str) -> None:
    (await api.apply(f"{widgets}/one", a_widget(), "us")).expect(201)
    shared = (await api.apply(f"{widgets}/one", a_widget(), "them")).expect(200)
    assert set(managers_of(shared)) == {("us", "Apply", ""), ("them", "Apply", "")}
    # One owner gives the field up; the other still owns it.
    (await api.apply(f"{widgets}/one", a_widget(spec={"tags": ["x"]}), "us")).expect(200)
    existing = (await api.get(f"{widgets}/one")).expect(200)
    assert object_at(existing, "spec")["size"] == 1


async def test_force_takes_the_field_over(api: Api, widgets: str) -> None:
    (await api.apply(f"{widgets}/one", a_widget(), "us")).expect(201)
    taken = (
        await api.apply(f"{widgets}/one", a_widget(spec={"size": 2}), "them", force="true")
    ).expect(200)
    assert object_at(taken, "spec")["size"] == 2
    assert managers_of(taken) == {("them", "Apply", ""): {"f:spec": {"f:size": {}}}}
    refused = await api.apply(f"{widgets}/one", a_widget(), "us")
    assert refused.status == 409


async def test_managers_are_distinguished_by_operation(api: Api, widgets: str) -> None:
    (await api.post(widgets, a_widget(), fieldManager="us")).expect(201)
    (await api.apply(f"{widgets}/one", a_widget(), "us")).expect(200)
    existing = (await api.get(f"{widgets}/one")).expect(200)
    assert {("us", "Update", ""), ("us", "Apply", "")} <= set(managers_of(existing))
    # A field created by POST is not removed when an apply under the same name omits it.
    (await api.apply(f"{widgets}/one", a_widget(spec={"tags": ["x"]}), "us")).expect(200)
    kept = (await api.get(f"{widgets}/one")).expect(200)
    assert object_at(kept, "spec")["size"] == 1


async def test_a_plain_update_takes_what_it_changes(api: Api, widgets: str) -> None:
    (await api.apply(f"{widgets}/one", a_widget(), "us")).expect(201)
    patched = (
        await api.merge(f"{widgets}/one", {"spec": {"size": 5}}, fieldManager="them")
    ).expect(200)
    assert managers_of(patched)["them", "Update", ""] == {"f:spec": {"f:size": {}}}
    refused = await api.apply(f"{widgets}/one", a_widget(), "us")
    refused.expect(409)
    assert 'conflict with "them" using contract.example.com/v1: .spec.size' in refused.message


async def test_lists_with_keys_are_shared_by_their_elements(api: Api, widgets: str) -> None:
    ours = a_widget(spec={"size": 1, "ports": [{"name": "a", "port": 1}]})
    theirs = a_widget(spec={"ports": [{"name": "b", "port": 2}]})
    (await api.apply(f"{widgets}/one", ours, "us")).expect(201)
    both = (await api.apply(f"{widgets}/one", theirs, "them")).expect(200)
    assert object_at(both, "spec")["ports"] == [
        {"name": "a", "port": 1},
        {"name": "b", "port": 2},
    ]
    (await api.apply(f"{widgets}/one", a_widget(), "us")).expect(200)
    left = (await api.get(f"{widgets}/one")).expect(200)
    assert object_at(left, "spec")["ports"] == [{"name": "b", "port": 2}]


async def test_plain_lists_are_owned_as_a_whole(api: Api, widgets: str) -> None:
    (await api.apply(f"{widgets}/one", a_widget(spec={"size": 1, "tags": ["a"]}), "us")).expect(201)
    refused = await api.apply(f"{widgets}/one", a_widget(spec={"tags": ["b"]}), "them")
    refused.expect(409)
    assert refused.message.endswith(".spec.tags")


async def test_finalizers_are_a_set_of_several_owners(api: Api, widgets: str) -> None:
    (await api.apply(f"{widgets}/one", a_widget(finalizers=["a.b/ours"]), "us")).expect(201)
    theirs = a_widget(finalizers=["a.b/theirs"])
    both = (await api.apply(f"{widgets}/one", theirs, "them")).expect(200)
    assert metadata_of(both)["finalizers"] == ["a.b/ours", "a.b/theirs"]
    left = (await api.apply(f"{widgets}/one", a_widget(), "us")).expect(200)
    assert metadata_of(left)["finalizers"] == ["a.b/theirs"]
    (await api.merge(f"{widgets}/one", {"metadata": {"finalizers": None}})).expect(200)


async def test_the_status_is_applied_on_its_own(api: Api, widgets: str) -> None:
    (await api.apply(f"{widgets}/one", a_widget(), "us")).expect(201)
    desired: JsonObject = {**a_widget(spec={"size": 9}), "status": {"phase": "Up"}}
    applied = (await api.apply(f"{widgets}/one/status", desired, "us")).expect(200)
    assert object_at(applied, "spec")["size"] == 1
    assert object_at(applied, "status")["phase"] == "Up"
    owned = managers_of(applied)
    assert owned["us", "Apply", "status"] == {"f:status": {"f:phase": {}}}
    assert owned["us", "Apply", ""] == {"f:spec": {"f:size": {}}}


async def test_a_status_applied_to_the_object_itself_is_ignored(api: Api, widgets: str) -> None:
    desired: JsonObject = {**a_widget(), "status": {"phase": "Up"}}
    made = (await api.apply(f"{widgets}/one", desired, "us")).expect(201)
    assert object_at(made, "status")["phase"] == "Pending"


async def test_an_apply_needs_a_field_manager(api: Api, widgets: str) -> None:
    refused = await api.send("PATCH", f"{widgets}/one", a_widget(), APPLY_PATCH)
    refused.expect(422)
    assert refused.message == (
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for '
        "apply patch"
    )


async def test_force_belongs_to_apply(api: Api, widgets: str) -> None:
    (await api.post(widgets, a_widget())).expect(201)
    refused = await api.merge(f"{widgets}/one", {"spec": {"size": 2}}, force="true")
    refused.expect(422)
    assert "force: Forbidden: may not be specified for non-apply patch" in refused.message


async def test_applied_versions_and_managers_are_checked(api: Api, widgets: str) -> None:
    (await api.apply(f"{widgets}/one", a_widget(), "us")).expect(201)
    assert (await api.apply(f"{widgets}/one", a_widget(resourceVersion="1"), "us")).status == 409
    assert (await api.apply(f"{widgets}/one", a_widget(managedFields=[{}]), "us")).status == 400
    assert (await api.apply(f"{widgets}/two", a_widget("two", uid="x"), "us")).status == 409


async def test_yaml_is_what_apply_is_written_in(api: Api, widgets: str) -> None:
    text = b"""
apiVersion: contract.example.com/v1
kind: Widget
metadata:
  name: one
  annotations: {since: "2001-01-01"}
spec:
  size: 2
  tags: ["yes", "1"]
"""
    reply = await api.send("PATCH", f"{widgets}/one?fieldManager=us", text, APPLY_PATCH)
    assert reply.expect(201)["spec"] == {"size": 2, "color": "red", "tags": ["yes", "1"]}


async def test_an_undeclared_field_cannot_be_applied(api: Api, widgets: str) -> None:
    refused = await api.apply(f"{widgets}/one", a_widget(spec={"size": 1, "surprise": 2}), "us")
    refused.expect(500)
    assert ".spec.surprise: field not declared in schema" in refused.message


async def test_a_value_of_the_wrong_type_cannot_be_applied(api: Api, widgets: str) -> None:
    refused = await api.apply(f"{widgets}/one", a_widget(spec={"size": "big"}), "us")
    refused.expect(500)
    assert ".spec.size: expected numeric (int or float), got string" in refused.message


async def test_maps_of_built_in_kinds_are_shared_by_key(api: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/one"
    (await api.apply(path, a_config_map(data={"a": "1"}), "us")).expect(201)
    both = (await api.apply(path, a_config_map(data={"b": "2"}), "them")).expect(200)
    assert both["data"] == {"a": "1", "b": "2"}
    refused = await api.apply(path, a_config_map(data={"a": "2"}), "them")
    refused.expect(409)
    assert refused.message == 'Apply failed with 1 conflict: conflict with "us": .data.a'


async def test_a_dry_run_of_apply_reports_the_conflict(api: Api, widgets: str) -> None:
    (await api.apply(f"{widgets}/one", a_widget(), "us")).expect(201)
    assert (
        await api.apply(f"{widgets}/one", a_widget(spec={"size": 2}), "them", dryRun="All")
    ).status == 409
    shown = await api.apply(
        f"{widgets}/one", a_widget(spec={"size": 2}), "them", dryRun="All", force="true"
    )
    assert object_at(shown.expect(200), "spec")["size"] == 2
    existing = (await api.get(f"{widgets}/one")).expect(200)
    assert object_at(existing, "spec")["size"] == 1
