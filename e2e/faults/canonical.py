"""Objects without what differs from run to run: identities, versions, generations, times, managers.

How often a spec was written is no state; how far behind it an observer is, is: `observedGeneration`
is counted from the object's own generation.

UIDs are drawn in the order of events, and names of hub namespaces are made of them, so every UID
that a run gave out is replaced by what it stands for; then two runs that ended alike read alike.
"""

from __future__ import annotations

import re
from typing import Final

import orjson

from compute_api_types import labels
from compute_api_types.wire import JsonObject, JsonValue
from compute_sim_planes.history import Commit, History
from e2e.faults.state import Spot, State, derive_state
from e2e.objects import generation_of, text_at

_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_DROPPED: Final = frozenset({"uid", "resourceVersion", "generation", "managedFields", "selfLink"})
_OBSERVED: Final = "observedGeneration"
# Given out in the order of events: a copy's note of a generation, and the provider's addresses.
_DRAWN: Final = {labels.PROJECT_GENERATION: "generation", "networkIP": "address"}
# Lists that are sets: whoever came first stands first.
_SETS: Final = frozenset({"conditions", "finalizers", "ownerReferences", "aggregatedStatus"})
# They tell what happened and who leads, not how things are.
RECORDS: Final = frozenset({"Event", "Lease"})


class Canon:
    """The canonical words of one run."""

    def __init__(self, history: History) -> None:
        self._names: dict[str, str] = {}
        for commit in history.of(Commit):
            if commit.after:
                uid = text_at(orjson.loads(commit.after), "metadata", "uid")
                self._names.setdefault(uid, f"{commit.plane} {commit.kind} {commit.key}")

    def text(self, text: str, depth: int = 3) -> str:
        """A text with every identity replaced by whom it means; names may hold identities too."""
        if depth == 0:
            return _UID.sub("<uid>", text)

        def replace(found: re.Match[str]) -> str:
            named = self._names.get(found[0])
            return "<uid>" if named is None else f"<{self.text(named, depth - 1)}>"

        return _TIME.sub("<time>", _UID.sub(replace, text))

    def spot(self, spot: Spot) -> Spot:
        return Spot(spot.plane, spot.kind, self.text(spot.key))

    def value(self, found: JsonValue, name: str = "", generation: int = 0) -> JsonValue:
        if isinstance(found, dict):
            kept = {key: value for key, value in found.items() if key not in _DROPPED}
            return {self.text(key): self.value(kept[key], key, generation) for key in sorted(kept)}
        if isinstance(found, list):
            listed = [self.value(one, generation=generation) for one in found]
            return sorted(listed, key=orjson.dumps) if name in _SETS else listed
        if name == _OBSERVED and isinstance(found, int):
            return found - generation
        if name in _DRAWN:
            return f"<{_DRAWN[name]}>"
        return self.text(found) if isinstance(found, str) else found


def derive_canonical_state(history: History) -> State:
    """What the planes held at the end, in canonical words."""
    canon = Canon(history)
    found: State = {}
    for spot, document in derive_state(history).items():
        if spot.kind not in RECORDS:
            value = canon.value(document, generation=generation_of(document))
            found[canon.spot(spot)] = value if isinstance(value, dict) else {}
    return found


def shorten(found: JsonObject) -> str:
    """A document for a message."""
    return orjson.dumps(found, option=orjson.OPT_SORT_KEYS).decode()[:400]
