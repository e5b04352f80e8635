"""`python -m e2e.harness.gateway SETTINGS`: serves until SIGTERM."""

from __future__ import annotations

import asyncio
import logging
import signal
import ssl
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
from aiohttp import web

from compute_sim_planes.api_server.authz.token_file import read_token_file
from compute_sim_planes.client.http import HttpTransport
from compute_sim_planes.client.rest import Client
from e2e.harness.gateway.directory import ProjectDirectory
from e2e.harness.gateway.fault_routes import FaultRoutes
from e2e.harness.gateway.issuer import Issuer
from e2e.harness.gateway.proxy import AS_GATEWAY, Gateway
from e2e.harness.gateway.settings import GatewaySettings
from e2e.harness.gateway.suspensions import KnownProjects, SuspendedProjects


def serving_context(settings: GatewaySettings) -> ssl.SSLContext:
    """Client certificates are optional; a presented one must be from our CA."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(settings.certificate, settings.key)
    context.load_verify_locations(settings.authority)
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


def upstream_context(settings: GatewaySettings) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(settings.authority))
    context.load_cert_chain(settings.front_proxy_certificate, settings.front_proxy_key)
    return context


@asynccontextmanager
async def upstream_session(settings: GatewaySettings) -> AsyncGenerator[aiohttp.ClientSession]:
    """Connections to all planes, without limit and timeout, since watches use them."""
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=upstream_context(settings)),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=5),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
    ) as session:
        yield session


async def serve(settings: GatewaySettings) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(upstream_session(settings))
        users = read_token_file(settings.tokens)
        directory = ProjectDirectory(settings.directory)
        fault_routes = FaultRoutes(settings.fault_routes)
        issuer = Issuer(settings.issuer, session, AS_GATEWAY) if settings.issuer else None
        suspended = SuspendedProjects()
        projects = KnownProjects(directory, suspended)
        gateway = Gateway(settings.root, projects, users, session, fault_routes, issuer)
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        watch = tasks.create_task(fault_routes.watch(), name="fault-routes")
        stack.callback(watch.cancel)
        transport = HttpTransport(settings.root, context=upstream_context(settings))
        stack.push_async_callback(transport.close)
        root = Client(transport, manager="milo-gateway", headers=dict(AS_GATEWAY))
        watching = tasks.create_task(suspended.watch(root), name="suspended-projects")
        stack.callback(watching.cancel)
        application = web.Application(client_max_size=16 * 1024**2)
        application.router.add_route("*", "/{path:.*}", gateway.serve)
        # A disconnected client ends its watch at the API server too.
        runner = web.AppRunner(application, handler_cancellation=True, access_log=None)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        context = serving_context(settings)
        runtime = web.TCPSite(
            runner, settings.address, settings.port, ssl_context=context, reuse_address=True
        )
        await runtime.start()
        await ended.wait()


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    settings = GatewaySettings.model_validate_json(Path(sys.argv[1]).read_text("utf-8"))
    asyncio.run(serve(settings))


if __name__ == "__main__":
    main()
