"""Milo's controllers over HTTP on a plain API server, and a whole Milo behind a port."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import ssl
import stat
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from compute_sim_planes.api_server.authz.identity import ADMIN, Tokens
from compute_sim_planes.api_server.http.server import HttpServer, route_all
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.client.http import HttpTransport
from compute_sim_planes.client.rest import Client
from compute_sim_planes.conditions import is_condition_true
from compute_sim_planes.crds import load_crds
from compute_sim_planes.json_types import JsonObject, string_at
from compute_sim_planes.milo.http_server import serve_milo
from compute_sim_planes.milo.kinds import (
    BUCKETS,
    CLAIMS,
    GRANTS,
    MANAGER,
    NAMESPACES,
    REGISTRATIONS,
)
from compute_sim_planes.milo.paths import project_path
from compute_sim_planes.milo.quota.controller import QuotaController
from compute_sim_planes.milo.quota.registrations import activate_registrations
from compute_sim_planes.milo.testing import a_claim, a_grant, a_registration, verdict_of
from compute_sim_planes.time.sources import SystemClock

WIDGETS = "test.example.com/widgets"
PATIENCE = 20.0


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE
    while not await holds():
        assert loop.time() < deadline, "it did not come true in time"
        await asyncio.sleep(0.02)


@dataclass
class PlainServer:
    """An API server with Milo's CRDs only, and its administrator."""

    plane: Plane
    client: Client
    server: HttpServer

    async def restart(self) -> None:
        """Close all connections and stop for a moment."""
        port = self.server.port
        await self.server.close()
        await asyncio.sleep(0.1)
        self.server = HttpServer(route_all(self.plane))
        await self.server.start(port)


@asynccontextmanager
async def plain_server() -> AsyncGenerator[PlainServer]:
    token = secrets.token_urlsafe(8)
    plane = Plane("p", PlaneParts(tokens=Tokens({token: ADMIN})))
    served = HttpServer(route_all(plane))
    await served.start()
    transport = HttpTransport(served.url, token=token)
    plain = PlainServer(plane, Client(transport, manager=MANAGER), served)
    try:
        await apply_manifests(plane.connect(), load_crds("milo"))
        yield plain
    finally:
        await transport.close()
        await plane.close()
        await plain.server.close()


@asynccontextmanager
async def running(*programs: Coroutine[object, object, None]) -> AsyncGenerator[None]:
    tasks = [asyncio.create_task(program) for program in programs]
    try:
        yield
        for task in tasks:
            assert not task.done(), "a controller ended by itself"
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_quota_is_evaluated_over_http_on_a_plain_api_server() -> None:
    async with plain_server() as plain:
        plane, clock = plain.client, SystemClock()
        async with running(
            QuotaController(plane, clock).run(), activate_registrations(plane, clock)
        ):
            namespace: JsonObject = {"apiVersion": "v1", "kind": "Namespace"}
            await plane.create(NAMESPACES, {**namespace, "metadata": {"name": "milo-system"}})
            await plane.create(REGISTRATIONS, a_registration(WIDGETS))
            await plane.create(GRANTS, a_grant("acme", {WIDGETS: 1}))

            async def are_active() -> bool:
                objects = (await plane.list(GRANTS)).items + (await plane.list(REGISTRATIONS)).items
                return len(objects) == 2 and all(
                    is_condition_true(one, "Active") for one in objects
                )

            await eventually(are_active)
            await plane.create(CLAIMS, a_claim("acme", "first", {WIDGETS: 1}))
            await eventually(lambda: has_verdict(plane, "first", "QuotaAvailable"))
            await plain.restart()
            await plane.create(CLAIMS, a_claim("acme", "second", {WIDGETS: 1}))
            await eventually(lambda: has_verdict(plane, "second", "QuotaExceeded"))
            assert len((await plane.list(BUCKETS)).items) == 1


async def has_verdict(plane: Client, name: str, reason: str) -> bool:
    return verdict_of(await plane.get(CLAIMS, name, "default"))[1] == reason


async def test_a_whole_milo_answers_over_tls_under_its_own_paths(tmp_path: Path) -> None:
    async with serve_milo(tmp_path, "acme") as served:
        assert served.kubeconfig.stat().st_mode & 0o077 == 0
        transport = HttpTransport(
            served.url,
            token=served.token,
            context=ssl.create_default_context(cafile=served.authority),
        )
        try:
            acme = Client(transport, manager="test", prefix=project_path("acme"))
            names = [
                string_at(one, "metadata", "name") for one in (await acme.list(NAMESPACES)).items
            ]
            assert names == ["default", "milo-system"]
        finally:
            await transport.close()


def connections_to(url: str) -> int:
    """Open connections of this process to a server."""
    count, port = 0, urlsplit(url).port
    for descriptor in (int(entry.name) for entry in Path("/dev/fd").iterdir()):
        with suppress(OSError):  # the descriptor of this listing, or one without a peer
            if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                continue
            with socket.socket(fileno=os.dup(descriptor)) as opened:
                is_tcp = opened.family == socket.AF_INET
                count += is_tcp and opened.getpeername()[1] == port
    return count


async def test_a_watch_that_was_left_over_tls_holds_no_connection_once_closed(
    tmp_path: Path,
) -> None:
    async with serve_milo(tmp_path, "acme") as served:
        transport = HttpTransport(
            served.url,
            token=served.token,
            context=ssl.create_default_context(cafile=served.authority),
        )
        try:
            root = Client(transport, manager="test")
            async with aclosing(root.watch(NAMESPACES, "0")) as events:
                await anext(events)
                assert connections_to(served.url) == 1
        finally:
            await transport.close()
        # At once: if the loop ended here, a socket would be left open.
        assert connections_to(served.url) == 0


async def test_a_server_that_hangs_up_is_a_broken_connection_to_its_clients() -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    transport = HttpTransport(f"http://127.0.0.1:{port}")
    try:
        # A reflector retries exactly this error.
        with pytest.raises(OSError, match=r"asking a server|reset"):
            await transport.request("GET", "/", {}, None)
    finally:
        await transport.close()
        server.close()
        await server.wait_closed()
