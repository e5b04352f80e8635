"""List and watch of one kind: every existing object, then every change, without gaps.

Objects deleted while no watch was open are reported when the next list lacks them. The simulated
systems' controllers never see a broken stream, only later events.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from compute_sim_planes.client.errors import ApiError, WatchEndedError
from compute_sim_planes.client.rest import EVERYTHING, Client, ListOptions, Resource, WatchEvent
from compute_sim_planes.json_types import JsonObject, string_at

RETRY: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Delta:
    """An object as it is now, or as it last was if deleted."""

    object: JsonObject
    is_deleted: bool = False


def _ignore_listed() -> None:
    """The default for callers that do not need to know when a list is complete."""


async def list_and_watch(
    client: Client,
    resource: Resource,
    selection: ListOptions = EVERYTHING,
    *,
    retry: timedelta = RETRY,
    on_listed: Callable[[], None] = _ignore_listed,
) -> AsyncGenerator[Delta]:
    """Every object and every change of it. Never ends by itself; the caller must close it.

    `on_listed` is called whenever all existing objects have been yielded.
    """
    known: dict[str, JsonObject] = {}
    while True:
        try:
            rounds = _list_and_watch_once(
                client, resource, selection, known, retry=retry, on_listed=on_listed
            )
            async with aclosing(rounds) as seen:
                async for one in seen:
                    yield one
        except (ApiError, WatchEndedError, OSError):
            # Any failure: the next list has the complete state; wait before it.
            await asyncio.sleep(retry.total_seconds())


async def _list_and_watch_once(
    client: Client,
    resource: Resource,
    selection: ListOptions,
    known: dict[str, JsonObject],
    *,
    retry: timedelta,
    on_listed: Callable[[], None],
) -> AsyncGenerator[Delta]:
    """One list and its watch; `known` has the objects of the previous iteration."""
    listing = await client.list(resource, selection)
    present = {_key(item): item for item in listing.items}
    for key in [key for key in known if key not in present]:
        yield Delta(known.pop(key), is_deleted=True)
    for key, item in present.items():
        # Recreated between two lists: the deletion of the old object is reported first.
        if key in known and _uid(known[key]) != _uid(item):
            yield Delta(known.pop(key), is_deleted=True)
        if known.get(key) != item:
            known[key] = item
            yield Delta(item)
    on_listed()
    version = listing.version
    while True:
        before = version
        async with aclosing(client.watch(resource, version, selection)) as events:
            async for event in events:
                version = string_at(event.object, "metadata", "resourceVersion") or version
                for one in _apply_event(event, known):
                    yield one
        if version == before:
            # A server that ends every watch immediately must not be called in a tight loop.
            await asyncio.sleep(retry.total_seconds())


def _apply_event(event: WatchEvent, known: dict[str, JsonObject]) -> list[Delta]:
    key = _key(event.object)
    if event.type == "BOOKMARK":
        return []
    if event.type == "DELETED":
        known.pop(key, None)
        return [Delta(event.object, is_deleted=True)]
    known[key] = event.object
    return [Delta(event.object)]


def _key(document: JsonObject) -> str:
    return (
        f"{string_at(document, 'metadata', 'namespace')}/{string_at(document, 'metadata', 'name')}"
    )


def _uid(document: JsonObject) -> str:
    return string_at(document, "metadata", "uid")
