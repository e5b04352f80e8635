"""Address of one API server, the sources of its credentials, and what they hold at one moment.

An access is read once and has no secret of a file in it; a material is read again as the files
rotate. Secrets are left out of every `repr`, so that no log line and no traceback shows one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from compute_kubeconfig.mounted_files import MountedFile, Source, read_source
from compute_kubeconfig.problems import FileError, Problem
from compute_kubeconfig.tls import ClientIdentity

IN_CLUSTER_MOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOST_VARIABLE: Final = "KUBERNETES_SERVICE_HOST"
PORT_VARIABLE: Final = "KUBERNETES_SERVICE_PORT"
NOT_ONE_WORD: Final = "does not hold a token: one word of printable ASCII characters"


@dataclass(frozen=True, slots=True)
class ExecCommand:
    """A program that prints credentials: API version, arguments, and variables beside ours."""

    api_version: str
    argv: tuple[str, ...] = field(repr=False)  # arguments and variables may hold secrets
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Access:
    """Address of one API server and sources of its credentials; files are not read yet."""

    server: str
    tls_server_name: str = ""
    namespace: str = ""
    ca: Source = field(default=None, repr=False)
    token: Source = field(default=None, repr=False)
    certificate: Source = field(default=None, repr=False)
    key: Source = field(default=None, repr=False)
    exec_command: ExecCommand | None = None
    path: Path = field(default=Path(), compare=False)  # the kubeconfig, or the mount of the pod


@dataclass(frozen=True, slots=True)
class Material:
    """The content of the sources of an access at one moment; `token` is empty where there is none.

    `expires` is the end of a credential that an exec plugin printed.
    """

    ca: bytes | None = field(default=None, repr=False)
    token: str = field(default="", repr=False)
    identity: ClientIdentity | None = field(default=None, repr=False)
    tls_server_name: str = ""
    expires: datetime | None = None


def read_material(access: Access) -> Material:
    """Reads all sources of the access now; `FileError` names the file that is refused."""
    certificate, key = read_source(access.certificate), read_source(access.key)
    return Material(
        ca=read_source(access.ca),
        token=_read_token(access),
        identity=None if certificate is None or key is None else ClientIdentity(certificate, key),
        tls_server_name=access.tls_server_name,
    )


def _read_token(access: Access) -> str:
    raw = read_source(access.token)
    if raw is None:
        return ""
    token = parse_token(raw.decode("utf-8", errors="replace"))
    if token is None:
        is_file = isinstance(access.token, MountedFile)
        path = access.token.path if isinstance(access.token, MountedFile) else access.path
        raise FileError(path, [Problem("" if is_file else "token", NOT_ONE_WORD)], field="token")
    return token


def parse_token(text: str) -> str | None:
    """The token without blanks around it; None where it is no token."""
    token = text.strip()
    # A line break in a header's value would begin another header.
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        return None
    return token


def load_in_cluster(environ: Mapping[str, str], mount: Path = IN_CLUSTER_MOUNT) -> Access:
    """The ServiceAccount of this pod; `FileError` outside a cluster, or where a file is missing."""
    host, port = environ.get(HOST_VARIABLE), environ.get(PORT_VARIABLE)
    if not host or not port:
        missing = "is not set: not running in a cluster, and no kubeconfig is configured"
        raise FileError(mount, [Problem(PORT_VARIABLE if host else HOST_VARIABLE, missing)])
    ca = MountedFile(mount, mount / "ca.crt", "ca.crt")
    token = MountedFile(mount, mount / "token", "token")
    ca.read()
    token.read()
    namespace = MountedFile(mount, mount / "namespace", "namespace")
    is_named = namespace.path.is_file()
    return Access(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        namespace=namespace.read().decode("utf-8", errors="replace").strip() if is_named else "",
        ca=ca,
        token=token,
        path=mount,
    )
