"""Quota usage of one plane: claims and grants, counted per bucket.

A cache without side effects. What a claim holds is read from its own allocations, so the counts are
the same after a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compute_sim_planes.client.workqueue import NamespacedName, namespaced_name
from compute_sim_planes.conditions import is_condition_true
from compute_sim_planes.json_types import (
    JsonObject,
    integer_at,
    object_at,
    objects_at,
    string_at,
)
from compute_sim_planes.milo.quota.evaluation import GRANTED, BucketKey, bucket_key_of


def uid_of(existing: JsonObject) -> str:
    return string_at(existing, "metadata", "uid")


class QuotaUsage:
    """Claims with their allocations, and grants, by key."""

    def __init__(self) -> None:
        self._claims: dict[NamespacedName, JsonObject] = {}
        self._grants: dict[NamespacedName, JsonObject] = {}
        self._allocated: dict[BucketKey, dict[NamespacedName, int]] = {}

    def claim(self, key: NamespacedName) -> JsonObject | None:
        return self._claims.get(key)

    def upsert_claim(self, claim: JsonObject) -> set[BucketKey]:
        """Store the current claim; returns the buckets with a changed count."""
        key = namespaced_name(claim)
        known = self._claims.get(key)
        if known is not None and uid_of(known) == uid_of(claim) and _is_older(claim, known):
            # The response to our own write arrived before the watch event of the previous version.
            return set()
        before, after = dict(_allocations(known)), dict(_allocations(claim))
        self._claims[key] = claim
        changed = {
            bucket
            for bucket in before.keys() | after.keys()
            if before.get(bucket) != after.get(bucket)
        }
        for bucket in changed:
            self._set_allocated(bucket, key, after.get(bucket))
        return changed

    def remove_claim(self, claim: JsonObject) -> set[BucketKey]:
        """Remove a deleted claim; returns the buckets it used. A claim of the same name but another
        UID stays.
        """
        key = namespaced_name(claim)
        known = self._claims.get(key)
        if known is None or uid_of(known) != uid_of(claim):
            return set()
        del self._claims[key]
        freed = {bucket for bucket, _ in _allocations(known)}
        for bucket in freed:
            self._set_allocated(bucket, key, None)
        return freed

    def replace_grants(self, grants: Iterable[JsonObject]) -> None:
        """Replace all grants of the plane."""
        self._grants = {namespaced_name(grant): grant for grant in grants}

    def grant(self, key: NamespacedName) -> JsonObject | None:
        return self._grants.get(key)

    def upsert_grant(self, grant: JsonObject) -> None:
        key = namespaced_name(grant)
        known = self._grants.get(key)
        if known is None or uid_of(known) != uid_of(grant) or not _is_older(grant, known):
            self._grants[key] = grant

    def remove_grant(self, grant: JsonObject) -> None:
        known = self._grants.get(namespaced_name(grant))
        if known is not None and uid_of(known) == uid_of(grant):
            del self._grants[namespaced_name(grant)]

    def available(self, bucket: BucketKey) -> int:
        """The unused amount; negative where a grant was lowered below what is allocated."""
        return self._limit(bucket) - sum(self._allocated.get(bucket, {}).values())

    def count(self, bucket: BucketKey) -> JsonObject:
        """The bucket's status without times."""
        held = self._allocated.get(bucket, {})
        given = sorted(self._contributions(bucket), key=lambda one: string_at(one, "name"))
        return {
            "allocated": sum(held.values()),
            "available": max(self.available(bucket), 0),
            "claimCount": len(held),
            "contributingGrantRefs": [*given],
            "grantCount": len(given),
            "limit": self._limit(bucket),
            "observedGeneration": 1,
        }

    def _limit(self, bucket: BucketKey) -> int:
        return sum(integer_at(one, "amount") or 0 for one in self._contributions(bucket))

    def _contributions(self, bucket: BucketKey) -> Iterator[JsonObject]:
        for grant in self._grants.values():
            if not is_condition_true(grant, "Active"):
                continue
            consumer = object_at(grant, "spec", "consumerRef")
            for allowance in objects_at(grant, "spec", "allowances"):
                if bucket_key_of(consumer, string_at(allowance, "resourceType")) == bucket:
                    parts = objects_at(allowance, "buckets")
                    yield {
                        "amount": sum(integer_at(part, "amount") or 0 for part in parts),
                        "lastObservedGeneration": integer_at(grant, "metadata", "generation"),
                        "name": string_at(grant, "metadata", "name"),
                    }

    def _set_allocated(self, bucket: BucketKey, key: NamespacedName, amount: int | None) -> None:
        held = self._allocated.setdefault(bucket, {})
        if amount is not None:
            held[key] = amount
            return
        held.pop(key, None)
        if not held:
            del self._allocated[bucket]


def _allocations(claim: JsonObject | None) -> Iterator[tuple[BucketKey, int]]:
    """The allocations of a claim. A request that was removed from its spec holds nothing."""
    consumer = object_at(claim, "spec", "consumerRef")
    asked = {string_at(one, "resourceType") for one in objects_at(claim, "spec", "requests")}
    for one in objects_at(claim, "status", "allocations"):
        resource_type = string_at(one, "resourceType")
        if one.get("status") == GRANTED and resource_type in asked:
            yield bucket_key_of(consumer, resource_type), integer_at(one, "allocatedAmount") or 0


def _is_older(existing: JsonObject, known: JsonObject) -> bool:
    return _version(existing) < _version(known)


def _version(existing: JsonObject) -> int:
    text = string_at(existing, "metadata", "resourceVersion")
    return int(text) if text.isdecimal() else 0
