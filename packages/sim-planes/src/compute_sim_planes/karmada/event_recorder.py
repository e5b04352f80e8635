"""The recorder of Karmada's Events on the hub: one per message, repeats counted.

Events are written by a task of their own, in order, and never block a controller; one that cannot
be written is lost, as with the real recorder.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from compute_sim_planes.client.errors import ApiError
from compute_sim_planes.client.rest import Client
from compute_sim_planes.json_types import JsonObject, string_at
from compute_sim_planes.karmada.kinds import EVENTS, TEMPLATE_UID
from compute_sim_planes.karmada.metadata import annotations_of
from compute_sim_planes.karmada.options import KarmadaOptions
from compute_sim_planes.time.sources import Clock, Identities, render_time

EventType: TypeAlias = Literal["Normal", "Warning"]
# The namespace of Events about cluster-scoped objects.
_ELSEWHERE: Final = "default"
_REFERENCE: Final = ("namespace", "name", "uid", "resourceVersion")


@dataclass(frozen=True, slots=True)
class EventText:
    """One event about one object."""

    component: str
    type: EventType
    reason: str
    message: str


@dataclass(slots=True)
class _Written:
    namespace: str
    name: str
    count: int


class EventRecorder:
    """A queue of events to write."""

    def __init__(
        self, client: Client, clock: Clock, identities: Identities, options: KarmadaOptions
    ) -> None:
        self._client = client
        self._clock = clock
        self._identities = identities
        self._options = options
        self._waiting: asyncio.Queue[tuple[JsonObject, EventText]] = asyncio.Queue()
        self._written: dict[tuple[str, EventText], _Written] = {}

    def record(self, about: JsonObject, event: EventText) -> None:
        if self._options.writes_events:
            self._waiting.put_nowait((refer_to(about), event))

    async def run(self) -> None:
        while True:
            reference, event = await self._waiting.get()
            with suppress(ApiError, OSError):
                await self._write(reference, event)

    async def _write(self, reference: JsonObject, event: EventText) -> None:
        now = render_time(self._clock.now())
        key = (f"{string_at(reference, 'kind')} {string_at(reference, 'uid')}", event)
        written = self._written.get(key)
        if written is not None:
            written.count += 1
            patch: JsonObject = {"count": written.count, "lastTimestamp": now}
            await self._client.patch(EVENTS, written.name, patch, namespace=written.namespace)
            return
        namespace = string_at(reference, "namespace") or _ELSEWHERE
        name = f"{string_at(reference, 'name')}.{self._identities.uid()[:8]}"
        self._written[key] = _Written(namespace, name, count=1)
        await self._client.create(EVENTS, _document(namespace, name, reference, event, now))


def refer_to(existing: JsonObject) -> JsonObject:
    """A reference to an object; for a manifest, to its template."""
    reference: JsonObject = dict(_reference_fields(existing))
    if "uid" not in reference:
        reference["uid"] = annotations_of(existing).get(TEMPLATE_UID, "")
    return reference


def _reference_fields(existing: JsonObject) -> Iterator[tuple[str, str]]:
    for field in ("apiVersion", "kind"):
        yield field, string_at(existing, field)
    for field in _REFERENCE:
        if value := string_at(existing, "metadata", field):
            yield field, value


def _document(
    namespace: str, name: str, reference: JsonObject, event: EventText, now: str
) -> JsonObject:
    return {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {"namespace": namespace, "name": name},
        "involvedObject": reference,
        "type": event.type,
        "reason": event.reason,
        "message": event.message,
        "source": {"component": event.component},
        "reportingComponent": event.component,
        "reportingInstance": "",
        "firstTimestamp": now,
        "lastTimestamp": now,
        "eventTime": None,
        "count": 1,
    }
