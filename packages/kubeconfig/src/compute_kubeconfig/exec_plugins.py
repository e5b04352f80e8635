"""Exec credential plugins of a kubeconfig, run where the settings allow it.

The `client.authentication.k8s.io` protocol: the program prints an ExecCredential. It gets no
terminal, a limited time and a limited output, so that it can neither wait for input nor fill the
memory, and its output is never part of an error.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, TypeGuard

from compute_kubeconfig.access import ExecCommand, parse_token
from compute_kubeconfig.tls import ClientIdentity

KIND: Final = "ExecCredential"
MAX_OUTPUT_BYTES: Final = 1 << 20  # a chain of certificates has some KiB


class ExecPluginError(Exception):
    """A plugin gave no credential; the message has its name and no more of it."""


@dataclass(frozen=True, slots=True)
class ExecCredential:
    """What a plugin printed; `token` is empty where it printed a certificate alone."""

    token: str = field(default="", repr=False)
    identity: ClientIdentity | None = field(default=None, repr=False)
    expires: datetime | None = None


async def run_plugin(command: ExecCommand, time_limit: timedelta) -> ExecCredential:
    """The credential that the program prints.

    Raises:
        ExecPluginError: the program cannot be run, fails, takes too long or prints something else.
    """
    try:
        return parse_credential(await _run(command, time_limit), command.api_version)
    except _FailureError as failure:
        # The program's name only: arguments may carry secrets, and so may the cause.
        raise ExecPluginError(f"running {command.argv[0]!r} for a credential: {failure}") from None


class _FailureError(Exception):
    """Why there is no credential."""


async def _run(command: ExecCommand, time_limit: timedelta) -> bytes:
    starting = asyncio.create_task(_start(command))
    try:
        process = await asyncio.shield(starting)
    except asyncio.CancelledError:
        # Cancelled while it starts, asyncio would kill the program and leave its children.
        with contextlib.suppress(_FailureError):
            await _kill(await starting)
        raise
    try:
        async with asyncio.timeout(time_limit.total_seconds()):
            printed = await _read_output(process)
            code = await process.wait()
    except TimeoutError:
        raise _FailureError("it takes too long") from None
    finally:
        if process.returncode is None:
            await _kill(process)
    if code != 0:
        raise _FailureError(f"it ends with {code}")
    return printed


async def _start(command: ExecCommand) -> asyncio.subprocess.Process:
    info = {"apiVersion": command.api_version, "kind": KIND, "spec": {"interactive": False}}
    try:
        return await asyncio.create_subprocess_exec(
            *command.argv,
            env={**os.environ, **dict(command.env), "KUBERNETES_EXEC_INFO": json.dumps(info)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # without a terminal, and with its children in one group
        )
    except (OSError, ValueError) as cause:
        why = cause.strerror if isinstance(cause, OSError) else None
        raise _FailureError(why or "it cannot be started") from None


async def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


async def _read_output(process: asyncio.subprocess.Process) -> bytes:
    printed = bytearray()
    while process.stdout is not None and (piece := await process.stdout.read(1 << 16)):
        printed += piece
        if len(printed) > MAX_OUTPUT_BYTES:
            raise _FailureError("it prints more than 1 MiB")
    return bytes(printed)


def parse_credential(printed: bytes, api_version: str) -> ExecCredential:
    try:
        document: object = json.loads(printed)
    except (ValueError, RecursionError):
        document = None
    if not _is_object(document) or document.get("kind") != KIND:
        raise _FailureError(f"it prints no {KIND}")
    if document.get("apiVersion") != api_version:
        raise _FailureError(f"it prints an {KIND} of another apiVersion than the kubeconfig names")
    status = document.get("status")
    if not _is_object(status):
        raise _FailureError(f"it prints an {KIND} without status")
    token, certificate, key = (
        _read_text(status, name) for name in ("token", "clientCertificateData", "clientKeyData")
    )
    if bool(certificate) != bool(key):
        raise _FailureError("it prints half of a client certificate and its key")
    if not token and not certificate:
        raise _FailureError("it prints neither a token nor a client certificate")
    checked = parse_token(token) if token else ""
    if checked is None:
        raise _FailureError("it prints a token that is none")
    return ExecCredential(
        token=checked,
        identity=_build_identity(certificate, key),
        expires=_parse_expiry(_read_text(status, "expirationTimestamp")),
    )


def _build_identity(certificate: str, key: str) -> ClientIdentity | None:
    if not certificate:
        return None
    # Half of a surrogate pair is valid JSON; what replaces it is no PEM.
    return ClientIdentity(certificate.encode(errors="replace"), key.encode(errors="replace"))


def _is_object(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)


def _read_text(status: dict[str, object], name: str) -> str:
    value = status.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _FailureError(f"it prints an {KIND} whose {name} is no text")
    return value


def _parse_expiry(text: str) -> datetime | None:
    """The end of the credential; without one it is used until a server answers 401."""
    if not text:
        return None
    with contextlib.suppress(ValueError):
        expiry = datetime.fromisoformat(text)
        if expiry.tzinfo is not None:
            return expiry
    raise _FailureError("it prints an expirationTimestamp that is no time with its zone")
