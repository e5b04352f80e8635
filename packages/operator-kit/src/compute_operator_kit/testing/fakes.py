"""Fakes and builders for tests: clock, randomness, metrics, caches, snapshots and transports.

They replace the ports around a pure function or a single reconcile. A fake API server is not among
them: `sim-planes` is one, and passes the contract tests of a real server. Builders have valid
defaults and refuse impossible objects; a test overrides only what it needs.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from compute_operator_kit.cache.indexers import IndexFunction
from compute_operator_kit.cache.lister import Lister
from compute_operator_kit.cache.store import Store
from compute_operator_kit.core.clock import ZERO
from compute_operator_kit.core.errors import PlaneGoneError
from compute_operator_kit.core.json import JsonMapping, JsonValue, decode_json_object, encode
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.core.objects import Snapshot, parse_object
from compute_operator_kit.intents.intents import RecordEvent

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
A_KIND: Final = Kind("example.datumapis.com", "v1", "notes", "Note")


class FakeClock:
    """A clock that only `pass_time` moves."""

    def __init__(self, start: datetime = START) -> None:
        self._start = start
        self._passed = ZERO
        self._sleepers: list[tuple[timedelta, int, asyncio.Future[None]]] = []
        self._order = itertools.count()
        self.step = ZERO  # added to the wall clock only; may be negative

    def now(self) -> datetime:
        return self._start + self._passed + self.step

    def monotonic(self) -> timedelta:
        return self._passed

    async def sleep(self, delay: timedelta) -> None:
        if delay <= ZERO:
            await asyncio.sleep(0)
            return
        wakeup: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._passed + delay, next(self._order), wakeup))
        await wakeup

    def pass_time(self, length: timedelta) -> None:
        """Moves the clock and ends the sleeps that are over, in order."""
        self._passed += length
        while self._sleepers and self._sleepers[0][0] <= self._passed:
            wakeup = heapq.heappop(self._sleepers)[2]
            if not wakeup.done():
                wakeup.set_result(None)


class FixedRandom:
    """Random numbers from a list that repeats."""

    def __init__(self, *chances: float) -> None:
        self._chances = itertools.cycle(chances or (0.0,))

    def random(self) -> float:
        return next(self._chances)


Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class FakeMetrics:
    """Records all metrics."""

    counts: dict[tuple[str, Labels], int] = field(default_factory=dict)
    gauges: dict[tuple[str, Labels], float] = field(default_factory=dict)
    values: dict[tuple[str, Labels], list[float]] = field(default_factory=dict)

    def count(self, name: str, amount: int = 1, /, **labels: str) -> None:
        key = (name, tuple(sorted(labels.items())))
        self.counts[key] = self.counts.get(key, 0) + amount

    def gauge(self, name: str, value: float, /, **labels: str) -> None:
        self.gauges[(name, tuple(sorted(labels.items())))] = value

    def observe(self, name: str, value: float, /, **labels: str) -> None:
        self.values.setdefault((name, tuple(sorted(labels.items()))), []).append(value)

    def total(self, name: str, **labels: str) -> int:
        """The sum of a counter over all series with these labels."""
        expected = labels.items()
        return sum(
            amount
            for (metric, series), amount in self.counts.items()
            if metric == name and expected <= dict(series).items()
        )


@dataclass(slots=True)
class FakeEventRecorder:
    """Records Events instead of writing them."""

    emitted: list[RecordEvent] = field(default_factory=list)

    def record(self, emit: RecordEvent) -> None:
        self.emitted.append(emit)


@dataclass(slots=True)
class FakeLeadership:
    """Leadership that a test sets."""

    is_leading: bool = True


@dataclass(frozen=True, slots=True)
class SentRequest:
    """One request that a transport got."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes | None


class ScriptedResponse:
    """A prepared response; with `hangs` its body never ends."""

    def __init__(
        self,
        status: int,
        *chunks: bytes,
        headers: Mapping[str, str] | None = None,
        hangs: bool = False,
        then: OSError | None = None,
    ) -> None:
        self.status = status
        self.headers = dict(headers or {})
        self.is_closed = False
        self._chunks = chunks
        self._hangs = hangs
        self._then = then

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk
        if self._then is not None:
            raise self._then
        if self._hangs:
            await asyncio.Event().wait()

    async def close(self) -> None:
        self.is_closed = True


class ScriptedTransport:
    """Answers requests with prepared responses, one after another, and records the requests.

    For the behaviour of a server use `sim-planes`.
    """

    def __init__(self, *script: ScriptedResponse | OSError) -> None:
        self.script = list(script)
        self.sent: list[SentRequest] = []

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> ScriptedResponse:
        self.sent.append(SentRequest(method, target, dict(headers), body))
        if not self.script:
            raise AssertionError(f"{method} {target}: the script has no answer left")
        answer = self.script.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer


def a_key(
    name: str = "web",
    *,
    namespace: str = "default",
    plane: str = "project-a",
    kind: Kind = A_KIND,
) -> ObjectKey:
    return ObjectKey(PlaneName(plane), kind, namespace if kind.namespaced else "", name)


def a_snapshot(
    key: ObjectKey | None = None, metadata: JsonMapping | None = None, **members: JsonMapping
) -> Snapshot:
    """An object as a plane serves it; arguments override valid defaults."""
    chosen = key or a_key()
    header: dict[str, JsonValue] = {
        "name": chosen.name,
        "uid": f"uid-of-{chosen.name}",
        "resourceVersion": "1",
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    if chosen.namespace:
        header["namespace"] = chosen.namespace
    body: dict[str, JsonValue] = {
        "apiVersion": chosen.kind.api_version,
        "kind": chosen.kind.kind,
        "metadata": {**header, **(metadata or {})},
        **members,
    }
    # Through the codec, so that values without a JSON form are refused here.
    return parse_object(chosen.plane, chosen.kind, decode_json_object(encode(body)), None).snapshot


def a_store(
    plane: PlaneName,
    kind: Kind,
    snapshots: Iterable[Snapshot] = (),
    *,
    indexes: Mapping[str, IndexFunction] | None = None,
    is_synced: bool = True,
) -> Store:
    """A store with these objects, synced by default."""
    store = Store(plane, kind, indexes)
    places: list[tuple[str, str]] = []
    for snapshot in snapshots:
        store.put(parse_object(plane, kind, snapshot.decode(), None))
        places.append((snapshot.key.namespace, snapshot.key.name))
    if is_synced:
        store.replace(places, version=1, at=ZERO)
    return store


class FakeCaches:
    """Stores by plane and kind, for testing `observe` and mapping functions."""

    def __init__(self, stores: Sequence[Store], roles: Mapping[str, Role]) -> None:
        """`roles` has all engaged planes, also those without a store."""
        self._stores = {(store.plane, store.kind): store for store in stores}
        self._roles = {PlaneName(name): role for name, role in roles.items()}

    def lister(self, plane: PlaneName, kind: Kind) -> Lister:
        if plane not in self._roles:
            raise PlaneGoneError("PlaneGone", f"looking up plane {plane!r}: it is not engaged")
        store = self._stores.get((plane, kind))
        return Store(plane, kind) if store is None else store

    def planes(self, role: Role) -> tuple[PlaneName, ...]:
        return tuple(sorted(name for name, its_role in self._roles.items() if its_role is role))
