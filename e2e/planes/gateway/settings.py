"""What the gateway and Milo's controllers are told at their start: files the stack writes."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class GatewaySettings(_Settings):
    """Where to listen, whom to believe, and where the planes are."""

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
    # The origin of the root's API server, and the file that knows those of the projects.
    root: str
    directory: Path
    # Ways that a test has spoilt; not there while all are open.
    ways: Path
    # Where tokens are shown that the token file does not know; nowhere where it is empty.
    issuer: str = ""


class ControllerSettings(_Settings):
    """Where the root is, and whom to ask for planes of projects."""

    authority: Path
    root: str
    root_token: str
    directory: Path
    # The stack's own ear, and the word it believes.
    address: str
    port: int
    secret: str
