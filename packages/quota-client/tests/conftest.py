"""Fixtures of the tests of quota-client: a loop with virtual time, a fake Milo, a few builders.

Waiting costs nothing here: when nothing is left to do but wait, the clock jumps. A test that talks
to sockets or processes asks for `real_time`, because those do not hear the clock.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import selectors
import ssl
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from typing_extensions import override

from compute_quota_client import QuotaClient, Surroundings
from compute_quota_client.testing import GIB, OBJECTS, FakeQuota

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path
    from selectors import SelectorKey

NEW_YEAR: Final = datetime(2026, 1, 1, tzinfo=UTC)


class _SkippingSelector(selectors.DefaultSelector):
    """Instead of waiting it moves a clock by as long as it would have waited."""

    def __init__(self) -> None:
        super().__init__()
        self._skips = True
        self._ahead = 0.0

    def read_clock(self) -> float:
        # Virtual time stands still while code runs: a busy machine changes no outcome.
        return self._ahead if self._skips else self._ahead + time.monotonic()

    def jump(self, seconds: float) -> None:
        self._ahead += seconds

    def stop_skipping(self) -> None:
        if self._skips:
            self._ahead -= time.monotonic()
            self._skips = False

    @override
    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        if not self._skips or timeout is None or timeout <= 0:
            return super().select(timeout)
        ready = super().select(0)
        if not ready:
            self.jump(timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop that jumps over waiting."""

    def __init__(self) -> None:
        self.waiting = _SkippingSelector()
        super().__init__(self.waiting)

    @override
    def time(self) -> float:
        return self.waiting.read_clock()


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"virtual": VirtualLoop}


@pytest.fixture
def enter_real_time() -> Callable[[], None]:
    """For a fixture that finds out while it runs that it talks to sockets; see `real_time`."""

    def enter() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.waiting.stop_skipping()

    return enter


@pytest.fixture
async def real_time(enter_real_time: Callable[[], None]) -> None:
    """For a test that uses sockets or processes: its loop waits in real time."""
    enter_real_time()


@pytest.fixture
async def jump() -> Callable[[float], None]:
    """Moves the loop's clock forward, also for a test in real time."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop.waiting.jump


@pytest.fixture
async def now() -> Callable[[], timedelta]:
    """How long the test runs already, in its own time."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    return lambda: timedelta(seconds=loop.time() - began)


@pytest.fixture
async def fake(now: Callable[[], timedelta]) -> FakeQuota:
    """A Milo with project `acme`, two resource types and a grant of 100 GiB and 5000 objects."""
    milo = FakeQuota()
    milo.knobs.now = lambda: NEW_YEAR + now()
    for project in ("acme", "other"):
        milo.add_project(project)
        milo.grant(project, {GIB: 100, OBJECTS: 5000})
    milo.register(GIB)
    milo.register(OBJECTS)
    return milo


@pytest.fixture
async def quota(fake: FakeQuota) -> AsyncIterator[QuotaClient]:
    """A client of the fake with a constant for randomness."""
    surroundings = Surroundings(chance=lambda: 0.5, wall_clock=fake.knobs.now)
    async with fake.client(surroundings=surroundings) as client:
        yield client


class _Authority:
    """A certificate authority of the tests' own."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        self.certificate = self._signed(self._name, self._key.public_key(), is_authority=True)

    def issue(self, name: str) -> tuple[bytes, bytes]:
        """A certificate for `name`, which also serves 127.0.0.1, and its key, as PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return self._signed(subject, key.public_key(), is_authority=False), private

    def _signed(
        self, subject: x509.Name, public: ec.EllipticCurvePublicKey, *, is_authority: bool
    ) -> bytes:
        today = datetime.now(UTC)
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        authority_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(today - timedelta(hours=1))
            .not_valid_after(today + timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([address]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(authority_key, critical=False)
        )
        if is_authority:
            usage = x509.KeyUsage(
                digital_signature=True,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                key_cert_sign=True,
                crl_sign=True,
                encipher_only=False,
                decipher_only=False,
            )
            builder = builder.add_extension(usage, critical=True)
        signed = builder.sign(self._key, hashes.SHA256())
        return signed.public_bytes(serialization.Encoding.PEM)


@pytest.fixture(scope="session")
def _authority() -> _Authority:
    return _Authority()


@pytest.fixture
def ca(_authority: _Authority) -> bytes:
    """The certificate of the authority that the servers and clients of the tests trust."""
    return _authority.certificate


@pytest.fixture
def issue(_authority: _Authority) -> Callable[[str], tuple[bytes, bytes]]:
    """Makes a certificate and its key for a name."""
    return _authority.issue


@pytest.fixture
def another_ca() -> bytes:
    """An authority that signed nothing here."""
    return _Authority().certificate


@pytest.fixture
def server_tls(
    ca: bytes, issue: Callable[[str], tuple[bytes, bytes]], tmp_path: Path
) -> ssl.SSLContext:
    """What a server on the loopback interface needs; it looks at client certificates."""
    chain = tmp_path / "server.pem"
    chain.write_bytes(b"".join(issue("server")))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    context.load_verify_locations(cadata=ca.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


@pytest.fixture
def write_kubeconfig(tmp_path: Path) -> Callable[..., Path]:
    """Writes a kubeconfig, as JSON, with the fields of its cluster and its user, or a token."""
    mount = tmp_path / "mount"
    mount.mkdir()

    def write(cluster: dict[str, object], user: dict[str, object] | None = None) -> Path:
        path = mount / "kubeconfig"
        document = {
            "current-context": "main",
            "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user or {"token": "t"}}],
        }
        path.write_text(json.dumps(document), "utf-8")
        return path

    return write
