"""Which certificates of a plane's server are accepted: real handshakes on loopback, through the
product's transport.
"""

from __future__ import annotations

import ssl
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeAlias

import pytest
import yaml
from aiohttp import web

from compute_kubeconfig.credentials import FileCredentials
from compute_operator_kit.client.transport.aiohttp import AiohttpTransport, Tls, open_session
from compute_operator_kit.testing.certificates import (
    Authority,
    KeyPair,
    issue_self_signed,
)
from compute_operator_kit.testing.fakes import FakeClock

pytestmark = pytest.mark.spec("S10")

Serve: TypeAlias = Callable[[ssl.SSLContext], Awaitable[int]]
YESTERDAY = datetime.now(UTC) - timedelta(days=1)


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Serves /hello with a given context; returns the port."""
    runners: list[web.AppRunner] = []

    async def hello(request: web.Request) -> web.Response:
        certificate = request.get_extra_info("peercert")
        return web.json_response({"peer": bool(certificate)})

    async def start(context: ssl.SSLContext) -> int:
        application = web.Application()
        application.add_routes([web.get("/hello", hello)])
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0)
        runners.append(runner)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        return int(runner.addresses[0][1])

    yield start
    for runner in runners:
        await runner.cleanup()


def server_context(pair: KeyPair, folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair.write(folder))
    return context


class Client:
    """A plane's credentials on disk, and requests made with them."""

    def __init__(
        self, folder: Path, port: int, ca: bytes, user: dict[str, object] | None = None
    ) -> None:
        self.folder = folder
        self.clock = FakeClock()
        self.server_name: str | None = None
        (folder / "ca.crt").write_bytes(ca)
        (folder / "token").write_text("token")
        cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority": "ca.crt"}
        content = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user or {"tokenFile": "token"}}],
        }
        (folder / "kubeconfig").write_text(yaml.safe_dump(content))
        self.credentials = FileCredentials.from_kubeconfig(folder / "kubeconfig", clock=self.clock)

    async def get(self) -> int:
        async with self._transport() as transport:
            answer = await transport.request(
                "GET", "/hello", await self.credentials.headers(), None
            )
            await answer.close()
            return answer.status

    @asynccontextmanager
    async def _transport(self) -> AsyncGenerator[AiohttpTransport]:
        session = open_session()
        try:
            tls = Tls(lambda: self.credentials.ssl_context, self.server_name)
            yield AiohttpTransport(session, self.credentials.server, tls)
        finally:
            await session.close()


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    server, client = tmp_path / "server", tmp_path / "client"
    server.mkdir()
    client.mkdir()
    return server, client


async def test_a_good_certificate_is_accepted(serve: Serve, folders: tuple[Path, Path]) -> None:
    authority = Authority()
    port = await serve(server_context(authority.issue(), folders[0]))

    assert await Client(folders[1], port, authority.certificate).get() == 200


@pytest.mark.parametrize("flaw", ["expired", "wrong CA", "wrong SAN", "self-signed"])
async def test_a_bad_certificate_is_refused(
    serve: Serve, folders: tuple[Path, Path], flaw: str
) -> None:
    authority = Authority()
    shown = {
        "expired": authority.issue(valid_until=YESTERDAY),
        "wrong CA": Authority().issue(),
        "wrong SAN": authority.issue(["hub.example", "127.0.0.2"]),
        "self-signed": issue_self_signed(),
    }
    port = await serve(server_context(shown[flaw], folders[0]))

    with pytest.raises(ConnectionRefusedError, match="the certificate is not trusted"):
        await Client(folders[1], port, authority.certificate).get()


async def test_a_server_may_be_known_under_another_name(
    serve: Serve, folders: tuple[Path, Path]
) -> None:
    authority = Authority()
    port = await serve(server_context(authority.issue(["hub.example"]), folders[0]))
    client = Client(folders[1], port, authority.certificate)
    client.server_name = "hub.example"

    assert await client.get() == 200


def old_server(authority: Authority, folder: Path) -> ssl.SSLContext:
    """A server that speaks TLS 1.1 and nothing newer."""
    context = server_context(authority.issue(), folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = ssl.TLSVersion.TLSv1_1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    # OpenSSL 3 allows the signatures of TLS 1.1 on its lowest level only.
    context.set_ciphers("ALL:@SECLEVEL=0")
    return context


async def test_tls_1_1_is_refused(serve: Serve, folders: tuple[Path, Path]) -> None:
    authority = Authority()
    port = await serve(old_server(authority, folders[0]))
    client = Client(folders[1], port, authority.certificate)

    with pytest.raises(ConnectionRefusedError):
        await client.get()

    # The server works: the same client with a lower minimum connects.
    lax = client.credentials.ssl_context
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        lax.minimum_version = ssl.TLSVersion.TLSv1_1
    lax.set_ciphers("ALL:@SECLEVEL=0")
    assert await client.get() == 200


async def test_a_rotated_leaf_of_the_server_is_accepted(
    serve: Serve, folders: tuple[Path, Path]
) -> None:
    authority = Authority()
    context = server_context(authority.issue(), folders[0])
    client = Client(folders[1], await serve(context), authority.certificate)
    assert await client.get() == 200

    context.load_cert_chain(*authority.issue().write(folders[0]))

    assert await client.get() == 200


async def test_a_rotated_authority_is_trusted_within_a_minute_and_the_former_one_is_not(
    serve: Serve, folders: tuple[Path, Path]
) -> None:
    former, rotated = Authority("former"), Authority("rotated")
    old_port = await serve(server_context(former.issue(), folders[0]))
    client = Client(folders[1], old_port, former.certificate)
    assert await client.get() == 200

    (folders[1] / "ca.crt").write_bytes(rotated.certificate)
    client.clock.pass_time(timedelta(seconds=60))

    with pytest.raises(ConnectionRefusedError):
        await client.get()
    new_port = await serve(server_context(rotated.issue(), folders[0]))
    assert await Client(folders[1], new_port, rotated.certificate).get() == 200


async def test_both_authorities_of_a_bundle_are_trusted_during_a_rotation(
    serve: Serve, folders: tuple[Path, Path]
) -> None:
    former, rotated = Authority("former"), Authority("rotated")
    bundle = former.certificate + rotated.certificate

    for authority in (former, rotated):
        port = await serve(server_context(authority.issue(), folders[0]))
        assert await Client(folders[1], port, bundle).get() == 200


async def test_a_client_certificate_is_shown_and_its_rotation_used_within_a_minute(
    serve: Serve, folders: tuple[Path, Path]
) -> None:
    authority, clients, other = Authority(), Authority("clients"), Authority("other")
    context = server_context(authority.issue(), folders[0])
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=clients.certificate.decode())
    other.issue().write(folders[1])
    user: dict[str, object] = {"client-certificate": "tls.crt", "client-key": "tls.key"}
    client = Client(folders[1], await serve(context), authority.certificate, user)
    # In TLS 1.3 the server verifies a client's certificate after the handshake.
    with pytest.raises(OSError, match=r"connecting|exchanging|TLSV1|unknown ca"):
        await client.get()

    clients.issue().write(folders[1])
    client.clock.pass_time(timedelta(seconds=60))

    assert await client.get() == 200
