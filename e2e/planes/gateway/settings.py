"""What the gateway is told at its start: a file the stack writes and the gateway reads, once."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict


class GatewaySettings(BaseModel):
    """Where to listen, whom to believe, and where the planes are."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    address: str
    port: int
    # Files: serving pair, the authority of client certificates, the token file of the root.
    certificate: Path
    key: Path
    authority: Path
    tokens: Path
    # The pair that lets the gateway speak in a user's name.
    front_proxy_certificate: Path
    front_proxy_key: Path
    # Origins of the API servers, and the administrator's token for each of them.
    root: str
    root_token: str
    projects: dict[str, str]
    project_tokens: dict[str, str]
