"""`python -m e2e.planes.gateway SETTINGS`: serves until it is told to end."""

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

from compute_sim_planes.api_server.token_file import read_token_file
from compute_sim_planes.client import Client
from compute_sim_planes.client_http import HttpTransport
from e2e.planes.gateway.mirror import MANAGER, mirror
from e2e.planes.gateway.proxy import Gateway
from e2e.planes.gateway.settings import GatewaySettings


def serving_context(settings: GatewaySettings) -> ssl.SSLContext:
    """Clients may show a certificate; one that is shown must be ours."""
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
    """Connections to all planes; without limits in number and time, since watches use them."""
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=upstream_context(settings)),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=5),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
    ) as session:
        yield session


@asynccontextmanager
async def admin_client(
    settings: GatewaySettings, origin: str, token: str
) -> AsyncGenerator[Client]:
    trusted = ssl.create_default_context(cafile=str(settings.authority))
    transport = HttpTransport(origin, token=token, context=trusted)
    try:
        yield Client(transport, manager=MANAGER)
    finally:
        await transport.close()


async def serve(settings: GatewaySettings) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(upstream_session(settings))
        users = read_token_file(settings.tokens)
        gateway = Gateway(settings.root, settings.projects, users, session)
        application = web.Application(client_max_size=16 * 1024**2)
        application.router.add_route("*", "/{path:.*}", gateway.serve)
        # A client that leaves ends its watch at the API server too.
        runner = web.AppRunner(application, handler_cancellation=True, access_log=None)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        context = serving_context(settings)
        site = web.TCPSite(
            runner, settings.address, settings.port, ssl_context=context, reuse_address=True
        )
        await site.start()
        root = await stack.enter_async_context(
            admin_client(settings, settings.root, settings.root_token)
        )
        projects = {
            name: await stack.enter_async_context(
                admin_client(settings, origin, settings.project_tokens[name])
            )
            for name, origin in settings.projects.items()
        }
        mirroring = asyncio.create_task(mirror(root, projects))
        waiting = asyncio.create_task(ended.wait())
        done, _ = await asyncio.wait({mirroring, waiting}, return_when=asyncio.FIRST_COMPLETED)
        for task in (mirroring, waiting):
            task.cancel()
        await asyncio.gather(mirroring, waiting, return_exceptions=True)
        if mirroring in done:
            mirroring.result()  # a mirror that ended on its own failed: the process tells why


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    settings = GatewaySettings.model_validate_json(Path(sys.argv[1]).read_text("utf-8"))
    asyncio.run(serve(settings))


if __name__ == "__main__":
    main()
