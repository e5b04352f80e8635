from __future__ import annotations

import copy
from typing import cast

import pytest

import compute_api_types
from compute_api_types import ApiTypesError, MalformedObjectError, Workload, v1alpha
from compute_api_types.crd import UnstructuralSchemaError
from compute_api_types.meta import TimestampError, parse_timestamp
from compute_api_types.names import NamingError, UndecodableIdentityError
from compute_api_types.quantity import QuantityError
from compute_api_types.testing import ImpossibleObjectError, a_workload
from compute_api_types.v1alpha import NetworkInterface, NetworkReference, ScaleSettings
from compute_api_types.wire import JsonObject, JsonValue


def a_document() -> JsonObject:
    return a_workload().to_document()


def at(document: JsonValue, *steps: str | int) -> JsonValue:
    for step in steps:
        document = cast("dict[str | int, JsonValue]", document)[step]
    return document


def test_a_deep_field_is_changed_by_its_path_and_the_original_stays() -> None:
    workload = a_workload()
    before = workload.to_document()
    placement = workload.spec.placements[0].name
    changed = workload.with_fields({f"spec.placements[{placement}].scaleSettings.minReplicas": 7})
    assert changed.spec.placements[0].scale_settings.min_replicas == 7
    assert workload.to_document() == before


def test_an_element_can_be_chosen_by_its_index_and_a_map_by_its_key() -> None:
    changed = a_workload().with_fields(
        {"spec.placements[0].cityCodes[0]": "ORD", "metadata.labels[app.example.com/tier]": "web"}
    )
    assert changed.spec.placements[0].city_codes[0] == "ORD"
    assert changed.metadata.label("app.example.com/tier") == "web"


def test_none_removes_a_field_and_an_element() -> None:
    labelled = a_workload().with_fields({"metadata.labels[app]": "web"})
    assert labelled.with_fields({"metadata.labels": None}).metadata.labels is None
    two = labelled.with_fields({"spec.placements[0].cityCodes": ("DFW", "ORD")})
    one = two.with_fields({"spec.placements[0].cityCodes[0]": None})
    assert one.spec.placements[0].city_codes == ("ORD",)


def test_models_are_values_of_a_change() -> None:
    scale = ScaleSettings(min_replicas=4)
    interface = NetworkInterface(network=NetworkReference(name="backbone"))
    changed = a_workload().with_fields(
        {
            "spec.placements[0].scaleSettings": scale,
            "spec.template.spec.networkInterfaces": [interface],
        }
    )
    assert changed.spec.placements[0].scale_settings == scale
    assert changed.spec.template.spec.network_interfaces == (interface,)


@pytest.mark.parametrize(
    ("path", "value", "detail"),
    [
        ("spec.placements[nowhere].name", "x", "the list has no element 'nowhere'"),
        ("spec.placements[99].name", "x", "the list has no element '99'"),
        ("spec.placements[0].cityCodes[0].name", "x", "element '0' holds no object"),
        ("metadata.name.first", "x", "name holds neither an object nor a list"),
        ("spec..placements", "x", "must be a path of wire names"),
        ("[0]", "x", "must be a path of wire names"),
        ("", "x", "must be a path of wire names"),
        ("spec.placements[0].replicas", 3, "the field is unknown"),
        ("spec.placements[0].scaleSettings.minReplicas", "3", "must be an integer"),
        ("spec.placements", None, "the field must be set"),
        ("metadata.name", object(), "must be a string"),
    ],
)
def test_a_wrong_change_names_path_and_remedy(path: str, value: object, detail: str) -> None:
    with pytest.raises(MalformedObjectError, match="changing Workload") as error:
        a_workload().with_fields({path: value})
    assert error.value.problems[0].path == path
    assert detail in error.value.problems[0].detail


def test_fields_of_a_newer_release_survive_a_write_back_at_any_depth() -> None:
    found = a_document()
    cast("JsonObject", found["metadata"])["managedFields"] = [{"manager": "kubectl"}]
    cast("JsonObject", at(found, "spec", "placements", 0))["weight"] = 5
    container = at(found, "spec", "template", "spec", "runtime", "sandbox", "containers", 0)
    cast("JsonObject", container)["livenessProbe"] = {"httpGet": {"port": 80}}
    wanted = copy.deepcopy(found)
    cast("JsonObject", at(wanted, "spec", "placements", 0, "scaleSettings"))["minReplicas"] = 9

    changed = Workload.read(found).with_fields({"spec.placements[0].scaleSettings.minReplicas": 9})
    written = changed.write_back(found)

    assert written.document == wanted
    assert written.lost == ()


def test_an_unchanged_object_is_written_back_as_it_was_found() -> None:
    found = a_document()
    found["status"] = {"replicas": 1, "newer": {"a": [1]}}  # other counters absent
    written = Workload.read(found).write_back(found)
    assert written.document == found
    assert written.lost == ()


def test_named_elements_keep_their_unknown_fields_when_others_come_and_go() -> None:
    found = a_document()
    first = cast("JsonObject", at(found, "spec", "placements", 0))
    second = {**copy.deepcopy(first), "name": "second", "weight": 2}
    cast("list[JsonValue]", at(found, "spec", "placements")).append(second)
    workload = Workload.read(found)
    third = workload.spec.placements[0].with_fields({"name": "third"})
    changed = workload.with_fields({"spec.placements": [third, workload.spec.placements[1]]})

    written = changed.write_back(found)

    assert [
        at(each, "name")
        for each in cast("list[JsonValue]", at(written.document, "spec", "placements"))
    ] == ["third", "second"]
    assert at(written.document, "spec", "placements", 1, "weight") == 2
    assert written.lost == ()


def test_what_a_nameless_list_cannot_keep_is_named() -> None:
    found = a_document()
    spec = cast("JsonObject", at(found, "spec", "template", "spec"))
    spec["networkInterfaces"] = [
        {"network": {"name": "a"}, "mtu": 9000},
        {"network": {"name": "b"}, "mtu": 1500},
    ]
    changed = Workload.read(found).with_fields(
        {
            "spec.template.spec.networkInterfaces": [
                {"network": {"name": name}} for name in ("c", "b", "d")
            ]
        }
    )
    written = changed.write_back(found)
    assert at(written.document, "spec", "template", "spec", "networkInterfaces") == [
        {"network": {"name": "c"}},
        {"network": {"name": "b"}, "mtu": 1500},
        {"network": {"name": "d"}},
    ]
    assert written.lost == ("spec.template.spec.networkInterfaces[0].mtu",)


def test_a_nameless_element_edited_in_its_place_keeps_its_unknown_fields() -> None:
    found = a_document()
    spec = cast("JsonObject", at(found, "spec", "template", "spec"))
    spec["networkInterfaces"] = [{"network": {"name": "a"}, "mtu": 9000}]
    path = "spec.template.spec.networkInterfaces[0].network.name"
    written = Workload.read(found).with_fields({path: "z"}).write_back(found)
    assert at(written.document, "spec", "template", "spec", "networkInterfaces") == [
        {"network": {"name": "z"}, "mtu": 9000}
    ]
    assert written.lost == ()


def test_what_is_no_such_object_cannot_be_written_back_to() -> None:
    with pytest.raises(MalformedObjectError):
        a_workload().write_back({"kind": "Workload"})


def test_every_error_has_one_root() -> None:
    errors = (
        *(MalformedObjectError, TimestampError, QuantityError, NamingError),
        *(UndecodableIdentityError, UnstructuralSchemaError, ImpossibleObjectError),
    )
    for error in errors:
        assert issubclass(error, ApiTypesError)
    with pytest.raises(ApiTypesError):
        parse_timestamp("yesterday")


def test_a_constructor_raises_the_same_error_as_a_document() -> None:
    with pytest.raises(MalformedObjectError) as error:
        ScaleSettings(min_replicas=cast("int", "3"))
    assert str(error.value) == (
        "building ScaleSettings: min_replicas: Invalid value: must be an integer"
    )


def test_v1alpha_exports_every_model_of_its_modules() -> None:
    assert v1alpha.__all__ == sorted(v1alpha.__all__)
    kinds = ("Workload", "WorkloadDeployment", "Instance", "Container", "Placement", "Volume")
    assert set(kinds) <= set(v1alpha.__all__)
    for name in v1alpha.__all__:
        assert getattr(v1alpha, name).__name__ == name
    assert set(v1alpha.__all__) <= set(dir(v1alpha))
    wrong = "Gateway"
    with pytest.raises(AttributeError, match="no attribute 'Gateway'"):
        getattr(v1alpha, wrong)


def test_the_version_is_that_of_the_distribution() -> None:
    from importlib.metadata import version

    assert compute_api_types.__version__ == version("datum-compute-api-types")
