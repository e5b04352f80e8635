"""The projection of one hub Instance: created, updated, quarantined or removed. Pure
(management.md 8).

Nothing of an Instance is shown before every check has passed: a compromised cell could otherwise
write into any project.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from compute_management_operator.hub.projection.observe import (
    HubInstance,
    InstanceDeployment,
    ObservedInstance,
)
from compute_management_operator.hub.projection.plan import quarantine
from compute_management_operator.hub.projection.plan.desired import create, update
from compute_management_operator.hub.projection.plan.remove import remove
from compute_management_operator.hub.projection.plan.verify import (
    Retryable,
    Terminal,
    find_blocker,
)
from compute_management_operator.planes import DEPLOYMENT, INSTANCE
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import Absent
from compute_operator_kit.intents.intents import Intent, Plan, RequeueAfter, RequireExists

__all__: Final = ["plan"]


def plan(seen: ObservedInstance, now: datetime) -> Plan:
    source = seen.source
    if isinstance(source, Absent):
        # Deleted by the cell, or by the hub's garbage collection.
        return remove(seen)
    blocker = find_blocker(seen, source, now)
    if isinstance(blocker, Terminal):
        # Its labels cannot be true: it is marked for a person, and nothing else is done.
        return quarantine.enter(seen, source, blocker, now)
    waits: tuple[Intent, ...] = ()
    if isinstance(blocker, Retryable):
        waits = (RequeueAfter(seen.key, blocker.reason, blocker.retry_after),)
        if not blocker.still_updates:
            # Not verified yet: an event enqueues the key, and nothing is shown until then.
            return Plan(waits)
    return Plan((*quarantine.leave(source), *_project(seen, source), *waits))


def _project(seen: ObservedInstance, source: HubInstance) -> tuple[Intent, ...]:
    deployment, projection = seen.deployment, seen.projection
    if seen.project_namespace is None or not isinstance(deployment, InstanceDeployment):
        return ()  # the checks do not pass without them
    if isinstance(projection, HubInstance):
        # One that is being deleted is created again once it is gone; its event enqueues the key.
        is_deleting = projection.metadata.is_deleting
        return () if is_deleting else (update(projection, source, deployment),)
    if not isinstance(projection, Absent) or _is_deleting(seen, source, deployment):
        # No new projection of an Instance that is being deleted, or into an unreadable project.
        return ()
    place = seen.project_namespace
    key = ObjectKey(place.plane, INSTANCE, place.namespace, seen.key.name)
    return (create(key, source, deployment, requires=_find_guard(seen, deployment)),)


def _find_guard(seen: ObservedInstance, deployment: InstanceDeployment) -> RequireExists | None:
    """A live read of the deployment before a projection is created again: it may have been deleted
    with its deployment, and the cache may not show that yet.
    """
    if seen.project_namespace is None or not seen.was_created:
        return None
    owner = ObjectKey(
        seen.project_namespace.plane,
        DEPLOYMENT,
        seen.project_namespace.namespace,
        deployment.metadata.name,
    )
    return RequireExists(owner, lock=owner, uid=deployment.metadata.uid)


def _is_deleting(
    seen: ObservedInstance, source: HubInstance, deployment: InstanceDeployment
) -> bool:
    is_deleting = source.metadata.is_deleting or deployment.metadata.is_deleting
    return is_deleting or seen.is_project_deleting
