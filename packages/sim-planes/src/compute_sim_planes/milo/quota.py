"""Quota of one plane: grants become active, claims are decided, buckets are counted.

Works on the neighbours' client port alone, so on a simulated plane and on a real API server; run
one per plane and no more, since nothing else keeps two from promising the same units. Everything is
done by one worker in the order it was seen: a claim that is deleted while it is decided is
forgotten after the decision, never before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeAlias, assert_never

from compute_sim_planes.api_server.sources import Clock, render_time
from compute_sim_planes.client import Client, Resource
from compute_sim_planes.client_errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    NotFoundError,
)
from compute_sim_planes.following import Seen, follow
from compute_sim_planes.json_types import (
    JsonObject,
    integer_at,
    object_at,
    objects_at,
    string_at,
    string_map_at,
)
from compute_sim_planes.milo import evaluation
from compute_sim_planes.milo.conditions import Finding, derive_conditions
from compute_sim_planes.milo.evaluation import Bucket
from compute_sim_planes.milo.kinds import (
    AUTO_CREATED,
    BUCKETS,
    CLAIMS,
    CREATED_BY,
    GRANTS,
    SYSTEM_NAMESPACE,
)
from compute_sim_planes.milo.knobs import Knobs
from compute_sim_planes.milo.ledger import Key, Ledger, key_of, uid_of

RETRY: Final = timedelta(seconds=1)
_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Decide:
    """A claim has waited long enough."""

    key: Key


@dataclass(frozen=True, slots=True)
class Activate:
    """A grant is to say that it counts."""

    key: Key


@dataclass(frozen=True, slots=True)
class Count:
    """A bucket may have changed."""

    bucket: Bucket


@dataclass(frozen=True, slots=True)
class Reap:
    """An old version's reaper comes for a claim."""

    key: Key
    uid: str


Duty: TypeAlias = Decide | Activate | Count | Reap


@dataclass(frozen=True, slots=True)
class Change:
    """A claim or a grant came, changed or went. Only noted, so it cannot fail and come too late."""

    resource: Resource
    seen: Seen


class QuotaController:
    """Milo's quota controllers for one plane."""

    def __init__(self, plane: Client, clock: Clock, knobs: Knobs | None = None) -> None:
        self._plane = plane
        self._clock = clock
        self._knobs = knobs or Knobs()
        self._ledger = Ledger()
        self._queue: asyncio.Queue[Change | Duty] = asyncio.Queue()
        self._timers: dict[Duty, asyncio.TimerHandle] = {}
        # What each bucket was last told to say; one that is not here may not exist.
        self._told: dict[Bucket, JsonObject] = {}

    async def run(self) -> None:
        """Works until it is cancelled. A plane that is away is waited for."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._work(), name="milo quota")
                for resource in (GRANTS, CLAIMS):
                    tasks.create_task(self._follow(resource), name=f"milo {resource.plural}")
        finally:
            for timer in self._timers.values():
                timer.cancel()
            self._timers.clear()

    async def _follow(self, resource: Resource) -> None:
        async with aclosing(follow(self._plane, resource)) as changes:
            async for seen in changes:
                self._queue.put_nowait(Change(resource, seen))

    async def _work(self) -> None:
        await self._learn_buckets()
        while True:
            item = await self._queue.get()
            if isinstance(item, Change):
                self._note(item)
                continue
            try:
                await self._carry_out(item)
            except (ApiError, OSError) as cause:
                # The plane is away, or `milo-system` is missing: claims stay pending meanwhile.
                _log.debug("Carrying out quota", extra={"duty": str(item), "cause": str(cause)})
                self._later(item, RETRY)

    async def _learn_buckets(self) -> None:
        """What buckets say from before a restart; what they missed is told at the first count."""
        while True:
            try:
                listing = await self._plane.list(BUCKETS)
            except (ApiError, OSError):
                await asyncio.sleep(RETRY.total_seconds())
                continue
            for found in listing.items:
                status = dict(object_at(found, "status"))
                status.pop("lastReconciliation", None)
                consumer = object_at(found, "spec", "consumerRef")
                resource_type = string_at(found, "spec", "resourceType")
                self._told[evaluation.bucket_of(consumer, resource_type)] = status
            return

    def _note(self, change: Change) -> None:
        found = change.seen.object
        if change.resource == CLAIMS:
            note = self._ledger.forget_claim if change.seen.is_gone else self._ledger.note_claim
            self._count_soon(note(found))
            self._plan_claim(key_of(found))
        elif change.seen.is_gone:
            self._ledger.forget_grant(found)
            self._count_soon(self._told)
        else:
            self._ledger.note_grant(found)
            self._queue.put_nowait(Activate(key_of(found)))

    def _plan_claim(self, key: Key) -> None:
        """What is to become of a claim, judged by the latest that is known of it."""
        claim = self._ledger.claim(key)
        if claim is None:
            return
        if evaluation.is_pending(claim):
            self._later(Decide(key), self._knobs.evaluation_delay)
        owners = objects_at(claim, "metadata", "ownerReferences")
        if self._knobs.reaper and evaluation.is_granted(claim) and not owners:
            self._later(Reap(key, uid_of(claim)), self._knobs.reaper_delay)

    async def _carry_out(self, duty: Duty) -> None:
        match duty:
            case Decide(key=key):
                await self._decide(key)
            case Activate(key=key):
                await self._activate(key)
            case Count(bucket=bucket):
                await self._count(bucket)
            case Reap(key=key, uid=uid):
                await self._delete(key, uid)
            case _:
                assert_never(duty)

    async def _activate(self, key: Key) -> None:
        grant = self._ledger.grant(key)
        if grant is None:
            return
        generation = integer_at(grant, "metadata", "generation") or 1
        finding = Finding("Active", "True", "GrantActive", "ResourceGrant is active", generation)
        status: JsonObject = {
            "conditions": derive_conditions(grant, finding, self._clock.now()),
            "observedGeneration": generation,
        }
        if object_at(grant, "status") != status:
            # One that is gone is told by watch.
            with suppress(NotFoundError):
                written = await self._patch_status(GRANTS, key, status)
                self._ledger.note_grant(written)
        self._count_soon(self._told)

    async def _decide(self, key: Key) -> None:
        if self._knobs.holds(lambda: self._queue.put_nowait(Decide(key))):
            return
        claim = self._ledger.claim(key)
        if claim is None or not evaluation.is_pending(claim):
            return
        try:
            await self._evaluate(claim)
        except ConflictError:
            # Somebody changed it meanwhile; what is there now is decided instead.
            current = await self._plane.get(CLAIMS, key.name, key.namespace)
            if current is not None:
                self._ledger.note_claim(current)
                self._queue.put_nowait(Decide(key))

    async def _evaluate(self, claim: JsonObject) -> None:
        # A verdict is final, so it is never based on grants that are only remembered.
        self._ledger.note_grants((await self._plane.list(GRANTS)).items)
        claim = await self._fold(claim)
        for request in evaluation.waiting_requests(claim):
            if self._knobs.skips_after_denial and not evaluation.is_pending(claim):
                break
            claim = await self._allocate(claim, request)
            claim = await self._fold(claim)
        await self._clean_up(claim)

    async def _allocate(self, claim: JsonObject, request: JsonObject) -> JsonObject:
        consumer = object_at(claim, "spec", "consumerRef")
        bucket = evaluation.bucket_of(consumer, string_at(request, "resourceType"))
        await self._ensure_bucket(bucket)
        allocation = evaluation.derive_allocation(
            request, bucket, self._ledger.available(bucket), self._clock.now()
        )
        written = await self._write(claim, evaluation.derive_allocated(claim, allocation))
        self._count_soon([bucket])
        return written

    async def _fold(self, claim: JsonObject) -> JsonObject:
        return await self._write(claim, evaluation.derive_folded(claim, self._clock.now()))

    async def _write(self, claim: JsonObject, status: JsonObject) -> JsonObject:
        """Writes a claim's status where it differs. Raises when the claim is not as it was."""
        if status == object_at(claim, "status"):
            return claim
        written = await self._plane.update_status(CLAIMS, {**claim, "status": status})
        self._ledger.note_claim(written)
        return written

    async def _clean_up(self, claim: JsonObject) -> None:
        """Milo takes away what it claimed by itself and refused; ours must not look like that."""
        labels = string_map_at(claim, "metadata", "labels")
        annotations = string_map_at(claim, "metadata", "annotations")
        is_marked = labels.get(AUTO_CREATED) == "true" and CREATED_BY in annotations
        if is_marked and not evaluation.is_granted(claim):
            await self._delete(key_of(claim), uid_of(claim))

    async def _delete(self, key: Key, uid: str) -> None:
        # In a conflict another claim has the name already; it was not meant.
        with suppress(ConflictError):
            await self._plane.delete(CLAIMS, key.name, namespace=key.namespace, uid=uid)

    async def _ensure_bucket(self, bucket: Bucket) -> None:
        if bucket in self._told:
            return
        with suppress(AlreadyExistsError):
            await self._plane.create(BUCKETS, evaluation.derive_bucket(bucket))
        self._told[bucket] = {}

    def _count_soon(self, buckets: Iterable[Bucket]) -> None:
        for bucket in sorted(buckets):
            self._queue.put_nowait(Count(bucket))

    async def _count(self, bucket: Bucket) -> None:
        counted = self._ledger.count(bucket)
        # Buckets are made for claims only.
        if bucket not in self._told or self._told[bucket] == counted:
            return
        status: JsonObject = {**counted, "lastReconciliation": render_time(self._clock.now())}
        try:
            await self._patch_status(BUCKETS, Key(SYSTEM_NAMESPACE, bucket.object_name), status)
        except NotFoundError:
            # Purged with its project, or deleted by somebody: made again for the next claim.
            del self._told[bucket]
            return
        self._told[bucket] = counted

    async def _patch_status(self, resource: Resource, key: Key, status: JsonObject) -> JsonObject:
        return await self._plane.patch(
            resource, key.name, {"status": status}, namespace=key.namespace, subresource="status"
        )

    def _later(self, duty: Duty, delay: timedelta) -> None:
        """Once, however often it is asked for meanwhile."""
        if duty not in self._timers:
            loop = asyncio.get_running_loop()
            wait = delay.total_seconds()
            self._timers[duty] = loop.call_later(wait, self._put, duty)

    def _put(self, duty: Duty) -> None:
        self._timers.pop(duty, None)
        self._queue.put_nowait(duty)
