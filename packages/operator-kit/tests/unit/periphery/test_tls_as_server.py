"""What we show as a server: the metrics endpoint on loopback, with certificates that rotate under
it.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import warnings
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from compute_kubeconfig.problems import ConfigurationError
from compute_operator_kit.config.settings import Bind
from compute_operator_kit.process.certificates import (
    CERTIFICATE_ERRORS,
    CERTIFICATE_EXPIRY,
    CERTIFICATE_READS,
    ServingCertificate,
)
from compute_operator_kit.process.metrics_server import MetricsServer, OpenGuard
from compute_operator_kit.testing.certificates import Authority, KeyPair
from compute_operator_kit.testing.fakes import FakeClock, FakeMetrics

pytestmark = pytest.mark.spec("S10")


class Served:
    """A metrics server with its files."""

    def __init__(self, folder: Path, pair: KeyPair, clock: FakeClock | None = None) -> None:
        self.folder = folder
        self.clock = clock or FakeClock(datetime.now(UTC))
        self.measures = FakeMetrics()
        certificate, key = pair.write(folder)
        self.certificate = ServingCertificate(
            "metrics", certificate, key, clock=self.clock, measures=self.measures
        )
        self.server = MetricsServer(
            Bind("127.0.0.1", 0), lambda: b"up 1\n", OpenGuard(), certificate=self.certificate
        )

    async def shown_to(self, trusted: Authority, name: str = "localhost") -> x509.Certificate:
        """The certificate a careful client gets; `ssl.SSLError` when it does not accept it."""
        context = ssl.create_default_context(cadata=trusted.certificate.decode())
        return await asyncio.to_thread(self.connect, context, name)

    def connect(self, context: ssl.SSLContext, name: str) -> x509.Certificate:
        with (
            socket.create_connection(("127.0.0.1", self.server.port), timeout=5) as plain,
            context.wrap_socket(plain, server_hostname=name) as secure,
        ):
            shown = secure.getpeercert(binary_form=True)
            assert shown is not None
            return x509.load_der_x509_certificate(shown)


class ForClients:
    """A server that asks for client certificates, with its files."""

    def __init__(self, folder: Path, pair: KeyPair, client_ca: Authority) -> None:
        self.client_ca = folder / "client-ca.crt"
        self.trust(client_ca)
        certificate, key = pair.write(folder)
        self.certificate = ServingCertificate(
            "webhook",
            certificate,
            key,
            clock=FakeClock(datetime.now(UTC)),
            measures=FakeMetrics(),
            client_ca=self.client_ca,
        )
        self.server = MetricsServer(
            Bind("127.0.0.1", 0), lambda: b"up 1\n", OpenGuard(), certificate=self.certificate
        )

    def trust(self, authority: Authority) -> None:
        self.client_ca.write_bytes(authority.certificate)

    async def answers(self, trusted: Authority, folder: Path, shown: KeyPair | None) -> bool:
        """Whether a client with this certificate gets an answer."""
        context = ssl.create_default_context(cadata=trusted.certificate.decode())
        if shown is not None:
            context.load_cert_chain(*shown.write(folder))
        return await asyncio.to_thread(self._ask, context)

    def _ask(self, context: ssl.SSLContext) -> bool:
        try:
            with (
                socket.create_connection(("127.0.0.1", self.server.port), timeout=5) as plain,
                context.wrap_socket(plain, server_hostname="localhost") as secure,
            ):
                secure.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
                return secure.recv(64).startswith(b"HTTP/1.1 200")
        except OSError:
            return False


@pytest.mark.spec("AT-14")
async def test_only_a_client_of_a_known_authority_is_answered(tmp_path: Path) -> None:
    serving, clients, strangers = Authority(), Authority("clients"), Authority("strangers")
    served = ForClients(tmp_path, serving.issue(), clients)
    await served.server.start()
    shown = tmp_path / "shown"
    shown.mkdir()
    assert not await served.answers(serving, shown, None)
    assert not await served.answers(serving, shown, strangers.issue())
    assert await served.answers(serving, shown, clients.issue())
    served.trust(strangers)
    assert served.certificate.reload()
    assert await served.answers(serving, shown, strangers.issue())
    assert not await served.answers(serving, shown, clients.issue())
    await served.server.stop()


@pytest.mark.spec("AT-14")
def test_a_client_authority_that_cannot_be_read_stops_the_start(tmp_path: Path) -> None:
    certificate, key = Authority().issue().write(tmp_path)
    with pytest.raises(ConfigurationError, match=r"client-ca\.crt"):
        ServingCertificate(
            "webhook",
            certificate,
            key,
            clock=FakeClock(datetime.now(UTC)),
            measures=FakeMetrics(),
            client_ca=tmp_path / "client-ca.crt",
        )


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
async def served(tmp_path: Path, authority: Authority) -> AsyncIterator[Served]:
    served = Served(tmp_path, authority.issue())
    await served.server.start()
    yield served
    await served.server.stop()


async def test_a_careful_client_accepts_what_we_show(served: Served, authority: Authority) -> None:
    shown = await served.shown_to(authority)

    assert shown.not_valid_after_utc == served.certificate.expires


async def test_certificates_of_tests_pass_the_strict_checks_of_newer_pythons(
    served: Served, authority: Authority
) -> None:
    """Python from 3.13 on asks for key identifiers by default; here every Python does."""
    context = ssl.create_default_context(cadata=authority.certificate.decode())
    context.verify_flags |= ssl.VERIFY_X509_STRICT

    assert await asyncio.to_thread(served.connect, context, "localhost")


async def test_a_client_with_another_trust_does_not(served: Served) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        await served.shown_to(Authority())


async def test_a_client_that_looks_for_another_name_does_not(
    served: Served, authority: Authority
) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        await served.shown_to(authority, "hub.example")


async def test_a_client_without_a_name_to_ask_for_is_served_too(
    served: Served, authority: Authority
) -> None:
    # An address is not sent as a server name, and the callback that hands out certificates must
    # still run.
    assert await served.shown_to(authority, "127.0.0.1")


async def test_a_client_that_speaks_tls_1_1_is_refused(
    served: Served, authority: Authority
) -> None:
    context = ssl.create_default_context(cadata=authority.certificate.decode())
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = ssl.TLSVersion.TLSv1_1
        context.maximum_version = ssl.TLSVersion.TLSv1_1

    with pytest.raises(ssl.SSLError):
        await asyncio.to_thread(served.connect, context, "localhost")

    # It is the version that was refused: the same client gets through with the next one.
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    assert await asyncio.to_thread(served.connect, context, "localhost")


async def test_a_rotated_leaf_is_shown_without_a_new_port(
    served: Served, authority: Authority
) -> None:
    former = await served.shown_to(authority)
    authority.issue().write(served.folder)

    assert served.certificate.reload() is True

    rotated = await served.shown_to(authority)
    assert rotated.serial_number != former.serial_number


async def test_a_rotated_authority_is_shown(served: Served, authority: Authority) -> None:
    rotated = Authority("rotated")
    rotated.issue().write(served.folder)

    served.certificate.reload()

    assert await served.shown_to(rotated)
    with pytest.raises(ssl.SSLCertVerificationError):
        await served.shown_to(authority)


async def test_files_are_looked_at_more_than_once_a_minute(
    served: Served, authority: Authority
) -> None:
    follower = asyncio.create_task(served.certificate.follow())
    await asyncio.sleep(0)
    authority.issue().write(served.folder)
    assert served.measures.total(CERTIFICATE_READS) == 1

    served.clock.pass_time(timedelta(seconds=30))
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert served.measures.total(CERTIFICATE_READS) == 2
    follower.cancel()
    await asyncio.wait({follower})


async def test_half_a_rotation_leaves_the_former_certificate_in_use(
    served: Served, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    former = await served.shown_to(authority)
    (served.folder / "tls.crt").write_bytes(authority.issue().certificate)

    assert served.certificate.reload() is False
    assert served.certificate.reload() is False

    assert (await served.shown_to(authority)).serial_number == former.serial_number
    assert served.measures.total(CERTIFICATE_ERRORS) == 2
    assert [record.message for record in caplog.records] == ["Keeping former serving certificate"]


async def test_files_that_vanish_leave_the_former_certificate_in_use(
    served: Served, authority: Authority
) -> None:
    (served.folder / "tls.key").unlink()

    assert served.certificate.reload() is False
    assert await served.shown_to(authority)


async def test_what_is_no_certificate_leaves_the_former_one_in_use(
    served: Served, authority: Authority
) -> None:
    (served.folder / "tls.crt").write_text("garbage")

    assert served.certificate.reload() is False
    assert await served.shown_to(authority)


async def test_an_encrypted_key_is_refused_without_a_password_prompt(
    served: Served, authority: Authority
) -> None:
    pair = authority.issue()
    key = serialization.load_pem_private_key(pair.key, password=None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"password"),
    )
    KeyPair(pair.certificate, locked).write(served.folder)

    assert served.certificate.reload() is False
    assert served.measures.total(CERTIFICATE_ERRORS) == 1


async def test_the_life_left_in_a_certificate_is_measured(
    tmp_path: Path, authority: Authority
) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    served = Served(tmp_path, authority.issue(valid_until=now + timedelta(hours=2)), FakeClock(now))
    served.clock.pass_time(timedelta(hours=3))

    served.certificate.reload()

    assert served.measures.gauges[CERTIFICATE_EXPIRY, (("server", "metrics"),)] == -3600


@pytest.mark.parametrize("missing", ["tls.crt", "tls.key"])
def test_a_certificate_missing_at_start_stops_the_start(
    tmp_path: Path, authority: Authority, missing: str
) -> None:
    authority.issue().write(tmp_path)
    (tmp_path / missing).unlink()

    with pytest.raises(ConfigurationError, match=f"{missing}.*cannot be read: No such file"):
        ServingCertificate(
            "webhook",
            tmp_path / "tls.crt",
            tmp_path / "tls.key",
            clock=FakeClock(datetime.now(UTC)),
            measures=FakeMetrics(),
        )
