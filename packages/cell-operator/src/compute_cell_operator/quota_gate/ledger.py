"""What the worker remembers of each slot, and by what it is found. In memory only (quota.md B6).

```
finding     what the instance pass reads             last        the last verdict on the claim by
postponed   when it may be asked for again                       itself: what a held grant stands on
released    claims we gave up: a watch that lags     payer       whose quota, also when its
            may still show them                                  Namespace has gone
```

A record lives as long as its slot is wanted or its claim is not known to be gone. It decides
nothing: `plan.py` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final, TypeVar

from compute_api_types import labels, names
from compute_cell_operator.quota_gate import backoff
from compute_cell_operator.quota_gate.backoff import Attempts
from compute_cell_operator.quota_gate.evidence import Payer
from compute_cell_operator.quota_gate.findings import Finding, Granted, Said
from compute_cell_operator.quota_gate.occupancy import Subject
from compute_cell_operator.quota_gate.place import Place
from compute_cell_operator.quota_gate.plan import Postpone, Postponed, Recreated, Slot
from compute_operator_kit.keys import ObjectKey, Uid
from compute_quota_client import Absent, FoundClaim, Verdict, judge
from compute_quota_client import Granted as GrantedClaim

REMEMBERED_RELEASES: Final = 8  # of one slot; a watch lags by seconds, not by so many claims
NOBODY: Final = Uid("")
# A watch that lost an event stays silent about it: what it repeats for so long is read again.
CONFIRM_AFTER: Final = timedelta(seconds=60)

V = TypeVar("V")


class Record:
    """One slot."""

    __slots__ = (
        "attempts",
        "confirmed_at",
        "finding",
        "had_claim",
        "is_seen_going",
        "is_suspect",
        "is_swept",
        "key",
        "last",
        "payer",
        "place",
        "postponed",
        "released",
        "retry_at",
        "series",
        "subject",
        "uid",
    )

    def __init__(self, key: ObjectKey) -> None:
        self.key = key
        self.uid = NOBODY
        self.subject: Subject | None = None  # as last looked at; None while the slot is vacant
        self.payer: Payer | None = None
        self.place: Place | None = None
        self.finding: Finding | None = None
        self.last: Verdict | None = None
        self.confirmed_at: datetime | None = None  # when `last` was new, or was read
        self.released: tuple[str, ...] = ()
        self.postponed: Postponed | None = None
        self.retry_at: datetime | None = None  # what was refused for good is tried again then
        self.attempts = Attempts(NOBODY)
        self.series: Recreated | None = None  # what `attempts` counts
        self.had_claim = False
        self.is_suspect = False  # something may be news: a look may cost a request
        self.is_swept = False  # a sweep found its claim left behind
        self.is_seen_going = False  # its last Instance was seen to be deleted

    # who is in the slot --------------------------------------------------------------------------

    def enter(self, subject: Subject, now: datetime) -> None:
        """An Instance is in the slot; what was counted for another one does not count for it."""
        self.subject = subject
        self.had_claim |= subject.had_claim
        self.is_seen_going = self.is_swept = False
        uid = subject.occupant.uid
        if uid == self.uid:
            return
        self.uid, self.finding, self.postponed = uid, None, None
        self.attempts, self.series = Attempts(uid), None
        if subject.denied_since is not None:
            # A process before us was refused: its schedule goes on.
            self.postponed, self.attempts = backoff.resume(
                uid, subject.requests, subject.denied_since, now
            )
            self.series = Recreated.DENIED

    def leave(self) -> None:
        """The slot is vacant; its claim, and what is known of it, stays until it is released."""
        self.subject, self.finding = None, None

    def slot(self, subject: Subject) -> Slot:
        return Slot(
            uid=subject.occupant.uid,
            requests=subject.requests,
            is_started=subject.is_started,
            is_terminating=subject.is_terminating,
            had_claim=subject.had_claim,
            postponed=self.postponed,
        )

    # findings ------------------------------------------------------------------------------------

    def is_known(self, subject: Subject) -> bool:
        """Whether there is a finding for this very Instance and size."""
        found = self.finding
        return found is not None and found.holds_for(subject.occupant.uid, subject.requests)

    def find(self, subject: Subject, said: Said) -> bool:
        """Leaves a finding; whether it is news."""
        found = Finding(subject.occupant.uid, subject.requests, said)
        is_news, self.finding = found != self.finding, found
        return is_news

    @property
    def is_adoption_due(self) -> bool:
        """A gate may have opened on a grant that the claim does not record yet."""
        found, last = self.finding, self.last
        if found is None or last is None or not isinstance(found.said, Granted):
            return False
        return found.said.is_held and last.found.value_of(labels.INSTANCE_UID) != found.uid

    # the claim -----------------------------------------------------------------------------------

    def note(self, found: FoundClaim) -> None:
        """Somebody has seen the claim."""
        if found.uid not in self.released:
            self.last, self.had_claim = judge(found), True

    def note_absent(self, now: datetime) -> None:
        """Somebody has seen that there is none."""
        if self.last is not None and backoff.has_stood(self.last.found.created_at, now):
            self.attempts, self.series = Attempts(self.uid), None
        self.last = None

    def is_unconfirmed(self, watched: Verdict | Absent, now: datetime) -> bool:
        """Whether a watch has repeated the same version of the claim for so long that only a read
        shows whether it lost a newer one.
        """
        if isinstance(watched, Absent) or self.last is None or self.confirmed_at is None:
            return False
        is_same = watched.found.resource_version == self.last.found.resource_version
        return is_same and now - self.confirmed_at >= CONFIRM_AFTER

    def note_verdict(
        self, verdict: Verdict | Absent, now: datetime, *, is_read: bool = False
    ) -> None:
        if isinstance(verdict, Absent):
            self.note_absent(now)
            return
        version = self.last.found.resource_version if self.last is not None else None
        if is_read or version != verdict.found.resource_version:
            self.confirmed_at = now
        self.note(verdict.found)
        is_granted = isinstance(verdict, GrantedClaim)
        if is_granted and self.series is Recreated.DENIED:
            self.attempts, self.series = Attempts(self.uid), None

    def note_release(self, uid: str) -> None:
        """We gave this claim up: no grant on it counts any more."""
        self.released = (*self.released[1 - REMEMBERED_RELEASES :], uid)
        self.last = None

    def postpone(self, step: Postpone, requests: Mapping[str, int], now: datetime) -> None:
        if self.postponed is not None and self.postponed.requests != requests:
            self.attempts = Attempts(self.uid)  # refusals of another size
        self.postponed, self.attempts = backoff.postpone(step, self.attempts, requests, now)
        self.series = step.because

    @property
    def due(self) -> datetime | None:
        """When the slot is looked at although nothing changed."""
        return self.postponed.until if self.postponed is not None else self.retry_at

    def note_request(self) -> None:
        """The claim was asked for: the wait is over, and how often it failed is remembered."""
        self.postponed = None


class Ledger:
    """All slots, by name, by claim, by deployment and by Namespace."""

    def __init__(self) -> None:
        self._records: dict[ObjectKey, Record] = {}
        self._by_place: dict[Place, ObjectKey] = {}
        self._by_deployment: dict[tuple[str, str], dict[ObjectKey, None]] = {}
        self._by_namespace: dict[str, dict[ObjectKey, None]] = {}

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records.values())

    def find(self, key: ObjectKey) -> Record | None:
        return self._records.get(key)

    def open(self, key: ObjectKey) -> Record:
        """The record of a slot, made if there is none."""
        found = self._records.get(key)
        if found is not None:
            return found
        made = self._records[key] = Record(key)
        self._by_namespace.setdefault(key.namespace, {})[key] = None
        parsed = names.parse_instance_name(key.name)
        if parsed is not None:
            place = (key.namespace, parsed[0])
            self._by_deployment.setdefault(place, {})[key] = None
        return made

    def place(self, record: Record, place: Place) -> None:
        """Says where the claim of a slot is."""
        if record.place == place:
            return
        if record.place is not None:
            self._by_place.pop(record.place, None)
        record.place = place
        self._by_place[place] = record.key

    def forget(self, key: ObjectKey) -> None:
        found = self._records.pop(key, None)
        if found is None:
            return
        if found.place is not None and self._by_place.get(found.place) == key:
            del self._by_place[found.place]
        _drop(self._by_namespace, key.namespace, key)
        parsed = names.parse_instance_name(key.name)
        if parsed is not None:
            _drop(self._by_deployment, (key.namespace, parsed[0]), key)

    def at(self, place: Place) -> Record | None:
        """The slot whose claim is there."""
        key = self._by_place.get(place)
        return self._records.get(key) if key is not None else None

    def in_namespace(self, namespace: str) -> tuple[ObjectKey, ...]:
        return tuple(self._by_namespace.get(namespace, ()))

    def of_deployment(self, namespace: str, name: str) -> tuple[ObjectKey, ...]:
        return tuple(self._by_deployment.get((namespace, name), ()))


def _drop(index: dict[V, dict[ObjectKey, None]], value: V, key: ObjectKey) -> None:
    keys = index[value]
    del keys[key]
    if not keys:
        del index[value]
