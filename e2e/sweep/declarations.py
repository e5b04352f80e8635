"""Workloads drawn from the schema of their CRD, and one step from a Workload to the next.

A leaf of the schema is drawn by its type unless the table below gives it values of its own, or
leaves it out with a reason. A field that is added to the schema is drawn from then on, so that a
field which no test knows cannot be forgotten on the way to an Instance.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache
from typing import Final

from compute_api_types.crd import derive_crds
from compute_api_types.wire import JsonObject, JsonValue
from e2e.world.documents import IMAGE, INSTANCE_TYPE, NETWORK_NAME
from e2e.world.kinds import WORKLOAD
from e2e.world.objects import object_at, objects_at, text_at, texts_at

CITIES: Final = ("DFW", "ORD")
NAMES: Final = ("alpha", "beta", "gamma")
_WORDS: Final = ("a", "b-1", "some text", "0", "x" * 40)

_TEMPLATE: Final = "template.spec"
_CONTAINER: Final = f"{_TEMPLATE}.runtime.sandbox.containers.[]"
# Leaves with a meaning of their own, by their path in the spec.
MEANT: Final[Mapping[str, tuple[JsonValue, ...]]] = {
    "placements.[].cityCodes": (["DFW"], ["ORD"], ["DFW", "ORD"]),
    "placements.[].scaleSettings.minReplicas": (1, 2),
    "placements.[].scaleSettings.instanceManagementPolicy": ("OrderedReady",),
    f"{_TEMPLATE}.runtime.resources.instanceType": (INSTANCE_TYPE,),
    f"{_TEMPLATE}.networkInterfaces": ([{"network": {"name": NETWORK_NAME}}],),
    f"{_CONTAINER}.image": tuple(f"{IMAGE}:{major}.0" for major in range(1, 5)),
    f"{_CONTAINER}.ports.[].protocol": ("TCP", "UDP"),
    "template.metadata.labels": ({}, {"team": "shop"}, {"team": "web", "tier": "front"}),
    "template.metadata.annotations": ({}, {"example.net/note": "one"}),
}
# Leaves that are left out, and why.
OMITTED: Final[Mapping[str, str]] = {
    "placements.[].scaleSettings.maxReplicas": "autoscaling is a component, swept by its story",
    "placements.[].scaleSettings.metrics": "autoscaling is a component, swept by its story",
    "template.metadata.name": "an Instance has the name of its slot",
    "template.metadata.namespace": "an Instance is in the namespace of its deployment",
    "template.metadata.finalizers": "admission refuses them",
    f"{_TEMPLATE}.location": "the platform sets it",
    f"{_TEMPLATE}.controller": "the platform sets it",
    f"{_TEMPLATE}.runtime.virtualMachine": "a template has a sandbox or a machine",
    f"{_TEMPLATE}.runtime.resources.requests": "the instance type has the size",
    f"{_TEMPLATE}.runtime.sandbox.imagePullSecrets": "referenced data, swept by its story",
    f"{_TEMPLATE}.volumes": "referenced data, swept by its story",
    f"{_CONTAINER}.env.[].valueFrom": "referenced data, swept by its story",
    f"{_CONTAINER}.envFrom": "referenced data, swept by its story",
    f"{_CONTAINER}.volumeAttachments": "they attach volumes",
    f"{_CONTAINER}.resources": "the instance type has the size",
}
# Parts of a spec that one step draws anew.
PARTS: Final = (
    ("placements",),
    ("template", "metadata"),
    ("template", "spec", "runtime", "sandbox", "containers"),
)


class Declarer:
    """Draws specs of Workloads; the same seed draws the same ones."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(f"{seed}/declarations")  # noqa: S311 -- nothing secret

    def first(self) -> JsonObject:
        """A spec with every part drawn."""
        value = self._draw(workload_schema(), "")
        assert isinstance(value, dict)
        value["placements"] = _without_repeated_cities(objects_at(value, "placements"))
        return value

    def next(self, spec: JsonObject) -> JsonObject:
        """The spec with one part drawn anew, until it differs."""
        while True:
            fresh, after = self.first(), _copy(spec)
            *parents, last = self._chance.choice(PARTS)
            source, target = object_at(fresh, *parents), object_at(after, *parents)
            if last in source:
                target[last] = source[last]
            else:
                target.pop(last, None)
            if after != spec:
                return after

    def _draw(self, schema: JsonObject, path: str) -> JsonValue:
        if path in MEANT:
            return _copy_value(self._chance.choice(MEANT[path]))
        match schema.get("type"):
            case "object":
                return self._draw_object(schema, path)
            case "array":
                return self._draw_array(schema, path)
            case "integer":
                least, most = schema.get("minimum", 0), schema.get("maximum", 100)
                assert isinstance(least, int)
                assert isinstance(most, int)
                return self._chance.randint(least, most)
            case "boolean":
                return self._chance.choice((True, False))
            case _:
                words = NAMES if path.endswith(".name") else _WORDS
                return self._chance.choice(words)

    def _draw_object(self, schema: JsonObject, path: str) -> JsonObject:
        required = schema.get("required", [])
        assert isinstance(required, list)
        drawn: JsonObject = {}
        for name, inner in object_at(schema, "properties").items():
            within = f"{path}.{name}".removeprefix(".")
            is_wanted = name in required or within in _PARENTS or self._chance.random() < 0.5
            if within not in OMITTED and is_wanted and isinstance(inner, dict):
                drawn[name] = self._draw(inner, within)
        return drawn

    def _draw_array(self, schema: JsonObject, path: str) -> JsonValue:
        element, least = object_at(schema, "items"), schema.get("minItems", 0)
        assert isinstance(least, int)
        drawn = [self._draw(element, f"{path}.[]") for _ in range(self._chance.randint(least, 2))]
        if schema.get("x-kubernetes-list-type") != "map":
            return drawn
        # The keys of such a list are unique.
        by_name = {text_at(one, "name"): one for one in drawn if isinstance(one, dict)}
        return list[JsonValue](by_name.values())


def _without_repeated_cities(placements: list[JsonObject]) -> list[JsonValue]:
    """A city is in one placement; one that is left without a city goes."""
    taken: set[str] = set()
    kept: list[JsonValue] = []
    for placement in placements:
        cities = [city for city in texts_at(placement, "cityCodes") if city not in taken]
        taken.update(cities)
        if cities:
            kept.append({**placement, "cityCodes": [*cities]})
    return kept


# Objects around what a step draws anew, which must be there.
_PARENTS: Final = frozenset(
    ".".join(part[:length]) for part in PARTS for length in range(1, len(part) + 1)
)


@cache
def workload_schema() -> JsonObject:
    """The schema of a Workload's spec, as the CRD has it."""
    for document in derive_crds():
        if text_at(document, "spec", "names", "kind") == WORKLOAD.name:
            version = objects_at(document, "spec", "versions")[0]
            return object_at(version, "schema", "openAPIV3Schema", "properties", "spec")
    raise LookupError("finding the schema of Workloads: there is no such CRD")


def list_paths(schema: JsonObject, path: str = "") -> list[str]:
    """Every path of a schema, as the tables above spell them."""
    paths = [path] if path else []
    for name, inner in object_at(schema, "properties").items():
        if isinstance(inner, dict):
            paths += list_paths(inner, f"{path}.{name}".removeprefix("."))
    items = object_at(schema, "items")
    return [*paths, *(list_paths(items, f"{path}.[]") if items else [])]


def _copy(document: JsonObject) -> JsonObject:
    return {name: _copy_value(value) for name, value in document.items()}


def _copy_value(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return _copy(value)
    return [_copy_value(one) for one in value] if isinstance(value, list) else value
