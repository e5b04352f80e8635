"""Documents without what must not leave a plane: values of env and annotations, arguments, data.

Names stay, because a diagnosis needs them; values that may hold secrets go. The hash of a template
is kept beside the redacted one, so that a saved directory gives the same answer as the planes.
"""

from __future__ import annotations

from typing import Final

from compute_api_types.template_hash import derive_template_hash
from compute_api_types.wire import JsonObject, JsonValue
from compute_kubectl.snapshot.decode_compute import DIAGNOSTICS, TEMPLATE_HASH
from compute_kubectl.snapshot.decode_metadata import KEPT_ANNOTATIONS
from compute_kubectl.snapshot.json_reads import objects_at, value_at

_DROPPED: Final = frozenset({"data", "stringData", "binaryData", "args", "command"})
# Of a Pod nothing but metadata and status is kept.
_WITHOUT_SPEC: Final = frozenset({"Pod"})


def redact(document: JsonObject) -> JsonObject:
    """A copy of the document that may be saved and sent to others."""
    template = value_at(document, "spec", "template")
    redacted = {
        key: _redact(key, value)
        for key, value in document.items()
        if key not in _DROPPED and not (key == "spec" and document.get("kind") in _WITHOUT_SPEC)
    }
    if isinstance(template, dict) and DIAGNOSTICS not in redacted:
        redacted[DIAGNOSTICS] = {TEMPLATE_HASH: derive_template_hash(template)}
    return redacted


def _redact(key: str, value: JsonValue) -> JsonValue:
    if key == "annotations" and isinstance(value, dict):
        return {name: one if name in KEPT_ANNOTATIONS else "" for name, one in value.items()}
    if key == "env":
        return [{"name": one.get("name")} for one in objects_at({key: value}, key)]
    if key == "fieldsV1" and isinstance(value, dict):
        return {part: {} for part in value}
    if isinstance(value, dict):
        return {name: _redact(name, one) for name, one in value.items() if name not in _DROPPED}
    if isinstance(value, list):
        return [_redact("", one) for one in value]
    return value
