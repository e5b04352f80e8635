from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from compute_sim_planes.api_server.patch.server_side_apply import (
    AppliedTypeError,
    ApplyConflictError,
    apply_configuration,
    record_update,
)
from compute_sim_planes.api_server.schema.compiled import CompiledSchema, compile_schema
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, objects_at, string_at

NOW = datetime(2026, 6, 20, 9, 0, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)

SCHEMA = compile_schema(
    {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": {
                "type": "object",
                "properties": {
                    "replicas": {"type": "integer"},
                    "mode": {"type": "string"},
                    "limits": {"type": "object", "additionalProperties": {"type": "string"}},
                    "selector": {
                        "type": "object",
                        "x-kubernetes-map-type": "atomic",
                        "additionalProperties": {"type": "string"},
                    },
                    "args": {"type": "array", "items": {"type": "string"}},
                    "tags": {
                        "type": "array",
                        "items": {"type": "string"},
                        "x-kubernetes-list-type": "set",
                    },
                    "containers": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {
                            "type": "object",
                            "required": ["name"],
                            "properties": {
                                "name": {"type": "string"},
                                "image": {"type": "string"},
                                "port": {"type": "integer"},
                            },
                        },
                    },
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            },
            "status": {
                "type": "object",
                "properties": {"ready": {"type": "boolean"}},
            },
        },
    }
)


def a_thing(labels: dict[str, str] | None = None, /, **spec: JsonValue) -> JsonObject:
    metadata: JsonObject = {"name": "a", "namespace": "n"}
    if labels is not None:
        metadata["labels"] = dict(labels)
    thing: JsonObject = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata}
    return {**thing, "spec": dict(spec)} if spec else thing


def applied(
    existing: JsonObject | None,
    desired: JsonObject,
    manager: str = "us",
    *,
    force: bool = False,
    now: datetime = NOW,
    schema: CompiledSchema | None = SCHEMA,
) -> JsonObject:
    return apply_configuration(
        existing, desired, manager=manager, force=force, schema=schema, now=now
    )


def updated(
    before: JsonObject | None, after: JsonObject, manager: str = "them", subresource: str = ""
) -> JsonObject:
    return record_update(
        before, after, manager=manager, now=NOW, subresource=subresource, schema=SCHEMA
    )


def owned_by(existing: JsonObject, manager: str, operation: str = "Apply") -> JsonObject:
    for entry in objects_at(existing, "metadata", "managedFields"):
        if entry.get("manager") == manager and entry.get("operation") == operation:
            return object_at(entry, "fieldsV1")
    return {}


def spec_of(existing: JsonObject) -> JsonObject:
    return object_at(existing, "spec")


def test_the_first_apply_creates_the_object_and_owns_what_it_names() -> None:
    made = applied(
        None, a_thing({"app": "web"}, replicas=2, containers=[{"name": "c", "image": "i"}])
    )

    assert spec_of(made) == {"replicas": 2, "containers": [{"name": "c", "image": "i"}]}
    (entry,) = objects_at(made, "metadata", "managedFields")
    assert entry == {
        "manager": "us",
        "operation": "Apply",
        "apiVersion": "example.com/v1",
        "time": "2026-06-20T09:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:metadata": {"f:labels": {"f:app": {}}},
            "f:spec": {
                "f:replicas": {},
                "f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}, "f:name": {}}},
            },
        },
    }


def test_applying_the_same_again_changes_nothing_not_even_the_time() -> None:
    desired = a_thing(replicas=2, limits={"cpu": "1"}, args=["a"])
    made = applied(None, desired)

    assert applied(made, desired, now=LATER) == made


def test_a_field_no_longer_applied_goes() -> None:
    made = applied(None, a_thing(replicas=2, mode="x", limits={"cpu": "1", "memory": "2"}))

    changed = applied(made, a_thing(replicas=2, limits={"cpu": "1"}))

    assert spec_of(changed) == {"replicas": 2, "limits": {"cpu": "1"}}
    assert owned_by(changed, "us") == {"f:spec": {"f:replicas": {}, "f:limits": {"f:cpu": {}}}}


def test_a_map_goes_with_its_last_key() -> None:
    made = applied(None, a_thing({"app": "web"}, replicas=1))

    changed = applied(made, a_thing(replicas=1))

    assert "labels" not in object_at(changed, "metadata")


def test_a_field_no_longer_applied_stays_when_another_manager_applies_it() -> None:
    made = applied(None, a_thing(replicas=2, mode="x"))
    shared = applied(made, a_thing(mode="x"), "others")

    changed = applied(shared, a_thing(replicas=2))

    assert spec_of(changed) == {"replicas": 2, "mode": "x"}
    assert owned_by(changed, "others") == {"f:spec": {"f:mode": {}}}


def test_fields_of_others_survive_an_apply_that_does_not_name_them() -> None:
    made = applied(None, a_thing({"app": "web"}, replicas=2))
    theirs = a_thing({"app": "web", "foreign": "yes"}, replicas=2, mode="x")
    existing = updated(made, {**made, **theirs})

    changed = applied(existing, a_thing({"app": "db"}, replicas=3))

    assert object_at(changed, "metadata", "labels") == {"app": "db", "foreign": "yes"}
    assert spec_of(changed) == {"replicas": 3, "mode": "x"}


def test_a_value_of_another_manager_conflicts_with_its_field_and_owner() -> None:
    made = applied(None, a_thing(replicas=2), "others")

    with pytest.raises(ApplyConflictError) as caught:
        applied(made, a_thing(replicas=3))

    assert caught.value.message == (
        'Apply failed with 1 conflict: conflict with "others": .spec.replicas'
    )
    (conflict,) = caught.value.conflicts
    assert conflict.cause() == {
        "reason": "FieldManagerConflict",
        "message": 'conflict with "others"',
        "field": ".spec.replicas",
    }


def test_conflicts_with_plain_writers_name_their_version_and_several_are_listed() -> None:
    existing = updated(None, a_thing(replicas=2, containers=[{"name": "c", "image": "i"}]))

    with pytest.raises(ApplyConflictError) as caught:
        applied(existing, a_thing(replicas=3, containers=[{"name": "c", "image": "j"}]))

    assert caught.value.message == (
        'Apply failed with 2 conflicts: conflicts with "them" using example.com/v1:\n'
        '- .spec.containers[name="c"].image\n'
        "- .spec.replicas"
    )


def test_a_forced_apply_takes_the_fields_over() -> None:
    made = applied(None, a_thing(replicas=2, mode="x"), "others")

    changed = applied(made, a_thing(replicas=3), force=True)

    assert spec_of(changed) == {"replicas": 3, "mode": "x"}
    assert owned_by(changed, "us") == {"f:spec": {"f:replicas": {}}}
    assert owned_by(changed, "others") == {"f:spec": {"f:mode": {}}}


def test_the_same_value_applied_by_two_is_owned_by_both() -> None:
    made = applied(None, a_thing(replicas=2), "others")

    changed = applied(made, a_thing(replicas=2), now=LATER)

    assert owned_by(changed, "us") == owned_by(changed, "others") == {"f:spec": {"f:replicas": {}}}


def test_a_manager_that_posted_and_then_applies_is_two_managers() -> None:
    """Fields created by POST are not given up by a later apply of the same manager."""
    posted = updated(None, a_thing(replicas=2, tags=["Quota", "Network"]), "us")

    changed = applied(posted, a_thing(replicas=2, tags=["Quota"]), "us")

    assert spec_of(changed)["tags"] == ["Quota", "Network"]
    assert object_at(owned_by(changed, "us", "Update"), "f:spec", "f:tags") != {}


def test_items_of_a_set_come_and_go_one_by_one() -> None:
    made = applied(None, a_thing(tags=["a", "b"]))
    both = applied(made, a_thing(tags=["c"]), "others")

    changed = applied(both, a_thing(tags=["b"]))

    assert spec_of(changed) == {"tags": ["b", "c"]}
    assert owned_by(changed, "others") == {"f:spec": {"f:tags": {'v:"c"': {}}}}


def test_items_of_a_list_map_merge_by_their_key_and_keep_their_places() -> None:
    made = applied(None, a_thing(containers=[{"name": "a", "image": "1"}, {"name": "b"}]), "others")

    changed = applied(made, a_thing(containers=[{"name": "c"}, {"name": "b", "port": 80}]))

    assert spec_of(changed)["containers"] == [
        {"name": "a", "image": "1"},
        {"name": "c"},
        {"name": "b", "port": 80},
    ]


def test_an_item_no_longer_applied_goes_whole() -> None:
    made = applied(None, a_thing(containers=[{"name": "a", "image": "1"}, {"name": "b"}]))

    changed = applied(made, a_thing(containers=[{"name": "b"}]))

    assert spec_of(changed)["containers"] == [{"name": "b"}]


def test_an_item_stays_while_a_field_in_it_has_an_owner() -> None:
    made = applied(None, a_thing(containers=[{"name": "a", "image": "1"}]))
    both = applied(made, a_thing(containers=[{"name": "a", "port": 80}]), "others")

    changed = applied(both, a_thing(replicas=1))

    assert spec_of(changed)["containers"] == [{"name": "a", "port": 80}]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"args": ["a", "b"]}, {"args": ["c"]}),
        ({"selector": {"a": "1"}}, {"selector": {"b": "2"}}),
    ],
)
def test_atomic_values_are_replaced_as_a_whole(first: JsonObject, second: JsonObject) -> None:
    made = applied(None, a_thing(**first))

    assert spec_of(applied(made, a_thing(**second))) == second
    with pytest.raises(ApplyConflictError):
        applied(made, a_thing(**second), "others")


def test_fields_under_an_unknown_type_are_owned_key_by_key() -> None:
    made = applied(None, a_thing(free={"a": {"b": 1}, "l": [1]}))

    assert owned_by(made, "us") == {"f:spec": {"f:free": {"f:a": {".": {}, "f:b": {}}, "f:l": {}}}}


def test_an_empty_map_is_owned_as_such() -> None:
    made = applied(None, a_thing(limits={}))

    assert owned_by(made, "us") == {"f:spec": {"f:limits": {}}}


def test_kinds_without_a_schema_merge_objects_by_key_and_arrays_whole() -> None:
    made = applied(
        None,
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}},
        schema=None,
    )
    changed = applied(
        made,
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"l": "w"}},
        "others",
        schema=None,
    )

    assert changed["data"] == {"k": "v", "l": "w"}


def test_owners_and_finalizers_merge_by_uid_and_by_value() -> None:
    def owned(uid: str, finalizer: str) -> JsonObject:
        thing = a_thing()
        reference: JsonObject = {"apiVersion": "v1", "kind": "K", "name": uid, "uid": uid}
        metadata = object_at(thing, "metadata")
        metadata.update(ownerReferences=[reference], finalizers=[finalizer])
        return thing

    made = applied(None, owned("1", "a"))
    changed = applied(made, owned("2", "b"), "others")

    metadata = object_at(changed, "metadata")
    assert metadata["finalizers"] == ["a", "b"]
    assert [string_at(r, "uid") for r in objects_at(changed, "metadata", "ownerReferences")] == [
        "1",
        "2",
    ]


def test_fields_set_by_the_server_have_no_owner() -> None:
    existing = a_thing(replicas=1)
    object_at(existing, "metadata").update(
        uid="u", resourceVersion="5", generation=3, creationTimestamp="2026-01-01T00:00:00Z"
    )

    assert owned_by(updated(None, existing), "them", "Update") == {
        "f:spec": {".": {}, "f:replicas": {}}
    }


def test_an_object_without_managed_fields_belongs_to_before_first_apply() -> None:
    existing = a_thing(replicas=1, mode="x")

    with pytest.raises(ApplyConflictError, match="before-first-apply"):
        applied(existing, a_thing(replicas=2))

    changed = applied(existing, a_thing(replicas=1))
    assert owned_by(changed, "before-first-apply", "Update") != {}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"unknown": 1}, r"^\.spec\.unknown: field not declared in schema$"),
        ({"replicas": "x"}, r"^\.spec\.replicas: expected numeric \(int or float\), got string$"),
        ({"containers": [{"image": "x"}]}, r"omits key field \"name\""),
        (
            {"containers": [{"name": "a"}, {"name": "a"}]},
            r'^\.spec\.containers: duplicate entries for key \[name="a"\]$',
        ),
        ({"containers": {}}, r"^\.spec\.containers: expected list, got object$"),
    ],
)
def test_a_configuration_with_undefined_ownership_is_refused(
    spec: JsonObject, message: str
) -> None:
    with pytest.raises(AppliedTypeError, match=message):
        applied(None, a_thing(**spec))


def test_fields_the_request_may_not_touch_are_neither_written_nor_owned() -> None:
    desired: JsonObject = {**a_thing(replicas=1), "status": {"ready": True}}

    made = apply_configuration(
        None,
        desired,
        manager="us",
        force=False,
        schema=SCHEMA,
        now=NOW,
        resets=frozenset({"status"}),
    )

    assert "status" not in made
    assert owned_by(made, "us") == {"f:spec": {"f:replicas": {}}}


def test_an_update_takes_over_what_it_changes_and_drops_what_it_removes() -> None:
    made = applied(None, a_thing(replicas=2, mode="x", limits={"cpu": "1"}))

    changed = updated(made, {**made, "spec": {"replicas": 3, "mode": "x"}})

    assert owned_by(changed, "us") == {"f:spec": {"f:mode": {}}}
    assert owned_by(changed, "them", "Update") == {"f:spec": {"f:replicas": {}}}


def test_an_update_that_changes_nothing_records_nothing() -> None:
    made = applied(None, a_thing(replicas=2))

    assert updated(made, made) == made


def test_one_manager_of_spec_and_status_has_two_entries() -> None:
    existing = updated(None, a_thing(replicas=1), "them")
    reported = updated(existing, {**existing, "status": {"ready": True}}, "them", "status")

    entries = objects_at(reported, "metadata", "managedFields")

    assert [(string_at(e, "manager"), string_at(e, "subresource")) for e in entries] == [
        ("them", ""),
        ("them", "status"),
    ]


def test_one_empty_entry_forgets_all_owners() -> None:
    made = applied(None, a_thing(replicas=2))
    reset: JsonObject = {**made, "metadata": {**object_at(made, "metadata"), "managedFields": [{}]}}

    assert "managedFields" not in object_at(updated(made, reset), "metadata")


def test_entries_are_ordered_appliers_first_then_by_time() -> None:
    existing = updated(None, a_thing(replicas=1), "zz")
    existing = applied(existing, a_thing(mode="x"), "bb", now=LATER)
    existing = applied(existing, a_thing(limits={"cpu": "1"}), "aa", now=LATER)

    managers = [string_at(e, "manager") for e in objects_at(existing, "metadata", "managedFields")]

    assert managers == ["aa", "bb", "zz"]
