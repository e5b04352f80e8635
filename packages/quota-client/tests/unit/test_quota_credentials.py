import asyncio
import base64
import logging
import ssl
import stat
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from compute_kubeconfig.kubeconfig import load_kubeconfig
from compute_quota_client import (
    Absent,
    Operation,
    QuotaAuthError,
    QuotaClient,
    QuotaError,
    QuotaSettings,
    QuotaUnavailableError,
)
from compute_quota_client._clock import wall_now
from compute_quota_client._credentials import RotatingCredentials
from compute_quota_client.testing import SERVER, Failure, FakeQuota, a_claim

Write = Callable[..., Path]
Issue = Callable[[str], tuple[bytes, bytes]]
Jump = Callable[[float], None]


def client_of(fake: FakeQuota, path: Path, *, allow_exec: bool = False) -> QuotaClient:
    """A client with the credentials of a kubeconfig and the transport of a fake."""
    credentials = RotatingCredentials(
        lambda: load_kubeconfig(path, allow_exec=allow_exec), wall_now
    )
    return QuotaClient(SERVER, transport=fake.transport, credentials=credentials)


def tokens(fake: FakeQuota) -> list[str | None]:
    sent = [exchange.headers.get("Authorization") for exchange in fake.requests]
    return [token and token.removeprefix("Bearer ") for token in sent]


async def eventually(holds: Callable[[], bool]) -> bool:
    """Whether it comes true, within the patience a busy machine needs."""
    for _ in range(1500):
        if holds():
            return True
        await asyncio.sleep(0.01)
    return False


async def read(client: QuotaClient) -> None:
    assert await client.project("acme").read("default", "x") == Absent()


@pytest.mark.spec("Q-13")
async def test_a_rotated_token_file_is_in_use_within_60_seconds(
    fake: FakeQuota, write_kubeconfig: Write
) -> None:
    path = write_kubeconfig({"server": SERVER}, {"tokenFile": "token"})
    (path.parent / "token").write_text("first")
    async with client_of(fake, path) as client:
        await read(client)
        await asyncio.sleep(30)
        await read(client)
        (path.parent / "token").write_text("second")
        await asyncio.sleep(10)
        await read(client)
        await asyncio.sleep(50)
        await read(client)
    assert tokens(fake) == ["first", "first", "first", "second"]


@pytest.mark.spec("Q-13")
async def test_a_rotated_kubeconfig_is_in_use_within_60_seconds(
    fake: FakeQuota, write_kubeconfig: Write
) -> None:
    path = write_kubeconfig({"server": SERVER}, {"token": "first"})
    async with client_of(fake, path) as client:
        await read(client)
        write_kubeconfig({"server": SERVER}, {"token": "second"})
        await asyncio.sleep(60)
        await read(client)
    assert tokens(fake) == ["first", "second"]


@pytest.mark.spec("Q-13")
@pytest.mark.parametrize("operation", [Operation.GET, Operation.CREATE])
async def test_a_401_reads_the_credential_at_once_and_tries_again_once(
    fake: FakeQuota, write_kubeconfig: Write, operation: Operation
) -> None:
    path = write_kubeconfig({"server": SERVER}, {"tokenFile": "token"})
    (path.parent / "token").write_text("first")
    async with client_of(fake, path) as client:
        await read(client)
        fake.requests.clear()
        (path.parent / "token").write_text("second")
        fake.fail_next(operation, Failure(401, "Unauthorized"))
        await client.project("acme").claim(a_claim())
    refused, again = fake.sent(operation)
    assert refused.headers["Authorization"] == "Bearer first"
    assert again.headers["Authorization"] == "Bearer second"


@pytest.mark.spec("Q-13")
async def test_still_401_is_an_auth_error(fake: FakeQuota, write_kubeconfig: Write) -> None:
    path = write_kubeconfig({"server": SERVER}, {"token": "first"})
    async with client_of(fake, path) as client:
        fake.fail_next(Operation.GET, *[Failure(401, "Unauthorized")] * 2)
        with pytest.raises(QuotaAuthError) as caught:
            await read(client)
        assert (caught.value.status, caught.value.project) == (401, "acme")
        assert len(fake.requests) == 2
        await read(client)


@pytest.mark.spec("Q-13")
async def test_a_401_with_the_file_gone_is_an_auth_error_naming_its_path(
    fake: FakeQuota, write_kubeconfig: Write
) -> None:
    path = write_kubeconfig({"server": SERVER}, {"tokenFile": "token"})
    token = path.parent / "token"
    token.write_text("first")
    async with client_of(fake, path) as client:
        token.unlink()
        fake.fail_next(Operation.GET, Failure(401))
        with pytest.raises(QuotaAuthError, match=str(token)):
            await read(client)


async def test_a_file_that_is_gone_for_a_moment_keeps_the_last_credential(
    fake: FakeQuota, write_kubeconfig: Write, caplog: pytest.LogCaptureFixture
) -> None:
    path = write_kubeconfig({"server": SERVER}, {"tokenFile": "token"})
    token = path.parent / "token"
    token.write_text("first")
    async with client_of(fake, path) as client:
        await read(client)
        token.unlink()
        await asyncio.sleep(61)
        await read(client)
        token.write_text("second")
        await asyncio.sleep(61)
        await read(client)
    assert tokens(fake) == ["first", "first", "second"]
    assert [record.message for record in caplog.records] == ["Keeping the last credential"]


async def test_a_kubeconfig_that_names_another_server_is_not_followed(
    fake: FakeQuota, write_kubeconfig: Write
) -> None:
    path = write_kubeconfig({"server": SERVER}, {"token": "first"})
    async with client_of(fake, path) as client:
        await read(client)
        write_kubeconfig({"server": "https://elsewhere"}, {"token": "second"})
        await asyncio.sleep(61)
        await read(client)
    assert tokens(fake) == ["first", "first"]
    assert {exchange.url.host for exchange in fake.requests} == {httpx.URL(SERVER).host}


@pytest.mark.spec("Q-07")
async def test_no_error_carries_the_credential(
    fake: FakeQuota, write_kubeconfig: Write, caplog: pytest.LogCaptureFixture
) -> None:
    canary = "canary-5ba1e6"
    path = write_kubeconfig({"server": SERVER}, {"token": canary})
    texts: list[str] = []
    with caplog.at_level(logging.DEBUG):
        async with client_of(fake, path) as client:
            for trouble in (
                Failure(403, "Forbidden", f"who is {canary}?"),
                Failure(400, body=f"Authorization: Bearer {canary}".encode()),
                Failure(200, body=canary.encode()),
                Failure(500, canary, canary),
                httpx.ReadError,
                httpx.ReadTimeout,
            ):
                fake.fail_next(Operation.GET, *[trouble] * 3)
                with pytest.raises(QuotaError) as caught:
                    await read(client)
                fake.fail_no_more()
                # Keeps the circuit closed: its error would hide the one under test.
                await read(client)
                error: BaseException | None = caught.value
                while error is not None:
                    texts += [str(error), repr(error), repr(vars(error))]
                    if isinstance(error, httpx.RequestError):
                        texts.append(repr(error.request.headers.raw))
                    error = error.__cause__
                texts += traceback.format_exception(caught.value)
    # The requests of both transport errors were looked into.
    assert sum("User-Agent" in text for text in texts) == 2
    assert not [text for text in texts if canary in text]
    assert canary not in caplog.text


@pytest.mark.usefixtures("real_time")
async def test_a_server_is_asked_over_tls_with_token_and_certificate(
    fake: FakeQuota,
    ca: bytes,
    issue: Issue,
    server_tls: ssl.SSLContext,
    write_kubeconfig: Write,
) -> None:
    certificate, key = issue("cell-1")
    async with fake.port(server_tls) as port:
        path = write_kubeconfig(
            {"server": port.url, "certificate-authority-data": base64.b64encode(ca).decode()},
            {
                "token": "t",
                "client-certificate-data": base64.b64encode(certificate).decode(),
                "client-key-data": base64.b64encode(key).decode(),
            },
        )
        async with QuotaClient.from_kubeconfig(path) as client:
            await read(client)
        assert port.client_names == ["cell-1"]
        assert tokens(fake) == ["t"]


@pytest.mark.spec("Q-13")
@pytest.mark.usefixtures("real_time")
async def test_a_rotated_certificate_is_in_use_within_60_seconds(
    fake: FakeQuota,
    ca: bytes,
    issue: Issue,
    server_tls: ssl.SSLContext,
    write_kubeconfig: Write,
    jump: Jump,
) -> None:
    async with fake.port(server_tls) as port:
        path = write_kubeconfig(
            {"server": port.url, "certificate-authority": "ca.crt"},
            {"client-certificate": "tls.crt", "client-key": "tls.key"},
        )
        mount = path.parent
        (mount / "ca.crt").write_bytes(ca)

        def present(name: str) -> None:
            for file, content in zip(("tls.crt", "tls.key"), issue(name), strict=True):
                (mount / file).write_bytes(content)

        present("first")
        async with QuotaClient.from_kubeconfig(path) as client:
            await read(client)
            present("second")
            await read(client)
            jump(60)
            await read(client)
            # Half of a pair is not a pair: the last one stays.
            (mount / "tls.key").write_bytes(issue("third")[1])
            jump(60)
            await read(client)
            present("fourth")
            jump(60)
            await read(client)
        assert port.client_names == ["first", "first", "second", "second", "fourth"]
        assert await eventually(lambda: port.open_connections == 0)


@pytest.mark.spec("Q-13")
@pytest.mark.usefixtures("real_time")
async def test_an_exchange_under_way_outlives_a_rotation(
    fake: FakeQuota,
    ca: bytes,
    issue: Issue,
    server_tls: ssl.SSLContext,
    write_kubeconfig: Write,
) -> None:
    async with fake.port(server_tls) as port:
        path = write_kubeconfig(
            {"server": port.url, "certificate-authority": "ca.crt"},
            {"client-certificate": "tls.crt", "client-key": "tls.key"},
        )
        (path.parent / "ca.crt").write_bytes(ca)

        def present(name: str) -> None:
            for file, content in zip(("tls.crt", "tls.key"), issue(name), strict=True):
                (path.parent / file).write_bytes(content)

        present("first")
        async with QuotaClient.from_kubeconfig(path) as client:
            fake.knobs.latency = timedelta(seconds=2)
            slow = asyncio.create_task(read(client))
            assert await eventually(lambda: len(fake.requests) == 1)
            fake.knobs.latency = timedelta(0)
            present("second")
            fake.fail_next(Operation.GET, Failure(401))
            await read(client)
            # The old pool carries the slow exchange to its end, and goes with it.
            assert port.open_connections > 1
            await slow
            assert await eventually(lambda: port.open_connections == 1)
        assert port.client_names == ["first", "first", "second"]


@pytest.mark.usefixtures("real_time")
async def test_a_server_of_another_authority_is_not_trusted(
    fake: FakeQuota,
    another_ca: bytes,
    server_tls: ssl.SSLContext,
    write_kubeconfig: Write,
) -> None:
    authority = base64.b64encode(another_ca).decode()
    async with fake.port(server_tls) as port:
        path = write_kubeconfig({"server": port.url, "certificate-authority-data": authority})
        async with QuotaClient.from_kubeconfig(path) as client:
            with pytest.raises(QuotaUnavailableError):
                await client.project("acme").read("default", "x")
    assert fake.requests == []


@pytest.mark.usefixtures("real_time")
async def test_a_name_the_servers_certificate_does_not_carry_is_not_trusted(
    fake: FakeQuota, ca: bytes, server_tls: ssl.SSLContext, write_kubeconfig: Write
) -> None:
    cluster = {
        "certificate-authority-data": base64.b64encode(ca).decode(),
        "tls-server-name": "milo.internal",
    }
    async with fake.port(server_tls) as port:
        path = write_kubeconfig({**cluster, "server": port.url})
        async with QuotaClient.from_kubeconfig(path) as client:
            with pytest.raises(QuotaUnavailableError):
                await client.project("acme").read("default", "x")
    assert fake.requests == []


@pytest.mark.usefixtures("real_time")
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated:DeprecationWarning")
async def test_a_server_that_speaks_only_old_tls_is_not_talked_to(
    fake: FakeQuota, ca: bytes, server_tls: ssl.SSLContext, write_kubeconfig: Write
) -> None:
    # One of its own: the client's is shared by all that trust the same CA.
    permissive = ssl.create_default_context(cadata=ca.decode())
    for context in (server_tls, permissive):
        context.minimum_version = ssl.TLSVersion.TLSv1_1
        context.set_ciphers("ALL:@SECLEVEL=0")
    server_tls.maximum_version = ssl.TLSVersion.TLSv1_1
    authority = base64.b64encode(ca).decode()
    async with fake.port(server_tls) as port:
        address = httpx.URL(port.url)
        _, writer = await asyncio.open_connection(address.host, address.port, ssl=permissive)
        writer.close()
        path = write_kubeconfig({"server": port.url, "certificate-authority-data": authority})
        async with QuotaClient.from_kubeconfig(path) as client:
            with pytest.raises(QuotaUnavailableError):
                await read(client)
    assert fake.requests == []


@pytest.mark.usefixtures("real_time")
async def test_proxies_of_the_environment_are_not_used_and_redirects_not_followed(
    fake: FakeQuota,
    ca: bytes,
    server_tls: ssl.SSLContext,
    write_kubeconfig: Write,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    authority = base64.b64encode(ca).decode()
    async with fake.port(server_tls) as port:
        path = write_kubeconfig({"server": port.url, "certificate-authority-data": authority})
        async with QuotaClient.from_kubeconfig(path) as client:
            await read(client)
            fake.fail_next(Operation.GET, Failure(307))
            with pytest.raises(QuotaError, match="307"):
                await read(client)


@pytest.fixture
async def _children_are_gone(real_time: None) -> AsyncIterator[None]:
    """Python 3.11 waits for a child in a thread of its own, which ends a moment after the child."""
    assert real_time is None
    yield
    for thread in threading.enumerate():
        if thread.name.startswith("asyncio-waitpid"):
            await asyncio.to_thread(thread.join)


def a_program(path: Path, script: str) -> None:
    path.write_text(f"#!{sys.executable}\n{script}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "./program", "args": ["x"]}
PRINTS = """
import json, os, sys
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
assert sys.argv[1:] == ["x"] and os.environ["MODE"] == "test" and not info["spec"]["interactive"]
with open(__file__ + ".count", "a+") as count:
    count.write("x")
    count.seek(0)
    number = len(count.read())
status = {"token": f"token-{number}", "expirationTimestamp": EXPIRES}
print(json.dumps({"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": status}))
"""


@pytest.mark.usefixtures("_children_are_gone")
async def test_a_program_is_asked_once_and_again_when_its_credential_ends_or_is_refused(
    fake: FakeQuota, write_kubeconfig: Write, jump: Jump
) -> None:
    user = {"exec": {**EXEC, "env": [{"name": "MODE", "value": "test"}]}}
    path = write_kubeconfig({"server": SERVER}, user)
    program = path.parent / "program"
    a_program(program, PRINTS.replace("EXPIRES", '"2999-01-01T00:00:00Z"'))
    async with client_of(fake, path, allow_exec=True) as client:
        await asyncio.gather(*(read(client) for _ in range(5)))
        assert set(tokens(fake)) == {"token-1"}
        jump(61)
        await read(client)
        fake.fail_next(Operation.GET, Failure(401))
        await read(client)
        assert tokens(fake)[-2:] == ["token-1", "token-2"]
        a_program(program, PRINTS.replace("EXPIRES", '"2020-01-01T00:00:00Z"'))
        fake.fail_next(Operation.GET, Failure(401))
        await read(client)
        await read(client)
        assert int(tokens(fake)[-1].removeprefix("token-")) > int(  # type: ignore[union-attr]  # it was sent
            tokens(fake)[-3].removeprefix("token-")  # type: ignore[union-attr]  # it was sent
        )


@pytest.mark.usefixtures("_children_are_gone")
@pytest.mark.parametrize(
    ("script", "cause"),
    [
        ("import sys; print('s3cr3t'); sys.exit(3)", "ends with 3"),
        ("print('s3cr3t')", "prints no ExecCredential"),
        ("import time; print('s3cr3t', flush=True); time.sleep(60)", "takes too long"),
    ],
)
async def test_a_program_that_fails_is_an_auth_error_without_what_it_printed(
    fake: FakeQuota, write_kubeconfig: Write, jump: Jump, script: str, cause: str
) -> None:
    if "long" in cause:
        # Its time is the loop's, so it need not be waited for.
        asyncio.get_running_loop().call_later(0.5, jump, 60)
    path = write_kubeconfig({"server": SERVER}, {"exec": EXEC})
    a_program(path.parent / "program", script)
    async with client_of(fake, path, allow_exec=True) as client:
        with pytest.raises(QuotaAuthError, match=cause) as caught:
            await read(client)
        assert "s3cr3t" not in str(caught.value)
    assert fake.requests == []


@pytest.mark.usefixtures("_children_are_gone")
async def test_a_program_that_is_not_there_is_an_auth_error(
    fake: FakeQuota, write_kubeconfig: Write
) -> None:
    path = write_kubeconfig({"server": SERVER}, {"exec": EXEC})
    async with client_of(fake, path, allow_exec=True) as client:
        with pytest.raises(QuotaAuthError, match="program"):
            await read(client)


def test_exec_is_off_by_default() -> None:
    assert QuotaSettings().allow_exec is False
