"""Requests of a scenario's users to real planes.

Root and projects are reached through the gateway, hub and cells directly. A name with a colon is
impersonated; all other users are administrators with the name in their user agent, by which audit
logs distinguish them. A read waits until the recorder has the version that it returned.
"""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from typing import Final

import aiohttp
import orjson
from yarl import URL

from compute_api_types.wire import JsonValue
from e2e.backends.real.auditing import USER_AGENT_PREFIX
from e2e.backends.real.environment import RealEnvironment
from e2e.harness.access.client import Endpoint
from e2e.harness.planes.identities import ADMIN
from e2e.world.kinds import KINDS, Kind
from e2e.world.objects import objects_at, uid_of
from e2e.world.port import ROOT, PlaneRequest, PlaneResponse

TIMEOUT: Final = aiohttp.ClientTimeout(total=60)
# How long a read waits for the recorder; on a busy machine watches are that late.
CATCH_UP: Final = timedelta(seconds=5)


class UserClients:
    """The users of one scenario; opened on the loop that runs it."""

    def __init__(self, environment: RealEnvironment) -> None:
        self._environment = environment
        self._session: aiohttp.ClientSession | None = None
        authority = environment.planes.plane(ROOT).runtime.pki.authority
        self._trusted = ssl.create_default_context(cadata=authority.decode())

    async def open(self) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._trusted), timeout=TIMEOUT
        )

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def send(self, plane: str, user: str, call: PlaneRequest) -> PlaneResponse:
        reply = await self._exchange(plane, user, call)
        if call.method == "GET":
            await self._let_record_catch_up(plane, call, reply)
        return reply

    async def _exchange(self, plane: str, user: str, call: PlaneRequest) -> PlaneResponse:
        if self._session is None:
            raise RuntimeError("the backend is not open")
        endpoint = self._endpoint(plane)
        headers = {
            **endpoint.headers(),
            "Content-Type": call.media,
            "User-Agent": f"{USER_AGENT_PREFIX}{user}",
        }
        if ":" in user:
            headers["Impersonate-User"] = user
        body = None if call.body is None else orjson.dumps(call.body)
        url = URL(endpoint.server + call.target, encoded=True)
        try:
            async with self._session.request(
                call.method, url, headers=headers, data=body
            ) as answer:
                raw = await answer.read()
        except (aiohttp.ClientError, TimeoutError) as cause:
            raise AssertionError(f"{call.method} {call.target} on {plane}: {cause!r}") from cause
        parsed: JsonValue = orjson.loads(raw) if raw.startswith(b"{") else {}
        pause = answer.headers.get("Retry-After")
        return PlaneResponse(
            answer.status,
            parsed if isinstance(parsed, dict) else {},
            timedelta(seconds=float(pause)) if pause else None,
            tuple(answer.headers.getall("Warning", ())),
        )

    def _endpoint(self, plane: str) -> Endpoint:
        planes = self._environment.planes
        known = {one.name: one for one in planes.planes}
        if plane == ROOT or plane not in known or known[plane].spec.role == "project":
            return planes.milo.endpoint("" if plane == ROOT else plane)
        return known[plane].endpoint(ADMIN.user)

    async def _let_record_catch_up(
        self, plane: str, call: PlaneRequest, reply: PlaneResponse
    ) -> None:
        """Waits for the recorder, so that `versions` contains what the scenario has just read."""
        recorder = self._environment.recorder
        kind = _kind_at(call.target)
        if kind is None or not recorder.is_watched(plane, kind) or reply.status not in {200, 404}:
            return
        read = [reply.body] if uid_of(reply.body) else objects_at(reply.body, "items")
        end = datetime.now(UTC) + CATCH_UP
        while datetime.now(UTC) < end:
            if reply.status == 404 and recorder.has_lost(plane, kind, _key_at(call.target, kind)):
                return
            if reply.status == 200 and all(recorder.has_seen(plane, kind, one) for one in read):
                return
            await asyncio.sleep(0.01)


def _kind_at(target: str) -> Kind | None:
    """The kind of an object or collection path; None for other paths."""
    path = target.partition("?")[0]
    parts = [part for part in path.split("/") if part]
    parts = parts[3:] if parts[:1] == ["apis"] else parts[2:]
    if parts[:1] == ["namespaces"] and len(parts) > 2:
        parts = parts[2:]
    group = path.split("/")[2] if path.startswith("/apis/") else ""
    if not parts or len(parts) > 2:
        return None
    return next((one for one in KINDS if (one.group, one.plural) == (group, parts[0])), None)


def _key_at(target: str, kind: Kind) -> str:
    parts = target.partition("?")[0].split("/")
    name = parts[-1]
    if not kind.is_namespaced:
        return name
    return f"{parts[parts.index('namespaces') + 1]}/{name}"
