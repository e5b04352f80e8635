"""Splits a PEM bundle into certificates, and reads the expiry of one.

OpenSSL verifies certificates, but loads the valid half of a truncated bundle without an error, and
Python does not expose their dates. A cryptography library would cost 8 MB of memory in each
operator (ADR `docs/adr/20261116-read-serving-certificates-from-secrets.md`). Pure.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

_BLOCK: Final = re.compile(
    rb"-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----"
)
_EDGES: Final = (b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----")
# Tags of DER (ITU-T X.690).
_VERSION: Final = 0xA0  # explicit [0], left out of certificates of version 1
_UTC_TIME: Final = 0x17
_GENERALIZED_TIME: Final = 0x18


def split_certificates(pem: bytes) -> tuple[bytes, ...]:
    """The certificates of a PEM text, in DER; `ValueError` where none is or one is truncated."""
    blocks = _BLOCK.findall(pem)
    try:
        der = tuple(base64.b64decode(b"".join(block.split()), validate=True) for block in blocks)
    except binascii.Error:
        der = ()
    if not der or any(pem.count(edge) != len(der) for edge in _EDGES):
        raise ValueError("reading certificates: the text is torn, or holds none")
    return der


def read_expiry(certificate: bytes) -> datetime:
    """The `notAfter` of a certificate in DER; `ValueError` where it is none."""
    try:
        (_, content), *_ = _members(certificate)
        (_, body), *_ = _members(content)
        # version, serialNumber, signature, issuer, validity, and more (RFC 5280, 4.1)
        fields = [value for tag, value in _members(body) if tag != _VERSION]
        _, (tag, text) = _members(fields[3])
        return _parse_time(tag, text.decode("ascii"))
    except (IndexError, ValueError) as cause:
        raise ValueError("reading a certificate: its validity cannot be found") from cause


def _members(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and content of each value in a DER sequence."""
    at = 0
    while at < len(raw):
        tag, length, at = raw[at], raw[at + 1], at + 2
        if length & 0x80:  # the long form: this many bytes of length follow
            digits = length & 0x7F
            length, at = int.from_bytes(raw[at : at + digits]), at + digits
        if at + length > len(raw):
            raise ValueError("a value is longer than what holds it")
        yield tag, raw[at : at + length]
        at += length


def _parse_time(tag: int, text: str) -> datetime:
    if tag == _UTC_TIME:  # two digits of a year: up to 49 they are of this century
        text = ("20" if text < "50" else "19") + text
    elif tag != _GENERALIZED_TIME:
        raise ValueError("no time")
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
