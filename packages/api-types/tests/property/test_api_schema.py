"""Models and CRDs agree: the specification's examples, builders, whatever the schema allows."""

import json
import re
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, ValidationError

from compute_api_types import labels
from compute_api_types.crd import derive_crds
from compute_api_types.model import Model
from compute_api_types.problems import MalformedObjectError
from compute_api_types.testing import (
    a_condition,
    a_deployment,
    a_placement,
    a_template,
    a_workload,
    an_instance,
    terminating,
    with_deployment_status,
    with_workload_status,
)
from compute_api_types.v1alpha.instance import Instance
from compute_api_types.v1alpha.workload import Workload, WorkloadStatus
from compute_api_types.v1alpha.workload_deployment import (
    WorkloadDeployment,
    WorkloadDeploymentStatus,
)
from compute_api_types.wire import JsonObject, JsonValue

MODELS: dict[str, type[Model]] = {
    "Workload": Workload,
    "WorkloadDeployment": WorkloadDeployment,
    "Instance": Instance,
}


def obj(value: JsonValue) -> JsonObject:
    assert isinstance(value, dict)
    return value


@cache
def schema_of(kind: str) -> JsonObject:
    for document in derive_crds():
        match document:
            case {
                "spec": {
                    "names": {"kind": value},
                    "versions": [{"schema": {"openAPIV3Schema": dict(schema)}}],
                }
            } if value == kind:
                return schema
            case _:
                continue
    raise AssertionError(f"no CRD of kind {kind}")


def schema_errors(document: JsonObject) -> list[str]:
    """What the schema of its kind finds wrong with an object."""
    validator = Draft202012Validator(schema_of(str(document["kind"])))
    # The stubs leave the second, unused argument without a type.
    errors = validator.iter_errors(document)  # pyright: ignore[reportUnknownMemberType]
    return [str(error.message) for error in errors if not _is_defaulted(error)]


def _is_defaulted(error: ValidationError) -> bool:
    """A required member that an API server fills in, as it does for a null, is not missing."""
    if error.validator != "required":
        return False
    name = str(error.message).split("'")[1]
    schema: Any = error.schema
    return "default" in schema["properties"].get(name, {})


# --- the examples of docs/spec/api.md 17, taken from the page itself ------------------------------

PAGE = Path(__file__).parents[4] / "docs" / "spec" / "api.md"


def examples() -> list[JsonObject]:
    section = PAGE.read_text("utf-8").split("## 17. Examples")[1]
    return [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", section, re.DOTALL)]


def with_defaults(schema: JsonValue, value: JsonValue) -> JsonValue:
    """What an API server makes of an object before it validates it."""
    if isinstance(schema, dict) and isinstance(value, dict):
        fields = obj(schema.get("properties", {}))
        filled = {
            name: obj(field)["default"] for name, field in fields.items() if "default" in obj(field)
        }
        complete = {**filled, **value}
        return {name: with_defaults(fields.get(name), each) for name, each in complete.items()}
    if isinstance(schema, dict) and isinstance(value, list):
        return [with_defaults(schema.get("items"), element) for element in value]
    return value


def test_there_are_two_examples() -> None:
    assert [each["kind"] for each in examples()] == ["Workload", "Instance"]


@pytest.mark.parametrize("index", [0, 1])
def test_an_example_survives_reading_building_and_writing(index: int) -> None:
    example = examples()[index]
    model = MODELS[str(example["kind"])]
    assert model.read(example).to_document() == example
    assert model.build(example).to_document() == example
    assert model.read_json(json.dumps(example)).to_document() == example


@pytest.mark.parametrize("index", [0, 1])
def test_an_example_is_valid_once_defaults_are_filled_in(index: int) -> None:
    example = examples()[index]
    assert schema_errors(obj(with_defaults(schema_of(str(example["kind"])), example))) == []


def test_defaults_fill_what_the_first_example_leaves_out() -> None:
    workload = Workload.read(with_defaults(schema_of("Workload"), examples()[0]))
    assert workload.spec.placements[0].scale_settings.instance_management_policy == "OrderedReady"
    assert workload.status == WorkloadStatus.defaulted()


# --- builders -------------------------------------------------------------------------------------

LONG = "a-very-long-workload-name-that-nobody-should-choose-but-the-api-server-accepts-it"

BUILT: list[Model] = [
    a_workload(),
    a_workload(LONG, placements=[a_placement("a", ["DFW", "LHR"], replicas=1000)]),
    a_workload(template=a_template(annotations={labels.SSH_KEYS: "a:ssh-ed25519 AAAA"})),
    a_deployment(),
    a_deployment(a_workload(LONG)),
    an_instance(),
    an_instance(a_deployment(a_workload(LONG)), 3, gates=()),
    an_instance(gates=(), observed_hash="v1-0", conditions=(a_condition(),)),
    terminating(a_workload()),
    terminating(a_deployment()),
    terminating(an_instance()),
    with_workload_status(a_workload(), WorkloadStatus.defaulted()),
    with_deployment_status(a_deployment(), WorkloadDeploymentStatus.defaulted()),
]


@pytest.mark.parametrize("built", BUILT)
def test_whatever_a_builder_builds_is_valid_against_the_schema(built: Model) -> None:
    assert schema_errors(built.to_document()) == []


@pytest.mark.parametrize("built", BUILT)
def test_whatever_a_builder_builds_can_be_built_from_its_document(built: Model) -> None:
    assert type(built).build(built.to_document()) == built


# --- whatever the schema allows -------------------------------------------------------------------

WORDS = st.text(alphabet="abcXYZ0-./é\n", max_size=6)
NAMES = st.sampled_from("abcdef")
TIMES = st.sampled_from(
    ["1970-01-01T00:00:00Z", "2026-06-20T09:00:04.25Z", "2026-06-20T11:00:04+02:00"]
)
NUMBERS_OR_WORDS: st.SearchStrategy[JsonValue] = st.one_of(st.integers(-5, 70000), WORDS)
AMOUNTS: list[JsonValue] = [0, -3, 2**63 - 1, "2Gi", "2048Mi", "+.5e-3", "1e1.5", "100n"]


def values(schema: JsonObject) -> st.SearchStrategy[JsonValue]:
    """Everything a structural schema allows, small."""
    if "anyOf" in schema:
        return st.sampled_from(AMOUNTS) if "pattern" in schema else NUMBERS_OR_WORDS
    match schema["type"]:
        case "string":
            return strings(schema)
        case "boolean":
            return st.booleans()
        case "integer":
            return integers(schema)
        case "array":
            return arrays(schema)
        case _:
            return objects(schema)


def strings(schema: JsonObject) -> st.SearchStrategy[JsonValue]:
    if isinstance(allowed := schema.get("enum"), list):
        return st.sampled_from(allowed)
    if schema.get("format") == "date-time":
        return TIMES
    if isinstance(pattern := schema.get("pattern"), str):
        return st.from_regex(pattern, fullmatch=True).filter(lambda text: len(text) <= 316)
    return WORDS


def integers(schema: JsonObject) -> st.SearchStrategy[JsonValue]:
    limit = 2**31 if schema["format"] == "int32" else 2**63
    lowest, highest = schema.get("minimum", -limit), schema.get("maximum", limit - 1)
    assert isinstance(lowest, int)
    assert isinstance(highest, int)
    return st.integers(lowest, highest)


UNKNOWN: st.SearchStrategy[JsonValue] = st.recursive(
    st.booleans() | st.integers(0, 9) | WORDS,
    lambda inner: st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=3,
)


def arrays(schema: JsonObject) -> st.SearchStrategy[JsonValue]:
    least = schema.get("minItems", 0)
    assert isinstance(least, int)
    element = values(obj(schema["items"]))
    if schema.get("x-kubernetes-list-type") != "map":
        return st.lists(element, min_size=least, max_size=2).map(lambda value: [*value])
    named = st.tuples(element, NAMES).map(lambda pair: obj(pair[0]) | {"name": pair[1]})
    unique = st.lists(named, min_size=least, max_size=2, unique_by=lambda value: str(value["name"]))
    return unique.map(lambda value: [*value])


def objects(schema: JsonObject) -> st.SearchStrategy[JsonValue]:
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return st.dictionaries(WORDS, UNKNOWN, max_size=2).map(lambda value: {**value})
    if "additionalProperties" in schema:
        entries = values(obj(schema["additionalProperties"]))
        return st.dictionaries(WORDS, entries, max_size=2).map(lambda value: {**value})
    required = schema.get("required", [])
    assert isinstance(required, list)
    fields = {name: values(obj(field)) for name, field in obj(schema["properties"]).items()}
    must = {name: field for name, field in fields.items() if name in required}
    may = {name: field for name, field in fields.items() if name not in required}
    return st.fixed_dictionaries(must, optional=may).map(lambda value: {**value})


@cache
def documents(kind: str) -> st.SearchStrategy[JsonObject]:
    properties = obj(schema_of(kind)["properties"])
    required = schema_of(kind).get("required", [])
    assert isinstance(required, list)
    parts = {name: values(obj(properties[name])) for name in ("spec", "status")}
    head: JsonObject = {
        "apiVersion": "compute.datumapis.com/v1alpha",
        "kind": kind,
        "metadata": {"name": "a"},
    }
    return st.fixed_dictionaries(
        {name: part for name, part in parts.items() if name in required},
        optional={name: part for name, part in parts.items() if name not in required},
    ).map(lambda value: head | value)


# The whole schema is generated, which is slow to draw and worth it.
THOROUGH = settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
WRONG: list[JsonValue] = [None, True, 1, 1.5, "x", [], {}, [{}], {"x": []}]


@pytest.mark.parametrize("kind", MODELS)
@given(data=st.data())
@THOROUGH
def test_an_object_valid_under_the_crd_survives_the_model_unchanged(
    kind: str, data: st.DataObject
) -> None:
    document = data.draw(documents(kind))
    assert schema_errors(document) == []
    model = MODELS[kind]
    read = model.read(document)
    # With their types: `8080` and `"8080"` differ.
    assert json.dumps(read.to_document(), sort_keys=True) == json.dumps(document, sort_keys=True)
    assert model.read_json(json.dumps(document)) == read
    assert model.build(read.to_document()) == read


@pytest.mark.parametrize("kind", MODELS)
@given(data=st.data())
@THOROUGH
def test_what_a_model_takes_is_valid_under_the_crd_and_the_rest_is_one_typed_error(
    kind: str, data: st.DataObject
) -> None:
    document = data.draw(documents(kind))
    broken = replaced(document, data.draw(st.sampled_from(WRONG)), data)
    with suppress(MalformedObjectError):
        read = MODELS[kind].read(broken)
        assert schema_errors(read.to_document()) == []


def replaced(value: JsonValue, wrong: JsonValue, data: st.DataObject) -> JsonValue:
    """The document with a wrong value in one place."""
    if isinstance(value, dict) and value:
        key = data.draw(st.sampled_from(sorted(value)))
        return {**value, key: replaced_here_or_below(value[key], wrong, data)}
    if isinstance(value, list) and value:
        index = data.draw(st.integers(0, len(value) - 1))
        below = replaced_here_or_below(value[index], wrong, data)
        return [*value[:index], below, *value[index + 1 :]]
    return wrong


def replaced_here_or_below(value: JsonValue, wrong: JsonValue, data: st.DataObject) -> JsonValue:
    return wrong if data.draw(st.booleans()) else replaced(value, wrong, data)
