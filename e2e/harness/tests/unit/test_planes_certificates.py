from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from e2e.harness.access.certificates import SERVER_NAMES, Authority, KeyPair
from e2e.harness.planes.pki import write_pki
from e2e.harness.processes.run_folder import RunFolder

NOW = datetime.now(UTC)


def alternatives_of(pair: KeyPair) -> x509.SubjectAlternativeName:
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    return certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> None:
    """A TLS handshake in memory; raises where one over the network would."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = (
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    done: set[ssl.SSLObject] = set()
    while len(done) < len(sides):
        for side in sides:
            try:
                side.do_handshake()
                done.add(side)
            except ssl.SSLWantReadError:
                continue


def test_server_is_known_on_loopback_and_by_the_name_the_aggregator_asks_for(
    run_folder: RunFolder,
) -> None:
    alternatives = alternatives_of(write_pki(run_folder, "10.9.0.1", NOW).server)
    names = alternatives.get_values_for_type(x509.DNSName)
    assert "karmada-aggregated-apiserver.karmada-system.svc" in names
    assert "localhost" in names
    addresses = alternatives.get_values_for_type(x509.IPAddress)
    assert addresses == [ip_address("127.0.0.1"), ip_address("10.9.0.1")]


def test_loopback_alone_is_named_once(run_folder: RunFolder) -> None:
    alternatives = alternatives_of(write_pki(run_folder, "127.0.0.1", NOW).server)
    assert alternatives.get_values_for_type(x509.IPAddress) == [ip_address("127.0.0.1")]


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", SERVER_NAMES[-1]])
def test_strict_client_trusts_the_server(run_folder: RunFolder, name: str) -> None:
    pki = write_pki(run_folder, "127.0.0.1", NOW)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(run_folder.pki("server.crt"), run_folder.pki("server.key"))
    client = ssl.create_default_context(cadata=pki.authority.decode())
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    handshake(server, client, name)


def test_client_trusts_no_server_of_another_name(run_folder: RunFolder) -> None:
    pki = write_pki(run_folder, "127.0.0.1", NOW)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(run_folder.pki("server.crt"), run_folder.pki("server.key"))
    client = ssl.create_default_context(cadata=pki.authority.decode())
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(server, client, "example.com")


def test_client_certificate_carries_user_and_groups() -> None:
    pair = Authority("ca", NOW).issue_client("admin", ["system:masters", "people"])
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    subject = certificate.subject
    assert [a.value for a in subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["admin"]
    groups = [a.value for a in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    assert groups == ["system:masters", "people"]
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]


def test_front_proxy_is_signed_by_an_authority_of_its_own(run_folder: RunFolder) -> None:
    pki = write_pki(run_folder, "127.0.0.1", NOW)
    proxy = x509.load_pem_x509_certificate(pki.front_proxy.certificate)
    proxy.verify_directly_issued_by(
        x509.load_pem_x509_certificate(run_folder.pki("front-proxy-ca.crt").read_bytes())
    )
    with pytest.raises(ValueError, match="does not match certificate issuer"):
        proxy.verify_directly_issued_by(x509.load_pem_x509_certificate(pki.authority))


def test_certificates_are_valid_around_now_and_not_for_long() -> None:
    authority = Authority("ca", NOW)
    certificate = x509.load_pem_x509_certificate(authority.certificate)
    assert certificate.not_valid_before_utc < NOW
    assert timedelta(days=1) < certificate.not_valid_after_utc - NOW <= timedelta(days=7)


def test_keys_are_for_the_owners_eyes_only(run_folder: RunFolder) -> None:
    write_pki(run_folder, "127.0.0.1", NOW)
    keys = list(run_folder.path.rglob("*.key"))
    assert len(keys) == 7
    assert {key.stat().st_mode & 0o077 for key in keys} == {0}
    assert run_folder.path.stat().st_mode & 0o077 == 0
