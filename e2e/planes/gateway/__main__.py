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
from e2e.planes.gateway.directory import ProjectDirectory
from e2e.planes.gateway.issuer import Issuer
from e2e.planes.gateway.proxy import AS_GATEWAY, Gateway
from e2e.planes.gateway.settings import GatewaySettings
from e2e.planes.gateway.ways import Ways


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


async def serve(settings: GatewaySettings) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(upstream_session(settings))
        users = read_token_file(settings.tokens)
        directory = ProjectDirectory(settings.directory)
        ways = Ways(settings.ways)
        issuer = Issuer(settings.issuer, session, AS_GATEWAY) if settings.issuer else None
        gateway = Gateway(settings.root, directory, users, session, ways, issuer)
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        watch = tasks.create_task(ways.watch(), name="ways")
        stack.callback(watch.cancel)
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
        await ended.wait()


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    settings = GatewaySettings.model_validate_json(Path(sys.argv[1]).read_text("utf-8"))
    asyncio.run(serve(settings))


if __name__ == "__main__":
    main()
