"""Replaces the names and UIDs of a recording by those of a scenario. Pure.

The API server assigns new UIDs, so each recorded UID is replaced everywhere: in owner references,
in labels, and in the `ns-<uid>` names of namespaces.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from compute_api_types import labels
from compute_api_types.names import encode_cluster_name
from compute_api_types.wire import JsonObject, JsonValue
from e2e.world.objects import (
    annotations_of,
    finalizers_of,
    generation_of,
    labels_of,
    name_of,
    namespace_of,
    object_at,
    owners_of,
    uid_of,
)

RECORDED_NAMESPACE: Final = "default"
_CITY_KEYS: Final = ("cityCode", labels.TOPOLOGY_CITY_CODE, labels.CITY_CODE)
_NAMESPACE_KEYS: Final = ("namespace", labels.UPSTREAM_NAMESPACE)
_REFERENCES: Final = ("consumerRef", "resourceRef")
# Karmada writes these itself on objects that it claims.
_KARMADA: Final = "karmada.io/"


@dataclass(frozen=True, slots=True)
class Renaming:
    """Maps the recording's project, namespace and city; `uids` grows while objects are created."""

    project: str
    namespace: str
    city: str
    uids: dict[str, str] = field(default_factory=dict[str, str])

    def learn(self, recorded: JsonObject, made: JsonObject) -> None:
        self.uids[uid_of(recorded)] = uid_of(made)

    def to_create(self, recorded: JsonObject) -> JsonObject:
        """The document to POST, without the fields that the server or Karmada sets."""
        metadata: JsonObject = {"name": name_of(recorded)}
        members: JsonObject = {
            "namespace": namespace_of(recorded),
            "labels": _without_karmada(labels_of(recorded)),
            "annotations": _without_karmada(annotations_of(recorded)),
            "finalizers": [one for one in finalizers_of(recorded) if _KARMADA not in one],
            "ownerReferences": list[JsonValue](owners_of(recorded)),
        }
        metadata |= {key: value for key, value in members.items() if value}
        document = {key: value for key, value in recorded.items() if key != "status"}
        return self.rename_object({**document, "metadata": metadata})

    def to_status(self, recorded: JsonObject, made: JsonObject) -> JsonObject:
        """The recorded status, with the generation that the object has in this scenario."""
        status = self.rename_object(object_at(recorded, "status"))
        return object_at(_as_observed({"status": status}, generation_of(made)), "status")

    def rename_object(self, document: JsonObject) -> JsonObject:
        renamed = self._rename(document, "")
        return renamed if isinstance(renamed, dict) else {}

    def _rename(self, value: JsonValue, key: str) -> JsonValue:
        if isinstance(value, dict):
            members = {self._text(name): self._rename(one, name) for name, one in value.items()}
            return {**members, "name": self.project} if key in _REFERENCES else members
        if isinstance(value, list):
            inner = "cityCode" if key == "cityCodes" else ""
            return [self._rename(one, inner) for one in value]
        return self._word(value, key) if isinstance(value, str) else value

    def _word(self, text: str, key: str) -> str:
        if key in _CITY_KEYS:
            return self.city
        if key in _NAMESPACE_KEYS and text == RECORDED_NAMESPACE:
            return self.namespace
        if key == labels.UPSTREAM_CLUSTER_NAME:
            return encode_cluster_name(self.project).value
        return self._text(text)

    def _text(self, text: str) -> str:
        for recorded, made in self.uids.items():
            text = text.replace(recorded, made)
        return text


def _without_karmada(metadata: JsonObject) -> JsonObject:
    return {key: value for key, value in metadata.items() if _KARMADA not in key}


def _as_observed(value: JsonValue, generation: int) -> JsonValue:
    if isinstance(value, dict):
        return {
            key: generation if key == "observedGeneration" else _as_observed(one, generation)
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [_as_observed(one, generation) for one in value]
    return value
