"""Cost of quota-client: connections and memory over 10,000 projects, CPU compared with httpx.

The server is a separate process over TLS on the loopback interface and does as little as possible,
so that the client is measured. It counts the connections it receives.
"""

from __future__ import annotations

import asyncio
import base64
import gc
import ipaddress
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import httpx
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from typing_extensions import override

from compute_quota_client import Absent, Claim, Pending, QuotaClient, project_ref
from tools.bench import Row
from tools.workspace import ROOT

PROJECTS: Final = 10_000
EARLY: Final = 2_000
# More than there are connections, so that the bound is reached.
AT_ONCE: Final = 64
CLAIMS: Final = 2_000
# As many as a pool keeps open, so that no side pays for handshakes.
CLAIMS_AT_ONCE: Final = 8
CONNECTION_BOUND: Final = 32
MEMORY_BOUND: Final = 1.1


def run() -> list[Row]:
    """The rows of `nox -s bench -- quota`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ca = write_certificate(folder)
        with serving(folder) as url:
            return asyncio.run(measure(url, ca, folder))


async def measure(url: str, ca: bytes, folder: Path) -> list[Row]:
    kubeconfig = write_kubeconfig(url, ca, folder)
    async with QuotaClient.from_kubeconfig(kubeconfig) as quota:
        early = await touched(quota, range(EARLY))
        late = await touched(quota, range(EARLY, PROJECTS))
        connections = await most_connections(url, ca)
    growth = late / early
    rows = [
        Row(
            f"request connections, {PROJECTS:,} projects",
            connections,
            "connections",
            target=CONNECTION_BOUND,
            holds=connections <= CONNECTION_BOUND,
        ),
        Row(
            f"RSS after {PROJECTS:,} projects",
            late / 2**20,
            "MiB",
            compared_to=f"after {EARLY:,} projects",
            ratio=growth,
            target=MEMORY_BOUND,
            holds=growth <= MEMORY_BOUND,
        ),
    ]
    return rows + await claims_beside_posts(url, ca, kubeconfig)


async def touched(quota: QuotaClient, numbers: range) -> int:
    """Sends one request in each project; returns the memory of this process in bytes."""

    async def touch(number: int) -> None:
        if await quota.project(f"project-{number}").read("default", "x") != Absent():
            raise TypeError("the server has a claim, although it keeps none")

    await in_parallel(numbers, AT_ONCE, touch)
    return resident()


def resident() -> int:
    """Resident memory of this process in bytes."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def claim_once(quota: QuotaClient, project: str, name: str) -> None:
    verdict = await quota.project(project).claim(replace(WANTED, name=name))
    if not isinstance(verdict, Pending):
        raise TypeError(f"the server answered {verdict}")


async def claims_beside_posts(url: str, ca: bytes, kubeconfig: Path) -> list[Row]:
    async with QuotaClient.from_kubeconfig(kubeconfig) as quota:
        ours = await timed(lambda number: claim_once(quota, "acme", f"c-{number}"))
    context = ssl.create_default_context(cadata=ca.decode())
    path = f"{url}/apis/quota.miloapis.com/v1alpha1/namespaces/default/resourceclaims"
    body = json.dumps({"kind": "ResourceClaim", "metadata": {"name": "bare"}})
    async with httpx.AsyncClient(verify=context, trust_env=False) as client:

        async def post(_: int) -> None:
            (await client.post(path, content=body)).raise_for_status()

        bare = await timed(post)
    return [
        Row("claims (a GET and a POST each)", ours.per_second, "1/s"),
        Row("bare httpx POSTs", bare.per_second, "1/s"),
        Row(
            "CPU per claim",
            ours.cpu_each * 1e3,
            "ms",
            compared_to="a bare httpx POST",
            ratio=ours.cpu_each / bare.cpu_each,
        ),
    ]


@dataclass(frozen=True, slots=True)
class Timing:
    """Rate and cost of one kind of call."""

    per_second: float
    cpu_each: float


async def timed(act: Callable[[int], Awaitable[None]]) -> Timing:
    await in_parallel(range(200), CLAIMS_AT_ONCE, act)
    began, cpu = time.perf_counter(), time.process_time()
    await in_parallel(range(200, 200 + CLAIMS), CLAIMS_AT_ONCE, act)
    took, used = time.perf_counter() - began, time.process_time() - cpu
    return Timing(CLAIMS / took, used / CLAIMS)


async def in_parallel(numbers: range, at_once: int, act: Callable[[int], Awaitable[None]]) -> None:
    waiting = iter(numbers)

    async def work() -> None:
        for number in waiting:
            await act(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(work())


async def most_connections(url: str, ca: bytes) -> int:
    """The largest number of open connections before this request."""
    context = ssl.create_default_context(cadata=ca.decode())
    async with httpx.AsyncClient(verify=context, trust_env=False) as client:
        return int((await client.get(f"{url}/most-connections")).text)


WANTED: Final = Claim(
    namespace="default",
    name="x",
    requests={"bench.example.com/widgets": 1},
    consumer=project_ref("acme"),
    owner={"bench.example.com/owner": "bench"},
    subject={"bench.example.com/uid": "u-1"},
)


def write_kubeconfig(url: str, ca: bytes, folder: Path) -> Path:
    cluster = {"server": url, "certificate-authority-data": base64.b64encode(ca).decode()}
    document = {
        "current-context": "bench",
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        "clusters": [{"name": "bench", "cluster": cluster}],
        "users": [{"name": "bench", "user": {"token": "bench"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(document), "utf-8")
    return path


def write_certificate(folder: Path) -> bytes:
    """A self-signed certificate for 127.0.0.1, in `server.pem` with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bench")])
    today = datetime.now(UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - timedelta(hours=1))
        .not_valid_after(today + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (folder / "server.pem").write_bytes(signed + private)
    return signed


@contextmanager
def serving(folder: Path) -> Generator[str, None, None]:
    """Runs the server and yields its URL."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.quota", str(folder / "server.pem")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        if process.stdout is None:
            raise RuntimeError("the server has no output")
        yield f"https://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


class MinimalServer(asyncio.Protocol):
    """A minimal server: claims never exist, and every create succeeds."""

    open_now = 0
    open_most = 0

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._received = b""

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.WriteTransport):
            self._transport = transport
        MinimalServer.open_now += 1
        MinimalServer.open_most = max(MinimalServer.open_most, MinimalServer.open_now)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        MinimalServer.open_now -= 1

    @override
    def data_received(self, data: bytes) -> None:
        self._received += data
        while True:
            head, end, rest = self._received.partition(b"\r\n\r\n")
            length = _content_length(head)
            if not end or len(rest) < length or self._transport is None:
                return
            self._received = rest[length:]
            self._transport.write(_answer(head, rest[:length]))


def _content_length(head: bytes) -> int:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return int(value)
    return 0


def _answer(head: bytes, body: bytes) -> bytes:
    if head.startswith(b"POST"):
        return _response(b"201 Created", json.dumps(_created(json.loads(body))).encode())
    if b"/most-connections" in head.partition(b"\r\n")[0]:
        # Without the connection of this request.
        return _response(b"200 OK", str(MinimalServer.open_most).encode())
    return _response(b"404 Not Found", b'{"kind":"Status","code":404,"reason":"NotFound"}')


def _created(wanted: dict[str, object]) -> dict[str, object]:
    metadata = wanted["metadata"]
    given = {"uid": "u", "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {**wanted, "metadata": {**metadata, **given} if isinstance(metadata, dict) else given}


def _response(status: bytes, body: bytes) -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)


async def serve(certificate: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(MinimalServer, "127.0.0.1", 0, ssl=context)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
