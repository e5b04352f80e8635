"""Settings of the gateway and Milo's controllers, in files that the stack writes."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class GatewaySettings(_Settings):
    """Listening address, trusted credentials, and addresses of planes."""

    address: str
    port: int
    # Files: serving pair, CA of client certificates, the root's token file.
    certificate: Path
    key: Path
    authority: Path
    tokens: Path
    # The certificate with which the gateway impersonates users.
    front_proxy_certificate: Path
    front_proxy_key: Path
    # The origin of the root's API server, and the file with those of the projects.
    root: str
    directory: Path
    # Faults of routes; the file is absent while there are none.
    fault_routes: Path
    # The plane that verifies tokens not in the token file; empty for none.
    issuer: str = ""


class ControllerSettings(_Settings):
    """Address of the root, and the control server for planes of projects."""

    authority: Path
    root: str
    root_token: str
    directory: Path
    # The stack's control server, and its secret.
    address: str
    port: int
    secret: str
