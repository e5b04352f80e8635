"""Exec credential plugins of a kubeconfig, run where the settings allow it.

The `client.authentication.k8s.io` protocol: the program prints an ExecCredential. It gets no
terminal and a limited time, and its output is never part of an error.
"""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pydantic import AwareDatetime, ValidationError

from compute_quota_client._exceptions import QuotaAuthError
from compute_quota_client._wire import Wire

if TYPE_CHECKING:
    from compute_quota_client._material import ExecCommand, Material

TIME_LIMIT: Final = timedelta(seconds=8)


class _ExecStatus(Wire):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: AwareDatetime | None = None


class _ExecCredential(Wire):
    kind: str
    status: _ExecStatus


async def with_exec_credential(material: Material, command: ExecCommand) -> Material:
    """`material` with the credential that the program prints.

    Raises:
        QuotaAuthError: the program cannot be run, fails, takes too long or prints something else.
    """
    printed = await _run(command)
    try:
        status = _ExecCredential.model_validate_json(printed).status
    except ValidationError:
        raise _failed(command, "it prints no ExecCredential") from None
    certificate, key = status.client_certificate_data, status.client_key_data
    return replace(
        material,
        token=status.token or material.token,
        certificate=certificate.encode() if certificate else material.certificate,
        key=key.encode() if key else material.key,
        expires_at=status.expiration_timestamp,
    )


async def _run(command: ExecCommand) -> bytes:
    info = {
        "apiVersion": command.api_version,
        "kind": "ExecCredential",
        "spec": {"interactive": False},
    }
    env = {**os.environ, **dict(command.env), "KUBERNETES_EXEC_INFO": json.dumps(info)}
    try:
        process = await asyncio.create_subprocess_exec(
            *command.argv,
            env=env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError as error:
        raise _failed(command, error.strerror or "it cannot be started") from error
    try:
        async with asyncio.timeout(TIME_LIMIT.total_seconds()):
            printed, _ = await process.communicate()
    except TimeoutError:
        raise _failed(command, "it takes too long") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise _failed(command, f"it ends with {process.returncode}")
    return printed


def _failed(command: ExecCommand, cause: str) -> QuotaAuthError:
    # The program's name only: arguments may carry secrets.
    return QuotaAuthError(f"asking {command.argv[0]!r} for a credential: {cause}")
