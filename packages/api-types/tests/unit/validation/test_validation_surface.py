from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from compute_api_types import validation
from compute_api_types.crd import derive_crds
from compute_api_types.v1alpha.workload import Workload
from compute_api_types.validation import denial
from compute_api_types.validation.shape import WORKLOAD, Elements, Entries, Fields, Scalar, Shape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compute_api_types.validation import Json


def test_the_exports_are_the_public_names() -> None:
    public = {
        name
        for name, value in vars(validation).items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and name != "annotations"
    }
    assert public == set(validation.__all__)
    assert len(validation.__all__) == len(public)


def test_a_refusal_names_the_kind_of_the_models() -> None:
    assert Workload.RESOURCE.group == denial.GROUP
    assert Workload.RESOURCE.kind == denial.KIND


def members(value: Json) -> Mapping[str, Json]:
    assert isinstance(value, Mapping)
    return value


def schema_of_workloads() -> Mapping[str, Json]:
    for document in derive_crds():
        spec = members(document["spec"])
        if members(spec["names"])["kind"] == "Workload":
            versions = spec["versions"]
            assert isinstance(versions, list)
            return members(members(members(versions[0])["schema"])["openAPIV3Schema"])
    pytest.fail("there is no CRD of Workloads")


def disagreements(shape: Shape, schema: Mapping[str, Json], path: str) -> Iterator[str]:
    """Where the types that the rules expect are not those that an API server lets through."""
    expected: Mapping[Scalar, Mapping[str, Json]] = {
        Scalar.TEXT: {"type": "string"},
        Scalar.INTEGER: {"type": "integer", "format": "int32"},
        Scalar.QUANTITY: {"x-kubernetes-int-or-string": True},
    }
    if isinstance(shape, Scalar):
        if any(schema.get(name) != value for name, value in expected[shape].items()):
            yield path
    elif isinstance(shape, Fields):
        properties = members(schema.get("properties", {}))
        for name, inner in shape.fields.items():
            yield from disagreements(inner, members(properties[name]), f"{path}.{name}")
    else:
        inside = "additionalProperties" if isinstance(shape, Entries) else "items"
        yield from disagreements(shape.each, members(schema[inside]), f"{path}[]")


def test_the_types_the_rules_expect_are_those_of_the_schema() -> None:
    # An API server knows metadata by itself, a CRD does not describe it.
    spec = members(members(schema_of_workloads()["properties"])["spec"])
    assert list(disagreements(WORKLOAD.fields["spec"], spec, "spec")) == []


def test_named_lists_are_those_of_elements_with_a_name() -> None:
    def lists(shape: Shape, path: str) -> Iterator[tuple[str, bool]]:
        if isinstance(shape, Fields):
            for name, inner in shape.fields.items():
                yield from lists(inner, f"{path}.{name}" if path else name)
        elif isinstance(shape, Elements):
            named = not isinstance(shape.each, Fields) or "name" in shape.each.fields
            yield path, shape.named == named
            yield from lists(shape.each, path)

    assert {path for path, agrees in lists(WORKLOAD, "") if not agrees} == set()
