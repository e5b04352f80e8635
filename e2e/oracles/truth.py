"""O10: a written status is true, its transition times are right, and it names no internals.

Every version written by an operator is evaluated. Copies (the mirror of a deployment, a projection,
a write-back) may skip states of their source and carry its times, so transition times are checked
at the source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import orjson

from compute_api_types import reasons
from compute_api_types.wire import JsonObject
from compute_sim_planes.history import Commit, History, Request
from compute_sim_planes.oracles.invariants import Violation
from e2e.oracles.layout import Layout
from e2e.oracles.state import ObjectLocation, location_of
from e2e.world.objects import generation_of, is_deleting, object_at, objects_at, text_at, value_at

# "…or changed within the pass that is under way": a reconcile that started before an edit may still
# report the old state, which the next reconcile corrects at once.
UNDER_WAY: Final = timedelta(seconds=1)
# An act of a user shows within this time; later a condition must not change by itself.
EFFECT: Final = timedelta(seconds=60)
KINDS: Final = frozenset({"Workload", "WorkloadDeployment", "Instance"})
# Words that a user cannot act on; "operator" and "hub" as whole words, not as parts of names.
_INTERNAL: Final = re.compile(
    r"karmada|\bhub\b|management[- ]operator|cell[- ]operator|propagation ?polic", re.IGNORECASE
)


def untruthful_statuses(
    history: History, layout: Layout, *, acts: Sequence[datetime] | None = None
) -> list[Violation]:
    """O10. `acts` are the times of all acts of users, for a run without faults; a condition that
    changes and changes back without an act is then a violation too.
    """
    writers = {
        request.number
        for request in history.of(Request)
        if layout.is_operator(request.caller.identity)
    }
    violations: list[Violation] = []
    edited: dict[ObjectLocation, tuple[int, datetime]] = {}
    stale: dict[ObjectLocation, Violation] = {}
    for commit in history.of(Commit):
        if commit.kind not in KINDS or not commit.after:
            continue
        location, after = location_of(commit), _decode(commit.after)
        if edited.get(location, (0, commit.at))[0] != generation_of(after):
            edited[location] = (generation_of(after), commit.at)
        if commit.request in writers:
            violations += [
                Violation("O10", commit.at, f"{location}: {why}")
                for why in _untruths(commit, after, layout)
            ]
            corrected = stale.pop(location, None)
            if corrected is not None and commit.at - corrected.at > UNDER_WAY:
                violations.append(corrected)
            if commit.at - edited[location][1] > UNDER_WAY and _is_evaluated(commit, after, layout):
                for why in _stale(location, after):
                    stale[location] = Violation("O10", commit.at, why)
    violations += stale.values()
    if acts is not None:
        violations += _flaps(history, layout, acts)
    return violations


def _decode(raw: bytes) -> JsonObject:
    document: JsonObject = orjson.loads(raw)
    return document


def _is_evaluated(commit: Commit, after: JsonObject, layout: Layout) -> bool:
    """Whether the observed generation of this write counts: not on the hub, where it is the cell's;
    not during deletion; not if the status is unchanged.
    """
    before = _decode(commit.before or b"{}")
    is_reported = object_at(before, "status") != object_at(after, "status")
    return is_reported and layout.side_of(commit.plane) != "hub" and not is_deleting(after)


def _untruths(commit: Commit, after: JsonObject, layout: Layout) -> Iterator[str]:
    before = _decode(commit.before or b"{}")
    yield from _wrong_times(commit, before, after, layout)
    if layout.side_of(commit.plane) == "project":
        for condition in objects_at(after, "status", "conditions"):
            text = f"{text_at(condition, 'reason')} {text_at(condition, 'message')}"
            if _INTERNAL.search(text):
                yield f"{text_at(condition, 'type')} names internals: {text!r}"


def _stale(location: ObjectLocation, after: JsonObject) -> Iterator[str]:
    generation = generation_of(after)
    for condition in objects_at(after, "status", "conditions"):
        observed = value_at(condition, "observedGeneration")
        is_ready = (text_at(condition, "type"), text_at(condition, "status")) == ("Ready", "True")
        if is_ready and observed is not None and observed != generation:
            yield f"{location}: Ready=True of generation {observed} at generation {generation}"


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
    """Times on the wire are whole seconds: two changes within one second have the same time. The
    second may end between the decision and the commit.
    """
    seconds = (moment, moment - UNDER_WAY)
    since = text_at(condition, "lastTransitionTime")
    return since in {one.strftime("%Y-%m-%dT%H:%M:%SZ") for one in seconds}


def _is_source(commit: Commit, layout: Layout) -> bool:
    side = layout.side_of(commit.plane)
    return side == "cell" or (side == "project" and commit.kind == "Workload")


def _flaps(history: History, layout: Layout, acts: Sequence[datetime]) -> Iterator[Violation]:
    """True, False and True again on a user's objects without an act that caused it. The silence of
    a site is a cause of its own: what is shown of it is judged by the scenarios of dark-sites.md.
    """
    true_now: set[tuple[ObjectLocation, str]] = set()
    lost: dict[tuple[ObjectLocation, str], datetime] = {}
    for commit in history.of(Commit):
        if commit.kind not in KINDS or layout.side_of(commit.plane) != "project":
            continue
        document = _decode(commit.after or b"{}")
        for condition in objects_at(document, "status", "conditions"):
            key = (location_of(commit), text_at(condition, "type"))
            if text_at(condition, "status") == "True":
                if key in lost and key not in true_now:
                    ended = lost.pop(key)
                    if not any(ended - EFFECT <= act <= ended for act in acts):
                        message = f"{key[0]}: {key[1]} went False at {ended} and came back"
                        yield Violation("O10", commit.at, message)
                true_now.add(key)
            elif key in true_now:
                true_now.discard(key)
                if text_at(condition, "reason") != reasons.CELL_UNREACHABLE:
                    lost[key] = commit.at
