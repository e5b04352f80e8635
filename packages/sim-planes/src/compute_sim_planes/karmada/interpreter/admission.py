"""The admission plugin of karmada-webhook: refuses a second script for one rule of one kind.

```python
hub.state.admission.reviewers.append(CustomizationReviewer(hub.state.store))
```
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import orjson

from compute_sim_planes.api_server.admission.chain import AdmissionRequest
from compute_sim_planes.api_server.admission.webhooks import refusal
from compute_sim_planes.api_server.kinds.kind import GroupResource
from compute_sim_planes.api_server.storage.store import Store
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, string_at
from compute_sim_planes.karmada.kinds import CUSTOMIZATIONS
from compute_sim_planes.karmada.metadata import name_of

WEBHOOK: Final = "resourceinterpretercustomization.karmada.io"
_RESOURCE: Final = GroupResource(CUSTOMIZATIONS.group, CUSTOMIZATIONS.plural)
# The name of each rule in the refusal; several customizations may give dependencies.
_OPERATIONS: Final = {
    "retention": "Retain",
    "replicaResource": "InterpretReplica",
    "replicaRevision": "ReviseReplica",
    "statusReflection": "InterpretStatus",
    "statusAggregation": "AggregateStatus",
    "healthInterpretation": "InterpretHealth",
}


class CustomizationReviewer:
    """The plugin of one hub."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def handles(self, request: AdmissionRequest) -> bool:
        return request.kind.group_resource == _RESOURCE and request.desired is not None

    async def review(self, request: AdmissionRequest) -> Sequence[str]:
        desired = request.desired or {}
        for stored in self._store.bucket(_RESOURCE).listed():
            existing: JsonValue = orjson.loads(stored.raw)
            conflict = find_conflict(existing if isinstance(existing, dict) else {}, desired)
            if conflict:
                raise refusal(WEBHOOK, {"code": 403, "reason": "Forbidden", "message": conflict})
        return ()


def find_conflict(existing: JsonObject, desired: JsonObject) -> str:
    """Why the two customizations conflict; empty when they do not. Pure."""
    is_same = name_of(existing) == name_of(desired)
    if is_same or object_at(existing, "spec", "target") != object_at(desired, "spec", "target"):
        return ""
    for rule, operation in _OPERATIONS.items():
        path = ("spec", "customizations", rule, "luaScript")
        if string_at(existing, *path) and string_at(desired, *path):
            return (
                f"conflicting with InterpreterOperation({operation}) of existing "
                f"ResourceInterpreterCustomization({name_of(existing)})"
            )
    return ""
