"""Strict kubeconfig loader: address, CA and credential of one API server, or an error with path,
field and reason.

Write access to a kubeconfig is enough to redirect all requests of a client. Entries that weaken the
connection, run a program or read other files are therefore refused anywhere in the file, not only
in the context in use: unverified TLS, a proxy, a plain http server, an auth provider,
impersonation, a file outside the kubeconfig's own mount, and `exec` unless it was allowed. An
unknown key is refused too: it might have been a restriction. No error has a value of the file.

A personal file is that of the person who runs the program, as kubectl reads it: there only the
context in use is judged, since other tools write the others, and files may be anywhere.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn
from urllib.parse import urlsplit

from compute_kubeconfig.access import NOT_ONE_WORD, Access, ExecCommand, parse_token
from compute_kubeconfig.mounted_files import MountedFile, Source, why_not_inside
from compute_kubeconfig.problems import FileError, Problem

if TYPE_CHECKING:
    from compute_kubeconfig.strict_yaml import Json, JsonObject

_MEMBERS: Final = {"clusters": "cluster", "users": "user", "contexts": "context"}
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
_TEXT_KEYS: Final = frozenset({"cluster", "namespace", "tls-server-name", "token", "user"})
ANYWHERE: Final = Path("/")
# Stands for an entry that is not in use: it has no problem.
_UNUSED: Final[Mapping[str, JsonObject]] = {
    "contexts": {"name": "", "context": {}},
    "clusters": {"name": "", "cluster": {"server": "https://unused"}},
    "users": {"name": "", "user": {}},
}


def load_kubeconfig(
    path: Path, context: str = "", *, allow_exec: bool = False, is_personal: bool = False
) -> Access:
    """The access of a context of the file; an empty name means its current context.

    Raises:
        UnreadableFileError: the file cannot be read.
        FileError: the file is refused; has all problems.
    """
    # Imported here: the YAML parser takes 1 MiB, and a client without a kubeconfig needs none.
    from compute_kubeconfig.strict_yaml import read_document

    document = read_document(path)
    judged = _keep_in_use(document, context) if is_personal else document
    mount = ANYWHERE if is_personal else path.parent
    problems = list(_find_refused(judged, mount, allow_exec=allow_exec))
    if problems:
        raise FileError(path, problems)
    return _Chosen(path, document, context, mount).access()


@dataclass(frozen=True, slots=True)
class Contexts:
    """The names of a file's contexts; `current` is empty where the file chooses none."""

    current: str = ""
    names: tuple[str, ...] = ()


def load_contexts(path: Path, *, allow_exec: bool = False, is_personal: bool = False) -> Contexts:
    """The contexts of a file that `load_kubeconfig` accepts; raises as it does.

    Of a personal file, what is wrong with one context is an error of `load_kubeconfig` alone.
    """
    from compute_kubeconfig.strict_yaml import read_document  # as in `load_kubeconfig`

    document = read_document(path)
    if is_personal:
        problems = list(_find_misshapen(document))
    else:
        problems = list(_find_refused(document, path.parent, allow_exec=allow_exec))
    if problems:
        raise FileError(path, problems)
    contexts = tuple(_text(one, "name") for one in _named(document, "contexts"))
    return Contexts(_text(document, "current-context"), contexts)


def _keep_in_use(document: JsonObject, context: str) -> JsonObject:
    """The file with the context in use, its cluster and its user alone, each in its old place."""
    name = context or _text(document, "current-context")
    chosen = [one for one in _named(document, "contexts") if one.get("name") == name]
    members: JsonObject = _object(chosen[0], "context") if chosen else {}
    wanted = {
        "contexts": name,
        "clusters": _text(members, "cluster"),
        "users": _text(members, "user"),
    }
    kept: JsonObject = dict(document)
    for group, kept_name in wanted.items():
        entries = document.get(group)
        if isinstance(entries, list):
            kept[group] = [
                one if not isinstance(one, dict) or one.get("name") == kept_name else _UNUSED[group]
                for one in entries
            ]
    return kept


def _named(document: JsonObject, group: str) -> list[JsonObject]:
    entries = document.get(group)
    return [one for one in entries if isinstance(one, dict)] if isinstance(entries, list) else []


# Refused anywhere in the file, or in what is in use of a personal one.


def _find_misshapen(document: JsonObject) -> Iterator[Problem]:
    if not isinstance(document.get("current-context"), str | None):
        yield Problem("current-context", "must be text")
    for group, member in _MEMBERS.items():
        yield from _refused_in_group(document, group, member)


def _find_refused(document: JsonObject, mount: Path, *, allow_exec: bool) -> Iterator[Problem]:
    yield from _find_misshapen(document)
    for place, context in _entries(document, "contexts"):
        yield from _refused_texts(place, context)
    for place, cluster in _entries(document, "clusters"):
        yield from _unknown_keys(place, cluster, _CLUSTER_KEYS)
        yield from _refused_in_cluster(place, cluster)
        yield from _refused_texts(place, cluster)
        yield from _refused_files(place, cluster, mount)
    for place, user in _entries(document, "users"):
        yield from _unknown_keys(place, user, _USER_KEYS)
        yield from _refused_in_user(place, user, allow_exec=allow_exec)
        yield from _refused_texts(place, user)
        yield from _refused_files(place, user, mount)


def _refused_in_group(document: JsonObject, group: str, member: str) -> Iterator[Problem]:
    entries = document.get(group)
    if not isinstance(entries, list | None):
        yield Problem(group, "must be a list")
        return
    for place, entry in enumerate(entries or ()):
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            yield Problem(f"{group}[{place}]", f"must have a name and a {member}")
        elif not isinstance(entry.get(member), dict | None):
            yield Problem(f"{group}[{place}].{member}", "must be a mapping of keys to values")


def _entries(document: JsonObject, group: str) -> Iterator[tuple[str, JsonObject]]:
    """The clusters, users or contexts of a file, each with its path."""
    entries, member = document.get(group), _MEMBERS[group]
    for place, entry in enumerate(entries if isinstance(entries, list) else ()):
        if isinstance(entry, dict):
            yield f"{group}[{place}].{member}", _object(entry, member)


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
    token = user.get("token")
    if isinstance(token, str) and token and parse_token(token) is None:
        yield Problem(f"{place}.token", NOT_ONE_WORD)
    plugin = user.get("exec")
    if plugin is None:
        return
    if not allow_exec:
        hint = "is refused unless allow_exec is true (clients.allowExec of an operator)"
        yield Problem(f"{place}.exec", hint)
    elif not isinstance(plugin, dict):
        yield Problem(f"{place}.exec", "must be a mapping of keys to values")
    else:
        yield from _refused_in_plugin(f"{place}.exec", plugin)


def _refused_in_plugin(place: str, plugin: JsonObject) -> Iterator[Problem]:
    for key in ("apiVersion", "command"):
        if not _text(plugin, key):
            yield Problem(f"{place}.{key}", "is required")
    if plugin.get("interactiveMode") == "Always":
        yield Problem(f"{place}.interactiveMode", "must not be Always: there is no terminal")
    if plugin.get("args") is not None and _read_args(plugin) is None:
        yield Problem(f"{place}.args", "must be a list of texts")
    if plugin.get("env") is not None and _read_env(plugin) is None:
        yield Problem(f"{place}.env", "must be a list of names and values, all of them text")


def _refused_texts(place: str, entry: JsonObject) -> Iterator[Problem]:
    for key in sorted(entry.keys() & _TEXT_KEYS):
        if not isinstance(entry[key], str | None):
            yield Problem(f"{place}.{key}", "must be text")


def _refused_files(place: str, entry: JsonObject, mount: Path) -> Iterator[Problem]:
    """Paths are checked here before any file is opened, and again at each read (`MountedFile`)."""
    for key in sorted(entry.keys() & _FILE_KEYS):
        value = entry[key]
        if not isinstance(value, str):
            yield Problem(f"{place}.{key}", "must be a path")
        elif value and mount != ANYWHERE and (reason := why_not_inside(mount, value)):
            yield Problem(f"{place}.{key}", reason)
    for key in sorted(entry.keys() & _DATA_KEYS):
        decoded = _decode_data(entry[key])
        if decoded is None or (entry[key] and not decoded):
            yield Problem(f"{place}.{key}", "must be base64 text")


def _decode_data(value: Json) -> bytes | None:
    if not isinstance(value, str):
        return None
    try:
        return base64.b64decode("".join(value.split()), validate=True)
    except (binascii.Error, ValueError):
        return None


class _Chosen:
    """One context of a file that passed the checks above, with its cluster and user."""

    def __init__(self, path: Path, document: JsonObject, context: str, mount: Path) -> None:
        self._path = path
        self._mount = mount
        self._document = document
        name = context or _text(document, "current-context")
        if not name:
            self._refuse("current-context", "is required where no context is configured")
        self._context, _ = self._find("contexts", name)

    def access(self) -> Access:
        cluster, _ = self._find("clusters", _text(self._context, "cluster"))
        user, place = self._find("users", _text(self._context, "user"))
        access = Access(
            server=_text(cluster, "server").rstrip("/"),
            tls_server_name=_text(cluster, "tls-server-name"),
            namespace=_text(self._context, "namespace"),
            ca=self._source(cluster, "certificate-authority"),
            token=self._token(user),
            certificate=self._source(user, "client-certificate"),
            key=self._source(user, "client-key"),
            exec_command=self._command(_object(user, "exec")),
            path=self._path,
        )
        if access.key is None and access.certificate is not None:
            self._refuse(f"{place}.client-key", "is required beside client-certificate")
        if access.certificate is None and access.key is not None:
            self._refuse(f"{place}.client-certificate", "is required beside client-key")
        if not (access.token or access.certificate or access.exec_command):
            self._refuse(place, "holds no credentials")
        return access

    def _token(self, user: JsonObject) -> Source:
        # As in client-go: the file wins, since it is the one that rotates.
        if path := _text(user, "tokenFile"):
            return self._file("tokenFile", path)
        return _text(user, "token").encode() or None

    def _source(self, entry: JsonObject, name: str) -> Source:
        if data := _decode_data(entry.get(f"{name}-data")):
            return data
        path = _text(entry, name)
        return self._file(name, path) if path else None

    def _file(self, field: str, path: str) -> MountedFile:
        return MountedFile(self._mount, self._path.parent / path, field)

    def _command(self, plugin: JsonObject) -> ExecCommand | None:
        if not plugin:
            return None
        command = _text(plugin, "command")
        if "/" in command:  # as in kubectl: relative to the kubeconfig
            command = str(self._path.parent / command)
        argv = (command, *(_read_args(plugin) or ()))
        return ExecCommand(_text(plugin, "apiVersion"), argv, _read_env(plugin) or ())

    def _find(self, group: str, name: str) -> tuple[JsonObject, str]:
        member, entries = _MEMBERS[group], self._document.get(group)
        for place, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, dict) and entry.get("name") == name:
                return _object(entry, member), f"{group}[{place}].{member}"
        return self._refuse(group, f"has no {member} of the wanted name")

    def _refuse(self, where: str, why: str) -> NoReturn:
        raise FileError(self._path, [Problem(where, why)])


def _read_args(plugin: JsonObject) -> tuple[str, ...] | None:
    args = plugin.get("args")
    if not isinstance(args, list):
        return None
    texts = tuple(each for each in args if isinstance(each, str))
    return texts if len(texts) == len(args) else None


def _read_env(plugin: JsonObject) -> tuple[tuple[str, str], ...] | None:
    env = plugin.get("env")
    if not isinstance(env, list):
        return None
    pairs = [(each.get("name"), each.get("value")) for each in env if isinstance(each, dict)]
    texts = tuple((n, v) for n, v in pairs if isinstance(n, str) and n and isinstance(v, str))
    return texts if len(texts) == len(env) else None


def _text(entry: Mapping[str, Json], name: str) -> str:
    value = entry.get(name)
    return value if isinstance(value, str) else ""


def _object(entry: Mapping[str, Json], name: str) -> JsonObject:
    value = entry.get(name)
    return value if isinstance(value, dict) else {}
