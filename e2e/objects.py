"""Objects as a scenario looks at them: short questions to plain documents.

Absence is an empty answer, so that a check reads as one line and fails by its own words. Nothing
here changes a document.
"""

from __future__ import annotations

from dataclasses import dataclass

from compute_api_types.wire import JsonObject, JsonValue


def value_at(found: JsonValue, *path: str) -> JsonValue:
    """What lies at a path of members; None where there is nothing."""
    for name in path:
        if not isinstance(found, dict):
            return None
        found = found.get(name)
    return found


def object_at(found: JsonValue, *path: str) -> JsonObject:
    value = value_at(found, *path)
    return value if isinstance(value, dict) else {}


def objects_at(found: JsonValue, *path: str) -> list[JsonObject]:
    value = value_at(found, *path)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def text_at(found: JsonValue, *path: str) -> str:
    value = value_at(found, *path)
    return value if isinstance(value, str) else ""


def texts_at(found: JsonValue, *path: str) -> list[str]:
    value = value_at(found, *path)
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def number_at(found: JsonValue, *path: str) -> int:
    value = value_at(found, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def name_of(found: JsonObject) -> str:
    return text_at(found, "metadata", "name")


def namespace_of(found: JsonObject) -> str:
    return text_at(found, "metadata", "namespace")


def uid_of(found: JsonObject) -> str:
    return text_at(found, "metadata", "uid")


def version_of(found: JsonObject) -> str:
    return text_at(found, "metadata", "resourceVersion")


def generation_of(found: JsonObject) -> int:
    return number_at(found, "metadata", "generation")


def labels_of(found: JsonObject) -> JsonObject:
    return object_at(found, "metadata", "labels")


def annotations_of(found: JsonObject) -> JsonObject:
    return object_at(found, "metadata", "annotations")


def finalizers_of(found: JsonObject) -> list[str]:
    return texts_at(found, "metadata", "finalizers")


def owners_of(found: JsonObject) -> list[JsonObject]:
    return objects_at(found, "metadata", "ownerReferences")


def is_deleting(found: JsonObject) -> bool:
    return bool(text_at(found, "metadata", "deletionTimestamp"))


def gates_of(instance: JsonObject) -> list[str]:
    entries = objects_at(instance, "spec", "controller", "schedulingGates")
    return [text_at(entry, "name") for entry in entries]


@dataclass(frozen=True, slots=True)
class Said:
    """What one condition says; all empty when there is none."""

    status: str = ""
    reason: str = ""
    message: str = ""
    since: str = ""

    @property
    def verdict(self) -> tuple[str, str]:
        return self.status, self.reason


def condition_of(found: JsonObject, condition_type: str) -> Said:
    for one in objects_at(found, "status", "conditions"):
        if text_at(one, "type") == condition_type:
            return Said(
                text_at(one, "status"),
                text_at(one, "reason"),
                text_at(one, "message"),
                text_at(one, "lastTransitionTime"),
            )
    return Said()


COUNTERS = (
    "replicas",
    "desiredReplicas",
    "readyReplicas",
    "currentReplicas",
    "updatedReplicas",
)


def counters_of(found: JsonObject) -> tuple[int, ...]:
    """The five counters of a WorkloadDeployment, in the order of `COUNTERS`."""
    return tuple(number_at(found, "status", name) for name in COUNTERS)


def without_generations(status: JsonObject) -> JsonObject:
    """A status whose conditions carry no observedGeneration, as a projection shows it."""
    conditions: list[JsonValue] = [
        {key: value for key, value in one.items() if key != "observedGeneration"}
        for one in objects_at(status, "conditions")
    ]
    return {**status, "conditions": conditions}
