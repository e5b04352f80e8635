"""O1, O2 and O8: a run with faults ends like the one without, gets there by the same acts, and
delays no project that no fault touched.

All compare with a reference: the same scenario and seed, nothing injected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Final

from compute_sim_planes.history import Commit, History, Injected
from compute_sim_planes.oracles import Violation
from e2e.faults.canonical import RECORDS, Canon, derive_canonical_state, shorten
from e2e.faults.liveness import bystander_liveness
from e2e.faults.state import Spot, State, spot_of

UPDATES_PER_FAULT: Final = 2


def compare(history: History, reference: History, projects: Collection[str]) -> list[Violation]:
    """Everything in which a run with faults differs from the one without and must not."""
    delays = [
        violation
        for project in find_bystanders(history, projects)
        for violation in bystander_liveness(history, reference, project)
    ]
    return [*end_state(history, reference), *update_summary(history, reference), *delays]


def find_bystanders(history: History, projects: Collection[str]) -> list[str]:
    """Projects that no fault touched: those beside the struck ones, where only projects were."""
    struck = {entry.address.partition(" ")[0] for entry in history.of(Injected)}
    return [] if struck - set(projects) else sorted(set(projects) - struck)


def end_state(history: History, reference: History) -> list[Violation]:
    """O1: the canonical dump of all planes, and the number of objects of each kind."""
    found, wanted = derive_canonical_state(history), derive_canonical_state(reference)
    messages = [*_differences(found, wanted), *_counts(found, wanted)]
    return [Violation("O1", history.now, message) for message in messages]


def _differences(found: State, wanted: State) -> Iterator[str]:
    for spot in sorted(found.keys() | wanted.keys()):
        if spot not in wanted:
            yield f"{spot} is left, and the reference has none"
        elif spot not in found:
            yield f"{spot} is missing"
        elif found[spot] != wanted[spot]:
            names = found[spot].keys() | wanted[spot].keys()
            for name in sorted(names):
                if found[spot].get(name) != wanted[spot].get(name):
                    was = shorten({name: wanted[spot].get(name)})
                    yield f"{spot} has {shorten({name: found[spot].get(name)})}, not {was}"


def _counts(found: State, wanted: State) -> Iterator[str]:
    here = Counter((spot.plane, spot.kind) for spot in found)
    there = Counter((spot.plane, spot.kind) for spot in wanted)
    for plane, kind in sorted(here.keys() | there.keys()):
        if here[plane, kind] != there[plane, kind]:
            yield f"{plane} holds {here[plane, kind]} {kind}, not {there[plane, kind]}"


def update_summary(history: History, reference: History) -> list[Violation]:
    """O2: creates and deletes per object as in the reference, updates at most two more a fault."""
    found, wanted = _summarise(history), _summarise(reference)
    allowed = UPDATES_PER_FAULT * sum(1 for _ in history.of(Injected))
    messages: list[str] = []
    for spot, change in sorted(found.keys() | wanted.keys()):
        here, there = found[spot, change], wanted[spot, change]
        is_wrong = here > there + allowed if change == "MODIFIED" else here != there
        if is_wrong:
            messages.append(f"{spot} was {change} {here} times, in the reference {there}")
    return [Violation("O2", history.now, message) for message in messages]


def _summarise(history: History) -> Counter[tuple[Spot, str]]:
    canon = Canon(history)
    return Counter(
        (canon.spot(spot_of(commit)), commit.type)
        for commit in history.of(Commit)
        if commit.kind not in RECORDS
    )
