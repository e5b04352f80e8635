"""The certificate a server shows: read from files, read again when they change, without closing the
port.

The listening context stays the same object for the life of the process; its handshake callback
hands each new connection the context that was loaded last, so a swap is one assignment, and a pair
that does not fit (half of a rotation) leaves the former one in use. Shared by the webhook and the
metrics server; issues no certificates.
"""

from __future__ import annotations

import hashlib
import logging
import ssl
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from compute_operator_kit.certificate_reading import read_expiry, split_certificates
from compute_operator_kit.clock import Clock
from compute_operator_kit.configuration import ConfigurationError
from compute_operator_kit.measures import Measures
from compute_operator_kit.strict_yaml import Problem
from compute_operator_kit.tls import UnusableTlsError, build_server_context, load_key_pair

CERTIFICATE_READS: Final = "certwatcher_read_certificate_total"
CERTIFICATE_ERRORS: Final = "certwatcher_read_certificate_errors_total"
CERTIFICATE_EXPIRY: Final = "compute_serving_certificate_expiry_seconds"
# faults.md S10 gives a rotation 60 s. The kubelet tells nobody when it swaps a volume, so we look.
LOOK_EVERY: Final = timedelta(seconds=10)

logger = logging.getLogger(__name__)


class ServingCertificate:
    """One server's certificate and key files; `server` is its name in metrics (webhook,
    metrics).
    """

    def __init__(
        self,
        server: str,
        certificate: Path,
        key: Path,
        *,
        clock: Clock,
        measures: Measures,
        client_ca: Path | None = None,
    ) -> None:
        """Loads the files; `ConfigurationError` names them when that is not possible.

        With `client_ca`, a client must show a certificate of one of its authorities.
        """
        self._server = server
        self._certificate = certificate
        self._key = key
        self._client_ca = client_ca
        self._clock = clock
        self._measures = measures
        self._digest: bytes = b""
        self._complained = ""
        self._current = build_server_context()
        self._expires = clock.now()
        try:
            self._load()
        except (OSError, UnusableTlsError) as cause:
            files = ", ".join(map(str, self.files))
            raise ConfigurationError([Problem(files, _explain(cause))]) from None
        self._context = build_server_context()
        # OpenSSL takes whether a certificate is asked for from the context that listens, and the
        # authorities from the one that the callback chooses.
        self._context.verify_mode = self._current.verify_mode
        self._context.sni_callback = self._choose

    @property
    def files(self) -> tuple[Path, ...]:
        pair = (self._certificate, self._key)
        return pair if self._client_ca is None else (*pair, self._client_ca)

    @property
    def context(self) -> ssl.SSLContext:
        """What a server listens with; safe to share between threads, it never changes."""
        return self._context

    @property
    def expires(self) -> datetime:
        return self._expires

    async def follow(self) -> None:
        """Looks at the files for ever."""
        while True:
            await self._clock.sleep(LOOK_EVERY)
            self.look()

    def look(self) -> bool:
        """Loads the files if they changed; whether a new certificate is in use now."""
        try:
            changed = self._load()
        except (OSError, UnusableTlsError) as cause:
            self._measures.count(CERTIFICATE_ERRORS)
            self._complain(_explain(cause))
            changed = False
        self._report_expiry()
        return changed

    def _load(self) -> bool:
        certificate, key, *client_ca = (path.read_bytes() for path in self.files)
        # Only a digest is kept: the key must not stay in our memory longer than OpenSSL needs it.
        digest = hashlib.sha256(b"\0".join((certificate, key, *client_ca))).digest()
        if digest == self._digest:
            return False
        loaded = build_server_context(*client_ca)
        load_key_pair(loaded, certificate, key)
        expires = _find_expiry(certificate)
        self._current, self._expires, self._digest = loaded, expires, digest
        self._complained = ""
        self._measures.count(CERTIFICATE_READS)
        self._report_expiry()
        return True

    def _choose(
        self,
        connection: ssl.SSLSocket | ssl.SSLObject,
        name: str | None,  # noqa: ARG002  # one certificate for every name; the client checks whether it fits
        context: ssl.SSLContext,  # noqa: ARG002
    ) -> None:
        connection.context = self._current

    def _report_expiry(self) -> None:
        left = self._expires - self._clock.now()
        self._measures.gauge(CERTIFICATE_EXPIRY, left.total_seconds(), server=self._server)

    def _complain(self, why: str) -> None:
        if why != self._complained:
            keys = {"server": self._server, "reason": why}
            logger.warning("Keeping former serving certificate", extra=keys)
        self._complained = why


def _find_expiry(certificate: bytes) -> datetime:
    try:
        # The chain is as good as its shortest-lived member.
        return min(map(read_expiry, split_certificates(certificate)))
    except ValueError:
        raise UnusableTlsError("the certificate file does not hold certificates in PEM") from None


def _explain(cause: OSError | UnusableTlsError) -> str:
    if isinstance(cause, OSError):
        return f"cannot be read: {cause.strerror or type(cause).__name__}"
    return str(cause)
