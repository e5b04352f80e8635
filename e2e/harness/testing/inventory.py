"""Lists all objects on the planes of a stack and compares two such lists.

Tests on shared planes must not leave or remove objects or labels that a later test would meet.
Contents are not compared, since servers and controllers change them.
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
from e2e.harness.access.client import ApiError, PlaneClient
from e2e.harness.access.waiting import until
from e2e.harness.errors import PlanesError
from e2e.harness.planes.plane import RealPlane
from e2e.harness.stack.stack import RealPlanes

# Between two equal lists: Karmada takes less than this for the next step of a deletion.
PAUSE: Final = timedelta(seconds=1)
# For finalizers, and for Karmada's deletion of namespaces in members.
PATIENCE: Final = timedelta(seconds=60)
# One list takes hundreds of requests, which are slow on a busy machine.
ATTEMPT: Final = timedelta(seconds=30)
# Events expire after an hour, and Milo keeps the bucket of a deleted grant; neither has an effect.
NOT_COMPARED: Final = frozenset({"events", "allowancebuckets"})
# Answers for a kind that discovery still lists but that is being removed.
NOT_SERVED: Final = frozenset({404, 429})


@dataclass(frozen=True, slots=True, order=True)
class InventoryItem:
    """One object with its labels."""

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
class InventorySnapshot:
    """The objects, and whether some of them are terminating."""

    items: frozenset[InventoryItem]
    is_terminating: bool


async def take_inventory(planes: RealPlanes) -> frozenset[InventoryItem]:
    """All objects, once none is terminating: those that an earlier test deleted would otherwise be
    missing from the next list.
    """
    last: list[InventorySnapshot] = []

    async def at_rest() -> InventorySnapshot | None:
        last.append(await _look_at(planes))
        await asyncio.sleep(PAUSE.total_seconds())
        return last[-1] if last[-2:-1] == last[-1:] and not last[-1].is_terminating else None

    snapshot = await until(
        "planes at rest", at_rest, check=planes.check, patience=PATIENCE, attempt=ATTEMPT
    )
    return snapshot.items


async def await_equal(
    planes: RealPlanes, before: frozenset[InventoryItem], *, patience: timedelta = PATIENCE
) -> None:
    """Waits until the planes hold the same objects as before; raises with the difference."""
    differences = [""]

    async def is_equal() -> bool:
        now = (await _look_at(planes)).items
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
            attempt=ATTEMPT,
        )
    except PlanesError as late:
        raise AssertionError("\n".join(("planes are not as they were:", *differences))) from late


async def _look_at(planes: RealPlanes) -> InventorySnapshot:
    snapshots = await asyncio.gather(*(_of_plane(plane) for plane in planes.planes))
    return _together(snapshots)


def _together(snapshots: Iterable[InventorySnapshot]) -> InventorySnapshot:
    seen = tuple(snapshots)
    held = frozenset[InventoryItem]().union(*(snapshot.items for snapshot in seen))
    return InventorySnapshot(held, any(snapshot.is_terminating for snapshot in seen))


async def _of_plane(plane: RealPlane) -> InventorySnapshot:
    async with plane.client() as client:
        resources = await _resources_of(client)
        snapshots = [_of_resource(client, plane.name, path) for path in resources]
        return _together(await asyncio.gather(*snapshots))


async def _resources_of(client: PlaneClient) -> list[str]:
    """The paths of all collections that the server lists, each in one version."""
    groups = objects_at(await client.get("/apis"), "groups")
    roots = [f"/apis/{string_at(one, 'preferredVersion', 'groupVersion')}" for one in groups]
    resources: list[str] = []
    for root in ("/api/v1", *roots):
        served = objects_at(await client.get(root), "resources")
        resources += [f"{root}/{string_at(one, 'name')}" for one in served if _is_compared(one)]
    return resources


def _is_compared(resource: JsonObject) -> bool:
    name = string_at(resource, "name")
    return "/" not in name and name not in NOT_COMPARED and "list" in strings_at(resource, "verbs")


async def _of_resource(client: PlaneClient, plane: str, path: str) -> InventorySnapshot:
    try:
        listed = await client.get_metadata(path)
    except ApiError as refused:
        if refused.code not in NOT_SERVED:
            raise
        return InventorySnapshot(frozenset(), is_terminating=True)  # the kind is being removed
    items = objects_at(listed, "items")
    resource = path.removeprefix("/apis/").removeprefix("/api/")
    return InventorySnapshot(
        frozenset(_held(plane, resource, one) for one in items),
        any(string_at(one, "metadata", "deletionTimestamp") for one in items),
    )


def _held(plane: str, resource: str, document: JsonObject) -> InventoryItem:
    labels = object_at(document, "metadata", "labels")
    return InventoryItem(
        plane,
        resource,
        string_at(document, "metadata", "namespace"),
        string_at(document, "metadata", "name"),
        ",".join(f"{name}={value}" for name, value in sorted(labels.items())),
    )
