"""What is said about one placement (api.md 8.4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compute_api_types import conditions, reasons
from compute_api_types.conditions import Statement
from compute_management_operator.networking import Off
from compute_management_operator.workload.observe import Seen
from compute_management_operator.workload.plan import NameTaken, NotServed, Placed, Undecided
from compute_management_operator.workload.status.observed import (
    Observed,
    OfPlacement,
    is_current,
)
from compute_management_operator.workload.status.told import (
    BEHIND,
    Blocker,
    find_blocker,
    state,
    state_worst,
    told_conditions,
)
from compute_operator_kit.objects import Unreadable

FOUND = Blocker(
    reasons.AVAILABLE_DEPLOYMENT_FOUND, "At least one available deployment was found", "True"
)
NOTHING = Blocker(
    reasons.NO_AVAILABLE_DEPLOYMENTS, "No available deployments were found for the placement"
)
DONE = Blocker(reasons.PLACEMENTS_READY, "All deployments are ready", "True")


def state_available(observed: Observed, placement: OfPlacement) -> Statement:
    """One available deployment is enough."""
    told = [find_blocker(one.status, conditions.AVAILABLE) for one in placement.deployments]
    if any(one is not None and one.status == "True" for one in told):
        return state(conditions.AVAILABLE, "True", FOUND, observed.generation)
    blockers = [*_unplaced(placement), *(one for one in told if one is not None), NOTHING]
    return state_worst(conditions.AVAILABLE, blockers, observed.generation)


def state_ready(blockers: Iterable[Blocker], generation: int) -> Statement:
    """Ready when nothing blocks; who only waits says less than any reason a deployment gives."""
    found = list(blockers)
    if not found:
        return state(conditions.READY, "True", DONE, generation)
    named = [one for one in found if one != BEHIND and conditions.rank(one.reason) >= 0]
    return state_worst(conditions.READY, named or [BEHIND], generation)


def ready_blockers(observed: Observed, placement: OfPlacement) -> Iterator[Blocker]:
    """All that keeps a placement from being ready; nothing means it is."""
    if observed.network_blocker is not None:
        yield observed.network_blocker
    yield from _unplaced(placement)
    yield from _lost_locations(observed.seen, placement)
    for verdict in placement.verdicts.values():
        if isinstance(verdict, Placed):
            yield from _not_ready(observed, verdict)
        else:
            yield BEHIND
    if placement.has_leftovers:
        yield BEHIND


def _unplaced(placement: OfPlacement) -> Iterator[Blocker]:
    """Why cities of the placement have no deployment."""
    open_ones = [
        (identity, verdict)
        for identity, verdict in placement.verdicts.items()
        if not isinstance(verdict, Placed)
    ]
    nowhere = [one.city_code for one, verdict in open_ones if isinstance(verdict, NotServed)]
    if nowhere:
        yield _no_location(nowhere)
    elif any(isinstance(verdict, Undecided) for _, verdict in open_ones):
        # Not knowing is no verdict: what was said before the outage still stands.
        yield from _said_before(placement)
    for _, verdict in open_ones:
        if isinstance(verdict, NameTaken):
            message = f'Deployment name "{verdict.name}" is taken by another workload'
            yield Blocker(reasons.NAME_COLLISION, message)


def _said_before(placement: OfPlacement) -> Iterator[Blocker]:
    for told in told_conditions(placement.stored):
        if told.type == conditions.AVAILABLE and told.reason == reasons.NO_MATCHING_LOCATION:
            yield Blocker(told.reason, told.message)


def _lost_locations(seen: Seen, placement: OfPlacement) -> Iterator[Blocker]:
    """Cities that run and whose Location is gone: nothing is deleted, but it is said."""
    if isinstance(seen.served, Unreadable | Off):
        return
    lost = [
        one.city_code
        for one, verdict in placement.verdicts.items()
        if isinstance(verdict, Placed) and one.city_code not in seen.served
    ]
    if lost:
        yield _no_location(lost)


def _not_ready(observed: Observed, placed: Placed) -> Iterator[Blocker]:
    ready = find_blocker(placed.deployment.status, conditions.READY)
    if ready is None or ready.status != "True":
        yield ready or BEHIND
    elif not is_current(observed, placed.deployment):
        yield BEHIND


def _no_location(codes: Iterable[str]) -> Blocker:
    named = ", ".join(sorted(set(codes)))
    return Blocker(reasons.NO_MATCHING_LOCATION, f"No location found for city codes: {named}")
