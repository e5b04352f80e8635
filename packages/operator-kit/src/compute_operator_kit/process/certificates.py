"""The serving certificate of a TLS server, loaded again when its files change.

Without it a rotated Secret would need a restart. The port stays open: the listening context is one
object for the life of the process, and its handshake callback selects the context that was loaded
last. A pair that does not fit (half of a rotation) leaves the former one in use.
"""

from __future__ import annotations

import hashlib
import logging
import ssl
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from compute_kubeconfig.certificate_dates import read_expiry, split_certificates
from compute_kubeconfig.problems import ConfigurationError, Problem
from compute_kubeconfig.tls import UnusableTlsError, build_server_context, load_key_pair
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.metrics import MetricsPort

CERTIFICATE_READS: Final = "certwatcher_read_certificate_total"
CERTIFICATE_ERRORS: Final = "certwatcher_read_certificate_errors_total"
CERTIFICATE_EXPIRY: Final = "compute_serving_certificate_expiry_seconds"
# A rotation takes effect within 60 s (faults.md S10); the kubelet swaps volumes without a signal.
RELOAD_EVERY: Final = timedelta(seconds=10)

logger = logging.getLogger(__name__)


class ServingCertificate:
    """Certificate and key files of one server; `server` is its name in metrics."""

    def __init__(
        self,
        server: str,
        certificate: Path,
        key: Path,
        *,
        clock: Clock,
        measures: MetricsPort,
        client_ca: Path | None = None,
    ) -> None:
        """Loads the files; `ConfigurationError` names them when that is not possible.

        With `client_ca`, a client must present a certificate of one of its authorities.
        """
        self._server = server
        self._certificate = certificate
        self._key = key
        self._client_ca = client_ca
        self._clock = clock
        self._measures = measures
        self._digest: bytes = b""
        self._logged = ""
        self._current = build_server_context()
        self._expires = clock.now()
        try:
            self._load()
        except (OSError, UnusableTlsError) as cause:
            files = ", ".join(map(str, self.files))
            raise ConfigurationError([Problem(files, _explain(cause))]) from None
        self._context = build_server_context()
        # OpenSSL reads from the listening context whether to request a client certificate, and the
        # authorities from the context that the callback selects.
        self._context.verify_mode = self._current.verify_mode
        self._context.sni_callback = self._choose

    @property
    def files(self) -> tuple[Path, ...]:
        pair = (self._certificate, self._key)
        return pair if self._client_ca is None else (*pair, self._client_ca)

    @property
    def context(self) -> ssl.SSLContext:
        """For the listening socket; never changed, so threads may share it."""
        return self._context

    @property
    def expires(self) -> datetime:
        return self._expires

    async def follow(self) -> None:
        """Reloads the files for ever."""
        while True:
            await self._clock.sleep(RELOAD_EVERY)
            self.reload()

    def reload(self) -> bool:
        """Loads the files if they changed; True when a new certificate is in use."""
        try:
            changed = self._load()
        except (OSError, UnusableTlsError) as cause:
            self._measures.count(CERTIFICATE_ERRORS)
            self._log_once(_explain(cause))
            changed = False
        self._report_expiry()
        return changed

    def _load(self) -> bool:
        certificate, key, *client_ca = (path.read_bytes() for path in self.files)
        # Only a digest is kept, so that the key does not stay in memory beside OpenSSL's copy.
        digest = hashlib.sha256(b"\0".join((certificate, key, *client_ca))).digest()
        if digest == self._digest:
            return False
        loaded = build_server_context(*client_ca)
        load_key_pair(loaded, certificate, key)
        expires = _find_expiry(certificate)
        self._current, self._expires, self._digest = loaded, expires, digest
        self._logged = ""
        self._measures.count(CERTIFICATE_READS)
        self._report_expiry()
        return True

    def _choose(
        self,
        connection: ssl.SSLSocket | ssl.SSLObject,
        name: str | None,  # noqa: ARG002  # one certificate for every name; the client verifies it
        context: ssl.SSLContext,  # noqa: ARG002
    ) -> None:
        connection.context = self._current

    def _report_expiry(self) -> None:
        left = self._expires - self._clock.now()
        self._measures.gauge(CERTIFICATE_EXPIRY, left.total_seconds(), server=self._server)

    def _log_once(self, why: str) -> None:
        if why != self._logged:
            keys = {"server": self._server, "reason": why}
            logger.warning("Keeping former serving certificate", extra=keys)
        self._logged = why


def _find_expiry(certificate: bytes) -> datetime:
    try:
        # A chain expires with its first certificate.
        return min(map(read_expiry, split_certificates(certificate)))
    except ValueError:
        raise UnusableTlsError("the certificate file does not hold certificates in PEM") from None


def _explain(cause: OSError | UnusableTlsError) -> str:
    if isinstance(cause, OSError):
        return f"cannot be read: {cause.strerror or type(cause).__name__}"
    return str(cause)
