"""Fakes and builders for users of the kit: time, randomness, caches, snapshots, and what was
reported.

There is no fake API server here and there must not be one: that is `sim-planes`, which passes the
contract tests of a real one. What is here stands in for the ports around a pure function or a
single pass. Builders give valid defaults and refuse the impossible; a test overrides only what it
is about.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from compute_operator_kit.cache import Store, View
from compute_operator_kit.clock import ZERO
from compute_operator_kit.errors import PlaneGoneError
from compute_operator_kit.indexing import IndexFunction
from compute_operator_kit.intents import Emit
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.objects import Snapshot, parse_object
from compute_operator_kit.wire import JsonMapping, JsonValue, decode_object, encode

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
A_KIND: Final = Kind("example.datumapis.com", "v1", "notes", "Note")


class FakeClock:
    """Time that stands still until it is told to pass."""

    def __init__(self, start: datetime = START) -> None:
        self._start = start
        self._passed = ZERO
        self._sleepers: list[tuple[timedelta, int, asyncio.Future[None]]] = []
        self._order = itertools.count()
        self.step = ZERO  # the wall clock alone: set, forward or back

    def now(self) -> datetime:
        return self._start + self._passed + self.step

    def monotonic(self) -> timedelta:
        return self._passed

    async def sleep(self, delay: timedelta) -> None:
        if delay <= ZERO:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._passed + delay, next(self._order), woken))
        await woken

    def pass_time(self, length: timedelta) -> None:
        """Wakes who slept that long, in order."""
        self._passed += length
        while self._sleepers and self._sleepers[0][0] <= self._passed:
            woken = heapq.heappop(self._sleepers)[2]
            if not woken.done():
                woken.set_result(None)


class FixedRandom:
    """The same chance every time, or one after another from a list that repeats."""

    def __init__(self, *chances: float) -> None:
        self._chances = itertools.cycle(chances or (0.0,))

    def random(self) -> float:
        return next(self._chances)


Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class FakeMeasures:
    """Remembers everything that was reported."""

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
        """The sum of a counter over all series that carry these labels."""
        wanted = labels.items()
        return sum(
            amount
            for (found, series), amount in self.counts.items()
            if found == name and wanted <= dict(series).items()
        )


@dataclass(slots=True)
class FakeRecorder:
    """Remembers events instead of writing them."""

    emitted: list[Emit] = field(default_factory=list)

    def record(self, emit: Emit) -> None:
        self.emitted.append(emit)


@dataclass(slots=True)
class FakeLeadership:
    """Leads as long as a test says so."""

    is_leading: bool = True


@dataclass(frozen=True, slots=True)
class Sent:
    """One request, as a transport saw it."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes | None


class ScriptedAnswer:
    """An answer told beforehand; with `hangs` its body never ends."""

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
    """Answers requests one after another as the script says, and remembers them.

    No server: it knows no objects and no rules. For what a server would do there is `sim-planes`.
    """

    def __init__(self, *script: ScriptedAnswer | OSError) -> None:
        self.script = list(script)
        self.sent: list[Sent] = []

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> ScriptedAnswer:
        self.sent.append(Sent(method, target, dict(headers), body))
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
    """An object as a plane would serve it; what is given lies over valid defaults."""
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
    # Through the codec: what cannot be on the wire is refused here, not in the test's assertion.
    return parse_object(chosen.plane, chosen.kind, decode_object(encode(body)), None).snapshot


def a_store(
    plane: PlaneName,
    kind: Kind,
    snapshots: Iterable[Snapshot] = (),
    *,
    indexes: Mapping[str, IndexFunction] | None = None,
    is_synced: bool = True,
) -> Store:
    """A store that has seen these objects, complete unless it says otherwise."""
    store = Store(plane, kind, indexes)
    places: list[tuple[str, str]] = []
    for snapshot in snapshots:
        store.put(parse_object(plane, kind, snapshot.decode(), None))
        places.append((snapshot.key.namespace, snapshot.key.name))
    if is_synced:
        store.complete(places, version=1, at=ZERO)
    return store


class FakeCaches:
    """Stores by plane and kind, for testing `observe` and mapping functions."""

    def __init__(self, stores: Sequence[Store], roles: Mapping[str, Role]) -> None:
        """`roles` names every engaged plane, also those without a store."""
        self._stores = {(store.plane, store.kind): store for store in stores}
        self._roles = {PlaneName(name): role for name, role in roles.items()}

    def view(self, plane: PlaneName, kind: Kind) -> View:
        if plane not in self._roles:
            raise PlaneGoneError("PlaneGone", f"looking up plane {plane!r}: it is not engaged")
        found = self._stores.get((plane, kind))
        return Store(plane, kind) if found is None else found

    def planes(self, role: Role) -> tuple[PlaneName, ...]:
        return tuple(sorted(name for name, found in self._roles.items() if found is role))
