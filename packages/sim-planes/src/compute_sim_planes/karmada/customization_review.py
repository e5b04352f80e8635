"""What karmada-webhook refuses of interpreters: two that define one rule for one kind.

```python
hub.state.admission.reviewers.append(CustomizationReviewer(hub.state.store))
```
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import orjson

from compute_sim_planes.api_server.admission import AdmissionRequest
from compute_sim_planes.api_server.kinds import GroupResource
from compute_sim_planes.api_server.storage.store import Store
from compute_sim_planes.api_server.webhooks import refusal
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, string_at
from compute_sim_planes.karmada.kinds import CUSTOMIZATIONS
from compute_sim_planes.karmada.metadata import name_of

WEBHOOK: Final = "resourceinterpretercustomization.karmada.io"
_RESOURCE: Final = GroupResource(CUSTOMIZATIONS.group, CUSTOMIZATIONS.plural)
# What each rule is called in the refusal; dependencies may be told by many.
_OPERATIONS: Final = {
    "retention": "Retain",
    "replicaResource": "InterpretReplica",
    "replicaRevision": "ReviseReplica",
    "statusReflection": "InterpretStatus",
    "statusAggregation": "AggregateStatus",
    "healthInterpretation": "InterpretHealth",
}


class CustomizationReviewer:
    """Of one hub."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def concerns(self, request: AdmissionRequest) -> bool:
        return request.kind.group_resource == _RESOURCE and request.wanted is not None

    async def review(self, request: AdmissionRequest) -> Sequence[str]:
        wanted = request.wanted or {}
        for stored in self._store.bucket(_RESOURCE).listed():
            found: JsonValue = orjson.loads(stored.raw)
            conflict = find_conflict(found if isinstance(found, dict) else {}, wanted)
            if conflict:
                raise refusal(WEBHOOK, {"code": 403, "reason": "Forbidden", "message": conflict})
        return ()


def find_conflict(found: JsonObject, wanted: JsonObject) -> str:
    """Why both cannot be; empty when they can. Pure."""
    is_same = name_of(found) == name_of(wanted)
    if is_same or object_at(found, "spec", "target") != object_at(wanted, "spec", "target"):
        return ""
    for rule, operation in _OPERATIONS.items():
        path = ("spec", "customizations", rule, "luaScript")
        if string_at(found, *path) and string_at(wanted, *path):
            return (
                f"conflicting with InterpreterOperation({operation}) of existing "
                f"ResourceInterpreterCustomization({name_of(found)})"
            )
    return ""
