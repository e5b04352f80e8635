"""O1, O2 and O8: comparison of a run with faults with the same run without.

It must end in the same state, with the same creates and deletes, and without delay for projects
that no fault touched. The reference is the same scenario and seed without faults.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from compute_sim_planes.history import Commit, History, Injected
from compute_sim_planes.oracles.invariants import Violation
from e2e.oracles.canonical import RECORDS, Canonicalizer, derive_canonical_state, shorten
from e2e.oracles.liveness import bystander_liveness
from e2e.oracles.state import ObjectLocation, State, location_of
from e2e.world.kinds import (
    BINDING,
    CLAIM,
    DEPLOYMENT,
    INSTANCE,
    RESOURCE_BINDING,
    WORK,
    WORKLOAD,
)
from e2e.world.port import HUB

UPDATES_PER_FAULT: Final = 2
BUCKET: Final = "AllowanceBucket"
GATHERED: Final = "gathered by Karmada"
DENIED: Final = b'"QuotaExceeded"'
COLLECTOR: Final = ":generic-garbage-collector"
OWNER_READ_SERVES: Final = timedelta(seconds=5)
# Crashes of an operator: they delay every project that its process serves.
CRASHES: Final = frozenset({"A1", "A2", "A3", "A4", "A5", "A6"})


def compare(history: History, reference: History, projects: Collection[str]) -> list[Violation]:
    """All violations of O1, O2 and O8."""
    delays = [
        violation
        for project in find_bystanders(history, projects)
        for violation in bystander_liveness(history, reference, project)
    ]
    return [*end_state(history, reference), *update_summary(history, reference), *delays]


def remember_reference(reference: History) -> None:
    """Derives now what every comparison with this run needs; forked processes inherit it."""
    _reference_state(reference, len(reference.entries))
    _reference_summary(reference, len(reference.entries))


@lru_cache(maxsize=1)
def _reference_state(reference: History, entries: int) -> State:
    del entries  # a history that has grown is another one
    return derive_canonical_state(reference)


@lru_cache(maxsize=1)
def _reference_summary(reference: History, entries: int) -> Counter[tuple[ObjectLocation, str]]:
    del entries
    return _summarise(reference)


def find_bystanders(history: History, projects: Collection[str]) -> list[str]:
    """Projects that no fault touched; none if a fault was on another kind of plane, or ended a
    process.
    """
    if any(entry.fault in CRASHES for entry in history.of(Injected)):
        return []
    struck = {entry.address.partition(" ")[0] for entry in history.of(Injected)}
    return [] if struck - set(projects) else sorted(set(projects) - struck)


def end_state(history: History, reference: History) -> list[Violation]:
    """O1: equal canonical state of all planes, and equal numbers of objects of each kind."""
    actual = derive_canonical_state(history)
    expected = _reference_state(reference, len(reference.entries))
    messages = [*_differences(actual, expected), *_counts(actual, expected)]
    return [Violation("O1", history.now, message) for message in messages]


def _differences(actual: State, expected: State) -> Iterator[str]:
    for location in sorted(actual.keys() | expected.keys()):
        if location not in expected:
            yield f"{location} is left, and the reference has none"
        elif location not in actual:
            yield f"{location} is missing"
        elif actual[location] != expected[location]:
            names = actual[location].keys() | expected[location].keys()
            for name in sorted(names):
                if actual[location].get(name) != expected[location].get(name):
                    was = shorten({name: expected[location].get(name)})
                    yield f"{location} has {shorten({name: actual[location].get(name)})}, not {was}"


def _counts(actual: State, expected: State) -> Iterator[str]:
    here = Counter((location.plane, location.kind) for location in actual)
    there = Counter((location.plane, location.kind) for location in expected)
    for plane, kind in sorted(here.keys() | there.keys()):
        if here[plane, kind] != there[plane, kind]:
            yield f"{plane} holds {here[plane, kind]} {kind}, not {there[plane, kind]}"


def update_summary(history: History, reference: History) -> list[Violation]:
    """O2: creates and deletes per object as in the reference, and at most two more updates per
    fault, or as many as the source of a copy or the parts of a sum had: a delay shows states one by
    one that are written together otherwise.
    """
    actual, expected = _summarise(history), _reference_summary(reference, len(reference.entries))
    allowed = UPDATES_PER_FAULT * sum(1 for _ in history.of(Injected))
    of_sources = _count_sources(actual)
    collected = _count_collected(history)
    messages: list[str] = []
    for location, change in sorted(actual.keys() | expected.keys()):
        here, there = actual[location, change], expected[location, change]
        of_source = 0 if _is_source(location) else of_sources[_source_of(location)]
        limit = max(there + allowed, of_source)
        if location.kind == CLAIM.name and collected[location]:
            # Milo writes each claim as often.
            made = actual[location, "ADDED"], max(1, expected[location, "ADDED"])
            limit = max(limit, there * made[0] // made[1] + allowed)
        if change != "MODIFIED" and here > there:
            here -= min(collected[location], allowed // UPDATES_PER_FAULT)
        is_wrong = here > limit if change == "MODIFIED" else here != there
        if is_wrong:
            messages.append(f"{location} was {change} {here} times, in the reference {there}")
    return [Violation("O2", history.now, message) for message in messages]


def _count_collected(history: History) -> Counter[ObjectLocation]:
    """Network bindings that the garbage collector removed soon after they were made: their owner
    had gone in the time for which a read of it serves. And denied claims: a restarted cell operator
    does not know of a denial that it had not reported, and asks once more.
    """
    canon, made = Canonicalizer(history), dict[ObjectLocation, datetime]()
    counts: Counter[ObjectLocation] = Counter()
    for commit in history.of(Commit):
        if commit.kind == CLAIM.name and commit.type == "DELETED" and DENIED in commit.before:
            counts[canon.location(location_of(commit))] += 1
        if commit.kind != BINDING.name:
            continue
        location = canon.location(location_of(commit))
        if commit.type == "ADDED":
            made[location] = commit.at
        elif commit.type == "DELETED" and commit.actor.endswith(COLLECTOR):
            counts[location] += commit.at - made[location] <= OWNER_READ_SERVES
    return counts


def _count_sources(changes: Counter[tuple[ObjectLocation, str]]) -> Counter[tuple[str, str]]:
    """Updates of Instances on cells, which hub and projects copy; of the deployments in projects,
    which Workloads sum up; of those on hub and cells, whose status Karmada gathers; and of claims,
    which the buckets of Milo sum up. By kind and name.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for (location, change), number in changes.items():
        if location.kind == CLAIM.name:
            counts[BUCKET, location.plane] += number
        if change != "MODIFIED":
            continue
        if _is_source(location):
            counts[location.kind, location.name] += number
        elif location.kind == DEPLOYMENT.name and _is_copied(location):
            counts[GATHERED, location.name] += number
        elif location.kind == DEPLOYMENT.name and not _is_copied(location):
            # A name ends in placement and city, and neither has a dash here.
            workload = location.name.rsplit("-", 2)[0]
            counts[WORKLOAD.name, f"{location.plane} {workload}"] += number
    return counts


def _source_of(location: ObjectLocation) -> tuple[str, str]:
    """The entry of `_count_sources` that the object copies or sums up."""
    if location.kind == WORKLOAD.name:
        return location.kind, f"{location.plane} {location.name}"
    if location.kind in {RESOURCE_BINDING.name, WORK.name}:
        # Karmada appends the kind, or a hash.
        return GATHERED, location.name.rpartition("-")[0]
    return location.kind, location.plane if location.kind == BUCKET else location.name


def _is_source(location: ObjectLocation) -> bool:
    is_on_cell = location.plane != HUB and _is_copied(location)
    return is_on_cell and location.kind == INSTANCE.name


def _is_copied(location: ObjectLocation) -> bool:
    """Whether the object is on the hub or a cell, in the namespace of a project's namespace."""
    return location.namespace.startswith("ns-")


def _summarise(history: History) -> Counter[tuple[ObjectLocation, str]]:
    canon = Canonicalizer(history)
    return Counter(
        (canon.location(location_of(commit)), commit.type)
        for commit in history.of(Commit)
        if commit.kind not in RECORDS
    )
