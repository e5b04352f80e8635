"""The state of all planes as canonical text, to compare two runs.

Runs of one scenario end in the same state although UIDs, versions and times differ; those fields
are removed. All of them are listed here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from compute_sim_planes.json_types import JsonObject, JsonValue

# Identity that differs between equal runs.
_VOLATILE_METADATA: Final = frozenset(
    {"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "managedFields"}
)
_VOLATILE_FIELDS: Final = frozenset(
    {"lastTransitionTime", "lastTimestamp", "firstTimestamp", "eventTime", "renewTime", "uid"}
)
# Lists without a meaningful order, by field name.
_UNORDERED: Final = frozenset({"conditions", "finalizers", "ownerReferences", "schedulingGates"})


def canonical_state(planes: Mapping[str, list[JsonObject]]) -> bytes:
    """The objects of all planes, sorted, without fields that differ between equal runs."""
    lines = [
        json.dumps([plane, _canonical(document)], sort_keys=True)
        for plane, objects in planes.items()
        for document in objects
    ]
    return "\n".join(sorted(lines)).encode()


def _canonical(value: JsonValue, field_name: str = "") -> JsonValue:
    if isinstance(value, dict):
        dropped = _VOLATILE_METADATA if field_name == "metadata" else _VOLATILE_FIELDS
        return {key: _canonical(inner, key) for key, inner in value.items() if key not in dropped}
    if isinstance(value, list):
        items = [_canonical(item) for item in value]
        if field_name in _UNORDERED:
            return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))
        return items
    return value
