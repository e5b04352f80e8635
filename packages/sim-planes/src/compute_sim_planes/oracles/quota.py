"""O5, quota safety, over a recorded history (`docs/spec/faults.md` 2).

```
 removal of a Quota gate   needs a granted claim of that slot, cell and size that records this
                           Instance; during an outage of the project plane, the one last read there
 one slot                  at most one claim; one claim, at most one running Instance
 an unneeded claim         (no Instance, slot not desired) is deleted within a minute
 an out-of-date claim      records the running Instance of its slot within the same minute
 a running Instance        keeps `QuotaGranted`
 the sum of all claims     never exceeds the grants
```

Commits are replayed in order; a cell's view of a project plane is its state at the last response to
that cell. The oracle shares no code with the operators.
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
from compute_sim_planes.oracles.invariants import Violation

ORACLE: Final = "O5"
WITHIN: Final = timedelta(seconds=60)
# The grant is read shortly before the gate is removed; a deletion of the claim in between is no
# violation.
IN_FLIGHT: Final = timedelta(seconds=5)
CLAIM: Final = "ResourceClaim"
GRANT: Final = "ResourceGrant"
INSTANCE: Final = "Instance"
DEPLOYMENT: Final = "WorkloadDeployment"
NAMESPACE: Final = "Namespace"
JUDGED: Final = frozenset({CLAIM, GRANT, INSTANCE, DEPLOYMENT, NAMESPACE})

Size = Mapping[str, int]


def _plane_of(project: str) -> str:
    return project


@dataclass(frozen=True, slots=True)
class QuotaRules:
    """The roles of planes and identities in a history."""

    cells: Mapping[str, str]  # plane → name of the cell; quota is enforced in all of them
    size_of: Callable[[JsonObject], Size]  # the amounts that an Instance with this spec needs
    plane_of: Callable[[str], str] = _plane_of  # project → its plane in the history
    # Grants of projects from before the history began, by plane.
    granted_before: Mapping[str, Size] = field(default_factory=dict[str, Size])
    # Whether an identity claims for a cell (by name): a plane may be reachable for one cell and not
    # for another or for management.
    claims_for: Callable[[str, str], bool] = field(default=lambda identity, _: identity != "user")
    # Claims that no operator created, as `<plane> ResourceClaim <namespace>/<name>`; not checked.
    manual_claims: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Slot:
    """One slot of one cell."""

    plane: str
    namespace: str
    name: str


@dataclass(slots=True)
class _CellView:
    """The state of a project plane at its last response to one cell."""

    claims: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    observed_at: datetime | None = None
    is_unreachable: bool = False
    reachable_since: datetime | None = None


@dataclass(slots=True)
class _Project:
    """The state of one project plane, and the view of each cell."""

    claims: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    views: dict[str, _CellView] = field(default_factory=dict[str, _CellView])
    allowed: dict[str, Size] = field(default_factory=dict[str, Size])

    def view(self, cell: str) -> _CellView:
        return self.views.setdefault(cell, _CellView())


def quota_safety(history: History, rules: QuotaRules) -> list[Violation]:
    """O5: all violations."""
    return _Replay(rules).run(history)


class _Replay:
    """The state of all planes, replayed commit by commit."""

    def __init__(self, rules: QuotaRules) -> None:
        self._rules = rules
        self._projects: dict[str, _Project] = {}
        self._instances: dict[_Slot, JsonObject] = {}
        self._deployments: dict[tuple[str, str], JsonObject] = {}
        self._namespaces: dict[tuple[str, str], JsonObject] = {}
        self._running: dict[tuple[str, str], set[str]] = {}  # claim → UIDs of running Instances
        self._wrong: dict[tuple[str, str, str], _CellView] = {}  # current problems
        self._since: dict[tuple[str, str, str], datetime] = {}  # current problem → its start
        self._reported: set[tuple[str, str, str]] = set()
        self._violations: list[Violation] = []

    def run(self, history: History) -> list[Violation]:
        for entry in history.entries:
            if isinstance(entry, Commit):
                self._commit(entry)
            elif isinstance(entry, Request):
                is_answer = 0 < entry.status < 500 and entry.status != 429
                identity = entry.caller.identity
                self._record_response(
                    identity, entry.address.plane, entry.at, is_response=is_answer
                )
            elif isinstance(entry, Event):
                self._record_response(
                    entry.caller.identity, entry.plane, entry.at, is_response=True
                )
        self._check_deadlines(history.now)
        return self._violations

    def _add_violation(self, at: datetime, message: str) -> None:
        self._violations.append(Violation(ORACLE, at, message))

    # responses of planes -------------------------------------------------------------------------

    def _record_response(
        self, identity: str, plane: str, at: datetime, *, is_response: bool
    ) -> None:
        project = self._projects.get(plane)
        if project is None:
            return
        for cell in self._rules.cells.values():
            if not self._rules.claims_for(identity, cell):
                continue
            view = project.view(cell)
            if is_response:
                view.reachable_since = at if view.is_unreachable else view.reachable_since
                view.claims, view.observed_at = dict(project.claims), at
            view.is_unreachable = not is_response

    def _commit(self, commit: Commit) -> None:
        self._check_deadlines(commit.at)
        if commit.kind not in JUDGED:
            return
        self._store(commit)
        self._wrong = dict(self._find_wrong())
        self._check_deadlines(commit.at)  # a problem caused by this commit starts now

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
            _store_or_delete(self._deployments, (commit.plane, commit.key), after)
        elif commit.kind == NAMESPACE:
            _store_or_delete(self._namespaces, (commit.plane, commit.key), after)

    def _commit_claim(self, commit: Commit, after: JsonObject) -> None:
        project = self._project(commit.plane)
        _store_or_delete(project.claims, commit.key, after)
        self._check_sum(commit, project, after)
        self._check_uniqueness(commit, after)

    def _project(self, plane: str) -> _Project:
        return self._projects.setdefault(plane, _Project())

    # gates ---------------------------------------------------------------------------------------

    def _commit_instance(
        self, at: datetime, slot: _Slot, before: JsonObject, after: JsonObject
    ) -> None:
        _store_or_delete(self._instances, slot, after)
        if not after:
            for uids in self._running.values():
                uids.discard(_uid(before))
            return
        if not before or _uid(before) != _uid(after):
            return
        if _has_gate(before) and not _has_gate(after):
            self._check_gate_removal(at, slot, after)
        was_running = not _has_gate(before) and _is_granted(before, "QuotaGranted")
        if was_running and not _is_granted(after, "QuotaGranted"):
            self._add_violation(at, f"QuotaGranted of {slot} was taken back while it ran")

    def _check_gate_removal(self, at: datetime, slot: _Slot, instance: JsonObject) -> None:
        place = self._claim_of(slot)
        if place is None:
            self._add_violation(at, f"the gate of {slot} opened, and nobody can tell its project")
            return
        project = self._project(place[0])
        view = project.view(self._cell(slot))
        now = project.claims.get(place[1])
        is_recent = view.observed_at is not None and at - view.observed_at <= IN_FLIGHT
        seen = view.claims.get(place[1]) if view.is_unreachable or is_recent else None
        is_unreachable = view.is_unreachable
        reasons = [
            self._why_not_covered(slot, instance, claim, is_unreachable=is_unreachable)
            for claim in (now, seen)
        ]
        if all(reasons):
            self._add_violation(at, f"the gate of {slot} opened without a grant: {reasons[0]}")
        uids = self._running.setdefault(place, set())
        uids.add(_uid(instance))
        if len(uids) > 1:
            self._add_violation(at, f"{len(uids)} Instances run on claim {place[1]}")

    def _why_not_covered(
        self, slot: _Slot, instance: JsonObject, claim: JsonObject | None, *, is_unreachable: bool
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
        if not is_unreachable:
            return f"it records {recorded!r}"
        is_live = recorded in {_uid(other) for other in self._instances.values()}
        return f"it records {recorded!r}, who lives" if is_live or not recorded else ""

    # claims --------------------------------------------------------------------------------------

    def _check_sum(self, commit: Commit, project: _Project, after: JsonObject) -> None:
        """Check the sum when more is granted; existing grants stay when the limit is lowered."""
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
                self._add_violation(commit.at, over)

    def _check_uniqueness(self, commit: Commit, after: JsonObject) -> None:
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
            self._add_violation(
                commit.at, f"{len(same)} claims {name} of cell {cell} in {namespace}"
            )

    # deadlines -----------------------------------------------------------------------------------

    def _check_deadlines(self, now: datetime) -> None:
        """Report unneeded claims and claims that record another Instance, after a minute."""
        self._since = {key: self._since.get(key, now) for key in self._wrong}
        for key, view in self._wrong.items():
            since = max(self._since[key], view.reachable_since or self._since[key])
            if not view.is_unreachable and now - since > WITHIN and key not in self._reported:
                self._reported.add(key)
                self._add_violation(now, f"for {now - since}: {key[2]} ({key[1]} in {key[0]})")

    def _find_wrong(self) -> Iterator[tuple[tuple[str, str, str], _CellView]]:
        for plane, project in self._projects.items():
            for key, claim in project.claims.items():
                if f"{plane} ResourceClaim {key}" in self._rules.manual_claims:
                    continue
                wrong = self._find_fault(key, claim)
                if wrong:
                    cell = string_at(claim, "metadata", "labels", labels.SOURCE_CLUSTER)
                    yield (plane, key, wrong), project.view(cell)

    def _find_fault(self, key: str, claim: JsonObject) -> str:
        slot = self._slot_of(key, claim)
        if slot is None:
            return ""
        instance = self._instances.get(slot)
        if instance is None:
            return "" if self._is_desired(slot) else "a claim nobody needs is kept"
        recorded = string_at(claim, "metadata", "annotations", labels.INSTANCE_UID)
        is_running = not _has_gate(instance) and not _is_deleting(instance)
        is_other = is_running and recorded != _uid(instance)
        return "a claim does not record who runs on it" if is_other else ""

    def _slot_of(self, key: str, claim: JsonObject) -> _Slot | None:
        """The slot of a claim that one of our cells made."""
        cell = string_at(claim, "metadata", "labels", labels.SOURCE_CLUSTER)
        namespace = string_at(claim, "metadata", "labels", labels.INSTANCE_NAMESPACE)
        instance = names.parse_claim_name(key.rpartition("/")[2])
        for plane, name in self._rules.cells.items():
            if name == cell and instance is not None:
                return _Slot(plane, namespace, instance)
        return None

    def _is_desired(self, slot: _Slot) -> bool:
        parsed = names.parse_instance_name(slot.name)
        if parsed is None:
            return False
        existing = self._deployments.get((slot.plane, f"{slot.namespace}/{parsed[0]}"))
        if existing is None or _is_deleting(existing):
            return False
        settings = existing.get("spec")
        scale = settings.get("scaleSettings") if isinstance(settings, dict) else None
        desired = scale.get("minReplicas") if isinstance(scale, dict) else 0
        if isinstance(scale, dict) and scale.get("maxReplicas") and scale.get("metrics"):
            # The cell decides up to this limit; a claim beyond its number goes a moment later.
            desired = scale.get("maxReplicas")
        return isinstance(desired, int) and parsed[1] < desired

    # identity ------------------------------------------------------------------------------------

    def _cell(self, slot: _Slot) -> str:
        return self._rules.cells[slot.plane]

    def _claim_of(self, slot: _Slot) -> tuple[str, str] | None:
        """Plane and key of the claim of a slot, from the labels of its Namespace."""
        namespace = self._namespaces.get((slot.plane, slot.namespace))
        if namespace is None:
            return None
        identity = {key: string_at(namespace, "metadata", "labels", key) for key in _IDENTITY}
        try:
            project = names.decode_project(identity, {}, owner=slot.namespace)
        except names.UndecodableIdentityError:
            return None
        within = identity[labels.UPSTREAM_NAMESPACE]
        return self._rules.plane_of(project), f"{within}/{names.derive_claim_name(slot.name)}"


_IDENTITY: Final = (labels.UPSTREAM_CLUSTER_NAME, labels.UPSTREAM_NAMESPACE)


K = TypeVar("K")


def _store_or_delete(world: dict[K, JsonObject], key: K, after: JsonObject) -> None:
    if after:
        world[key] = after
    else:
        world.pop(key, None)


def _decode(raw: bytes) -> JsonObject:
    decoded: JsonValue = orjson.loads(raw) if raw else {}
    return decoded if isinstance(decoded, dict) else {}


def _uid(document: JsonObject) -> str:
    return string_at(document, "metadata", "uid")


def _is_deleting(document: JsonObject) -> bool:
    return bool(string_at(document, "metadata", "deletionTimestamp"))


def _has_gate(instance: JsonObject) -> bool:
    gates = objects_at(instance, "spec", "controller", "schedulingGates")
    return any(gate.get("name") == labels.QUOTA_GATE for gate in gates)


def _is_granted(document: JsonObject, condition: str) -> bool:
    conditions = objects_at(document, "status", "conditions")
    return any(one.get("type") == condition and one.get("status") == "True" for one in conditions)


def _amounts(entries: list[JsonObject], amount: str) -> dict[str, int]:
    amounts: Counter[str] = Counter()
    for entry in entries:
        value = entry.get(amount)
        if isinstance(value, int):
            amounts[string_at(entry, "resourceType")] += value
    return dict(amounts)


def _requests(claim: JsonObject) -> dict[str, int]:
    return _amounts(objects_at(claim, "spec", "requests"), "amount")


def _allocated(claim: JsonObject) -> dict[str, int]:
    granted = [
        one for one in objects_at(claim, "status", "allocations") if one.get("status") == "Granted"
    ]
    return _amounts(granted, "allocatedAmount")


def _allowances(grant: JsonObject) -> dict[str, int]:
    amounts: Counter[str] = Counter()
    for allowance in objects_at(grant, "spec", "allowances"):
        for bucket in objects_at(allowance, "buckets"):
            amount = bucket.get("amount")
            if isinstance(amount, int):
                amounts[string_at(allowance, "resourceType")] += amount
    return dict(amounts)
