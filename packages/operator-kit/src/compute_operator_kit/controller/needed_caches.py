"""Which cache a key has to wait for before it is reconciled. Pure.

Half a view looks like a mass deletion, so no reconcile begins before the caches that it needs are
complete. A kind on demand that a key needs and that is closed counts as incomplete: the runner
opens it for the key.
"""

from __future__ import annotations

from collections.abc import Iterable

from compute_operator_kit.controller.blocked_keys import Cache
from compute_operator_kit.controller.spec import Watch
from compute_operator_kit.planes.engaged_plane import EngagedPlane
from compute_operator_kit.planes.registry import SINGLE_ROLES, Planes


def find_incomplete(
    watches: Iterable[Watch], engaged: EngagedPlane, planes: Planes
) -> Cache | None:
    """The first incomplete cache that a reconcile of a key of this plane reads.

    Checked are caches of the key's own plane and of roles with one plane. Of a role with many
    planes, such as projects, a reconcile reads one or none and only it knows which; an incomplete
    cache answers `Unreadable` there. For a kind that is not needed and was opened on demand, a key
    waits until its first list was tried, so that it is not reconciled twice.
    """
    for watch in watches:
        if watch.role is engaged.plane.role:
            is_awaited = (
                not engaged.is_known(watch.kind)
                if watch.is_needed
                else watch.kind in engaged.opening
            )
            if is_awaited:
                return (engaged.plane.name, watch.kind)
        elif watch.is_needed and watch.role in SINGLE_ROLES:
            of_role = planes.engaged(watch.role)
            if not of_role:
                return (watch.role, watch.kind)
            for one in of_role:
                if not one.is_known(watch.kind):
                    return (one.plane.name, watch.kind)
    return None
