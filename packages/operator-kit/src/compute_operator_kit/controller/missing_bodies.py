"""Bodies that caches left out: read from the plane for one reconcile, which is then run again.

A plane over its cache budget is still served, only slower. A reconcile that has already written is
not run again: its caches have not seen its own writes, and it would repeat them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from compute_operator_kit.apply.applier import Session
from compute_operator_kit.core.decode_cache import Version
from compute_operator_kit.core.errors import ConflictError
from compute_operator_kit.core.objects import Absent, BodyLeftOutError, lent_bodies
from compute_operator_kit.intents.outcomes import Effect
from compute_operator_kit.planes.registry import Planes

T = TypeVar("T")

# A reconcile reads one or two bodies; of other objects it reads headers and partial members.
MOST_LENT: Final = 8


async def run_with_bodies(run: Callable[[], Awaitable[T]], session: Session, planes: Planes) -> T:
    """Runs a reconcile; call it in a task of its own, so that the bodies are freed with it."""
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
            lent[missing.version] = await _read_body(missing, planes)


def _has_written(session: Session) -> bool:
    """Whether a write was sent; one that failed may have been carried out."""
    effects = {outcome.effect for outcome in session.so_far.outcomes}
    return not effects.isdisjoint({Effect.WRITTEN, Effect.FAILED})


async def _read_body(missing: BodyLeftOutError, planes: Planes) -> bytes:
    """The body in the cached version; in any other version the watch event is still to come."""
    live = await planes.get(missing.key.plane).kube.get(missing.key)
    if isinstance(live, Absent) or live.version != missing.version:
        raise ConflictError(
            "MovedOn", f"reading {missing.key}: it is not as it was seen", plane=missing.key.plane
        )
    return live.raw
