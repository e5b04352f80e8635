"""TLS contexts, one per CA bundle and client certificate, shared by all planes with the same.

A context built from the system's bundle costs 825 KiB, and five hundred planes of one server have
the same CA. The minimum is TLS 1.2, as client and as server.
"""

from __future__ import annotations

import hashlib
import ssl
import tempfile
from dataclasses import dataclass, field
from typing import Final
from weakref import WeakValueDictionary

from compute_operator_kit.client.certificate_dates import split_certificates

MINIMUM_VERSION: Final = ssl.TLSVersion.TLSv1_2


class UnusableTlsError(ValueError):
    """Bytes that are no certificates or no key, or a certificate and a key that do not match."""


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """A client certificate and its key, in PEM."""

    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)


# Weak: a context is freed with the last plane that uses it.
_shared: Final[WeakValueDictionary[bytes, ssl.SSLContext]] = WeakValueDictionary()


def share_client_context(
    ca: bytes | None, identity: ClientIdentity | None = None
) -> ssl.SSLContext:
    """The context for these trusted CAs (None: the system's) and this client certificate."""
    digest = _digest(ca, identity)
    context = _shared.get(digest)
    if context is None:
        context = _shared[digest] = build_client_context(ca, identity)
    return context


def build_client_context(ca: bytes | None, identity: ClientIdentity | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # verifies chain and host name
    context.minimum_version = MINIMUM_VERSION
    # The CA of a kubeconfig may be an intermediate, which client-go trusts without its root.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if ca is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        _load_trust(context, ca)
    if identity is not None:
        load_key_pair(context, identity.certificate, identity.key)
    return context


def build_server_context(client_ca: bytes | None = None) -> ssl.SSLContext:
    """A server's context without a certificate; `client_ca` requires one from clients."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = MINIMUM_VERSION
    if client_ca is not None:
        _load_trust(context, client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _load_trust(context: ssl.SSLContext, ca: bytes) -> None:
    try:
        # One by one: OpenSSL loads the valid half of a truncated bundle without an error.
        for certificate in split_certificates(ca):
            context.load_verify_locations(cadata=certificate)
    except (ValueError, ssl.SSLError):
        raise UnusableTlsError("the CA bundle does not hold certificates in PEM") from None


def load_key_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Loads a certificate chain and its key into a context.

    Python loads them from files only. TMPDIR is a memory volume in the pod; the files are readable
    by this user alone and removed at once.
    """
    with tempfile.NamedTemporaryFile() as chain_file, tempfile.NamedTemporaryFile() as key_file:
        chain_file.write(certificate)
        chain_file.flush()
        key_file.write(key)
        key_file.flush()
        try:
            context.load_cert_chain(chain_file.name, key_file.name, password=_refuse_password)
        except (ValueError, ssl.SSLError):
            raise UnusableTlsError("certificate and key do not fit each other") from None


def _refuse_password() -> str:
    # Without it, OpenSSL would prompt on the terminal and wait for ever.
    raise ValueError("the key is encrypted")


def _digest(ca: bytes | None, identity: ClientIdentity | None) -> bytes:
    digest = hashlib.sha256()
    for part in (ca, identity.certificate, identity.key) if identity else (ca,):
        # Lengths distinguish ("ab", "c") from ("a", "bc").
        digest.update(b"-" if part is None else str(len(part)).encode() + b":" + part)
    return digest.digest()
