"""TLS contexts, one per CA bundle and client certificate, shared by all clients with the same.

A context built from the system's bundle costs 825 KiB, and five hundred planes of one server have
the same CA. The minimum is TLS 1.2, as client and as server.
"""

from __future__ import annotations

import hashlib
import os
import ssl
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final
from weakref import WeakValueDictionary

from compute_kubeconfig.certificate_dates import split_certificates

MINIMUM_VERSION: Final = ssl.TLSVersion.TLSv1_2


class UnusableTlsError(ValueError):
    """Bytes that are no certificates or no key, or a certificate and a key that do not match."""


class UnusableCaError(UnusableTlsError):
    """A CA bundle that is empty, torn or not made of certificates."""


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """A client certificate and its key, in PEM."""

    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)


# Weak: a context is freed with the last client that uses it.
_shared: Final[WeakValueDictionary[bytes, ssl.SSLContext]] = WeakValueDictionary()


def share_client_context(
    ca: bytes | None, identity: ClientIdentity | None = None
) -> ssl.SSLContext:
    """The context for these trusted CAs (None: the system's) and this client certificate."""
    digest = _digest(ca, identity)
    context = _shared.get(digest)
    if context is None:
        context = _shared[digest] = _build_client_context(ca, identity)
    return context


def _build_client_context(ca: bytes | None, identity: ClientIdentity | None) -> ssl.SSLContext:
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
        raise UnusableCaError("the CA bundle does not hold certificates in PEM") from None


def load_key_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Loads a certificate chain and its key into a context."""
    with _as_file(certificate) as chain_file, _as_file(key) as key_file:
        try:
            context.load_cert_chain(chain_file, key_file, password=_refuse_password)
        except (ValueError, ssl.SSLError):
            raise UnusableTlsError("certificate and key do not fit each other") from None


@contextmanager
def _as_file(content: bytes) -> Generator[str]:
    """The content under a path, because Python loads certificates from files only.

    In memory where the system can: a hardened container may have no writable folder, and the key is
    never on disk. Elsewhere a file that this user alone can read, removed at once.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("certificate")
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{descriptor}"
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            yield file.name


def _refuse_password() -> str:
    # Without it, OpenSSL would prompt on the terminal and wait for ever.
    raise ValueError("the key is encrypted")


def _digest(ca: bytes | None, identity: ClientIdentity | None) -> bytes:
    digest = hashlib.sha256()
    for part in (ca, identity.certificate, identity.key) if identity else (ca,):
        # Lengths distinguish ("ab", "c") from ("a", "bc").
        digest.update(b"-" if part is None else str(len(part)).encode() + b":" + part)
    return digest.digest()
