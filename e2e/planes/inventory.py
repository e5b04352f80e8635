"""Everything that the planes of a stack hold, and what differs between two looks at it.

For tests on planes that others use after them: a name or a label that was not there before is
something that somebody else will run into. Contents are not compared; servers and controllers keep
changing those by themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from typing_extensions import override

from compute_sim_planes.json_types import (
    JsonObject,
    object_at,
    objects_at,
    string_at,
    strings_at,
)
from e2e.planes.client import ApiError, PlaneClient
from e2e.planes.errors import PlanesError
from e2e.planes.plane import Plane
from e2e.planes.stack import RealPlanes
from e2e.planes.waiting import until

# Between two looks that must agree: Karmada takes the next step of a deletion sooner than that.
PAUSE: Final = timedelta(seconds=1)
# Finalizers, and Karmada's way from a namespace of the hub to those in members, take their time.
PATIENCE: Final = timedelta(seconds=60)
# One look is hundreds of requests, which a busy machine answers one by one.
ONE_LOOK: Final = timedelta(seconds=30)
# Events go by themselves after an hour, and Milo keeps the bucket of a grant that went; neither has
# an effect on anybody.
NOT_COMPARED: Final = frozenset({"events", "allowancebuckets"})
# Of a kind that discovery still names: it is gone, or its storage is being taken down.
GOING: Final = frozenset({404, 429})


@dataclass(frozen=True, slots=True, order=True)
class Held:
    """One object: where it is, and its labels, by which others find it."""

    plane: str
    resource: str
    namespace: str
    name: str
    labels: str

    @override
    def __str__(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.plane}: {self.resource} {where}{self.name} {self.labels}".rstrip()


@dataclass(frozen=True, slots=True)
class Look:
    """What there is, and whether some of it is on its way out."""

    held: frozenset[Held]
    is_leaving: bool


async def take_inventory(planes: RealPlanes) -> frozenset[Held]:
    """What all planes hold, once nothing goes any more: what an earlier test has deleted leaves
    step by step, through members too, and its absence later would be nobody's doing.
    """
    last: list[Look] = []

    async def at_rest() -> Look | None:
        last.append(await _look_at(planes))
        await asyncio.sleep(PAUSE.total_seconds())
        return last[-1] if last[-2:-1] == last[-1:] and not last[-1].is_leaving else None

    found = await until(
        "planes at rest", at_rest, check=planes.check, patience=PATIENCE, attempt=ONE_LOOK
    )
    return found.held


async def await_equal(
    planes: RealPlanes, before: frozenset[Held], *, patience: timedelta = PATIENCE
) -> None:
    """Waits until planes hold what they held; raises with what is left or missing."""
    differences = [""]

    async def is_equal() -> bool:
        now = (await _look_at(planes)).held
        left = [f"left    {one}" for one in sorted(now - before)]
        missing = [f"missing {one}" for one in sorted(before - now)]
        differences[:] = [*left, *missing]
        return not differences

    try:
        await until(
            "planes as they were",
            is_equal,
            check=planes.check,
            patience=patience,
            attempt=ONE_LOOK,
        )
    except PlanesError as late:
        raise AssertionError("\n".join(("planes are not as they were:", *differences))) from late


async def _look_at(planes: RealPlanes) -> Look:
    looks = await asyncio.gather(*(_of_plane(plane) for plane in planes.planes))
    return _together(looks)


def _together(looks: Iterable[Look]) -> Look:
    seen = tuple(looks)
    held = frozenset[Held]().union(*(look.held for look in seen))
    return Look(held, any(look.is_leaving for look in seen))


async def _of_plane(plane: Plane) -> Look:
    async with plane.client() as client:
        resources = await _resources_of(client)
        looks = [_of_resource(client, plane.name, path) for path in resources]
        return _together(await asyncio.gather(*looks))


async def _resources_of(client: PlaneClient) -> list[str]:
    """The paths of all collections that the server lists, each in one version."""
    groups = objects_at(await client.get("/apis"), "groups")
    roots = [f"/apis/{string_at(one, 'preferredVersion', 'groupVersion')}" for one in groups]
    found: list[str] = []
    for root in ("/api/v1", *roots):
        served = objects_at(await client.get(root), "resources")
        found += [f"{root}/{string_at(one, 'name')}" for one in served if _is_compared(one)]
    return found


def _is_compared(resource: JsonObject) -> bool:
    name = string_at(resource, "name")
    return "/" not in name and name not in NOT_COMPARED and "list" in strings_at(resource, "verbs")


async def _of_resource(client: PlaneClient, plane: str, path: str) -> Look:
    try:
        listed = await client.get_metadata(path)
    except ApiError as refused:
        if refused.code not in GOING:
            raise
        return Look(frozenset(), is_leaving=True)  # a kind that goes while we look
    items = objects_at(listed, "items")
    resource = path.removeprefix("/apis/").removeprefix("/api/")
    return Look(
        frozenset(_held(plane, resource, one) for one in items),
        any(string_at(one, "metadata", "deletionTimestamp") for one in items),
    )


def _held(plane: str, resource: str, found: JsonObject) -> Held:
    labels = object_at(found, "metadata", "labels")
    return Held(
        plane,
        resource,
        string_at(found, "metadata", "namespace"),
        string_at(found, "metadata", "name"),
        ",".join(f"{name}={value}" for name, value in sorted(labels.items())),
    )
