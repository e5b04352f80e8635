"""TLS contexts: one per set of trust and identity, shared by every plane that has the same.

A context built from the system's bundle costs 825 KiB; five hundred planes of one server share a
CA, so they share a context. The minimum is TLS 1.2 everywhere, as client and as server. Makes
contexts and nothing else: it neither reads configuration nor connects.
"""

from __future__ import annotations

import hashlib
import ssl
import tempfile
from dataclasses import dataclass, field
from typing import Final
from weakref import WeakValueDictionary

from compute_operator_kit.certificate_reading import split_certificates

MINIMUM_VERSION: Final = ssl.TLSVersion.TLSv1_2


class UnusableTlsError(ValueError):
    """Bytes that should be certificates or a key and are not, or do not fit each other."""


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """A client certificate and its key, in PEM."""

    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)


# Weak: when the last plane of a CA is disengaged, its context goes with it.
_shared: Final[WeakValueDictionary[bytes, ssl.SSLContext]] = WeakValueDictionary()


def share_client_context(
    ca: bytes | None, identity: ClientIdentity | None = None
) -> ssl.SSLContext:
    """The context for these trusted CAs (None: the system's) and this client certificate."""
    digest = _digest(ca, identity)
    if (found := _shared.get(digest)) is not None:
        return found
    context = build_client_context(ca, identity)
    _shared[digest] = context
    return context


def build_client_context(ca: bytes | None, identity: ClientIdentity | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # verifies chain and host name
    context.minimum_version = MINIMUM_VERSION
    # A CA of a kubeconfig may be an intermediate; Go's client, which issues them, trusts it as it
    # stands.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if ca is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        _load_trust(context, ca)
    if identity is not None:
        load_key_pair(context, identity.certificate, identity.key)
    return context


def build_server_context(client_ca: bytes | None = None) -> ssl.SSLContext:
    """A server's context without a certificate yet; with `client_ca`, clients must show one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = MINIMUM_VERSION
    if client_ca is not None:
        _load_trust(context, client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _load_trust(context: ssl.SSLContext, ca: bytes) -> None:
    try:
        # One by one, because OpenSSL silently takes the good half of a torn bundle.
        for certificate in split_certificates(ca):
            context.load_verify_locations(cadata=certificate)
    except (ValueError, ssl.SSLError):
        raise UnusableTlsError("the CA bundle does not hold certificates in PEM") from None


def load_key_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Gives a context its own certificate chain and key.

    OpenSSL takes this pair from files only. TMPDIR is a memory volume in the pod, the files are
    readable by us alone and gone at once.
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
    # Without it, OpenSSL would ask on the terminal and wait for ever.
    raise ValueError("the key is encrypted")


def _digest(ca: bytes | None, identity: ClientIdentity | None) -> bytes:
    digest = hashlib.sha256()
    for part in (ca, identity.certificate, identity.key) if identity else (ca,):
        # Lengths keep ("ab", "c") apart from ("a", "bc").
        digest.update(b"-" if part is None else str(len(part)).encode() + b":" + part)
    return digest.digest()
