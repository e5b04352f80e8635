"""Certificates for tests of TLS on loopback: valid ones, and each kind of invalid one.

Each certificate has a new key, which never leaves the test; the runtime does not import this.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LOOPBACK: Final = ("localhost", "127.0.0.1")
A_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its key, in PEM."""

    certificate: bytes
    key: bytes

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Files `tls.crt` and `tls.key`, as a mounted Secret has them."""
        certificate, key = folder / "tls.crt", folder / "tls.key"
        certificate.write_bytes(self.certificate)
        key.write_bytes(self.key)
        return certificate, key


class Authority:
    """A certificate authority."""

    def __init__(self, name: str = "test authority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        builder = _builder(self._name, self._key.public_key(), datetime.now(UTC))
        builder = builder.issuer_name(self._name).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        builder = builder.add_extension(_USAGE_OF_AUTHORITY, critical=True)
        self._certificate = _identified(builder, self._key, self._key).sign(
            self._key, hashes.SHA256()
        )

    @property
    def certificate(self) -> bytes:
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def issue(
        self,
        names: Sequence[str] = LOOPBACK,
        *,
        valid_until: datetime | None = None,
        common_name: str = "test leaf",
    ) -> KeyPair:
        """A leaf for these DNS names and addresses, as server and as client."""
        key = ec.generate_private_key(ec.SECP256R1())
        until = valid_until or datetime.now(UTC) + A_DAY
        builder = _builder(_name(common_name), key.public_key(), until - 2 * A_DAY, until)
        builder = builder.issuer_name(self._name).add_extension(
            _alternatives(names), critical=False
        )
        usages = x509.ExtendedKeyUsage(
            [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        )
        builder = _identified(builder.add_extension(usages, critical=False), key, self._key)
        return _pair(builder.sign(self._key, hashes.SHA256()), key)


def issue_self_signed(names: Sequence[str] = LOOPBACK) -> KeyPair:
    """A self-signed certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("self-signed leaf")
    builder = _builder(name, key.public_key(), datetime.now(UTC)).issuer_name(name)
    builder = builder.add_extension(_alternatives(names), critical=False)
    return _pair(_identified(builder, key, key).sign(key, hashes.SHA256()), key)


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    return KeyPair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


_USAGE_OF_AUTHORITY: Final = x509.KeyUsage(
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


def _identified(
    builder: x509.CertificateBuilder,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
) -> x509.CertificateBuilder:
    """With the identifiers of both keys: RFC 5280 asks for them, and Python from 3.13 on too."""
    return builder.add_extension(
        x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
    ).add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
    )


def _builder(
    subject: x509.Name,
    key: ec.EllipticCurvePublicKey,
    valid_from: datetime,
    valid_until: datetime | None = None,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(valid_from - A_DAY)
        .not_valid_after(valid_until or valid_from + A_DAY)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _alternatives(names: Sequence[str]) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName([_alternative(name) for name in names])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
