"""Strict kubeconfig loader: address, CA and credential of one API server, or an error with path,
field and reason.

Write access to a kubeconfig is enough to redirect all requests of an operator. Entries that weaken
the connection, run a program or read other files are therefore refused anywhere in the file, not
only in the context in use: unverified TLS, a proxy, a plain http server, an auth provider,
impersonation, a file outside the kubeconfig's own mount, and `exec` unless it was allowed. An
unknown key is refused too: it might have been a restriction. No error has a value of the file.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NoReturn, TypeAlias
from urllib.parse import urlsplit

from compute_operator_kit.config.loader import ConfigurationError, read_text
from compute_operator_kit.config.strict_yaml import (
    MAX_DOCUMENT_BYTES,
    DocumentError,
    Problem,
    parse_document,
)
from compute_operator_kit.core.json import Json, JsonObject, member_list, member_object, member_text

IN_CLUSTER_MOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_CLUSTER_KEYS: Final = frozenset(
    {
        "server",
        "certificate-authority",
        "certificate-authority-data",
        "tls-server-name",
        "disable-compression",
        "extensions",
        "insecure-skip-tls-verify",
        "proxy-url",
    }
)
_USER_KEYS: Final = frozenset(
    {
        "token",
        "tokenFile",
        "client-certificate",
        "client-certificate-data",
        "client-key",
        "client-key-data",
        "extensions",
        "exec",
        "auth-provider",
    }
)
_FILE_KEYS: Final = frozenset(
    {"certificate-authority", "tokenFile", "client-certificate", "client-key"}
)
_DATA_KEYS: Final = frozenset(
    {"certificate-authority-data", "client-certificate-data", "client-key-data"}
)


class KubeconfigError(ConfigurationError):
    """A kubeconfig, or a file it names, is refused; every line has path, field and reason."""

    def __init__(self, path: Path, problems: Iterable[Problem]) -> None:
        self.path = path
        super().__init__(
            Problem(f"{path}: {problem.path}" if problem.path else str(path), problem.message)
            for problem in problems
        )


@dataclass(frozen=True, slots=True)
class MountedFile:
    """A file that must be inside a directory after all symlinks are resolved.

    Checked at each read: the kubelet swaps the links of a projected volume, and an attacker could.
    """

    mount: Path
    path: Path

    def read(self) -> bytes:
        try:
            real = self.path.resolve(strict=True)
            if not real.is_relative_to(self.mount.resolve(strict=True)):
                raise KubeconfigError(self.path, [_outside(self.mount)])
            with real.open("rb") as opened:
                return opened.read(MAX_DOCUMENT_BYTES)
        except OSError as cause:
            why = cause.strerror or type(cause).__name__
            raise KubeconfigError(self.path, [Problem("", f"cannot be read: {why}")]) from None


def _outside(mount: Path) -> Problem:
    return Problem("", f"is outside {mount}, the mount of its kubeconfig")


Source: TypeAlias = bytes | MountedFile | None


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A command that prints credentials; built only where `clients.allowExec` is true."""

    config: JsonObject = field(repr=False)  # its env may hold secrets


@dataclass(frozen=True, slots=True)
class Access:
    """Address of one API server and sources of its credentials; files are not read yet, and secrets
    are not printed.
    """

    server: str
    tls_server_name: str = ""
    namespace: str = ""
    ca: Source = field(default=None, repr=False)
    token: Source = field(default=None, repr=False)
    certificate: Source = field(default=None, repr=False)
    key: Source = field(default=None, repr=False)
    exec_plugin: ExecPlugin | None = None


def load_kubeconfig(path: Path, context: str = "", *, allow_exec: bool = False) -> Access:
    """The access of a context of the file; an empty name means its current context."""
    try:
        document = parse_document(read_text(path))
    except DocumentError as refused:
        raise KubeconfigError(path, refused.problems) from None
    except ConfigurationError as refused:
        raise KubeconfigError(path, [Problem("", refused.problems[0].message)]) from None
    problems = list(_find_refused(document, path.parent, allow_exec=allow_exec))
    if problems:
        raise KubeconfigError(path, problems)
    return _Chosen(path, document, context).access()


def load_in_cluster(environ: Mapping[str, str], mount: Path = IN_CLUSTER_MOUNT) -> Access:
    """The ServiceAccount of this pod."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        missing = "is not set: not running in a cluster, and no kubeconfig is configured"
        raise KubeconfigError(mount, [Problem("KUBERNETES_SERVICE_HOST", missing)])
    ca, token = MountedFile(mount, mount / "ca.crt"), MountedFile(mount, mount / "token")
    ca.read()
    token.read()
    namespace = mount / "namespace"
    return Access(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        namespace=namespace.read_text("utf-8").strip() if namespace.is_file() else "",
        ca=ca,
        token=token,
    )


# Refused anywhere in the file.


def _find_refused(document: JsonObject, mount: Path, *, allow_exec: bool) -> Iterator[Problem]:
    for place, cluster in _entries(document, "clusters", "cluster"):
        yield from _unknown_keys(place, cluster, _CLUSTER_KEYS)
        yield from _refused_in_cluster(place, cluster)
        yield from _refused_files(place, cluster, mount)
    for place, user in _entries(document, "users", "user"):
        yield from _unknown_keys(place, user, _USER_KEYS)
        yield from _refused_in_user(place, user, allow_exec=allow_exec)
        yield from _refused_files(place, user, mount)


def _entries(document: JsonObject, group: str, member: str) -> Iterator[tuple[str, JsonObject]]:
    for place, entry in enumerate(member_list(document, group)):
        if isinstance(entry, dict):
            yield f"{group}[{place}].{member}", member_object(entry, member)


def _unknown_keys(place: str, entry: JsonObject, known: frozenset[str]) -> Iterator[Problem]:
    for key in sorted(entry.keys() - known):
        yield Problem(f"{place}.{key}", "is not supported")


def _refused_in_cluster(place: str, cluster: JsonObject) -> Iterator[Problem]:
    # An explicit false weakens nothing; any other value, a text too, could skip the check.
    if cluster.get("insecure-skip-tls-verify") not in {None, False}:
        yield Problem(f"{place}.insecure-skip-tls-verify", "is refused: TLS is always verified")
    if cluster.get("proxy-url") not in {None, ""}:
        yield Problem(f"{place}.proxy-url", "is refused: a proxy would see what we send")
    if reason := _why_not_a_server(cluster.get("server")):
        yield Problem(f"{place}.server", reason)


def _why_not_a_server(server: Json) -> str | None:
    if not isinstance(server, str) or not server:
        return "is required"
    if any(not 0x20 < ord(character) < 0x7F for character in server):
        # urlsplit drops CR, LF and TAB: the host would not be the one that is written.
        return "must be a URL of visible ASCII characters"
    try:
        url = urlsplit(server)
        has_host = bool(url.hostname) and (url.port is None or url.port > 0)
    except ValueError:
        return "is not a URL"
    if url.scheme != "https":
        return "must be an https URL"
    if not has_host or url.username is not None or url.query or url.fragment:
        return "must be scheme, host, port and path, nothing else"
    return None


def _refused_in_user(place: str, user: JsonObject, *, allow_exec: bool) -> Iterator[Problem]:
    if user.get("auth-provider") is not None:
        yield Problem(f"{place}.auth-provider", "is refused")
    plugin = user.get("exec")
    if plugin is None:
        return
    if not allow_exec:
        yield Problem(f"{place}.exec", "is refused unless clients.allowExec is true")
    elif not isinstance(plugin, dict) or not member_text(plugin, "command"):
        yield Problem(f"{place}.exec.command", "is required")
    elif plugin.get("interactiveMode") == "Always":
        yield Problem(f"{place}.exec.interactiveMode", "must not be Always: nobody is there")


def _refused_files(place: str, entry: JsonObject, mount: Path) -> Iterator[Problem]:
    """Paths are checked here before any file is opened, and again at each read (`MountedFile`)."""
    for key in sorted(entry.keys() & _FILE_KEYS):
        value = entry[key]
        if not isinstance(value, str):
            yield Problem(f"{place}.{key}", "must be a path")
        elif value and not _is_inside(mount, value):
            yield Problem(f"{place}.{key}", _outside(mount).message)
    for key in sorted(entry.keys() & _DATA_KEYS):
        if _decode_data(entry[key]) is None:
            yield Problem(f"{place}.{key}", "must be base64 text")


def _is_inside(mount: Path, value: str) -> bool:
    # `Path("/mount") / "/elsewhere"` is "/elsewhere": an absolute path replaces the mount.
    return (mount / value).resolve().is_relative_to(mount.resolve())


def _decode_data(value: Json) -> bytes | None:
    if not isinstance(value, str):
        return None
    try:
        return base64.b64decode("".join(value.split()), validate=True)
    except (binascii.Error, ValueError):
        return None


class _Chosen:
    """One context of a file that passed the checks above, with its cluster and user."""

    def __init__(self, path: Path, document: JsonObject, context: str) -> None:
        self._path = path
        self._document = document
        name = context or member_text(document, "current-context")
        if not name:
            self._refuse("current-context", "is required where no context is configured")
        self._context, _ = self._find("contexts", "context", name)

    def access(self) -> Access:
        cluster, _ = self._find("clusters", "cluster", member_text(self._context, "cluster"))
        user, place = self._find("users", "user", member_text(self._context, "user"))
        plugin = member_object(user, "exec")
        access = Access(
            server=member_text(cluster, "server").rstrip("/"),
            tls_server_name=member_text(cluster, "tls-server-name"),
            namespace=member_text(self._context, "namespace"),
            ca=self._source(cluster, "certificate-authority"),
            token=self._token(user),
            certificate=self._source(user, "client-certificate"),
            key=self._source(user, "client-key"),
            exec_plugin=ExecPlugin(plugin) if plugin else None,
        )
        if (access.certificate is None) != (access.key is None):
            self._refuse(place, "client certificate and key must be given together")
        if not (access.token or access.certificate or access.exec_plugin):
            self._refuse(place, "holds no credentials")
        return access

    def _token(self, user: JsonObject) -> Source:
        # As in client-go: the file wins, since it is the one that rotates.
        if path := member_text(user, "tokenFile"):
            return self._file(path)
        return member_text(user, "token").encode() or None

    def _source(self, entry: JsonObject, name: str) -> Source:
        if data := _decode_data(entry.get(f"{name}-data")):
            return data
        path = member_text(entry, name)
        return self._file(path) if path else None

    def _file(self, path: str) -> MountedFile:
        return MountedFile(self._path.parent, self._path.parent / path)

    def _find(self, group: str, member: str, name: str) -> tuple[JsonObject, str]:
        for place, entry in enumerate(member_list(self._document, group)):
            if isinstance(entry, dict) and entry.get("name") == name:
                return member_object(entry, member), f"{group}[{place}].{member}"
        return self._refuse(group, f"has no {member} of the wanted name")

    def _refuse(self, where: str, why: str) -> NoReturn:
        raise KubeconfigError(self._path, [Problem(where, why)])
