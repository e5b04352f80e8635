"""Canonical form of a run's objects, without UIDs, versions, generations, times and managers.

Two runs that end in the same state have equal canonical forms. UIDs are assigned in the order of
events and are part of hub namespace names, so each UID is replaced by the object it belongs to. How
often a spec was written is not state, but an outdated status is: `observedGeneration` is counted
relative to the object's generation, and in what Karmada gathers relative to the member's object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import orjson

from compute_api_types import labels
from compute_api_types.wire import JsonObject, JsonValue
from compute_sim_planes.history import Commit, History
from e2e.oracles.state import (
    DEFINITION,
    ObjectLocation,
    State,
    decode_definition,
    derive_bytes,
)
from e2e.world.objects import (
    annotations_of,
    generation_of,
    object_at,
    objects_at,
    text_at,
    uid_of,
)

_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_DROPPED: Final = frozenset({"uid", "resourceVersion", "generation", "managedFields", "selfLink"})
_OBSERVED: Final = frozenset({"observedGeneration", "schedulerObservedGeneration"})
# Assigned in the order of events: the generation noted on a copy, and the provider's addresses.
_TEMPLATE_GENERATION: Final = "resourcetemplate.karmada.io/generation"
_DRAWN: Final = {
    labels.PROJECT_GENERATION: "generation",
    _TEMPLATE_GENERATION: "generation",
    "networkIP": "address",
}
# Conditions that are written before their gate opens: each gate that opens later adds a generation.
_OF_GATES: Final = frozenset({"ReferencedDataReady"})
_OBSERVED_TEMPLATE: Final = "observedTemplateGeneration"
# Lists in which order has no meaning.
_SETS: Final = frozenset(
    {"conditions", "finalizers", "ownerReferences", "aggregatedStatus", "requiredBy"}
)
# Karmada's namespace on the hub for the Works of one cluster.
_EXECUTION_SPACE: Final = "karmada-es-"
# Records of events and leadership, not state.
RECORDS: Final = frozenset({"Event", "Lease"})


class Canonicalizer:
    """Replaces the identities of one run."""

    def __init__(self, history: History | None = None) -> None:
        self._names: dict[str, str] = {}
        for commit in () if history is None else history.of(Commit):
            if commit.after and not commit.before:
                uid = text_at(orjson.loads(commit.after), "metadata", "uid")
                self._names.setdefault(uid, f"{commit.plane} {commit.kind} {commit.key}")

    def text(self, text: str, depth: int = 3) -> str:
        """A text with every UID replaced by the object it belongs to; names may contain UIDs
        too.
        """
        if "-" not in text:
            return text  # neither a UID nor a time: most texts
        if depth == 0:
            return _UID.sub("<uid>", text)

        def replace(match: re.Match[str]) -> str:
            named = self._names.get(match[0])
            return "<uid>" if named is None else f"<{self.text(named, depth - 1)}>"

        return _TIME.sub("<time>", _UID.sub(replace, text))

    def location(self, location: ObjectLocation) -> ObjectLocation:
        return ObjectLocation(location.plane, location.kind, self.text(location.key))

    def value(self, raw: JsonValue, name: str = "", generation: int = 0) -> JsonValue:
        if isinstance(raw, dict):
            dropped = _DROPPED | _OBSERVED if str(raw.get("type")) in _OF_GATES else _DROPPED
            kept = {key: value for key, value in raw.items() if key not in dropped}
            return {self.text(key): self.value(kept[key], key, generation) for key in sorted(kept)}
        if isinstance(raw, list):
            listed = [self.value(one, generation=generation) for one in raw]
            return sorted(listed, key=orjson.dumps) if name in _SETS else listed
        if name in _OBSERVED and isinstance(raw, int):
            return raw - generation
        if name in _DRAWN:
            return f"<{_DRAWN[name]}>"
        return self.text(raw) if isinstance(raw, str) else raw


def derive_canonical_state(history: History) -> State:
    """The objects of all planes at the end, in canonical form."""
    canon = Canonicalizer(history)
    state: State = {}
    raws = derive_bytes(history)
    stored: State = {
        location: orjson.loads(raw)
        for location, raw in raws.items()
        if location.kind not in {DEFINITION, *RECORDS}
    }
    for location, raw in raws.items():
        if location.kind == DEFINITION:
            state[canon.location(location)] = _canonical_definition(raw)
    generations = {uid_of(one): generation_of(one) for one in stored.values()}
    for location, document in stored.items():
        # A copy has the conditions of its source, which count the generations of that.
        source = text_at(annotations_of(document), labels.INSTANCE_UID)
        generation = generations.get(source, generation_of(document))
        for gathered, member in _gathered(location, document):
            if member in stored:
                _count_from(gathered, generation_of(stored[member]))
                _count_template(gathered, stored[member])
        _count_template(object_at(document, "status"), document)
        value = canon.value(document, generation=generation)
        state[canon.location(location)] = value if isinstance(value, dict) else {}
    return state


@lru_cache(maxsize=512)
def _canonical_definition(raw: bytes) -> JsonObject:
    """The canonical form of a CRD, which names no other object."""
    document = decode_definition(raw)
    value = Canonicalizer().value(document, generation=generation_of(document))
    return value if isinstance(value, dict) else {}


def _gathered(
    location: ObjectLocation, document: JsonObject
) -> Iterator[tuple[JsonObject, ObjectLocation]]:
    """Statuses of members in an object of Karmada, each with the object that it was read from."""
    status = object_at(document, "status")
    if location.kind == "ResourceBinding":
        resource = object_at(document, "spec", "resource")
        for one in objects_at(status, "aggregatedStatus"):
            yield object_at(one, "status"), _member(text_at(one, "clusterName"), resource)
    elif location.kind == "Work":
        cluster = location.namespace.removeprefix(_EXECUTION_SPACE)
        for one in objects_at(status, "manifestStatuses"):
            yield object_at(one, "status"), _member(cluster, object_at(one, "identifier"))


def _member(plane: str, reference: JsonObject) -> ObjectLocation:
    namespace, name = text_at(reference, "namespace"), text_at(reference, "name")
    key = f"{namespace}/{name}" if namespace else name
    return ObjectLocation(plane, text_at(reference, "kind"), key)


def _count_from(status: JsonObject, generation: int) -> None:
    """Counts the observed generations of a status from this one, in place."""
    for part in (status, *objects_at(status, "conditions")):
        for name in _OBSERVED & part.keys():
            observed = part[name]
            if isinstance(observed, int):
                part[name] = f"generation {observed - generation:+}"


def _count_template(status: JsonObject, document: JsonObject) -> None:
    """Counts the observed generation of Karmada's template from that of the object, in place."""
    observed = status.get(_OBSERVED_TEMPLATE)
    noted = text_at(annotations_of(document), _TEMPLATE_GENERATION)
    if isinstance(observed, int) and noted.isdigit():
        status[_OBSERVED_TEMPLATE] = f"generation {observed - int(noted):+}"


def shorten(document: JsonObject) -> str:
    """A document for a message."""
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS).decode()[:400]
