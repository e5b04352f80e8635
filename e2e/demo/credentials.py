"""Tokens and kubeconfigs of the demo's users and operators.

Identities are those of `docs/spec/operations.md` 5. Each plane has its own token table, so a token
of one plane is invalid on the others. Files are readable by their owner only.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from compute_sim_planes.api_server.authz.identity import ADMIN, Tokens, User, authenticated
from compute_sim_planes.kubeconfig import Context, write_kubeconfig
from e2e.harness.deploy.rights import CELL_USER, MANAGEMENT_USER


class Credentials:
    """Tokens by plane; each call issues a new one."""

    def __init__(self) -> None:
        self.admin = secrets.token_urlsafe(32)
        self._tables: dict[str, Tokens] = {}

    def of(self, plane: str) -> Tokens:
        """The table by which a plane authenticates."""
        return self._tables.setdefault(plane, Tokens({self.admin: ADMIN}))

    def issue(self, plane: str, user: User) -> str:
        token = secrets.token_urlsafe(32)
        self.of(plane).users[token] = user
        return token


def management_user() -> User:
    return authenticated(MANAGEMENT_USER)


def cell_user(cell: str, *, is_home: bool) -> User:
    """A cell operator is its ServiceAccount at home and `compute:cell:…` on other planes."""
    return authenticated(CELL_USER if is_home else f"compute:cell:{cell}")


def credential_path(folder: Path, operator: str, plane: str) -> Path:
    """Path of an operator's kubeconfig for a plane."""
    return folder / "operators" / f"{operator}.{plane}.yaml"


def write_credential(path: Path, server: str, token: str, authority: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    write_kubeconfig(path, [Context("plane", server, token, authority)])
