"""Any object the CRD lets through survives model → JSON → model, built from the schema itself."""

import json
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compute_api_types.model import Model
from compute_api_types.problems import MalformedObjectError
from compute_api_types.v1alpha.instance import Instance
from compute_api_types.v1alpha.workload import Workload
from compute_api_types.v1alpha.workload_deployment import WorkloadDeployment
from compute_api_types.wire import JsonObject, JsonValue

MODELS: dict[str, type[Model]] = {
    "Workload": Workload,
    "WorkloadDeployment": WorkloadDeployment,
    "Instance": Instance,
}
WORDS = st.text(alphabet="abcXYZ0-./é\n", max_size=6)
NAMES = st.sampled_from("abcdef")
TIMES = st.sampled_from(
    ["1970-01-01T00:00:00Z", "2026-06-20T09:00:04.25Z", "2026-06-20T11:00:04+02:00"]
)
NUMBERS_OR_WORDS: st.SearchStrategy[JsonValue] = st.one_of(st.integers(-5, 70000), WORDS)
AMOUNTS: list[JsonValue] = [0, -3, 2**63 - 1, "2Gi", "2048Mi", "+.5e-3", "1e1.5", "100n"]
QUANTITIES = st.sampled_from(AMOUNTS)


def obj(found: JsonValue) -> JsonObject:
    assert isinstance(found, dict)
    return found


def values(schema: JsonObject) -> st.SearchStrategy[JsonValue]:
    """Everything a structural schema allows, small."""
    if "anyOf" in schema:
        return QUANTITIES if "pattern" in schema else NUMBERS_OR_WORDS
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


def arrays(schema: JsonObject) -> st.SearchStrategy[JsonValue]:
    least = schema.get("minItems", 0)
    assert isinstance(least, int)
    element = values(obj(schema["items"]))
    if schema.get("x-kubernetes-list-type") != "map":
        return st.lists(element, min_size=least, max_size=2).map(lambda found: [*found])
    named = st.tuples(element, NAMES).map(lambda pair: obj(pair[0]) | {"name": pair[1]})
    unique = st.lists(named, min_size=least, max_size=2, unique_by=lambda found: str(found["name"]))
    return unique.map(lambda found: [*found])


def objects(schema: JsonObject) -> st.SearchStrategy[JsonValue]:
    if "additionalProperties" in schema:
        entries = values(obj(schema["additionalProperties"]))
        return st.dictionaries(WORDS, entries, max_size=2).map(lambda found: {**found})
    required = schema.get("required", [])
    assert isinstance(required, list)
    fields = {name: values(obj(field)) for name, field in obj(schema["properties"]).items()}
    must = {name: field for name, field in fields.items() if name in required}
    may = {name: field for name, field in fields.items() if name not in required}
    return st.fixed_dictionaries(must, optional=may).map(lambda found: {**found})


def documents(kind: str, schema: JsonObject) -> st.SearchStrategy[JsonObject]:
    properties = obj(schema["properties"])
    required = schema.get("required", [])
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
    ).map(lambda found: head | found)


# The whole schema is generated, which is slow to draw and worth it.
THOROUGH = settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
WRONG: list[JsonValue] = [None, True, 1, 1.5, "x", [], {}, [{}], {"x": []}]


@pytest.mark.parametrize("kind", MODELS)
@given(data=st.data())
@THOROUGH
def test_an_object_valid_under_the_crd_survives_the_model_unchanged(
    kind: str,
    schemas: dict[str, JsonObject],
    schema_errors: Callable[[JsonObject], list[str]],
    data: st.DataObject,
) -> None:
    document = data.draw(documents(kind, schemas[kind]))
    assert schema_errors(document) == []
    model = MODELS[kind]
    read = model.read(document)
    # To the letter: `8080` and `"8080"` are equal to nobody.
    assert json.dumps(read.to_document(), sort_keys=True) == json.dumps(document, sort_keys=True)
    assert model.read_json(json.dumps(document)) == read
    assert model.build(read.to_document()) == read


@pytest.mark.parametrize("kind", MODELS)
@given(data=st.data())
@THOROUGH
def test_what_a_model_takes_is_valid_under_the_crd_and_the_rest_is_one_typed_error(
    kind: str,
    schemas: dict[str, JsonObject],
    schema_errors: Callable[[JsonObject], list[str]],
    data: st.DataObject,
) -> None:
    document = data.draw(documents(kind, schemas[kind]))
    broken = replaced(document, data.draw(st.sampled_from(WRONG)), data)
    with suppress(MalformedObjectError):
        read = MODELS[kind].read(broken)
        assert schema_errors(read.to_document()) == []


def replaced(found: JsonValue, wrong: JsonValue, data: st.DataObject) -> JsonValue:
    """The document with a wrong value in one place."""
    if isinstance(found, dict) and found:
        key = data.draw(st.sampled_from(sorted(found)))
        return {**found, key: replaced_here_or_below(found[key], wrong, data)}
    if isinstance(found, list) and found:
        index = data.draw(st.integers(0, len(found) - 1))
        below = replaced_here_or_below(found[index], wrong, data)
        return [*found[:index], below, *found[index + 1 :]]
    return wrong


def replaced_here_or_below(found: JsonValue, wrong: JsonValue, data: st.DataObject) -> JsonValue:
    return wrong if data.draw(st.booleans()) else replaced(found, wrong, data)
