import json
from typing import get_args, get_origin

import pytest
from pydantic import BaseModel, ValidationError

from compute_api_types import problems
from compute_api_types.conditions import Condition
from compute_api_types.model import Model, describe
from compute_api_types.problems import FieldProblem, MalformedObjectError, ProblemKind
from compute_api_types.testing import a_deployment, a_workload, an_instance
from compute_api_types.v1alpha.instance import Instance, InstanceSpec, LocationReference
from compute_api_types.v1alpha.network_interfaces import IPBlock, NetworkPolicyIngressRule
from compute_api_types.v1alpha.workload import Workload, WorkloadStatus
from compute_api_types.v1alpha.workload_deployment import (
    WorkloadDeployment,
    WorkloadDeploymentStatus,
)
from compute_api_types.wire import JsonObject, JsonValue

CONTAINER = "spec.template.spec.runtime.sandbox.containers"


def workload_document() -> JsonObject:
    return a_workload().to_document()


def put(document: JsonObject, path: str, value: JsonValue) -> JsonObject:
    """The document with one field set; the path is as our errors write it."""
    changed: JsonObject = json.loads(json.dumps(document))
    here: JsonValue = changed
    *steps, last = path.replace("]", "").replace("[", ".").split(".")
    for step in steps:
        here = below(here, step)
    if isinstance(here, list):
        here[int(last)] = value
    else:
        assert isinstance(here, dict)
        here[last] = value
    return changed


def below(here: JsonValue, step: str) -> JsonValue:
    if isinstance(here, list):
        return here[int(step)]
    assert isinstance(here, dict)
    return here.setdefault(step, {})


def refused(document: object, model: type[Model] = Workload) -> MalformedObjectError:
    with pytest.raises(MalformedObjectError) as error:
        model.read(document)
    return error.value


# --- tolerant when reading, strict when building --------------------------------------------------


def test_fields_we_do_not_know_are_passed_over_when_reading() -> None:
    document = put(workload_document(), "spec.gateway", {"class": "x"})
    document = put(document, f"{CONTAINER}[0].lifecycle", {"stop": "A"})
    document = put(document, "metadata.managedFields", [{"manager": "kubectl"}])
    document = put(document, "spec.template.metadata.creationTimestamp", None)
    assert Workload.read(document).to_document() == workload_document() | {
        "spec": json.loads(json.dumps(workload_document()["spec"]))
        | {"template": {**_template(), "metadata": {}}}
    }


def _template() -> JsonObject:
    spec = workload_document()["spec"]
    assert isinstance(spec, dict)
    template = spec["template"]
    assert isinstance(template, dict)
    return template


def test_fields_we_do_not_know_are_refused_when_building() -> None:
    document = put(workload_document(), f"{CONTAINER}[0].lifecycle", {})
    with pytest.raises(MalformedObjectError) as error:
        Workload.build(document)
    assert error.value.problems == (
        FieldProblem(f"{CONTAINER}[0].lifecycle", ProblemKind.FORBIDDEN, "the field is unknown"),
    )
    with pytest.raises(ValidationError):
        LocationReference.model_validate({"name": "a", "namespace": "", "zone": "b"})


def test_building_from_our_own_document_gives_the_object_back() -> None:
    for built in (a_workload(), a_deployment(), an_instance()):
        assert type(built).build(built.to_document()) == built
        assert type(built).read_json(json.dumps(built.to_document())) == built


def test_python_names_build_and_documents_carry_the_wire_names() -> None:
    block = IPBlock(cidr="198.51.100.0/24", except_=("198.51.100.1/32",))
    assert block.to_document() == {"cidr": "198.51.100.0/24", "except": ["198.51.100.1/32"]}
    wire: JsonObject = {"from": [{}]}
    assert NetworkPolicyIngressRule.read(wire).from_ is not None
    # A document is no Python call: names that only we use are unknown there.
    ours: JsonObject = {"from_": [{}]}
    assert NetworkPolicyIngressRule.read(ours).from_ is None


def test_models_are_frozen_to_the_depth_of_their_lists() -> None:
    workload = a_workload()
    with pytest.raises(ValidationError, match="frozen"):
        workload.metadata.name = "other"  # type: ignore[misc]  # what this test is about
    assert isinstance(workload.spec.placements, tuple)
    assert isinstance(workload.spec.placements[0].city_codes, tuple)


@pytest.mark.parametrize("model", [WorkloadDeployment, Instance])
def test_a_stored_object_may_lack_spec_and_status(
    model: type[WorkloadDeployment | Instance],
) -> None:
    parsed = model.read({"metadata": {"name": "a"}})
    assert parsed.spec is None
    assert parsed.status is None
    assert parsed.conditions == ()


def test_an_instance_without_spec_or_controller_has_no_gates() -> None:
    assert Instance.read({"metadata": {"name": "a"}}).gates == ()
    instance = an_instance()
    assert instance.gates == ("Network", "Quota")
    assert instance.spec is not None
    bare = instance.model_copy(
        update={"spec": instance.spec.model_copy(update={"controller": None})}
    )
    assert bare.gates == ()
    assert an_instance(gates=()).gates == ()
    assert [each.type for each in instance.conditions][:2] == ["Programmed", "Available"]


def test_a_workload_needs_its_spec() -> None:
    assert refused({"metadata": {"name": "a"}}).problems == (
        FieldProblem("spec", ProblemKind.REQUIRED, "the field must be set"),
    )
    assert a_workload().conditions == ()


def test_zeros_are_sent_and_absent_is_never_null() -> None:
    assert WorkloadDeploymentStatus().to_document() == {
        "replicas": 0,
        "currentReplicas": 0,
        "updatedReplicas": 0,
        "desiredReplicas": 0,
        "readyReplicas": 0,
        "observedGeneration": 0,
    }
    assert WorkloadStatus().to_document() == {
        "deployments": 0,
        "replicas": 0,
        "currentReplicas": 0,
        "updatedReplicas": 0,
        "desiredReplicas": 0,
        "readyReplicas": 0,
        "observedGeneration": 0,
    }
    assert LocationReference(name="a", namespace="").to_document() == {"name": "a", "namespace": ""}


def test_null_counts_as_absent_where_a_field_is_optional() -> None:
    document = put(workload_document(), f"{CONTAINER}[0].command", None)
    assert Workload.read(document).to_document() == workload_document()


@pytest.mark.parametrize("amount", [1, "1", "1000m", "2Gi", "2048Mi", "+.5e3"])
def test_quantities_keep_their_text_and_their_json_type(amount: int | str) -> None:
    path = f"{CONTAINER}[0].resources.limits"
    document = put(workload_document(), path, {"cpu": amount})
    dumped = Workload.read(document).to_document()
    assert json.dumps(dumped, sort_keys=True) == json.dumps(document, sort_keys=True)


@pytest.mark.parametrize("port", [8080, "8080", "http", 0, -1])
def test_a_port_by_number_or_name_keeps_its_json_type(port: int | str) -> None:
    path = "spec.template.spec.networkInterfaces[0].networkPolicy"
    document = put(workload_document(), path, {"ingress": [{"ports": [{"port": port}]}]})
    assert Workload.read(document).to_document() == document


def test_presence_of_an_empty_object_is_kept() -> None:
    document = put(workload_document(), f"{CONTAINER}[0].resources", {})
    document = put(document, "spec.template.spec.runtime.resources.requests", {})
    assert Workload.read(document).to_document() == document


# --- bad input: a field error with path, kind and what is allowed ---------------------------------

P = "spec.placements[0]"


@pytest.mark.parametrize(
    ("path", "value", "where", "kind", "allowed"),
    [
        (f"{P}.scaleSettings.minReplicas", "2", None, "Invalid", "must be an integer"),
        (f"{P}.scaleSettings.minReplicas", 1.5, None, "Invalid", "must be an integer"),
        (f"{P}.scaleSettings.minReplicas", True, None, "Invalid", "must be an integer"),
        (f"{P}.scaleSettings.minReplicas", None, None, "Invalid", "must be an integer"),
        (
            f"{P}.scaleSettings.minReplicas",
            2**31,
            None,
            "Invalid",
            "must be at most 2147483647",
        ),
        (f"{P}.scaleSettings.minReplicas", 10**400, None, "Invalid", "must be at most"),
        (f"{P}.cityCodes", "DFW", None, "Invalid", "must be a list"),
        (f"{P}.cityCodes", [7], f"{P}.cityCodes[0]", "Invalid", "must be a string"),
        (f"{P}.name", ["a"], None, "Invalid", "must be a string"),
        ("spec.placements", [], None, "Invalid", "must not be empty"),
        ("spec.placements", {}, None, "Invalid", "must be a list"),
        ("spec", [], None, "Invalid", "must be an object"),
        ("spec", "x", None, "Invalid", "must be an object"),
        ("kind", "Instance", None, "NotSupported", "supported values: 'Workload'"),
        (
            "apiVersion",
            "v1",
            None,
            "NotSupported",
            "supported values: 'compute.datumapis.com/v1alpha'",
        ),
        ("metadata.name", "x" * 300, None, "Invalid", "must have at most 253 characters"),
        ("metadata.name", "", None, "Invalid", "must not be empty"),
        ("metadata.name", "a\x00b", None, "Invalid", "must match ^[a-z0-9]"),
        ("metadata.name", "a\n", None, "Invalid", "must match ^[a-z0-9]"),
        ("metadata.labels", {"app": 1}, "metadata.labels[app]", "Invalid", "must be a string"),
        ("metadata.creationTimestamp", "yesterday", None, "Invalid", "must be an RFC 3339 time"),
        (
            f"{CONTAINER}[0].resources.limits",
            {"cpu": "lots"},
            f"{CONTAINER}[0].resources.limits[cpu]",
            "Invalid",
            "must be a quantity",
        ),
        (
            f"{CONTAINER}[0].resources.limits",
            {"cpu": 2**63},
            f"{CONTAINER}[0].resources.limits[cpu]",
            "Invalid",
            "must be a quantity",
        ),
        (
            f"{CONTAINER}[0].resources.limits",
            {"cpu": True},
            f"{CONTAINER}[0].resources.limits[cpu]",
            "Invalid",
            "must be a quantity",
        ),
        (
            f"{CONTAINER}[0].ports",
            [{"name": "http", "port": 0}],
            f"{CONTAINER}[0].ports[0].port",
            "Invalid",
            "must be at least 1",
        ),
        (
            f"{CONTAINER}[0].ports",
            [{"name": "http", "port": 65536}],
            f"{CONTAINER}[0].ports[0].port",
            "Invalid",
            "must be at most 65535",
        ),
        (
            f"{CONTAINER}[0].env",
            [{"name": "A"}, {"name": "B"}, {"name": "A"}],
            f"{CONTAINER}[0].env[2]",
            "Duplicate",
            "names in this list must differ",
        ),
        (
            "spec.template.spec.networkInterfaces[0].networkPolicy",
            {"ingress": [{"ports": [{"port": 1.5}]}]},
            "spec.template.spec.networkInterfaces[0].networkPolicy.ingress[0].ports[0].port",
            "Invalid",
            "must be an integer or a string",
        ),
        (
            "spec.template.spec.volumes",
            [{"name": "a", "configMap": {"optional": "true"}}],
            "spec.template.spec.volumes[0].configMap.optional",
            "Invalid",
            "must be true or false",
        ),
        (
            "spec.template.spec.volumes",
            [{"name": "a", "configMap": {"optional": 1}}],
            "spec.template.spec.volumes[0].configMap.optional",
            "Invalid",
            "must be true or false",
        ),
        (
            "spec.template.spec.volumes",
            [
                {
                    "name": "a",
                    "disk": {"template": {"spec": {"populator": {"filesystem": {"type": "xfs"}}}}},
                }
            ],
            "spec.template.spec.volumes[0].disk.template.spec.populator.filesystem.type",
            "NotSupported",
            "supported values: 'ext4'",
        ),
        (
            "status",
            {"conditions": [{"type": "Ready", "status": True}]},
            "status.conditions[0].status",
            "NotSupported",
            "supported values: 'True', 'False' or 'Unknown'",
        ),
    ],
)
def test_bad_input_is_a_field_error_with_what_is_allowed(
    path: str, value: JsonValue, where: str | None, kind: str, allowed: str
) -> None:
    error = refused(put(workload_document(), path, value))
    first = error.problems[0]
    assert (first.path, first.kind.value) == (where or path, kind)
    assert allowed in first.detail
    assert first.path in str(error)
    assert len(str(error)) < 1000


def test_an_error_names_the_object_and_counts_what_else_is_wrong() -> None:
    document = put(put(workload_document(), f"{P}.name", 1), f"{P}.cityCodes", 2)
    assert str(refused(document)) == (
        "reading Workload 'default/storefront': spec.placements[0].name: Invalid value: "
        "must be a string (and 1 more)"
    )


def test_an_error_shows_no_value_because_it_may_be_a_secret() -> None:
    document = put(workload_document(), f"{CONTAINER}[0].env", [{"name": "A", "value": ["s3cret"]}])
    error = refused(document)
    assert "s3cret" not in str(error)
    assert "s3cret" not in repr(error.problems)


@pytest.mark.parametrize("document", [None, [], "x", 7, True])
def test_what_is_no_object_is_refused(document: object) -> None:
    error = refused(document)
    assert error.problems == (FieldProblem("", ProblemKind.INVALID, "must be an object"),)
    assert str(error) == "reading Workload: Invalid value: must be an object"


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b"nul", "[" * 100])
def test_what_is_no_json_is_refused(text: bytes | str) -> None:
    with pytest.raises(MalformedObjectError, match="reading Workload: Invalid value: Invalid JSON"):
        Workload.read_json(text)


def test_json_and_documents_are_refused_for_the_same_fields_and_in_the_same_words() -> None:
    document = put(workload_document(), f"{P}.cityCodes", [1, 2])
    with pytest.raises(MalformedObjectError) as error:
        Workload.read_json(json.dumps(document))
    assert error.value.problems == refused(document).problems
    assert str(error.value) == str(refused(document))


@pytest.mark.parametrize("number", ["9" * 5000, "NaN", "1e400", "-0.5"])
def test_numbers_that_no_field_can_hold_are_refused(number: str) -> None:
    text = json.dumps(workload_document()).replace('"minReplicas": 1', f'"minReplicas": {number}')
    with pytest.raises(MalformedObjectError):
        Workload.read_json(text)


def test_the_list_of_problems_is_bounded() -> None:
    sevens: list[JsonValue] = [7] * 5000
    error = refused(put(workload_document(), f"{P}.cityCodes", sevens))
    assert len(error.problems) == problems.MOST_PROBLEMS
    assert error.problems[99].path == f"{P}.cityCodes[99]"


def test_paths_show_no_control_characters_and_end() -> None:
    assert problems.derive_path(("metadata", "labels", "a\x00\n")) == "metadata.labels[a??]"
    long = problems.derive_path(("metadata", "labels", "x" * 10_000))
    assert long == f"metadata.labels[{'x' * 64}...]"


@pytest.mark.parametrize(
    ("document", "what"),
    [
        ({"metadata": {"name": "a", "namespace": "n"}}, "Workload 'n/a'"),
        ({"metadata": {"name": "a"}}, "Workload 'a'"),
        ({"metadata": {"name": 7}}, "Workload"),
        ({"metadata": []}, "Workload"),
        ({}, "Workload"),
    ],
)
def test_a_document_is_described_by_the_names_it_has(document: object, what: str) -> None:
    assert describe("Workload", document) == what


def test_keys_are_shown_in_brackets_for_exactly_the_fields_that_are_maps() -> None:
    maps = {
        field.alias or name
        for model in models()
        for name, field in model.model_fields.items()
        if any(get_origin(part) is dict for part in (field.annotation, *get_args(field.annotation)))
    }
    assert maps == problems.MAP_FIELDS


def models() -> list[type[BaseModel]]:
    """Every model of the package; all modules that define one are imported above or by testing."""
    models = [Model]
    for model in models:
        models += [child for child in model.__subclasses__() if child not in models]
    return [model for model in models if model.__module__.startswith("compute_api_types.")]


@pytest.mark.parametrize(
    "time",
    [
        "1970-01-01T00:00:00Z",
        "2026-06-20T09:00:04.123456789Z",
        "2026-06-20T09:00:04+02:00",
    ],
)
def test_times_of_others_are_kept_to_the_letter(time: str) -> None:
    document = {
        "type": "Ready",
        "status": "True",
        "reason": "Available",
        "message": "",
        "lastTransitionTime": time,
    }
    assert Condition.read(document).to_document() == document


@pytest.mark.parametrize(
    "time", ["2026-06-20 09:00:04Z", "2026-13-01T00:00:00Z", "2026-06-20T24:00:00Z", "", "Z"]
)
def test_what_is_no_time_is_refused(time: str) -> None:
    document = {
        "type": "Ready",
        "status": "True",
        "reason": "Available",
        "message": "",
        "lastTransitionTime": time,
    }
    assert refused(document, Condition).problems[0].path == "lastTransitionTime"


def test_an_instance_spec_needs_a_network_and_a_runtime() -> None:
    assert [each.path for each in refused({}, InstanceSpec).problems] == [
        "runtime",
        "networkInterfaces",
    ]


def test_a_workload_that_was_stored_with_duplicates_is_read() -> None:
    """The schema forbids them by now; an object from before still has them (api.md 14, trap 13)."""
    document = workload_document()
    placement: JsonObject = {
        "name": "a",
        "cityCodes": ["DFW", "DFW"],
        "scaleSettings": {"minReplicas": 1},
    }
    document = put(document, "spec.placements", [placement, placement])
    assert [each.city_codes for each in Workload.read(document).spec.placements] == [
        ("DFW", "DFW"),
        ("DFW", "DFW"),
    ]


def test_the_status_of_a_gateway_is_read_and_kept() -> None:
    gateway: JsonValue = {"addresses": [{"type": "IPAddress", "value": "203.0.113.7"}]}
    document = put(workload_document(), "status", {"gateway": gateway})
    status = Workload.read(document).status
    assert status is not None
    assert status.to_document()["gateway"] == gateway
