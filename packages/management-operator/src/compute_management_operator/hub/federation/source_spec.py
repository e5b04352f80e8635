"""The spec of a project deployment as its hub copy has it. Pure (autoscaling.md 2).

The number that an autoscaler writes belongs to a cell alone: copied from a project it would reset
every city. Karmada converts what the interpreter returns for an autoscaled deployment, and some
characters in the key of a map have a meaning to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from compute_operator_kit.core.json import (
    Encoded,
    Json,
    JsonObject,
    JsonValue,
    UndecodableError,
    decode_json_object,
    member_list,
    member_object,
)

UNUSABLE: Final = frozenset("|#@*?")
NUMBER: Final = "replicas"
_NUMBER: Final = b'"replicas"'
_LIMIT: Final = b'"maxReplicas"'


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """The spec to copy, and why it cannot be delivered; "" where it can."""

    document: JsonValue
    refusal: str = ""


def read_source_spec(raw: bytes) -> SourceSpec:
    """Nearly always the bytes as they were served; decoded only where one of two words occurs."""
    if _NUMBER not in raw and _LIMIT not in raw:
        return SourceSpec(Encoded(raw or b"{}"))
    try:
        spec = decode_json_object(raw)
    except UndecodableError:
        return SourceSpec(Encoded(raw))
    document: JsonValue = Encoded(raw)
    if NUMBER in spec:
        document = {name: value for name, value in spec.items() if name != NUMBER}
    return SourceSpec(document, _find_refusal(spec))


def is_autoscaled(spec: JsonObject) -> bool:
    settings = member_object(spec, "scaleSettings")
    return settings.get("maxReplicas") is not None and bool(member_list(settings, "metrics"))


def _find_refusal(spec: JsonObject) -> str:
    if not is_autoscaled(spec):
        return ""
    first = next(_unusable(member_object(spec, "template"), "spec.template"), None)
    if first is None:
        return ""
    key, path = first
    return f'autoscaling cannot be used with the map key "{key}" at {path}'


def _unusable(value: Json, path: str) -> Iterator[tuple[str, str]]:
    """Keys that Karmada cannot convert, with the path of their map."""
    if isinstance(value, list):
        for position, entry in enumerate(value):
            yield from _unusable(entry, f"{path}[{position}]")
    elif isinstance(value, dict):
        for key, entry in sorted(value.items()):
            if UNUSABLE & set(key):
                yield key, path
            yield from _unusable(entry, f"{path}.{key}")
