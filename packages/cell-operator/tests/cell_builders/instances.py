"""One Instance with its quota result and network, as observed; a test changes one field of it."""

from __future__ import annotations

from typing import Final

from compute_api_types.v1alpha.instance import InstanceStatus
from compute_cell_operator.conditions import ReportedCondition
from compute_cell_operator.instance.observe import ObservedInstance
from compute_cell_operator.instance_facts import read_instance
from compute_cell_operator.planes import CELL, INSTANCE
from compute_cell_operator.quota.result import ClaimGranted, ClaimState
from compute_operator_kit.core.json import Json, JsonObject, decode_json_object
from compute_operator_kit.core.objects import parse_object

NS: Final = "ns-6a1f1c1e-3f6c-4a44-9a52-0c2f9f3b7a10"
BORN: Final = "2026-06-20T09:00:00Z"
SINCE: Final = "2026-06-20T09:00:05Z"
GRANTED: Final = ClaimGranted("granted by milo")


def a_condition(
    kind: str, status: str, reason: str, message: str = "", generation: int | None = 1
) -> JsonObject:
    entry: JsonObject = {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": SINCE,
    }
    return entry if generation is None else {**entry, "observedGeneration": generation}


PROGRAMMED: Final = a_condition("Programmed", "True", "Programmed")
AVAILABLE: Final = a_condition("Available", "True", "Available")
QUOTA: Final = a_condition("QuotaGranted", "True", "QuotaAvailable", "granted by milo")


def the_schema_defaults() -> tuple[JsonObject, ...]:
    """The four conditions that the schema gives to a new Instance."""
    raw = InstanceStatus.defaulted().model_dump_json(by_alias=True, exclude_none=True)
    entries = decode_json_object(raw.encode())["conditions"]
    assert isinstance(entries, list)
    return tuple(entry for entry in entries if isinstance(entry, dict))


def an_instance_seen(
    *entries: Json,
    gates: tuple[str, ...] | None = (),
    state: ClaimState = GRANTED,
    refusal: ReportedCondition | None = None,
    generation: int = 1,
    terminating: bool = False,
    finalizers: tuple[str, ...] = (),
    owner: str = "WorkloadDeployment",
    born: str = BORN,
    status: JsonObject | None = None,
) -> ObservedInstance:
    """An Instance with these conditions; `gates` None is one without `spec.controller`."""
    metadata: JsonObject = {
        "name": "web-0",
        "namespace": NS,
        "uid": "i-1",
        "resourceVersion": "7",
        "generation": generation,
        "creationTimestamp": born,
        "finalizers": list(finalizers),
        "ownerReferences": [
            {"apiVersion": "v", "kind": owner, "name": "web", "uid": "d-1", "controller": True}
        ],
    }
    if terminating:
        metadata["deletionTimestamp"] = SINCE
    named: list[Json] = [{"name": gate} for gate in gates or ()]
    spec: JsonObject = {} if gates is None else {"controller": {"schedulingGates": named}}
    body: JsonObject = {
        "metadata": metadata,
        "spec": spec,
        "status": {**(status or {}), "conditions": list(entries)},
    }
    snapshot = parse_object(CELL, INSTANCE, body, None).snapshot
    return ObservedInstance(read_instance(snapshot, snapshot.decode()), state, refusal)
