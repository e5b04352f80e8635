"""Who is known on which plane of the demo, and the kubeconfigs that prove it.

Identities are those of `docs/spec/operations.md` 5. Every plane has a table of tokens of its own:
who is known on one is nobody on another. Files are readable for their owner alone.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from compute_sim_planes.api_server.identity import ADMIN, Tokens, User, authenticated
from compute_sim_planes.kubeconfig import Context, write_kubeconfig
from e2e.backends.rights import CELL_USER, MANAGEMENT_USER


class Credentials:
    """Tokens by plane; whoever asks for one twice gets two."""

    def __init__(self) -> None:
        self.admin = secrets.token_urlsafe(32)
        self._tables: dict[str, Tokens] = {}

    def of(self, plane: str) -> Tokens:
        """The table that a plane authenticates by."""
        return self._tables.setdefault(plane, Tokens({self.admin: ADMIN}))

    def issue(self, plane: str, user: User) -> str:
        token = secrets.token_urlsafe(32)
        self.of(plane).users[token] = user
        return token


def management_user() -> User:
    return authenticated(MANAGEMENT_USER)


def cell_user(cell: str, *, is_home: bool) -> User:
    """A cell's operator is its ServiceAccount at home and `compute:cell:…` everywhere else."""
    return authenticated(CELL_USER if is_home else f"compute:cell:{cell}")


def credential_path(folder: Path, operator: str, plane: str) -> Path:
    """Where the kubeconfig of an operator for a plane lies."""
    return folder / "operators" / f"{operator}.{plane}.yaml"


def write_credential(path: Path, server: str, token: str, authority: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    write_kubeconfig(path, [Context("plane", server, token, authority)])
