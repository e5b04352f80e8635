"""Karmada's Events on the hub: one per message, repeats counted.

They are written on the side, in their order, and never hold a controller up; one that cannot be
written is lost, as with the real recorder.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from compute_sim_planes.api_server.sources import Clock, Identities, render_time
from compute_sim_planes.client import Client
from compute_sim_planes.client_errors import ApiError
from compute_sim_planes.json_types import JsonObject, string_at
from compute_sim_planes.karmada.kinds import EVENTS, TEMPLATE_UID
from compute_sim_planes.karmada.knobs import Knobs
from compute_sim_planes.karmada.metadata import annotations_of

EventType: TypeAlias = Literal["Normal", "Warning"]
# Events about objects without a namespace are kept there.
_ELSEWHERE: Final = "default"
_REFERENCE: Final = ("namespace", "name", "uid", "resourceVersion")


@dataclass(frozen=True, slots=True)
class Said:
    """One thing said about one object."""

    component: str
    type: EventType
    reason: str
    message: str


@dataclass(slots=True)
class _Written:
    namespace: str
    name: str
    count: int


class Events:
    """What is said, until it is written."""

    def __init__(self, client: Client, clock: Clock, identities: Identities, knobs: Knobs) -> None:
        self._client = client
        self._clock = clock
        self._identities = identities
        self._knobs = knobs
        self._waiting: asyncio.Queue[tuple[JsonObject, Said]] = asyncio.Queue()
        self._written: dict[tuple[str, Said], _Written] = {}

    def say(self, about: JsonObject, said: Said) -> None:
        if self._knobs.writes_events:
            self._waiting.put_nowait((refer_to(about), said))

    async def run(self) -> None:
        while True:
            reference, said = await self._waiting.get()
            with suppress(ApiError, OSError):
                await self._write(reference, said)

    async def _write(self, reference: JsonObject, said: Said) -> None:
        now = render_time(self._clock.now())
        key = (f"{string_at(reference, 'kind')} {string_at(reference, 'uid')}", said)
        written = self._written.get(key)
        if written is not None:
            written.count += 1
            patch: JsonObject = {"count": written.count, "lastTimestamp": now}
            await self._client.patch(EVENTS, written.name, patch, namespace=written.namespace)
            return
        namespace = string_at(reference, "namespace") or _ELSEWHERE
        name = f"{string_at(reference, 'name')}.{self._identities.uid()[:8]}"
        self._written[key] = _Written(namespace, name, count=1)
        await self._client.create(EVENTS, _document(namespace, name, reference, said, now))


def refer_to(found: JsonObject) -> JsonObject:
    """A reference to an object; of a manifest, to the template it was made from."""
    reference: JsonObject = dict(_reference_fields(found))
    if "uid" not in reference:
        reference["uid"] = annotations_of(found).get(TEMPLATE_UID, "")
    return reference


def _reference_fields(found: JsonObject) -> Iterator[tuple[str, str]]:
    for field in ("apiVersion", "kind"):
        yield field, string_at(found, field)
    for field in _REFERENCE:
        if value := string_at(found, "metadata", field):
            yield field, value


def _document(namespace: str, name: str, reference: JsonObject, said: Said, now: str) -> JsonObject:
    return {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {"namespace": namespace, "name": name},
        "involvedObject": reference,
        "type": said.type,
        "reason": said.reason,
        "message": said.message,
        "source": {"component": said.component},
        "reportingComponent": said.component,
        "reportingInstance": "",
        "firstTimestamp": now,
        "lastTimestamp": now,
        "eventTime": None,
        "count": 1,
    }
