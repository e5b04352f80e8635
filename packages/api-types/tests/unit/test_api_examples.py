"""The examples of docs/spec/api.md 17, taken from the page itself."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from compute_api_types.model import Model
from compute_api_types.v1alpha.instance import Instance
from compute_api_types.v1alpha.workload import Workload
from compute_api_types.wire import JsonObject, JsonValue

PAGE = Path(__file__).parents[4] / "docs" / "spec" / "api.md"


def examples() -> list[JsonObject]:
    section = PAGE.read_text("utf-8").split("## 17. Examples")[1]
    return [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", section, re.DOTALL)]


def with_defaults(schema: JsonValue, found: JsonValue) -> JsonValue:
    """What an API server makes of an object before it validates it."""
    if isinstance(schema, dict) and isinstance(found, dict):
        fields = obj(schema.get("properties", {}))
        filled = {
            name: obj(field)["default"] for name, field in fields.items() if "default" in obj(field)
        }
        complete = {**filled, **found}
        return {name: with_defaults(fields.get(name), each) for name, each in complete.items()}
    if isinstance(schema, dict) and isinstance(found, list):
        return [with_defaults(schema.get("items"), element) for element in found]
    return found


def obj(found: JsonValue) -> JsonObject:
    assert isinstance(found, dict)
    return found


def test_there_are_two_examples() -> None:
    assert [each["kind"] for each in examples()] == ["Workload", "Instance"]


@pytest.mark.parametrize(("index", "model"), [(0, Workload), (1, Instance)])
def test_an_example_survives_reading_building_and_writing(index: int, model: type[Model]) -> None:
    example = examples()[index]
    assert model.read(example).to_document() == example
    assert model.build(example).to_document() == example
    assert model.read_json(json.dumps(example)).to_document() == example


@pytest.mark.parametrize("index", [0, 1])
def test_an_example_is_valid_against_the_schema_once_defaults_are_filled_in(
    index: int,
    schemas: dict[str, JsonObject],
    schema_errors: Callable[[JsonObject], list[str]],
) -> None:
    example = examples()[index]
    filled = with_defaults(schemas[str(example["kind"])], example)
    assert isinstance(filled, dict)
    assert schema_errors(filled) == []


def test_defaults_fill_what_the_first_example_leaves_out(schemas: dict[str, JsonObject]) -> None:
    workload = Workload.read(with_defaults(schemas["Workload"], examples()[0]))
    assert workload.spec.placements[0].scale_settings.instance_management_policy == "OrderedReady"
    assert workload.status is not None
    assert workload.status.observed_generation == 0
