"""Address, trusted CA and credential of a connection to the quota server, as values.

Secrets are left out of every `repr`, so that no log line and no traceback shows one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from datetime import datetime


TlsIdentity: TypeAlias = tuple[bytes | None, bytes | None, bytes | None]


@dataclass(frozen=True, slots=True)
class ExecCommand:
    """An exec credential plugin: API version, arguments and environment."""

    api_version: str
    argv: tuple[str, ...] = field(repr=False)
    env: tuple[tuple[str, str], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Material:
    """One reading of a kubeconfig and the files it names."""

    origin: str
    tls_server_name: str | None = None
    ca: bytes | None = field(default=None, repr=False)
    certificate: bytes | None = field(default=None, repr=False)
    key: bytes | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    command: ExecCommand | None = None
    expires_at: datetime | None = None

    @property
    def tls_identity(self) -> TlsIdentity:
        """The TLS inputs of a connection; equal ones share connections."""
        return (self.ca, self.certificate, self.key)
