"""Asks planes for the bodies that their caches left out, for the time of one pass.

A plane over its budget is served all the same, more slowly: a pass that misses a body is run again
with it. A pass that has written something already is not: it would decide from caches that have not
seen its own writes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from compute_operator_kit.apply import Session
from compute_operator_kit.errors import ConflictError
from compute_operator_kit.objects import Absent, BodyLeftOutError, lent_bodies
from compute_operator_kit.outcomes import Effect
from compute_operator_kit.planes import Planes
from compute_operator_kit.recent import Version

T = TypeVar("T")

# A pass reads one or two whole objects; of the others it reads outlines.
MOST_LENT: Final = 8


async def run_with_bodies(run: Callable[[], Awaitable[T]], session: Session, planes: Planes) -> T:
    """Runs a pass; belongs into a task of its own, which the bodies end with."""
    lent: dict[Version, bytes] | None = None
    while True:
        try:
            return await run()
        except BodyLeftOutError as missing:
            if lent is None:
                lent = {}
                lent_bodies.set(lent)
            if len(lent) >= MOST_LENT or _has_written(session):
                raise
            lent[missing.version] = await _ask(missing, planes)


def _has_written(session: Session) -> bool:
    """What failed may have been carried out all the same."""
    effects = {outcome.effect for outcome in session.so_far.outcomes}
    return not effects.isdisjoint({Effect.WRITTEN, Effect.FAILED})


async def _ask(missing: BodyLeftOutError, planes: Planes) -> bytes:
    """The body in the version that the cache has; in another one, the watch is about to tell."""
    found = await planes.get(missing.key.plane).kube.get(missing.key)
    if isinstance(found, Absent) or found.version != missing.version:
        raise ConflictError(
            "MovedOn", f"reading {missing.key}: it is not as it was seen", plane=missing.key.plane
        )
    return found.raw
