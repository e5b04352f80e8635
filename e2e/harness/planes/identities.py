"""Users of the planes with their groups, and a token for each user on each plane.

A token is valid on one plane only, so that an operator with the wrong credential is refused. Rights
are granted by RBAC, not here.
"""

from __future__ import annotations

import csv
import io
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from e2e.harness.access.kubeconfig import Token
from e2e.harness.errors import PlanesError
from e2e.harness.planes.topology import Role, Topology


@dataclass(frozen=True, slots=True)
class Identity:
    """User name and groups."""

    user: str
    groups: tuple[str, ...] = ()


def a_service_account(namespace: str, name: str) -> Identity:
    """The identity of a pod with this ServiceAccount."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return Identity(f"system:serviceaccount:{namespace}:{name}", groups)


def a_cell_operator(cell: str) -> Identity:
    """A cell on the hub and on project planes (operations.md 5, C and E)."""
    return Identity(f"compute:cell:{cell}")


ADMIN: Final = Identity("planes-admin", ("system:masters",))
MANAGEMENT: Final = a_service_account("compute-system", "compute-management-operator")
CELL_AT_HOME: Final = a_service_account("compute-system", "compute-cell-operator")
PROVIDER_AT_HOME: Final = a_service_account("compute-system", "compute-pod-provider")


def identities_of(topology: Topology) -> tuple[Identity, ...]:
    """The admin and every identity of the operators in this topology."""
    cells = (a_cell_operator(plane.name) for plane in topology.of_role(Role.CELL))
    return (ADMIN, MANAGEMENT, CELL_AT_HOME, *cells)


class Tokens:
    """The tokens of one stack."""

    def __init__(self, planes: Iterable[str], identities: Iterable[Identity]) -> None:
        self._identities = {identity.user: identity for identity in identities}
        self._tokens: dict[tuple[str, str], Token] = {}
        for plane in planes:
            self.admit(plane)

    def admit(self, plane: str) -> None:
        """Adds a token for every user on a plane, keeping existing ones."""
        for user in self._identities:
            self._tokens.setdefault((plane, user), Token(secrets.token_hex(20)))

    def of(self, plane: str, user: str = ADMIN.user) -> Token:
        if (plane, user) not in self._tokens:
            raise PlanesError(
                f"looking for a token of {user!r} on plane {plane!r}: there is none",
                remedy=f"give the stack that identity; it has {sorted(self._identities)}",
            )
        return self._tokens[plane, user]

    def render(self, plane: str) -> str:
        """The plane's token file: token, user, uid and groups per line."""
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        for user, identity in self._identities.items():
            line = [self.of(plane, user).token, user, user]
            lines.writerow([*line, ",".join(identity.groups)] if identity.groups else line)
        return text.getvalue()
