"""O5, quota safety, over a recorded history (`docs/spec/faults.md` 2).

```
 a Quota gate goes       only on a granted claim of that slot, cell and size that records this
                         Instance; while the project plane is away, on the one last seen there
 one slot                at most one claim; one claim, at most one live Instance that runs on it
 a claim without need    no Instance, slot not wanted: gone within a minute of the plane's answering
 a claim of the dead     records whoever lives in its slot, within the same minute
 what runs               its `QuotaGranted` never turns back
 granted in all          never more than the grants allow
```

Commits are replayed in their order; what a plane was last seen to hold is what it held when it last
answered one of us. The oracle judges what happened, never how, and derives everything itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, TypeVar

import orjson

from compute_api_types import labels, names
from compute_sim_planes.history import Commit, Event, History, Request
from compute_sim_planes.json_types import JsonObject, JsonValue, objects_at, string_at
from compute_sim_planes.oracles import Violation

ORACLE: Final = "O5"
WITHIN: Final = timedelta(seconds=60)
# A grant is seen a moment before the gate goes; whoever deletes the claim in between is no fault.
IN_FLIGHT: Final = timedelta(seconds=5)
CLAIM: Final = "ResourceClaim"
GRANT: Final = "ResourceGrant"
INSTANCE: Final = "Instance"
DEPLOYMENT: Final = "WorkloadDeployment"
NAMESPACE: Final = "Namespace"

Size = Mapping[str, int]


def _plane_of(project: str) -> str:
    return project


@dataclass(frozen=True, slots=True)
class QuotaRules:
    """Who is who in a history."""

    cells: Mapping[str, str]  # plane → name of the cell; quota is enforced in all of them
    size_of: Callable[[JsonObject], Size]  # what an Instance with this spec takes
    plane_of: Callable[[str], str] = _plane_of  # project → its plane in the history
    # What projects were granted before the history began, by plane.
    granted_before: Mapping[str, Size] = field(default_factory=dict[str, Size])
    # Whether an identity claims for a cell (by name): a plane that answers one cell may be away
    # for another, and management may reach what neither does.
    claims_for: Callable[[str, str], bool] = field(default=lambda identity, _: identity != "user")
    # Claims that no operator made, as `<plane> ResourceClaim <namespace>/<name>`: none needs them.
    by_hand: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Slot:
    """One slot of one cell."""

    plane: str
    namespace: str
    name: str


@dataclass(slots=True)
class _Sight:
    """What one cell saw of a project plane when that last answered it."""

    seen: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    seen_at: datetime | None = None
    is_away: bool = False
    back_at: datetime | None = None


@dataclass(slots=True)
class _Project:
    """What one project plane holds, and what each cell saw of it."""

    claims: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    sights: dict[str, _Sight] = field(default_factory=dict[str, _Sight])
    allowed: dict[str, Size] = field(default_factory=dict[str, Size])

    def sight(self, cell: str) -> _Sight:
        return self.sights.setdefault(cell, _Sight())


def quota_safety(history: History, rules: QuotaRules) -> list[Violation]:
    """O5: every way in which it does not hold."""
    return _Replay(rules).run(history)


class _Replay:
    """The world of a history, commit by commit."""

    def __init__(self, rules: QuotaRules) -> None:
        self._rules = rules
        self._projects: dict[str, _Project] = {}
        self._instances: dict[_Slot, JsonObject] = {}
        self._deployments: dict[tuple[str, str], JsonObject] = {}
        self._namespaces: dict[tuple[str, str], JsonObject] = {}
        self._running: dict[tuple[str, str], set[str]] = {}  # claim → UIDs that run on it
        self._since: dict[tuple[str, str, str], datetime] = {}  # what is wrong, and since when
        self._told: set[tuple[str, str, str]] = set()
        self._found: list[Violation] = []

    def run(self, history: History) -> list[Violation]:
        for entry in history.entries:
            if isinstance(entry, Commit):
                self._commit(entry)
            elif isinstance(entry, Request):
                is_answer = 0 < entry.status < 500 and entry.status != 429
                who = entry.caller.identity
                self._note_answer(who, entry.address.plane, entry.at, is_answer=is_answer)
            elif isinstance(entry, Event):
                self._note_answer(entry.caller.identity, entry.plane, entry.at, is_answer=True)
        self._judge_waits(history.now)
        return self._found

    def _blame(self, at: datetime, message: str) -> None:
        self._found.append(Violation(ORACLE, at, message))

    # what planes say -----------------------------------------------------------------------------

    def _note_answer(self, identity: str, plane: str, at: datetime, *, is_answer: bool) -> None:
        project = self._projects.get(plane)
        if project is None:
            return
        for cell in self._rules.cells.values():
            if not self._rules.claims_for(identity, cell):
                continue
            sight = project.sight(cell)
            if is_answer:
                sight.back_at = at if sight.is_away else sight.back_at
                sight.seen, sight.seen_at = dict(project.claims), at
            sight.is_away = not is_answer

    def _commit(self, commit: Commit) -> None:
        self._judge_waits(commit.at)
        self._store(commit)
        self._judge_waits(commit.at)  # what went wrong just now counts from now

    def _store(self, commit: Commit) -> None:
        before, after = _decode(commit.before), _decode(commit.after)
        if commit.plane in self._rules.cells:
            self._commit_in_cell(commit, before, after)
        elif commit.kind == CLAIM:
            self._commit_claim(commit, after)
        elif commit.kind == GRANT:
            allowed = self._project(commit.plane).allowed
            allowed[commit.key] = _allowances(after)

    def _commit_in_cell(self, commit: Commit, before: JsonObject, after: JsonObject) -> None:
        namespace, _, name = commit.key.rpartition("/")
        if commit.kind == INSTANCE:
            slot = _Slot(commit.plane, namespace, name)
            self._commit_instance(commit.at, slot, before, after)
        elif commit.kind == DEPLOYMENT:
            _keep(self._deployments, (commit.plane, commit.key), after)
        elif commit.kind == NAMESPACE:
            _keep(self._namespaces, (commit.plane, commit.key), after)

    def _commit_claim(self, commit: Commit, after: JsonObject) -> None:
        project = self._project(commit.plane)
        _keep(project.claims, commit.key, after)
        self._judge_sum(commit, project, after)
        self._judge_uniqueness(commit, after)

    def _project(self, plane: str) -> _Project:
        return self._projects.setdefault(plane, _Project())

    # gates ---------------------------------------------------------------------------------------

    def _commit_instance(
        self, at: datetime, slot: _Slot, before: JsonObject, after: JsonObject
    ) -> None:
        _keep(self._instances, slot, after)
        if not after:
            for uids in self._running.values():
                uids.discard(_uid(before))
            return
        if not before or _uid(before) != _uid(after):
            return
        if _has_gate(before) and not _has_gate(after):
            self._judge_opening(at, slot, after)
        was_running = not _has_gate(before) and _is_granted(before, "QuotaGranted")
        if was_running and not _is_granted(after, "QuotaGranted"):
            self._blame(at, f"QuotaGranted of {slot} was taken back while it ran")

    def _judge_opening(self, at: datetime, slot: _Slot, instance: JsonObject) -> None:
        place = self._place(slot)
        if place is None:
            self._blame(at, f"the gate of {slot} opened, and nobody can tell its project")
            return
        project = self._project(place[0])
        sight = project.sight(self._cell(slot))
        now = project.claims.get(place[1])
        is_recent = sight.seen_at is not None and at - sight.seen_at <= IN_FLIGHT
        seen = sight.seen.get(place[1]) if sight.is_away or is_recent else None
        is_away = sight.is_away
        doubts = [self._doubt(slot, instance, claim, is_away=is_away) for claim in (now, seen)]
        if all(doubts):
            self._blame(at, f"the gate of {slot} opened without a grant: {doubts[0]}")
        uids = self._running.setdefault(place, set())
        uids.add(_uid(instance))
        if len(uids) > 1:
            self._blame(at, f"{len(uids)} Instances run on claim {place[1]}")

    def _doubt(
        self, slot: _Slot, instance: JsonObject, claim: JsonObject | None, *, is_away: bool
    ) -> str:
        """Why this claim does not cover this Instance; empty where it does."""
        if claim is None:
            return "there is no claim"
        if not _is_granted(claim, "Granted"):
            return "it is not granted"
        if string_at(claim, "metadata", "labels", labels.SOURCE_CLUSTER) != self._cell(slot):
            return "it is not this cell's"
        if string_at(claim, "metadata", "labels", labels.INSTANCE_NAMESPACE) != slot.namespace:
            return "it is of another namespace"
        if _requests(claim) != dict(self._rules.size_of(instance)):
            return f"it is of another size: {_requests(claim)}"
        recorded = string_at(claim, "metadata", "annotations", labels.INSTANCE_UID)
        if recorded == _uid(instance):
            return ""
        if not is_away:
            return f"it records {recorded!r}"
        is_live = recorded in {_uid(other) for other in self._instances.values()}
        return f"it records {recorded!r}, who lives" if is_live or not recorded else ""

    # claims --------------------------------------------------------------------------------------

    def _judge_sum(self, commit: Commit, project: _Project, after: JsonObject) -> None:
        """Whenever more is granted; what was granted stays when the grants are lowered."""
        more = Counter(_allocated(after))
        more.subtract(_allocated(_decode(commit.before)))
        allowed = Counter(self._rules.granted_before.get(commit.plane, {}))
        for allowance in project.allowed.values():
            allowed.update(allowance)
        used: Counter[str] = Counter()
        for claim in project.claims.values():
            used.update(_allocated(claim))
        for resource_type, amount in used.items():
            if amount > allowed[resource_type] and more[resource_type] > 0:
                over = f"{amount} of {resource_type} are granted, {allowed[resource_type]} allowed"
                self._blame(commit.at, over)

    def _judge_uniqueness(self, commit: Commit, after: JsonObject) -> None:
        cell = string_at(after, "metadata", "labels", labels.SOURCE_CLUSTER)
        namespace = string_at(after, "metadata", "labels", labels.INSTANCE_NAMESPACE)
        if not cell or commit.before:
            return
        name = commit.key.rpartition("/")[2]
        same = [
            claim
            for project in self._projects.values()
            for key, claim in project.claims.items()
            if key.rpartition("/")[2] == name
            and string_at(claim, "metadata", "labels", labels.SOURCE_CLUSTER) == cell
            and string_at(claim, "metadata", "labels", labels.INSTANCE_NAMESPACE) == namespace
        ]
        if len(same) > 1:
            self._blame(commit.at, f"{len(same)} claims {name} of cell {cell} in {namespace}")

    # waits ---------------------------------------------------------------------------------------

    def _judge_waits(self, now: datetime) -> None:
        """What must not last: a claim nobody needs, and one that records the dead."""
        wrong = dict(self._find_wrong())
        self._since = {key: self._since.get(key, now) for key in wrong}
        for key, sight in wrong.items():
            since = max(self._since[key], sight.back_at or self._since[key])
            if not sight.is_away and now - since > WITHIN and key not in self._told:
                self._told.add(key)
                self._blame(now, f"for {now - since}: {key[2]} ({key[1]} in {key[0]})")

    def _find_wrong(self) -> Iterator[tuple[tuple[str, str, str], _Sight]]:
        for plane, project in self._projects.items():
            for key, claim in project.claims.items():
                if f"{plane} ResourceClaim {key}" in self._rules.by_hand:
                    continue
                wrong = self._find_fault(key, claim)
                if wrong:
                    cell = string_at(claim, "metadata", "labels", labels.SOURCE_CLUSTER)
                    yield (plane, key, wrong), project.sight(cell)

    def _find_fault(self, key: str, claim: JsonObject) -> str:
        slot = self._slot_of(key, claim)
        if slot is None:
            return ""
        instance = self._instances.get(slot)
        if instance is None:
            return "" if self._is_wanted(slot) else "a claim nobody needs is kept"
        recorded = string_at(claim, "metadata", "annotations", labels.INSTANCE_UID)
        is_running = not _has_gate(instance) and not _is_deleting(instance)
        is_other = is_running and recorded != _uid(instance)
        return "a claim does not record who runs on it" if is_other else ""

    def _slot_of(self, key: str, claim: JsonObject) -> _Slot | None:
        """The slot that a claim of one of our cells names."""
        cell = string_at(claim, "metadata", "labels", labels.SOURCE_CLUSTER)
        namespace = string_at(claim, "metadata", "labels", labels.INSTANCE_NAMESPACE)
        instance = names.parse_claim_name(key.rpartition("/")[2])
        for plane, name in self._rules.cells.items():
            if name == cell and instance is not None:
                return _Slot(plane, namespace, instance)
        return None

    def _is_wanted(self, slot: _Slot) -> bool:
        parsed = names.parse_instance_name(slot.name)
        if parsed is None:
            return False
        found = self._deployments.get((slot.plane, f"{slot.namespace}/{parsed[0]}"))
        if found is None or _is_deleting(found):
            return False
        settings = found.get("spec")
        scale = settings.get("scaleSettings") if isinstance(settings, dict) else None
        desired = scale.get("minReplicas") if isinstance(scale, dict) else 0
        return isinstance(desired, int) and parsed[1] < desired

    # identity ------------------------------------------------------------------------------------

    def _cell(self, slot: _Slot) -> str:
        return self._rules.cells[slot.plane]

    def _place(self, slot: _Slot) -> tuple[str, str] | None:
        """Plane and key of the claim of a slot, by the labels of its Namespace."""
        namespace = self._namespaces.get((slot.plane, slot.namespace))
        if namespace is None:
            return None
        found = {key: string_at(namespace, "metadata", "labels", key) for key in _IDENTITY}
        try:
            project = names.decode_project(found, {}, owner=slot.namespace)
        except names.UndecodableIdentityError:
            return None
        within = found[labels.UPSTREAM_NAMESPACE]
        return self._rules.plane_of(project), f"{within}/{names.derive_claim_name(slot.name)}"


_IDENTITY: Final = (labels.UPSTREAM_CLUSTER_NAME, labels.UPSTREAM_NAMESPACE)


K = TypeVar("K")


def _keep(world: dict[K, JsonObject], key: K, after: JsonObject) -> None:
    if after:
        world[key] = after
    else:
        world.pop(key, None)


def _decode(raw: bytes) -> JsonObject:
    found: JsonValue = orjson.loads(raw) if raw else {}
    return found if isinstance(found, dict) else {}


def _uid(found: JsonObject) -> str:
    return string_at(found, "metadata", "uid")


def _is_deleting(found: JsonObject) -> bool:
    return bool(string_at(found, "metadata", "deletionTimestamp"))


def _has_gate(instance: JsonObject) -> bool:
    gates = objects_at(instance, "spec", "controller", "schedulingGates")
    return any(gate.get("name") == labels.QUOTA_GATE for gate in gates)


def _is_granted(found: JsonObject, condition: str) -> bool:
    conditions = objects_at(found, "status", "conditions")
    return any(one.get("type") == condition and one.get("status") == "True" for one in conditions)


def _amounts(entries: list[JsonObject], amount: str) -> dict[str, int]:
    found: Counter[str] = Counter()
    for entry in entries:
        value = entry.get(amount)
        if isinstance(value, int):
            found[string_at(entry, "resourceType")] += value
    return dict(found)


def _requests(claim: JsonObject) -> dict[str, int]:
    return _amounts(objects_at(claim, "spec", "requests"), "amount")


def _allocated(claim: JsonObject) -> dict[str, int]:
    granted = [
        one for one in objects_at(claim, "status", "allocations") if one.get("status") == "Granted"
    ]
    return _amounts(granted, "allocatedAmount")


def _allowances(grant: JsonObject) -> dict[str, int]:
    found: Counter[str] = Counter()
    for allowance in objects_at(grant, "spec", "allowances"):
        for bucket in objects_at(allowance, "buckets"):
            amount = bucket.get("amount")
            if isinstance(amount, int):
                found[string_at(allowance, "resourceType")] += amount
    return dict(found)
