"""O10: what a status says is so, its times tell when it became so, and it names nothing of ours.

Looked at in every version that an operator wrote. Copies (the mirror of a deployment, a projection,
a write-back) may skip states of what they copy and carry its times, whole seconds as they are; so
transition times are judged at their source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import orjson

from compute_api_types.wire import JsonObject
from compute_sim_planes.history import Commit, History, Request
from compute_sim_planes.oracles import Violation
from e2e.faults.layout import Layout
from e2e.faults.state import Spot, spot_of
from e2e.objects import generation_of, is_deleting, object_at, objects_at, text_at, value_at

# "…or changed within the pass that is under way": a pass that began before an edit may still tell
# of what it saw, and what the next one corrects at once was such a pass.
UNDER_WAY: Final = timedelta(seconds=1)
# What somebody did shows within this; later a condition must not move by itself.
EFFECT: Final = timedelta(seconds=60)
KINDS: Final = frozenset({"Workload", "WorkloadDeployment", "Instance"})
# Words of ours that a user cannot act on; "operator" and "hub" as words, not as parts of names.
_INTERNAL: Final = re.compile(
    r"karmada|\bhub\b|management[- ]operator|cell[- ]operator|propagation ?polic", re.IGNORECASE
)


def truthful_status(
    history: History, layout: Layout, *, acts: Sequence[datetime] | None = None
) -> list[Violation]:
    """O10. `acts` are the moments at which somebody did anything, in a run without faults; a
    condition that goes and comes back without one is then a violation too.
    """
    writers = {
        request.number
        for request in history.of(Request)
        if layout.is_operator(request.caller.identity)
    }
    found: list[Violation] = []
    edited: dict[Spot, tuple[int, datetime]] = {}
    stale: dict[Spot, Violation] = {}
    for commit in history.of(Commit):
        if commit.kind not in KINDS or not commit.after:
            continue
        spot, after = spot_of(commit), _decode(commit.after)
        if edited.get(spot, (0, commit.at))[0] != generation_of(after):
            edited[spot] = (generation_of(after), commit.at)
        if commit.request in writers:
            found += [
                Violation("O10", commit.at, f"{spot}: {why}")
                for why in _judge(commit, after, layout)
            ]
            told = stale.pop(spot, None)
            if told is not None and commit.at - told.at > UNDER_WAY:
                found.append(told)
            if commit.at - edited[spot][1] > UNDER_WAY and _is_judged(commit, after, layout):
                for why in _stale(spot, after):
                    stale[spot] = Violation("O10", commit.at, why)
    found += stale.values()
    if acts is not None:
        found += _flaps(history, layout, acts)
    return found


def _decode(raw: bytes) -> JsonObject:
    document: JsonObject = orjson.loads(raw)
    return document


def _is_judged(commit: Commit, after: JsonObject, layout: Layout) -> bool:
    """A copy on the hub tells of the cell's generation, a deletion moves a number that nobody looks
    at any more, and a write that leaves the status alone says nothing new.
    """
    before = _decode(commit.before or b"{}")
    is_told = object_at(before, "status") != object_at(after, "status")
    return is_told and layout.side_of(commit.plane) != "hub" and not is_deleting(after)


def _judge(commit: Commit, after: JsonObject, layout: Layout) -> Iterator[str]:
    before = _decode(commit.before or b"{}")
    yield from _wrong_times(commit, before, after, layout)
    if layout.side_of(commit.plane) == "project":
        for condition in objects_at(after, "status", "conditions"):
            told = f"{text_at(condition, 'reason')} {text_at(condition, 'message')}"
            if _INTERNAL.search(told):
                yield f"{text_at(condition, 'type')} tells of our insides: {told!r}"


def _stale(spot: Spot, after: JsonObject) -> Iterator[str]:
    generation = generation_of(after)
    for condition in objects_at(after, "status", "conditions"):
        observed = value_at(condition, "observedGeneration")
        is_ready = (text_at(condition, "type"), text_at(condition, "status")) == ("Ready", "True")
        if is_ready and observed is not None and observed != generation:
            yield f"{spot}: Ready=True of generation {observed} at generation {generation}"


def _wrong_times(
    commit: Commit, before: JsonObject, after: JsonObject, layout: Layout
) -> Iterator[str]:
    if not _is_source(commit, layout):
        return
    earlier = {text_at(one, "type"): one for one in objects_at(before, "status", "conditions")}
    for condition in objects_at(after, "status", "conditions"):
        name = text_at(condition, "type")
        was = earlier.get(name)
        if was is None:
            continue
        has_changed = text_at(was, "status") != text_at(condition, "status")
        moved = text_at(was, "lastTransitionTime") != text_at(condition, "lastTransitionTime")
        if has_changed and not moved and not _is_now(condition, commit.at):
            yield f"{name} changed its status and kept its lastTransitionTime"
        if moved and not has_changed:
            yield f"{name} moved its lastTransitionTime and kept its status"


def _is_now(condition: JsonObject, moment: datetime) -> bool:
    """Times on the wire are whole seconds: two changes within one share theirs."""
    return text_at(condition, "lastTransitionTime") == moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _is_source(commit: Commit, layout: Layout) -> bool:
    side = layout.side_of(commit.plane)
    return side == "cell" or (side == "project" and commit.kind == "Workload")


def _flaps(history: History, layout: Layout, acts: Sequence[datetime]) -> Iterator[Violation]:
    """True, False and True again on a user's objects, nobody having done anything to cause it."""
    true_now: set[tuple[Spot, str]] = set()
    lost: dict[tuple[Spot, str], datetime] = {}
    for commit in history.of(Commit):
        if commit.kind not in KINDS or layout.side_of(commit.plane) != "project":
            continue
        document = _decode(commit.after or b"{}")
        for condition in objects_at(document, "status", "conditions"):
            key = (spot_of(commit), text_at(condition, "type"))
            if text_at(condition, "status") == "True":
                if key in lost and key not in true_now:
                    ended = lost.pop(key)
                    if not any(ended - EFFECT <= act <= ended for act in acts):
                        message = f"{key[0]}: {key[1]} went False at {ended} and came back"
                        yield Violation("O10", commit.at, message)
                true_now.add(key)
            elif key in true_now:
                true_now.discard(key)
                lost[key] = commit.at
