"""The quota controllers of one plane: activate grants, evaluate claims, count buckets.

It only uses a `Client`, so it works with a simulated plane and with a real API server. Run one per
plane: two would grant the same units twice. One worker handles everything in order of arrival, so a
claim that is deleted during its evaluation is removed after it, never before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeAlias, assert_never

from compute_sim_planes.client.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    NotFoundError,
)
from compute_sim_planes.client.reflector import Delta, list_and_watch
from compute_sim_planes.client.rest import Client, Resource
from compute_sim_planes.client.workqueue import NamespacedName, namespaced_name
from compute_sim_planes.conditions import Condition, derive_conditions
from compute_sim_planes.json_types import (
    JsonObject,
    integer_at,
    object_at,
    objects_at,
    string_at,
    string_map_at,
)
from compute_sim_planes.milo.kinds import (
    AUTO_CREATED,
    BUCKETS,
    CLAIMS,
    CREATED_BY,
    GRANTS,
    SYSTEM_NAMESPACE,
)
from compute_sim_planes.milo.options import MiloOptions
from compute_sim_planes.milo.quota import evaluation
from compute_sim_planes.milo.quota.evaluation import BucketKey
from compute_sim_planes.milo.quota.usage import QuotaUsage, uid_of
from compute_sim_planes.time.sources import Clock, render_time

RETRY: Final = timedelta(seconds=1)
_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EvaluateClaim:
    """Evaluate a claim after the delay."""

    key: NamespacedName


@dataclass(frozen=True, slots=True)
class ActivateGrant:
    """Set the condition of a grant."""

    key: NamespacedName


@dataclass(frozen=True, slots=True)
class UpdateBucket:
    """Update the status of a bucket."""

    bucket: BucketKey


@dataclass(frozen=True, slots=True)
class ReapClaim:
    """Delete a granted claim, as old versions of Milo do."""

    key: NamespacedName
    uid: str


QuotaTask: TypeAlias = EvaluateClaim | ActivateGrant | UpdateBucket | ReapClaim


@dataclass(frozen=True, slots=True)
class QuotaDelta:
    """A change of a claim or grant. It only updates the cache, so it cannot fail."""

    resource: Resource
    delta: Delta


class QuotaController:
    """Milo's quota controllers for one plane."""

    def __init__(self, plane: Client, clock: Clock, options: MiloOptions | None = None) -> None:
        self._plane = plane
        self._clock = clock
        self._options = options or MiloOptions()
        self._usage = QuotaUsage()
        self._queue: asyncio.Queue[QuotaDelta | QuotaTask] = asyncio.Queue()
        self._timers: dict[QuotaTask, asyncio.TimerHandle] = {}
        # The last written status of each bucket; a bucket that is missing here may not exist.
        self._bucket_status: dict[BucketKey, JsonObject] = {}

    async def run(self) -> None:
        """Run until cancelled. An unavailable plane is retried."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._work(), name="milo quota")
                for resource in (GRANTS, CLAIMS):
                    tasks.create_task(self._watch(resource), name=f"milo {resource.plural}")
        finally:
            for timer in self._timers.values():
                timer.cancel()
            self._timers.clear()

    async def _watch(self, resource: Resource) -> None:
        async with aclosing(list_and_watch(self._plane, resource)) as changes:
            async for seen in changes:
                self._queue.put_nowait(QuotaDelta(resource, seen))

    async def _work(self) -> None:
        await self._load_buckets()
        while True:
            item = await self._queue.get()
            if isinstance(item, QuotaDelta):
                self._apply_delta(item)
                continue
            try:
                await self._run_task(item)
            except (ApiError, OSError) as cause:
                # The plane is unavailable, or `milo-system` is missing: claims stay pending
                # meanwhile.
                _log.debug("Carrying out quota", extra={"duty": str(item), "cause": str(cause)})
                self._enqueue_after(item, RETRY)

    async def _load_buckets(self) -> None:
        """Read the buckets of a previous run; the first count updates them."""
        while True:
            try:
                listing = await self._plane.list(BUCKETS)
            except (ApiError, OSError):
                await asyncio.sleep(RETRY.total_seconds())
                continue
            for existing in listing.items:
                status = dict(object_at(existing, "status"))
                status.pop("lastReconciliation", None)
                consumer = object_at(existing, "spec", "consumerRef")
                resource_type = string_at(existing, "spec", "resourceType")
                self._bucket_status[evaluation.bucket_key_of(consumer, resource_type)] = status
            return

    def _apply_delta(self, change: QuotaDelta) -> None:
        changed = change.delta.object
        if change.resource == CLAIMS:
            note = self._usage.remove_claim if change.delta.is_deleted else self._usage.upsert_claim
            self._enqueue_updates(note(changed))
            self._plan_claim(namespaced_name(changed))
        elif change.delta.is_deleted:
            self._usage.remove_grant(changed)
            self._enqueue_updates(self._bucket_status)
        else:
            self._usage.upsert_grant(changed)
            self._queue.put_nowait(ActivateGrant(namespaced_name(changed)))

    def _plan_claim(self, key: NamespacedName) -> None:
        """Enqueue the tasks of a claim by its cached state."""
        claim = self._usage.claim(key)
        if claim is None:
            return
        if evaluation.is_pending(claim):
            self._enqueue_after(EvaluateClaim(key), self._options.evaluation_delay)
        owners = objects_at(claim, "metadata", "ownerReferences")
        if self._options.reaper and evaluation.is_granted(claim) and not owners:
            self._enqueue_after(ReapClaim(key, uid_of(claim)), self._options.reaper_delay)

    async def _run_task(self, task: QuotaTask) -> None:
        match task:
            case EvaluateClaim(key=key):
                await self._evaluate_if_pending(key)
            case ActivateGrant(key=key):
                await self._activate(key)
            case UpdateBucket(bucket=bucket):
                await self._count(bucket)
            case ReapClaim(key=key, uid=uid):
                await self._delete(key, uid)
            case _:
                assert_never(task)

    async def _activate(self, key: NamespacedName) -> None:
        grant = self._usage.grant(key)
        if grant is None:
            return
        generation = integer_at(grant, "metadata", "generation") or 1
        condition = Condition(
            "Active", "True", "GrantActive", "ResourceGrant is active", generation
        )
        status: JsonObject = {
            "conditions": derive_conditions(grant, condition, self._clock.now()),
            "observedGeneration": generation,
        }
        if object_at(grant, "status") != status:
            # A deleted grant arrives by watch.
            with suppress(NotFoundError):
                written = await self._patch_status(GRANTS, key, status)
                self._usage.upsert_grant(written)
        self._enqueue_updates(self._bucket_status)

    async def _evaluate_if_pending(self, key: NamespacedName) -> None:
        if self._options.defer_if_paused(lambda: self._queue.put_nowait(EvaluateClaim(key))):
            return
        claim = self._usage.claim(key)
        if claim is None or not evaluation.is_pending(claim):
            return
        try:
            await self._evaluate(claim)
        except ConflictError:
            # A concurrent write: evaluate the current claim instead.
            current = await self._plane.get(CLAIMS, key.name, key.namespace)
            if current is not None:
                self._usage.upsert_claim(current)
                self._queue.put_nowait(EvaluateClaim(key))

    async def _evaluate(self, claim: JsonObject) -> None:
        # The result is final, so it must not be based on cached grants.
        self._usage.replace_grants((await self._plane.list(GRANTS)).items)
        claim = await self._fold(claim)
        for request in evaluation.waiting_requests(claim):
            if self._options.skips_after_denial and not evaluation.is_pending(claim):
                break
            claim = await self._allocate(claim, request)
            claim = await self._fold(claim)
        await self._clean_up(claim)

    async def _allocate(self, claim: JsonObject, request: JsonObject) -> JsonObject:
        consumer = object_at(claim, "spec", "consumerRef")
        bucket = evaluation.bucket_key_of(consumer, string_at(request, "resourceType"))
        await self._ensure_bucket(bucket)
        allocation = evaluation.derive_allocation(
            request, bucket, self._usage.available(bucket), self._clock.now()
        )
        written = await self._write(claim, evaluation.derive_allocated(claim, allocation))
        self._enqueue_updates([bucket])
        return written

    async def _fold(self, claim: JsonObject) -> JsonObject:
        return await self._write(claim, evaluation.derive_folded(claim, self._clock.now()))

    async def _write(self, claim: JsonObject, status: JsonObject) -> JsonObject:
        """Write a claim's status if it differs. Raises if the claim was changed meanwhile."""
        if status == object_at(claim, "status"):
            return claim
        written = await self._plane.update_status(CLAIMS, {**claim, "status": status})
        self._usage.upsert_claim(written)
        return written

    async def _clean_up(self, claim: JsonObject) -> None:
        """Milo deletes denied claims that it created itself; ours must not carry its marks."""
        labels = string_map_at(claim, "metadata", "labels")
        annotations = string_map_at(claim, "metadata", "annotations")
        is_marked = labels.get(AUTO_CREATED) == "true" and CREATED_BY in annotations
        if is_marked and not evaluation.is_granted(claim):
            await self._delete(namespaced_name(claim), uid_of(claim))

    async def _delete(self, key: NamespacedName, uid: str) -> None:
        # On a conflict the name belongs to another claim, which must stay.
        with suppress(ConflictError):
            await self._plane.delete(CLAIMS, key.name, namespace=key.namespace, uid=uid)

    async def _ensure_bucket(self, bucket: BucketKey) -> None:
        if bucket in self._bucket_status:
            return
        with suppress(AlreadyExistsError):
            await self._plane.create(BUCKETS, evaluation.derive_bucket(bucket))
        self._bucket_status[bucket] = {}

    def _enqueue_updates(self, buckets: Iterable[BucketKey]) -> None:
        for bucket in sorted(buckets):
            self._queue.put_nowait(UpdateBucket(bucket))

    async def _count(self, bucket: BucketKey) -> None:
        counted = self._usage.count(bucket)
        # Buckets exist only for claims.
        if bucket not in self._bucket_status or self._bucket_status[bucket] == counted:
            return
        status: JsonObject = {**counted, "lastReconciliation": render_time(self._clock.now())}
        try:
            await self._patch_status(
                BUCKETS, NamespacedName(SYSTEM_NAMESPACE, bucket.object_name), status
            )
        except NotFoundError:
            # Purged with its project or deleted by a user: created again for the next claim.
            del self._bucket_status[bucket]
            return
        self._bucket_status[bucket] = counted

    async def _patch_status(
        self, resource: Resource, key: NamespacedName, status: JsonObject
    ) -> JsonObject:
        return await self._plane.patch(
            resource, key.name, {"status": status}, namespace=key.namespace, subresource="status"
        )

    def _enqueue_after(self, task: QuotaTask, delay: timedelta) -> None:
        """Enqueue a task once after the delay, however often it is requested meanwhile."""
        if task not in self._timers:
            loop = asyncio.get_running_loop()
            wait = delay.total_seconds()
            self._timers[task] = loop.call_later(wait, self._enqueue, task)

    def _enqueue(self, task: QuotaTask) -> None:
        self._timers.pop(task, None)
        self._queue.put_nowait(task)
