"""O10: a written status is true, its transition times are right, and it names no internals.

Every version written by an operator is evaluated. A deployment in a project mirrors a report that
crosses three planes: one of the former generation may arrive after an edit, and stands with its
generation until the copy on the hub answers to the new one. Copies (the mirror of a deployment, a
projection, a write-back) may skip states of their source and carry its times, so transition times
are checked at the source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import orjson

from compute_api_types import labels, reasons
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
    generations = _Generations(layout)
    for commit in history.of(Commit):
        if commit.kind not in KINDS or not commit.after:
            continue
        location, after = location_of(commit), _decode(commit.after)
        is_ours = commit.request in writers
        if is_ours:
            violations += [
                Violation("O10", commit.at, f"{location}: {why}")
                for why in _untruths(commit, after, layout)
            ]
        violations += generations.follow(commit, after, is_ours=is_ours)
    violations += generations.stale.values()
    if acts is not None:
        violations += _flaps(history, layout, acts)
    return violations


class _Generations:
    """Follows the generations that written statuses answer to."""

    def __init__(self, layout: Layout) -> None:
        self.stale: dict[ObjectLocation, Violation] = {}  # not corrected yet
        self._layout = layout
        self._edited: dict[ObjectLocation, tuple[int, datetime]] = {}
        # Deployments in projects with a copy on the hub that does not answer to its generation,
        # and what was last written of an older generation meanwhile.
        self._unanswered: dict[ObjectLocation, list[str]] = {}

    def follow(self, commit: Commit, after: JsonObject, *, is_ours: bool) -> Iterator[Violation]:
        location = location_of(commit)
        self._note_report(commit, after)
        if self._edited.get(location, (0, commit.at))[0] != generation_of(after):
            self._edited[location] = (generation_of(after), commit.at)
        if not is_ours:
            return
        corrected = self.stale.pop(location, None)
        if corrected is not None and commit.at - corrected.at > UNDER_WAY:
            yield corrected
        is_due = commit.at - self._edited[location][1] > UNDER_WAY
        whys: list[str] = []
        if is_due and _is_evaluated(commit, after, self._layout):
            whys = list(_stale(location, after))
        if location in self._unanswered:
            self._unanswered[location] = whys
        else:
            self._expect_correction(location, whys, commit.at)

    def _note_report(self, commit: Commit, after: JsonObject) -> None:
        """A copy on the hub that answers to its generation: its mirror is to be corrected now."""
        mirror = _mirror_of(commit, after, self._layout)
        if mirror is None:
            return
        if _answers(after):
            self._expect_correction(mirror, self._unanswered.pop(mirror, []), commit.at)
        else:
            self._unanswered.setdefault(mirror, [])

    def _expect_correction(
        self, location: ObjectLocation, whys: Sequence[str], moment: datetime
    ) -> None:
        for why in whys:
            self.stale[location] = Violation("O10", moment, why)


def _decode(raw: bytes) -> JsonObject:
    document: JsonObject = orjson.loads(raw)
    return document


def _mirror_of(commit: Commit, after: JsonObject, layout: Layout) -> ObjectLocation | None:
    """The deployment in a project that shows the status of this copy on the hub."""
    if layout.side_of(commit.plane) != "hub" or commit.kind != "WorkloadDeployment":
        return None
    project = text_at(after, "metadata", "labels", labels.UPSTREAM_CLUSTER_NAME)
    namespace = text_at(after, "metadata", "labels", labels.UPSTREAM_NAMESPACE)
    name = location_of(commit).name
    return ObjectLocation(project.removeprefix("cluster-"), commit.kind, f"{namespace}/{name}")


def _answers(copy: JsonObject) -> bool:
    """Whether the status of a copy on the hub is about its present generation."""
    return value_at(copy, "status", "observedGeneration") == generation_of(copy)


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
