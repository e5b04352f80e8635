"""Create, read, replace: versions, generations, status and system fields."""

from __future__ import annotations

import re

import pytest

from compute_sim_planes.api_server.testing import (
    Api,
    a_config_map,
    a_widget,
    generation_of,
    metadata_of,
    uid_of,
    version_of,
)
from compute_sim_planes.json_types import JsonObject, object_at, string_at

RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


async def test_a_created_object_has_identity_time_version_and_first_generation(
    api: Api, widgets: str
) -> None:
    made = (await api.post(widgets, a_widget())).expect(201)
    metadata = metadata_of(made)
    assert re.fullmatch(r"[0-9a-f-]{36}", uid_of(made))
    assert RFC3339.fullmatch(string_at(metadata, "creationTimestamp"))
    assert int(version_of(made)) > 0
    assert generation_of(made) == 1
    assert (await api.get(f"{widgets}/one")).expect(200) == made


async def test_identity_sent_with_a_create_is_not_believed(api: Api, widgets: str) -> None:
    sent = a_widget(
        uid="11111111-1111-1111-1111-111111111111",
        generation=7,
        creationTimestamp="2001-01-01T00:00:00Z",
        deletionTimestamp="2001-01-01T00:00:00Z",
    )
    made = (await api.post(widgets, sent)).expect(201)
    assert uid_of(made) != "11111111-1111-1111-1111-111111111111"
    assert generation_of(made) == 1
    assert not string_at(made, "metadata", "creationTimestamp").startswith("2001")
    assert "deletionTimestamp" not in metadata_of(made)


async def test_an_existing_name_is_a_conflict_with_reason_already_exists(
    api: Api, widgets: str
) -> None:
    (await api.post(widgets, a_widget())).expect(201)
    refused = await api.post(widgets, a_widget())
    refused.expect(409)
    assert refused.reason == "AlreadyExists"
    assert refused.message == 'widgets.contract.example.com "one" already exists'
    assert refused.details == {
        "name": "one",
        "group": "contract.example.com",
        "kind": "widgets",
    }


async def test_a_generated_name_continues_its_prefix(api: Api, widgets: str) -> None:
    sent = a_widget()
    sent["metadata"] = {"generateName": "web-"}
    names = {
        string_at((await api.post(widgets, sent)).expect(201), "metadata", "name") for _ in "ab"
    }
    assert len(names) == 2
    assert all(re.fullmatch(r"web-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in names)


async def test_an_absent_object_is_not_found_by_its_plural_and_name(api: Api, widgets: str) -> None:
    refused = await api.get(f"{widgets}/nobody")
    refused.expect(404)
    assert refused.reason == "NotFound"
    assert refused.message == 'widgets.contract.example.com "nobody" not found'
    assert refused.body["kind"] == "Status"
    assert refused.body["status"] == "Failure"
    assert refused.body["code"] == 404


async def test_versions_rise_over_all_kinds_of_a_plane(
    api: Api, widgets: str, namespace: str
) -> None:
    config_maps = f"/api/v1/namespaces/{namespace}/configmaps"
    versions = [
        int(version_of((await api.post(path, desired)).expect(201)))
        for path, desired in (
            (widgets, a_widget("a")),
            (config_maps, a_config_map("b")),
            (widgets, a_widget("c")),
            (config_maps, a_config_map("d")),
        )
    ]
    assert versions == sorted(set(versions))


async def test_the_generation_rises_with_the_spec_and_not_with_metadata_or_status(
    api: Api, widgets: str
) -> None:
    (await api.post(widgets, a_widget())).expect(201)
    labelled = (await api.merge(f"{widgets}/one", {"metadata": {"labels": {"a": "b"}}})).expect(200)
    assert generation_of(labelled) == 1
    reported = (await api.merge(f"{widgets}/one/status", {"status": {"ready": 1}})).expect(200)
    assert generation_of(reported) == 1
    resized = (await api.merge(f"{widgets}/one", {"spec": {"size": 2}})).expect(200)
    assert generation_of(resized) == 2
    versions = [int(version_of(item)) for item in (labelled, reported, resized)]
    assert versions == sorted(set(versions))


async def test_a_write_that_changes_nothing_makes_no_version(api: Api, widgets: str) -> None:
    (await api.post(widgets, a_widget())).expect(201)
    written = (await api.merge(f"{widgets}/one", {"spec": {"size": 2}})).expect(200)
    again = (await api.put(f"{widgets}/one", written)).expect(200)
    patched = (await api.merge(f"{widgets}/one", {"spec": {"size": 2}})).expect(200)
    assert version_of(written) == version_of(again) == version_of(patched)


async def test_a_defaulted_status_is_stored_by_the_first_write_after_the_creation(
    api: Api, widgets: str
) -> None:
    """Until then only reads show it, so a replacement by the same object is a change."""
    made = (await api.post(widgets, a_widget())).expect(201)
    written = (await api.put(f"{widgets}/one", made)).expect(200)
    assert int(version_of(written)) > int(version_of(made))
    assert generation_of(written) == 1
    assert written["status"] == made["status"]


async def test_kinds_that_count_no_generations_have_none(api: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    made = (await api.post(path, a_config_map())).expect(201)
    assert generation_of(made) is None


async def test_status_sent_with_a_create_is_dropped_and_the_schema_default_is_seen(
    api: Api, widgets: str
) -> None:
    sent = a_widget()
    sent["status"] = {"phase": "Finished", "ready": 5}
    made = (await api.post(widgets, sent)).expect(201)
    assert made["status"] == {"phase": "Pending", "ready": 0}


async def test_status_sent_with_an_update_is_ignored(api: Api, widgets: str) -> None:
    made = (await api.post(widgets, a_widget())).expect(201)
    sent: JsonObject = {**made, "status": {"phase": "Finished"}, "spec": {"size": 3}}
    updated = (await api.put(f"{widgets}/one", sent)).expect(200)
    assert object_at(updated, "spec") == {"size": 3, "color": "red"}
    assert updated["status"] == {"phase": "Pending", "ready": 0}


async def test_an_update_of_the_status_changes_nothing_else(api: Api, widgets: str) -> None:
    made = (await api.post(widgets, a_widget(labels={"a": "b"}))).expect(201)
    sent: JsonObject = {
        **made,
        "spec": {"size": 9},
        "status": {"phase": "Running"},
        "metadata": {
            **metadata_of(made),
            "labels": {"other": "x"},
            "finalizers": ["example.com/f"],
        },
    }
    updated = (await api.put(f"{widgets}/one/status", sent)).expect(200)
    assert updated["status"] == {"phase": "Running", "ready": 0}
    assert object_at(updated, "spec", "size") == {}
    assert updated["spec"] == made["spec"]
    assert metadata_of(updated)["labels"] == {"a": "b"}
    assert "finalizers" not in metadata_of(updated)
    assert generation_of(updated) == 1


async def test_replacing_needs_the_version_it_was_made_from(api: Api, widgets: str) -> None:
    made = (await api.post(widgets, a_widget())).expect(201)
    (await api.merge(f"{widgets}/one", {"spec": {"size": 2}})).expect(200)
    refused = await api.put(f"{widgets}/one", made)
    refused.expect(409)
    assert refused.reason == "Conflict"
    assert refused.message == (
        'Operation cannot be fulfilled on widgets.contract.example.com "one": the object has been '
        "modified; please apply your changes to the latest version and try again"
    )


async def test_a_custom_object_cannot_be_replaced_without_a_version(api: Api, widgets: str) -> None:
    (await api.post(widgets, a_widget())).expect(201)
    refused = await api.put(f"{widgets}/one", a_widget())
    refused.expect(422)
    assert refused.message == (
        'widgets.contract.example.com "one" is invalid: metadata.resourceVersion: Invalid value: '
        "0: must be specified for an update"
    )


async def test_a_config_map_may_be_replaced_without_a_version(api: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    (await api.post(path, a_config_map())).expect(201)
    updated = (await api.put(f"{path}/one", a_config_map(data={"new": "1"}))).expect(200)
    assert updated["data"] == {"new": "1"}


async def test_replacing_another_incarnation_is_a_conflict(api: Api, widgets: str) -> None:
    made = (await api.post(widgets, a_widget())).expect(201)
    sent = a_widget(resourceVersion=version_of(made), uid="11111111-1111-1111-1111-111111111111")
    refused = await api.put(f"{widgets}/one", sent)
    refused.expect(409)
    assert refused.reason == "Conflict"
    assert "UID in precondition: 11111111-1111-1111-1111-111111111111" in refused.message


async def test_replacing_what_is_absent_is_not_found(api: Api, widgets: str) -> None:
    (await api.put(f"{widgets}/one", a_widget(resourceVersion="1"))).expect(404)


async def test_a_lease_is_created_by_replacing_it(api: Api, namespace: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/leader"
    lease: JsonObject = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "leader"},
        "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15},
    }
    (await api.put(path, lease)).expect(201)


async def test_names_in_body_and_path_must_agree(api: Api, widgets: str) -> None:
    (await api.post(widgets, a_widget())).expect(201)
    refused = await api.put(f"{widgets}/one", a_widget("two", resourceVersion="1"))
    refused.expect(400)
    assert refused.message == (
        "the name of the object (two) does not match the name on the URL (one)"
    )


async def test_a_namespace_in_the_body_must_be_that_of_the_path(api: Api, widgets: str) -> None:
    refused = await api.post(widgets, a_widget(namespace="elsewhere"))
    refused.expect(400)
    assert refused.message == (
        "the namespace of the provided object does not match the namespace sent on the request"
    )


async def test_a_version_on_a_new_object_is_refused(api: Api, widgets: str) -> None:
    refused = await api.post(widgets, a_widget(resourceVersion="5"))
    refused.expect(500)
    assert refused.message == "resourceVersion should not be set on objects to be created"


async def test_a_dry_run_shows_the_outcome_and_keeps_nothing(api: Api, widgets: str) -> None:
    shown = (await api.post(widgets, a_widget(), dryRun="All")).expect(201)
    assert object_at(shown, "spec")["color"] == "red"
    (await api.get(f"{widgets}/one")).expect(404)
    made = (await api.post(widgets, a_widget())).expect(201)
    (await api.merge(f"{widgets}/one", {"spec": {"size": 7}}, dryRun="All")).expect(200)
    (await api.delete(f"{widgets}/one", dryRun="All")).expect(200)
    assert (await api.get(f"{widgets}/one")).expect(200) == made
    refused = await api.post(widgets, a_widget("two"), dryRun="Some")
    refused.expect(422)
    assert refused.reason == "Invalid"


async def test_immutable_metadata_cannot_be_changed(api: Api, widgets: str) -> None:
    (await api.post(widgets, a_widget())).expect(201)
    for field, value in (
        ("uid", "11111111-1111-1111-1111-111111111111"),
        ("deletionTimestamp", "2001-01-01T00:00:00Z"),
    ):
        refused = await api.merge(f"{widgets}/one", {"metadata": {field: value}})
        refused.expect(422)
        assert f"metadata.{field}: Invalid value" in refused.message
        assert "field is immutable" in refused.message


async def test_another_time_of_creation_is_not_believed(api: Api, widgets: str) -> None:
    made = (await api.post(widgets, a_widget())).expect(201)
    sent: JsonObject = {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z"}}
    updated = (await api.merge(f"{widgets}/one", sent)).expect(200)
    assert metadata_of(updated)["creationTimestamp"] == metadata_of(made)["creationTimestamp"]


async def test_unknown_metadata_is_dropped_with_a_warning(api: Api, widgets: str) -> None:
    reply = await api.post(widgets, a_widget(surprise=1, labels={}, annotations={"a": "b"}))
    made = metadata_of(reply.expect(201))
    assert 'unknown field \\"metadata.surprise\\"' in reply.headers["Warning"]
    assert "surprise" not in made
    assert "labels" not in made
    assert made["annotations"] == {"a": "b"}


async def test_metadata_of_another_type_cannot_be_read(api: Api, widgets: str) -> None:
    refused = await api.post(widgets, a_widget(labels={"a": 1}))
    refused.expect(400)
    assert "cannot unmarshal number into Go struct field ObjectMeta.labels of type string" in (
        refused.message
    )


async def test_a_generation_sent_is_not_believed(api: Api, widgets: str) -> None:
    (await api.post(widgets, a_widget())).expect(201)
    updated = (await api.merge(f"{widgets}/one", {"metadata": {"generation": 40}})).expect(200)
    assert generation_of(updated) == 1


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"name": "Upper"}, "metadata.name"),
        ({"name": "a" * 254}, "metadata.name"),
        ({"name": "one", "labels": {"a b": "c"}}, "metadata.labels"),
        ({"name": "one", "labels": {"a": "x" * 64}}, "metadata.labels"),
        ({"name": "one", "annotations": {"/": "c"}}, "metadata.annotations"),
        ({"name": "one", "finalizers": ["a/b/c"]}, "metadata.finalizers"),
        ({"name": "one", "ownerReferences": [{"kind": "K", "name": "n", "uid": "u"}]}, "metadata"),
    ],
)
async def test_metadata_that_no_client_could_use_is_refused(
    api: Api, widgets: str, metadata: JsonObject, field: str
) -> None:
    sent = a_widget()
    sent["metadata"] = metadata
    refused = await api.post(widgets, sent)
    refused.expect(422)
    assert field in refused.message


async def test_string_data_of_a_secret_ends_up_encoded(api: Api, namespace: str) -> None:
    secret: JsonObject = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s"},
        "stringData": {"password": "x"},
    }
    made = (await api.post(f"/api/v1/namespaces/{namespace}/secrets", secret)).expect(201)
    assert made["data"] == {"password": "eA=="}
    assert made["type"] == "Opaque"
    assert "stringData" not in made
