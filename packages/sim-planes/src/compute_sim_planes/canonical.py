"""The state of a world in one canonical text: equal bytes, equal worlds.

Two runs of one scenario end in the same world although UIDs, versions and times differ; this is
what is left when those are taken away. What may be taken away is listed here and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from compute_sim_planes.json_types import JsonObject, JsonValue

# Identity that differs from run to run although nothing that matters does.
_VOLATILE_METADATA: Final = frozenset(
    {"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "managedFields"}
)
_VOLATILE_FIELDS: Final = frozenset(
    {"lastTransitionTime", "lastTimestamp", "firstTimestamp", "eventTime", "renewTime", "uid"}
)
# Lists whose order means nothing, by the field they stand in.
_UNORDERED: Final = frozenset({"conditions", "finalizers", "ownerReferences", "schedulingGates"})


def canonical_state(planes: Mapping[str, list[JsonObject]]) -> bytes:
    """The objects of all planes, sorted, without what differs from run to run."""
    lines = [
        json.dumps([plane, _canonical(found)], sort_keys=True)
        for plane, objects in planes.items()
        for found in objects
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
