"""Strict kubeconfig loader: a field that would weaken the connection is refused by name.

The rules of docs/spec/operations.md 1.3. A file that a kubeconfig names must be in the folder of
the kubeconfig, the mount of one Secret, so that write access to that Secret does not give read
access to other files. Errors name fields and paths, never contents: messages of the YAML parser and
of pydantic are dropped, since both quote the input.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from compute_quota_client._depth import TOO_DEEP, is_too_deep
from compute_quota_client._exceptions import QuotaAuthError, QuotaUsageError
from compute_quota_client._material import ExecCommand, Material
from compute_quota_client._names import shown
from compute_quota_client._urls import origin_of

# Each of these, if set, would change the client's identity or the server it trusts.
REFUSED_IN_CLUSTER: Final = ("insecure-skip-tls-verify", "proxy-url")
REFUSED_IN_USER: Final = (
    "auth-provider",
    "username",
    "password",
    "as",
    "as-uid",
    "as-groups",
    "as-user-extra",
)
YAML_EXTRA: Final = "datum-compute-quota-client[kubeconfig]"


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class _Cluster(_Section):
    server: str
    tls_server_name: str | None = Field(None, alias="tls-server-name")
    ca_file: str | None = Field(None, alias="certificate-authority")
    ca_data: str | None = Field(None, alias="certificate-authority-data")


class _EnvVar(_Section):
    name: str
    value: str


class _Exec(_Section):
    api_version: str = Field(alias="apiVersion")
    command: str
    args: list[str] | None = None
    env: list[_EnvVar] | None = None


class _User(_Section):
    token: str | None = None
    token_file: str | None = Field(None, alias="tokenFile")
    cert_file: str | None = Field(None, alias="client-certificate")
    cert_data: str | None = Field(None, alias="client-certificate-data")
    key_file: str | None = Field(None, alias="client-key")
    key_data: str | None = Field(None, alias="client-key-data")
    exec: _Exec | None = None


class _Context(_Section):
    cluster: str
    user: str


class _Named(_Section):
    name: str
    cluster: dict[str, JsonValue] | None = None
    user: dict[str, JsonValue] | None = None
    context: dict[str, JsonValue] | None = None


class _Kubeconfig(_Section):
    current_context: str = Field("", alias="current-context")
    clusters: list[_Named] = []
    users: list[_Named] = []
    contexts: list[_Named] = []


_SectionT = TypeVar("_SectionT", bound=_Section)


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """The path of a kubeconfig and the context to use."""

    path: Path
    context: str | None
    allow_exec: bool

    def load(self) -> Material:
        """Reads the file and the files it names.

        Raises:
            QuotaAuthError: a file cannot be read; names its path.
            QuotaUsageError: the content is refused; names the field.
        """
        config = _validated(_Kubeconfig, _decode(self.path, _read(self.path)), "kubeconfig")
        name = self.context or config.current_context
        context = _validated(_Context, _pick(config.contexts, "context", name), "context")
        cluster = _pick(config.clusters, "cluster", context.cluster)
        user = _pick(config.users, "user", context.user)
        self._refuse(cluster, user)
        return self._material(
            _validated(_Cluster, cluster, "cluster"), _validated(_User, user, "user")
        )

    def _refuse(self, cluster: dict[str, JsonValue], user: dict[str, JsonValue]) -> None:
        refused = [field for field in REFUSED_IN_CLUSTER if cluster.get(field)]
        refused += [field for field in REFUSED_IN_USER if user.get(field)]
        if user.get("exec") and not self.allow_exec:
            refused.append("exec")
        if refused:
            raise QuotaUsageError(
                f"kubeconfig {str(self.path)!r} may not set it", argument=refused[0]
            )

    def _material(self, cluster: _Cluster, user: _User) -> Material:
        token = user.token
        if user.token_file is not None:
            # As in kubectl: the file wins, since it is the one that rotates.
            token = self._file("tokenFile", user.token_file).decode(errors="replace").strip()
        certificate = self._either("client-certificate", user.cert_file, user.cert_data)
        key = self._either("client-key", user.key_file, user.key_data)
        if (certificate is None) != (key is None):
            missing = "client-key" if key is None else "client-certificate"
            raise QuotaUsageError("is missing beside the other half", argument=missing)
        return Material(
            origin=origin_of(cluster.server),
            tls_server_name=cluster.tls_server_name,
            ca=self._either("certificate-authority", cluster.ca_file, cluster.ca_data),
            certificate=certificate,
            key=key,
            token=_checked_token(token),
            command=self._command(user.exec) if user.exec else None,
        )

    def _command(self, plugin: _Exec) -> ExecCommand:
        command = plugin.command
        if "/" in command:
            command = str(self.path.parent / command)
        env = tuple((variable.name, variable.value) for variable in plugin.env or ())
        return ExecCommand(plugin.api_version, (command, *(plugin.args or ())), env)

    def _either(self, field: str, file: str | None, data: str | None) -> bytes | None:
        if data:
            try:
                return base64.b64decode(data, validate=True)
            except binascii.Error:
                raise QuotaUsageError("is not base64", argument=f"{field}-data") from None
        return self._file(field, file) if file else None

    def _file(self, field: str, name: str) -> bytes:
        mount = self.path.parent.resolve()
        # Both resolved: files of a mounted Secret are symlinks inside the mount, and a link out of
        # it is refused.
        path = (mount / name).resolve()
        if not path.is_relative_to(mount):
            raise QuotaUsageError(
                f"{shown(name)} lies outside {str(mount)!r}, the folder of the kubeconfig",
                argument=field,
            )
        return _read(path)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        cause = error.strerror or type(error).__name__
        raise QuotaAuthError(f"reading {str(path)!r}: {cause}") from error


def _decode(path: Path, content: bytes) -> JsonValue:
    if is_too_deep(content):
        raise QuotaUsageError(f"{str(path)!r} is {TOO_DEEP}", argument="kubeconfig")
    try:
        decoded: JsonValue = json.loads(content)
    except ValueError:
        return _decode_yaml(path, content)
    return decoded


def _decode_yaml(path: Path, content: bytes) -> JsonValue:
    try:
        # Imported here: a JSON kubeconfig, which is YAML too, needs no YAML parser.
        import yaml
    except ImportError:
        raise QuotaUsageError(
            f"{str(path)!r} is YAML; install {YAML_EXTRA!r} to read it", argument="kubeconfig"
        ) from None
    try:
        decoded: JsonValue = yaml.safe_load(content)
    except (yaml.YAMLError, UnicodeDecodeError):
        raise QuotaUsageError(f"{str(path)!r} is not YAML", argument="kubeconfig") from None
    return decoded


def _validated(model: type[_SectionT], value: JsonValue, name: str) -> _SectionT:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        # Field names and kinds of error only: the rest quotes the input.
        first = error.errors(include_input=False, include_context=False, include_url=False)[0]
        where = ".".join(str(step) for step in (name, *first["loc"]))
        raise QuotaUsageError(f"is not usable ({first['type']})", argument=where) from None


def _pick(entries: list[_Named], kind: str, name: str) -> dict[str, JsonValue]:
    for entry in entries:
        content: dict[str, JsonValue] | None = getattr(entry, kind)
        if entry.name == name and content is not None:
            return content
    raise QuotaUsageError(f"the kubeconfig has no {kind} {shown(name)}", argument=kind)


def _checked_token(token: str | None) -> str | None:
    # The token is a header's value: a line break in it would begin another header.
    if token and not (token.isascii() and token.isprintable()):
        raise QuotaUsageError("is not printable ASCII", argument="token")
    return token or None
