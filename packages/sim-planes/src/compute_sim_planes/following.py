"""Following a kind: everything that exists, then every change, for as long as somebody listens.

List and watch with the gap closed: what was deleted while no watch was open is told as a deletion
when the next list lacks it. Neighbours are level-triggered too and build on this; they never see a
broken stream, only a later event.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from compute_sim_planes.client import EVERYTHING, Client, Resource, Selection, WatchEvent
from compute_sim_planes.client_errors import ApiError, WatchEndedError
from compute_sim_planes.json_types import JsonObject, string_at

RETRY: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Seen:
    """An object as it is now, or as it last was where it is gone."""

    object: JsonObject
    is_gone: bool = False


def _nobody_waits() -> None:
    """Whoever takes objects one by one need not know when there are no more of them."""


async def follow(
    client: Client,
    resource: Resource,
    selection: Selection = EVERYTHING,
    *,
    retry: timedelta = RETRY,
    on_listed: Callable[[], None] = _nobody_waits,
) -> AsyncGenerator[Seen]:
    """Every object and every change of it. Never ends by itself; close it when you leave.

    `on_listed` is told whenever all that exists has been handed out.
    """
    known: dict[str, JsonObject] = {}
    while True:
        try:
            rounds = _once(client, resource, selection, known, retry=retry, on_listed=on_listed)
            async with aclosing(rounds) as seen:
                async for one in seen:
                    yield one
        except (ApiError, WatchEndedError, OSError):
            # Whatever it was, the next list tells all of it; only not at once.
            await asyncio.sleep(retry.total_seconds())


async def _once(
    client: Client,
    resource: Resource,
    selection: Selection,
    known: dict[str, JsonObject],
    *,
    retry: timedelta,
    on_listed: Callable[[], None],
) -> AsyncGenerator[Seen]:
    """One list and its watch; `known` carries over what the last round saw."""
    listing = await client.list(resource, selection)
    present = {_key(item): item for item in listing.items}
    for key in [key for key in known if key not in present]:
        yield Seen(known.pop(key), is_gone=True)
    for key, item in present.items():
        # Deleted and made again between two lists: the old one is told to be gone first.
        if key in known and _uid(known[key]) != _uid(item):
            yield Seen(known.pop(key), is_gone=True)
        if known.get(key) != item:
            known[key] = item
            yield Seen(item)
    on_listed()
    version = listing.version
    while True:
        before = version
        async with aclosing(client.watch(resource, version, selection)) as events:
            async for event in events:
                version = string_at(event.object, "metadata", "resourceVersion") or version
                for one in _take(event, known):
                    yield one
        if version == before:
            # A server that ends every watch at once must not be asked without end.
            await asyncio.sleep(retry.total_seconds())


def _take(event: WatchEvent, known: dict[str, JsonObject]) -> list[Seen]:
    key = _key(event.object)
    if event.type == "BOOKMARK":
        return []
    if event.type == "DELETED":
        known.pop(key, None)
        return [Seen(event.object, is_gone=True)]
    known[key] = event.object
    return [Seen(event.object)]


def _key(found: JsonObject) -> str:
    return f"{string_at(found, 'metadata', 'namespace')}/{string_at(found, 'metadata', 'name')}"


def _uid(found: JsonObject) -> str:
    return string_at(found, "metadata", "uid")
