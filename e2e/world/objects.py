"""Read-only accessors for JSON documents of Kubernetes objects: metadata, conditions, counters.

A missing member gives an empty value, so that an assertion stays one line and fails with a
comparison instead of a KeyError.
"""

from __future__ import annotations

from dataclasses import dataclass

from compute_api_types.wire import JsonObject, JsonValue


def value_at(document: JsonValue, *path: str) -> JsonValue:
    """The value at a path of members, or None."""
    for name in path:
        if not isinstance(document, dict):
            return None
        document = document.get(name)
    return document


def object_at(document: JsonValue, *path: str) -> JsonObject:
    value = value_at(document, *path)
    return value if isinstance(value, dict) else {}


def objects_at(document: JsonValue, *path: str) -> list[JsonObject]:
    value = value_at(document, *path)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def text_at(document: JsonValue, *path: str) -> str:
    value = value_at(document, *path)
    return value if isinstance(value, str) else ""


def texts_at(document: JsonValue, *path: str) -> list[str]:
    value = value_at(document, *path)
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def number_at(document: JsonValue, *path: str) -> int:
    value = value_at(document, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def name_of(document: JsonObject) -> str:
    return text_at(document, "metadata", "name")


def namespace_of(document: JsonObject) -> str:
    return text_at(document, "metadata", "namespace")


def uid_of(document: JsonObject) -> str:
    return text_at(document, "metadata", "uid")


def version_of(document: JsonObject) -> str:
    return text_at(document, "metadata", "resourceVersion")


def generation_of(document: JsonObject) -> int:
    return number_at(document, "metadata", "generation")


def labels_of(document: JsonObject) -> JsonObject:
    return object_at(document, "metadata", "labels")


def annotations_of(document: JsonObject) -> JsonObject:
    return object_at(document, "metadata", "annotations")


def finalizers_of(document: JsonObject) -> list[str]:
    return texts_at(document, "metadata", "finalizers")


def owners_of(document: JsonObject) -> list[JsonObject]:
    return objects_at(document, "metadata", "ownerReferences")


def is_deleting(document: JsonObject) -> bool:
    return bool(text_at(document, "metadata", "deletionTimestamp"))


def gates_of(instance: JsonObject) -> list[str]:
    entries = objects_at(instance, "spec", "controller", "schedulingGates")
    return [text_at(entry, "name") for entry in entries]


@dataclass(frozen=True, slots=True)
class ConditionView:
    """Status, reason and message of one condition; all empty if the object does not have it."""

    status: str = ""
    reason: str = ""
    message: str = ""
    since: str = ""

    @property
    def status_and_reason(self) -> tuple[str, str]:
        return self.status, self.reason


def condition_of(document: JsonObject, condition_type: str) -> ConditionView:
    for one in objects_at(document, "status", "conditions"):
        if text_at(one, "type") == condition_type:
            return ConditionView(
                text_at(one, "status"),
                text_at(one, "reason"),
                text_at(one, "message"),
                text_at(one, "lastTransitionTime"),
            )
    return ConditionView()


COUNTERS = (
    "replicas",
    "desiredReplicas",
    "readyReplicas",
    "currentReplicas",
    "updatedReplicas",
)


def counters_of(document: JsonObject) -> tuple[int, ...]:
    """The five counters of a WorkloadDeployment, in the order of `COUNTERS`."""
    return tuple(number_at(document, "status", name) for name in COUNTERS)


def without_generations(status: JsonObject) -> JsonObject:
    """A status without the observedGeneration of its conditions, as a projection shows it."""
    conditions: list[JsonValue] = [
        {key: value for key, value in one.items() if key != "observedGeneration"}
        for one in objects_at(status, "conditions")
    ]
    return {**status, "conditions": conditions}
