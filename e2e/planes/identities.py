"""Who speaks to the planes: users, their groups, and one token for each on each plane.

A token is good for one plane only, as real credentials are: an operator that uses the wrong one is
refused. What a user may do is not said here, that is for RBAC.
"""

from __future__ import annotations

import csv
import io
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from e2e.planes.errors import PlanesError
from e2e.planes.kubeconfig import Token
from e2e.planes.topology import Role, Topology


@dataclass(frozen=True, slots=True)
class Identity:
    """A user as an API server sees it."""

    user: str
    groups: tuple[str, ...] = ()


def a_service_account(namespace: str, name: str) -> Identity:
    """The identity a pod with this service account would have."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return Identity(f"system:serviceaccount:{namespace}:{name}", groups)


def a_cell_operator(cell: str) -> Identity:
    """A cell on the hub and on project planes (operations.md 5, C and E)."""
    return Identity(f"compute:cell:{cell}")


ADMIN: Final = Identity("planes-admin", ("system:masters",))
MANAGEMENT: Final = a_service_account("compute-system", "compute-management-operator")
CELL_AT_HOME: Final = a_service_account("compute-system", "compute-cell-operator")


def identities_of(topology: Topology) -> tuple[Identity, ...]:
    """The admin and every identity our operators have in this topology."""
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
        """Gives every user a token on a plane; one it has there stays."""
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
