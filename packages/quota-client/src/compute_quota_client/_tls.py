"""The SSL context of one CA and client certificate.

A context takes more memory than the rest of a client, so it is built once and shared by all
connections.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from compute_quota_client._exceptions import QuotaUsageError

if TYPE_CHECKING:
    from collections.abc import Generator

    from compute_quota_client._material import Material


def ssl_context(material: Material) -> ssl.SSLContext:
    """A context that trusts the CA of `material`, or the system's where it names none, and presents
    its certificate.

    Raises:
        QuotaUsageError: the CA or the certificate is not usable; names which.
    """
    try:
        authority = None if material.ca is None else material.ca.decode("ascii")
        if authority is not None and not authority.strip():
            # Python would load the system's CAs for an empty text.
            raise ValueError("empty")
        context = ssl.create_default_context(cadata=authority)
    except (ssl.SSLError, ValueError):
        raise QuotaUsageError(
            "is not a PEM certificate", argument="certificate-authority"
        ) from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if material.certificate is not None and material.key is not None:
        _present(context, material.certificate, material.key)
    return context


def _present(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    with _as_file(certificate.rstrip() + b"\n" + key) as chain:
        try:
            # Without a password Python would prompt on the terminal for that of an encrypted key.
            context.load_cert_chain(chain, password=lambda: b"")
        except (ssl.SSLError, ValueError):
            raise QuotaUsageError(
                "and client-key do not make a key pair", argument="client-certificate"
            ) from None


@contextmanager
def _as_file(content: bytes) -> Generator[Path, None, None]:
    """`content` under a path, because Python loads certificates from files only.

    In memory where the system supports it: a hardened container may have no writable folder, and
    the key is never on disk.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("client-certificate")
        try:
            with open(descriptor, "wb", closefd=False) as file:
                file.write(content)
            yield Path(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "client.pem"
            path.touch(mode=0o600)
            path.write_bytes(content)
            yield path
