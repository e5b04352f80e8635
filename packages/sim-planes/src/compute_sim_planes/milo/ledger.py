"""Who may use how much in one plane, and who does: claims and grants, counted into buckets.

A memory of what was read and written, without effects. What a claim holds is read from its own
allocations, so a ledger that is filled again after a restart counts the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from compute_sim_planes.json_types import (
    JsonObject,
    integer_at,
    object_at,
    objects_at,
    string_at,
)
from compute_sim_planes.milo.conditions import holds
from compute_sim_planes.milo.evaluation import GRANTED, Bucket, bucket_of


class Key(NamedTuple):
    """An object of one kind in a plane."""

    namespace: str
    name: str


def key_of(found: JsonObject) -> Key:
    return Key(string_at(found, "metadata", "namespace"), string_at(found, "metadata", "name"))


def uid_of(found: JsonObject) -> str:
    return string_at(found, "metadata", "uid")


class Ledger:
    """Claims by key with what they hold, and grants."""

    def __init__(self) -> None:
        self._claims: dict[Key, JsonObject] = {}
        self._grants: dict[Key, JsonObject] = {}
        self._held: dict[Bucket, dict[Key, int]] = {}

    def claim(self, key: Key) -> JsonObject | None:
        return self._claims.get(key)

    def note_claim(self, claim: JsonObject) -> set[Bucket]:
        """Takes over a claim as it is now; the buckets whose count it changed."""
        key = key_of(claim)
        known = self._claims.get(key)
        if known is not None and uid_of(known) == uid_of(claim) and _is_older(claim, known):
            # Our own write was answered before its predecessor came by watch.
            return set()
        before, after = dict(_holdings(known)), dict(_holdings(claim))
        self._claims[key] = claim
        changed = {
            bucket
            for bucket in before.keys() | after.keys()
            if before.get(bucket) != after.get(bucket)
        }
        for bucket in changed:
            self._hold(bucket, key, after.get(bucket))
        return changed

    def forget_claim(self, claim: JsonObject) -> set[Bucket]:
        """A claim is gone; the buckets it held something in. A namesake stays."""
        key = key_of(claim)
        known = self._claims.get(key)
        if known is None or uid_of(known) != uid_of(claim):
            return set()
        del self._claims[key]
        freed = {bucket for bucket, _ in _holdings(known)}
        for bucket in freed:
            self._hold(bucket, key, None)
        return freed

    def note_grants(self, grants: Iterable[JsonObject]) -> None:
        """All grants of the plane, as they are now."""
        self._grants = {key_of(grant): grant for grant in grants}

    def grant(self, key: Key) -> JsonObject | None:
        return self._grants.get(key)

    def note_grant(self, grant: JsonObject) -> None:
        key = key_of(grant)
        known = self._grants.get(key)
        if known is None or uid_of(known) != uid_of(grant) or not _is_older(grant, known):
            self._grants[key] = grant

    def forget_grant(self, grant: JsonObject) -> None:
        known = self._grants.get(key_of(grant))
        if known is not None and uid_of(known) == uid_of(grant):
            del self._grants[key_of(grant)]

    def available(self, bucket: Bucket) -> int:
        """What is left; below zero where a grant was lowered under what is held."""
        return self._limit(bucket) - sum(self._held.get(bucket, {}).values())

    def count(self, bucket: Bucket) -> JsonObject:
        """What the bucket's status says, but for times."""
        held = self._held.get(bucket, {})
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

    def _limit(self, bucket: Bucket) -> int:
        return sum(integer_at(one, "amount") or 0 for one in self._contributions(bucket))

    def _contributions(self, bucket: Bucket) -> Iterator[JsonObject]:
        for grant in self._grants.values():
            if not holds(grant, "Active"):
                continue
            consumer = object_at(grant, "spec", "consumerRef")
            for allowance in objects_at(grant, "spec", "allowances"):
                if bucket_of(consumer, string_at(allowance, "resourceType")) == bucket:
                    parts = objects_at(allowance, "buckets")
                    yield {
                        "amount": sum(integer_at(part, "amount") or 0 for part in parts),
                        "lastObservedGeneration": integer_at(grant, "metadata", "generation"),
                        "name": string_at(grant, "metadata", "name"),
                    }

    def _hold(self, bucket: Bucket, key: Key, amount: int | None) -> None:
        held = self._held.setdefault(bucket, {})
        if amount is not None:
            held[key] = amount
            return
        held.pop(key, None)
        if not held:
            del self._held[bucket]


def _holdings(claim: JsonObject | None) -> Iterator[tuple[Bucket, int]]:
    """What a claim holds. A request that was dropped from its spec holds nothing any more."""
    consumer = object_at(claim, "spec", "consumerRef")
    asked = {string_at(one, "resourceType") for one in objects_at(claim, "spec", "requests")}
    for one in objects_at(claim, "status", "allocations"):
        resource_type = string_at(one, "resourceType")
        if one.get("status") == GRANTED and resource_type in asked:
            yield bucket_of(consumer, resource_type), integer_at(one, "allocatedAmount") or 0


def _is_older(found: JsonObject, known: JsonObject) -> bool:
    return _version(found) < _version(known)


def _version(found: JsonObject) -> int:
    text = string_at(found, "metadata", "resourceVersion")
    return int(text) if text.isdecimal() else 0
