"""Available and Ready of one placement (api.md 8.4).

A placement without Locations that can be read keeps its stored blocker: an outage of the network
services must not look like a city that became available. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compute_api_types import conditions, reasons
from compute_api_types.conditions import Statement
from compute_management_operator.workload.observe import ObservedWorkload
from compute_management_operator.workload.plan import (
    DeploymentExists,
    NameTaken,
    NotServed,
    PlacementUndecided,
)
from compute_management_operator.workload.status.conditions import (
    OUT_OF_DATE,
    Blocker,
    blocker_of,
    state,
    state_worst,
)
from compute_management_operator.workload.status.inputs import (
    PlacementInputs,
    StatusInputs,
    is_current,
)
from compute_operator_kit.cache.optional_kinds import Off
from compute_operator_kit.core.objects import Unreadable

IS_AVAILABLE = Blocker(
    reasons.AVAILABLE_DEPLOYMENT_FOUND, "At least one available deployment was found"
)
NONE_AVAILABLE = Blocker(
    reasons.NO_AVAILABLE_DEPLOYMENTS, "No available deployments were found for the placement"
)
ALL_READY = Blocker(reasons.PLACEMENTS_READY, "All deployments are ready")


def state_available(observed: StatusInputs, placement: PlacementInputs) -> Statement:
    """One available deployment is enough."""
    reported = [one.status.available for one in placement.deployments]
    if any(one is not None and one.status == "True" for one in reported):
        return state(conditions.AVAILABLE, "True", IS_AVAILABLE, observed.generation)
    unavailable = (blocker_of(one) for one in reported if one is not None)
    blockers = [*_unplaced(placement), *unavailable, NONE_AVAILABLE]
    return state_worst(conditions.AVAILABLE, blockers, observed.generation)


def state_ready(blockers: Iterable[Blocker], generation: int) -> Statement:
    """Ready when nothing blocks; `OUT_OF_DATE` only where no blocker has a reason of its own."""
    existing = list(blockers)
    if not existing:
        return state(conditions.READY, "True", ALL_READY, generation)
    ranked = [one for one in existing if one != OUT_OF_DATE and conditions.rank(one.reason) >= 0]
    return state_worst(conditions.READY, ranked or [OUT_OF_DATE], generation)


def ready_blockers(observed: StatusInputs, placement: PlacementInputs) -> Iterator[Blocker]:
    """All that keeps a placement from being ready."""
    if observed.network_blocker is not None:
        yield observed.network_blocker
    yield from _unplaced(placement)
    yield from _lost_locations(observed.observed, placement)
    for city in placement.cities.values():
        if isinstance(city, DeploymentExists):
            yield from _not_ready(observed, city)
        else:
            yield OUT_OF_DATE
    if placement.has_leftovers:
        yield OUT_OF_DATE


def _unplaced(placement: PlacementInputs) -> Iterator[Blocker]:
    """Why cities of the placement have no deployment."""
    unplaced = [
        (identity, city)
        for identity, city in placement.cities.items()
        if not isinstance(city, DeploymentExists)
    ]
    not_served = [one.city_code for one, city in unplaced if isinstance(city, NotServed)]
    if not_served:
        yield _no_location(not_served)
    elif any(isinstance(city, PlacementUndecided) for _, city in unplaced):
        yield from _stored_no_location(placement)
    for _, city in unplaced:
        if isinstance(city, NameTaken):
            message = f'Deployment name "{city.name}" is taken by another workload'
            yield Blocker(reasons.NAME_COLLISION, message)


def _stored_no_location(placement: PlacementInputs) -> Iterator[Blocker]:
    """The blocker from before an outage, which stands until Locations can be read again."""
    for stored in placement.stored.conditions:
        if stored.type == conditions.AVAILABLE and stored.reason == reasons.NO_MATCHING_LOCATION:
            yield blocker_of(stored)


def _lost_locations(seen: ObservedWorkload, placement: PlacementInputs) -> Iterator[Blocker]:
    """Cities that run although their Location was deleted: reported, and nothing is deleted."""
    if isinstance(seen.served, Unreadable | Off):
        return
    lost = [
        one.city_code
        for one, city in placement.cities.items()
        if isinstance(city, DeploymentExists) and one.city_code not in seen.served
    ]
    if lost:
        yield _no_location(lost)


def _not_ready(observed: StatusInputs, placed: DeploymentExists) -> Iterator[Blocker]:
    ready = placed.deployment.status.ready
    if ready is None or ready.status != "True":
        yield OUT_OF_DATE if ready is None else blocker_of(ready)
    elif not is_current(observed, placed.deployment):
        yield OUT_OF_DATE


def _no_location(codes: Iterable[str]) -> Blocker:
    named = ", ".join(sorted(set(codes)))
    return Blocker(reasons.NO_MATCHING_LOCATION, f"No location found for city codes: {named}")
