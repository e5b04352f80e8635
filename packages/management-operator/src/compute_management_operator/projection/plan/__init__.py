"""Decides what a project sees of one hub Instance. Pure (management.md 8)."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from compute_management_operator.kinds import DEPLOYMENT, INSTANCE
from compute_management_operator.projection.observe import Deployment, Instance, Seen
from compute_management_operator.projection.plan import quarantine
from compute_management_operator.projection.plan.building import keep, make
from compute_management_operator.projection.plan.removing import remove
from compute_management_operator.projection.plan.verifying import (
    Retryable,
    Terminal,
    find_blocker,
)
from compute_operator_kit.intents import Intent, OnlyUnder, Plan, Wait
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.objects import Absent

__all__: Final = ["plan"]


def plan(seen: Seen, now: datetime) -> Plan:
    source = seen.source
    if isinstance(source, Absent):
        # The cell, or the hub's garbage collection, took it away.
        return remove(seen)
    blocker = find_blocker(seen, source, now)
    if isinstance(blocker, Terminal):
        # What it says of itself cannot be true: a person has to look, nothing else is done.
        return quarantine.enter(seen, source, blocker, now)
    waits: tuple[Intent, ...] = ()
    if isinstance(blocker, Retryable):
        waits = (Wait(seen.key, blocker.reason, blocker.retry_after),)
        if not blocker.still_updates:
            # Not known yet: an event brings us back, and nothing is shown on suspicion.
            return Plan(waits)
    return Plan((*quarantine.leave(source), *_project(seen, source), *waits))


def _project(seen: Seen, source: Instance) -> tuple[Intent, ...]:
    deployment, found = seen.deployment, seen.found
    if seen.place is None or not isinstance(deployment, Deployment):
        return ()  # verified without them it cannot be
    if isinstance(found, Instance):
        # One that is going is made again once it is gone; its event brings us back.
        return () if found.metadata.is_deleting else (keep(found, source, deployment),)
    if not isinstance(found, Absent) or _is_going(seen, source, deployment):
        # Nothing new is shown of what is on its way out, or into what cannot be read.
        return ()
    place = seen.place
    key = ObjectKey(place.plane, INSTANCE, place.namespace, seen.key.name)
    return (make(key, source, deployment, only_under=_find_guard(seen, deployment)),)


def _find_guard(seen: Seen, deployment: Deployment) -> OnlyUnder | None:
    """Missing again, it may have gone with its deployment, and the cache not know of it."""
    if seen.place is None or not seen.was_made:
        return None
    owner = ObjectKey(seen.place.plane, DEPLOYMENT, seen.place.namespace, deployment.metadata.name)
    return OnlyUnder(owner, lock=owner, uid=deployment.metadata.uid)


def _is_going(seen: Seen, source: Instance, deployment: Deployment) -> bool:
    is_going = source.metadata.is_deleting or deployment.metadata.is_deleting
    return is_going or seen.is_project_deleting
