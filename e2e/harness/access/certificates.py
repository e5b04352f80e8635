"""Certificates for one stack, generated in milliseconds and deleted with the run folder.

One CA for servers and clients, a second for the front proxy (else a client certificate could
impersonate any user), and a key pair for service account tokens. All keys are elliptic, because
generating RSA keys would take longer than starting a plane.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME: Final = timedelta(days=7)
# Clocks of containers and hosts differ by seconds, and a certificate from the future is refused.
SKEW: Final = timedelta(minutes=5)
# The aggregator always requests `<service>.<namespace>.svc` (neighbours.md 4.1).
AGGREGATED_NAME: Final = "karmada-aggregated-apiserver.karmada-system.svc"
# Not the CA's name: a certificate with issuer and subject equal counts as self-signed.
SERVER: Final = "planes-server"
SERVER_NAMES: Final = ("localhost", "kubernetes.default.svc", AGGREGATED_NAME)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes

    def write(self, folder: Path, name: str) -> tuple[Path, Path]:
        """Writes `<name>.crt` and `<name>.key`, the key readable by its owner only."""
        return (
            write_private(folder / f"{name}.crt", self.certificate),
            write_private(folder / f"{name}.key", self.key),
        )


def write_private(path: Path, content: bytes) -> Path:
    path.touch(mode=0o600)
    path.write_bytes(content)
    return path


class Authority:
    """A certificate authority in memory; `known` loads an existing one."""

    def __init__(self, name: str, now: datetime, known: KeyPair | None = None) -> None:
        self._now = now
        self._key = _read_key(known.key) if known else ec.generate_private_key(ec.SECP256R1())
        self._subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._certificate = (
            x509.load_pem_x509_certificate(known.certificate) if known else self._sign_itself()
        )

    def _sign_itself(self) -> x509.Certificate:
        return (
            self._builder(self._subject, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    @property
    def certificate(self) -> bytes:
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def pair(self) -> KeyPair:
        """Certificate and key of the CA, for another signer."""
        return KeyPair(self.certificate, _private_pem(self._key))

    def issue_server(self, addresses: Iterable[str], names: Iterable[str]) -> KeyPair:
        """A serving certificate for these addresses and names."""
        alternatives: list[x509.GeneralName] = [x509.DNSName(name) for name in names]
        alternatives += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        return self._issue(
            [x509.NameAttribute(NameOID.COMMON_NAME, SERVER)],
            x509.SubjectAlternativeName(alternatives),
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]),
        )

    def issue_client(self, user: str, groups: Iterable[str] = ()) -> KeyPair:
        """A client certificate: Kubernetes reads the user from CN and the groups from O."""
        subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject.append(x509.NameAttribute(NameOID.COMMON_NAME, user))
        return self._issue(subject, x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]))

    def _issue(
        self, subject: list[x509.NameAttribute[str]], *extensions: x509.ExtensionType
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(x509.Name(subject), key.public_key()).add_extension(
            _usage(signs_certificates=False), critical=True
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), _private_pem(key))

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._subject)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - SKEW)
            .not_valid_after(self._now + LIFETIME)
            # Strict verifiers (Python from 3.13 on) require key identifiers.
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )


def a_signing_key() -> KeyPair:
    """The pair that signs and verifies service account tokens; `certificate` is the public key."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return KeyPair(public, _private_pem(key))


def _read_key(raw: bytes) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(raw, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("keys of a stack are elliptic")
    return key


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
