"""The state that the quota controller keeps of each slot, in memory only (quota.md B6).

```
result      read by the instance controller          verdict    the last one on the claim by itself,
postponed   when the claim may be requested again               the proof of a held grant
released    UIDs of claims that we released: a       billing    the project, also after the
            watch that lags may still show them                 Namespace is gone
```

A slot is remembered while it is wanted or its claim is not known to be gone: a slot forgotten too
early would leave its claim behind. Nothing is decided here; `plan` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Final, TypeVar

from compute_api_types import labels, names
from compute_cell_operator.quota import retry
from compute_cell_operator.quota.observe import InstanceFacts
from compute_cell_operator.quota.plan import Postpone, Postponed, QuotaSlot, Recreated
from compute_cell_operator.quota.project_ref import BillingProject, ClaimRef
from compute_cell_operator.quota.result import (
    BackendUnavailable,
    ClaimDenied,
    ClaimGranted,
    ClaimInvalid,
    ClaimState,
    ProjectSuspended,
    QuotaResult,
    Undecided,
)
from compute_cell_operator.quota.retry import CONFIRM_AFTER, ClaimAttempts
from compute_operator_kit.core.keys import ObjectKey, Uid
from compute_quota_client import Absent, FoundClaim, Granted, Verdict, judge

REMEMBERED_RELEASES: Final = 8  # of one slot; a watch lags by seconds, not by so many claims
NO_UID: Final = Uid("")

V = TypeVar("V")


class SlotState:
    """One slot."""

    __slots__ = (
        "attempts",
        "billing",
        "claim",
        "confirmed_at",
        "had_claim",
        "has_requested",
        "instance",
        "is_orphaned",
        "key",
        "needs_check",
        "postponed",
        "released",
        "result",
        "retry_at",
        "series",
        "uid",
        "verdict",
        "was_seen_deleted",
    )

    def __init__(self, key: ObjectKey) -> None:
        self.key = key
        self.uid = NO_UID
        self.instance: InstanceFacts | None = None  # of the last reconcile; None: slot is empty
        self.billing: BillingProject | None = None
        self.claim: ClaimRef | None = None
        self.result: QuotaResult | None = None
        self.verdict: Verdict | None = None
        self.confirmed_at: datetime | None = None  # when `verdict` was new, or was read
        self.released: tuple[str, ...] = ()
        self.postponed: Postponed | None = None
        self.retry_at: datetime | None = None  # of a request that was refused for good
        self.attempts = ClaimAttempts(NO_UID)
        self.series: Recreated | None = None  # what `attempts` counts
        self.had_claim = False
        self.has_requested = False  # this process requested a claim for the Instance in the slot
        self.needs_check = False  # the claim may have changed: a reconcile may send requests
        self.is_orphaned = False  # the collector listed its claim without Instance and slot
        self.was_seen_deleted = False  # a watch event deleted its last Instance

    # the Instance --------------------------------------------------------------------------------

    def occupy(self, instance: InstanceFacts, now: datetime) -> None:
        """An Instance is in the slot; counts and waits of its predecessor end."""
        self.instance = instance
        self.had_claim |= instance.had_claim
        self.was_seen_deleted = self.is_orphaned = False
        uid = instance.uid
        if uid == self.uid:
            return
        self.uid, self.result, self.postponed = uid, None, None
        self.attempts, self.series, self.has_requested = ClaimAttempts(uid), None, False
        if instance.denied_since is not None:
            # A former process was denied: its schedule continues.
            self.postponed, self.attempts = retry.resume(
                uid, instance.requests, instance.denied_since, now
            )
            self.series = Recreated.DENIED

    def vacate(self) -> None:
        """The slot is empty; its claim, and what is known of it, stays until it is released."""
        self.instance, self.result = None, None

    def describe(self, instance: InstanceFacts, claim_uid: str) -> QuotaSlot:
        """The slot as `plan` takes it."""
        return QuotaSlot(
            uid=instance.uid,
            requests=instance.requests,
            claim_uid=claim_uid,
            is_started=instance.is_started,
            is_terminating=instance.is_terminating,
            had_claim=instance.had_claim,
            postponed=self.postponed,
            is_taken_over=instance.is_taken_over and not self.has_requested,
        )

    # the result ----------------------------------------------------------------------------------

    def has_result_for(self, instance: InstanceFacts) -> bool:
        """Whether there is a result for the UID and size of this Instance."""
        result = self.result
        return result is not None and result.holds_for(instance.uid, instance.requests)

    def set_result(self, instance: InstanceFacts, state: ClaimState) -> bool:
        """Sets the result; whether the instance controller has to report something else."""
        result = QuotaResult(instance.uid, instance.requests, state)
        is_changed, self.result = not result.is_equivalent(self.result), result
        return is_changed

    def keep_denial(self, instance: InstanceFacts, state: ClaimState) -> ClaimState:
        """A denial that the instance controller may not have stored yet, instead of a state that
        is no news after it.
        """
        if not isinstance(state, BackendUnavailable | ProjectSuspended | Undecided):
            return state
        former = self.result.state if self.result and self.has_result_for(instance) else None
        return former if isinstance(former, ClaimDenied | ClaimInvalid) else state

    @property
    def is_adoption_due(self) -> bool:
        """A gate may have opened on a grant before its claim records the Instance."""
        result, verdict = self.result, self.verdict
        if result is None or verdict is None or not isinstance(result.state, ClaimGranted):
            return False
        return result.state.is_held and verdict.found.value_of(labels.INSTANCE_UID) != result.uid

    # the claim -----------------------------------------------------------------------------------

    def note_claim(self, claim: FoundClaim) -> None:
        """The claim was read, listed or watched."""
        if claim.uid not in self.released:
            self.verdict, self.had_claim = judge(claim), True

    def note_absent(self, now: datetime) -> None:
        """No claim exists."""
        if self.verdict is not None and retry.has_stood(self.verdict.found.created_at, now):
            self.attempts, self.series = ClaimAttempts(self.uid), None
        self.verdict = None

    def is_unconfirmed(self, watched: Verdict | Absent, now: datetime) -> bool:
        """Whether a watch has repeated one version of the claim for so long that only a read shows
        whether it lost a newer one.
        """
        if isinstance(watched, Absent) or self.verdict is None or self.confirmed_at is None:
            return False
        is_same = watched.found.resource_version == self.verdict.found.resource_version
        return is_same and now - self.confirmed_at >= CONFIRM_AFTER

    def note_verdict(
        self, verdict: Verdict | Absent, now: datetime, *, is_read: bool = False
    ) -> None:
        if isinstance(verdict, Absent):
            self.note_absent(now)
            return
        claim = verdict.found
        version = self.verdict.found.resource_version if self.verdict is not None else None
        if is_read or version != claim.resource_version:
            self.confirmed_at = now
        self.note_claim(claim)
        is_granted = isinstance(verdict, Granted)
        if is_granted and self.series is Recreated.DENIED:
            self.attempts, self.series = ClaimAttempts(self.uid), None
        if is_granted and self.postponed and self.postponed.kept == claim.uid:
            self.postponed = None  # the kept claim was granted: no request is left

    def note_release(self, uid: str) -> None:
        """We released the claim: a grant on it does not count any more."""
        self.released = (*self.released[1 - REMEMBERED_RELEASES :], uid)
        self.verdict = None

    def note_request(self) -> None:
        """The claim was requested: the wait is over, the count of failures stays."""
        self.postponed, self.has_requested = None, True

    def postpone(self, step: Postpone, requests: Mapping[str, int], now: datetime) -> None:
        if self.postponed is not None and self.postponed.requests != requests:
            self.attempts = ClaimAttempts(self.uid)  # denials of another size
        self.postponed, self.attempts = retry.postpone(step, self.attempts, requests, now)
        self.series = step.because

    @property
    def due(self) -> datetime | None:
        """When the claim is checked although no event came."""
        return self.postponed.until if self.postponed is not None else self.retry_at


class SlotTable:
    """All slots, by Instance key, claim, deployment and Namespace."""

    def __init__(self, enqueue: Callable[[ObjectKey], None]) -> None:
        self._enqueue = enqueue
        self._slots: dict[ObjectKey, SlotState] = {}
        self._by_claim: dict[ClaimRef, ObjectKey] = {}
        self._by_deployment: dict[tuple[str, str], dict[ObjectKey, None]] = {}
        self._by_namespace: dict[str, dict[ObjectKey, None]] = {}

    def __len__(self) -> int:
        return len(self._slots)

    def __iter__(self) -> Iterator[SlotState]:
        return iter(self._slots.values())

    def find(self, key: ObjectKey) -> SlotState | None:
        return self._slots.get(key)

    def open(self, key: ObjectKey) -> SlotState:
        """The slot of a key, made if there is none."""
        slot = self._slots.get(key)
        if slot is not None:
            return slot
        slot = self._slots[key] = SlotState(key)
        self._by_namespace.setdefault(key.namespace, {})[key] = None
        parsed = names.parse_instance_name(key.name)
        if parsed is not None:
            self._by_deployment.setdefault((key.namespace, parsed[0]), {})[key] = None
        return slot

    def check(self, key: ObjectKey) -> None:
        """Enqueues a slot after its claim may have changed; its reconcile may send requests."""
        self.open(key).needs_check = True
        self._enqueue(key)

    def set_claim(self, slot: SlotState, claim: ClaimRef) -> None:
        """Sets where the claim of a slot is."""
        if slot.claim == claim:
            return
        if slot.claim is not None:
            self._by_claim.pop(slot.claim, None)
        slot.claim = claim
        self._by_claim[claim] = slot.key

    def forget(self, key: ObjectKey) -> None:
        slot = self._slots.pop(key, None)
        if slot is None:
            return
        if slot.claim is not None and self._by_claim.get(slot.claim) == key:
            del self._by_claim[slot.claim]
        _drop(self._by_namespace, key.namespace, key)
        parsed = names.parse_instance_name(key.name)
        if parsed is not None:
            _drop(self._by_deployment, (key.namespace, parsed[0]), key)

    def of_claim(self, claim: ClaimRef) -> SlotState | None:
        key = self._by_claim.get(claim)
        return self._slots.get(key) if key is not None else None

    def in_namespace(self, namespace: str) -> tuple[ObjectKey, ...]:
        return tuple(self._by_namespace.get(namespace, ()))

    def of_deployment(self, namespace: str, name: str) -> tuple[ObjectKey, ...]:
        return tuple(self._by_deployment.get((namespace, name), ()))


def _drop(index: dict[V, dict[ObjectKey, None]], value: V, key: ObjectKey) -> None:
    keys = index[value]
    del keys[key]
    if not keys:
        del index[value]
