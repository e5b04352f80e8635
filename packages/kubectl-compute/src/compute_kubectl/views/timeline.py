"""`timeline`: what happened to one Workload on all planes, oldest first. Pure.

Only what objects and Events still record: a condition has its last transition alone, managedFields
the last write of each manager, and Events live for an hour. What is gone is named, never guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

from compute_api_types import names
from compute_kubectl.explain.chain import Chain, build_chains
from compute_kubectl.explain.diagnosis import ObjectName
from compute_kubectl.explain.explain import Subject
from compute_kubectl.explain.network import network_bindings_of
from compute_kubectl.snapshot.access import Access, Listing
from compute_kubectl.snapshot.objects import SeenEvent, SeenObject
from compute_kubectl.snapshot.planes import Snapshot

EVENT_LIFE: Final = timedelta(hours=1)
EVENTS_ARE_GONE: Final = "events older than 1 h are gone"


@dataclass(frozen=True, slots=True)
class Moment:
    """One thing that happened; `delta` is the time since the one before it."""

    at: datetime
    plane: str
    object: ObjectName
    what: str
    by: str = ""
    count: int = 1
    delta: timedelta | None = None
    is_slowest: bool = False
    is_event: bool = False


@dataclass(frozen=True, slots=True)
class Timeline:
    """The moments of one Workload in order, and what of its history is missing."""

    namespace: str
    name: str
    at: datetime
    moments: tuple[Moment, ...]
    missing: tuple[str, ...] = ()


def derive_timeline(
    snapshot: Snapshot, now: datetime, subject: Subject, *, since: timedelta | None = None
) -> Timeline:
    """What the snapshot records of the Workload, from `since` ago on."""
    workload = next(
        (one for one in snapshot.project.workloads if one.meta.name == subject.name), None
    )
    uid = workload.meta.uid if workload else subject.uid
    chains = build_chains(snapshot, workload, uid) if uid else ()
    objects = list(_objects(snapshot, chains))
    if workload is not None:
        objects.insert(0, (snapshot.project.facts.name, "Workload", workload))
    moments = [one for plane, kind, seen in objects for one in _moments(plane, kind, seen)]
    moments += _event_moments(snapshot, objects)
    start = now - since if since is not None else None
    kept = [one for one in moments if one.at <= now and (start is None or one.at >= start)]
    return Timeline(
        snapshot.namespace,
        subject.name,
        now,
        mark_gaps(merge_equal(kept)),
        tuple(_missing(snapshot, kept, now)),
    )


def merge_equal(moments: Iterable[Moment]) -> list[Moment]:
    """The moments in order; equal Events of several planes become one, counted by the largest."""
    merged: dict[tuple[object, ...], Moment] = {}
    for one in sorted(moments, key=_order):
        plane = "" if one.is_event else one.plane
        key = (one.at, plane, one.object.kind, one.object.name, one.what, one.by)
        known = merged.get(key)
        if known is None:
            merged[key] = one
        else:
            planes = dict.fromkeys([*known.plane.split(", "), *one.plane.split(", ")])
            merged[key] = replace(known, plane=", ".join(planes), count=max(known.count, one.count))
    return list(merged.values())


def _order(one: Moment) -> tuple[datetime, str, str, str, str]:
    return one.at, one.object.kind, one.object.name, one.plane, one.what


def mark_gaps(moments: Sequence[Moment]) -> tuple[Moment, ...]:
    """Each moment with the time since the one before; the first of the longest waits is marked."""
    deltas = [timedelta()] + [later.at - earlier.at for earlier, later in pairwise(moments)]
    longest = max(deltas, default=timedelta())
    slowest = deltas.index(longest) if longest else -1
    return tuple(
        replace(one, delta=deltas[place], is_slowest=place == slowest)
        for place, one in enumerate(moments)
    )


def _objects(snapshot: Snapshot, chains: Sequence[Chain]) -> Iterator[tuple[str, str, SeenObject]]:
    """Every object of the Workload with its plane, each once."""
    met: set[tuple[str, str, str, str]] = set()
    for plane, kind, one in _all_objects(snapshot, chains):
        key = (plane, kind, one.meta.namespace, one.meta.name)
        if key not in met:
            met.add(key)
            yield plane, kind, one


def _all_objects(
    snapshot: Snapshot, chains: Sequence[Chain]
) -> Iterator[tuple[str, str, SeenObject]]:
    project, hub = snapshot.project.facts.name, snapshot.hub.facts.name
    for chain in chains:
        for plane, deployment in (
            (project, chain.deployment),
            (hub, chain.hub_deployment),
            (chain.cell_name, chain.cell_deployment),
        ):
            if deployment is not None:
                yield plane, "WorkloadDeployment", deployment
        if chain.binding is not None:
            yield hub, "ResourceBinding", chain.binding
        for plane, instances in (
            (project, chain.project_instances),
            (hub, chain.hub_instances),
            (chain.cell_name, chain.cell_instances),
        ):
            for one in instances:
                yield plane, "Instance", one
        yield from _neighbours(snapshot, chain)


def _neighbours(snapshot: Snapshot, chain: Chain) -> Iterator[tuple[str, str, SeenObject]]:
    """Policies, claims, network bindings and Pods of one chain."""
    for policy in snapshot.hub.policies:
        if policy.city == chain.city and policy.meta.namespace == chain.hub_namespace:
            yield snapshot.hub.facts.name, "PropagationPolicy", policy
    _, _, instances = chain.instances
    slots = {one.meta.name for one in instances}
    for claim in snapshot.project.claims:
        if claim.instance in slots:
            yield snapshot.project.facts.name, "ResourceClaim", claim
    for binding in network_bindings_of(chain):
        yield chain.cell_name, "NetworkBinding", binding
    for pod in chain.cell.pods:
        if pod.instance in slots:
            yield chain.cell_name, "Pod", pod


def _moments(plane: str, kind: str, one: SeenObject) -> Iterator[Moment]:
    name = ObjectName.of(plane, one.meta, kind)
    meta = one.meta
    if meta.created is not None:
        yield Moment(meta.created, plane, name, "created")
    if meta.deleted is not None:
        yield Moment(meta.deleted, plane, name, "deletion asked for")
    for write in meta.writes:
        # The first write is the creation itself, which has a line already.
        if write.at is None or write.at == meta.created or not write.parts:
            continue
        part = "status" if write.is_status else ", ".join(write.parts)
        yield Moment(write.at, plane, name, f"{part} written", write.manager)
    for condition in one.conditions:
        if condition.since is not None:
            reason = f" {condition.reason}" if condition.reason else ""
            yield Moment(
                condition.since, plane, name, f"{condition.type}={condition.status}{reason}"
            )


def _event_moments(
    snapshot: Snapshot, objects: Sequence[tuple[str, str, SeenObject]]
) -> Iterator[Moment]:
    uids = {one.meta.uid for _, _, one in objects if one.meta.uid}
    named = {(plane, kind, one.meta.name) for plane, kind, one in objects}
    for plane, listing in _event_listings(snapshot):
        for event in listing:
            about = (plane, event.about_kind, event.about_name)
            is_slot = names.parse_instance_name(event.about_name) is not None
            if event.about_uid not in uids and not (about in named and is_slot):
                continue
            at = event.last
            if at is None:
                continue
            name = ObjectName(plane, event.about_kind, event.meta.namespace, event.about_name)
            text = f"event {event.reason}: {event.message}" if event.message else event.reason
            yield Moment(at, plane, name, text, event.reporter, event.count, is_event=True)


def _event_listings(snapshot: Snapshot) -> Iterator[tuple[str, Listing[SeenEvent]]]:
    yield snapshot.project.facts.name, snapshot.project.events
    yield snapshot.hub.facts.name, snapshot.hub.events
    for name in sorted(snapshot.cells):
        yield name, snapshot.cells[name].events


def _missing(snapshot: Snapshot, moments: Sequence[Moment], now: datetime) -> Iterator[str]:
    """What of the history cannot be shown."""
    if moments and min(one.at for one in moments) < now - EVENT_LIFE:
        yield EVENTS_ARE_GONE
    for plane, listing in _event_listings(snapshot):
        if listing.access is not Access.READ:
            yield f"events of {plane}: {listing.access.value}"
