"""Users, and their authentication by bearer token.

Tokens are a table, as in `--token-auth-file`. A connection within the process may carry its user
directly. Authorization is in `authorizer`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from compute_sim_planes.json_types import JsonObject, JsonValue

AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
MASTERS: Final = "system:masters"


@dataclass(frozen=True, slots=True)
class User:
    """A user as authorization and admission see it."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def as_json(self) -> JsonObject:
        """The `userInfo` of reviews."""
        info: JsonObject = {"username": self.name}
        if self.uid:
            info["uid"] = self.uid
        if self.groups:
            info["groups"] = list[JsonValue](self.groups)
        if self.extra:
            info["extra"] = {key: list[JsonValue](values) for key, values in self.extra}
        return info


def authenticated(name: str, *groups: str, uid: str = "") -> User:
    """An authenticated user; service accounts also get the groups that their name implies."""
    all_groups = [*groups]
    if name.startswith("system:serviceaccount:"):
        namespace = name.split(":")[2]
        all_groups += ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    return User(name, (*all_groups, AUTHENTICATED), uid)


ANONYMOUS: Final = User("system:anonymous", (UNAUTHENTICATED,))
ADMIN: Final = authenticated("admin", MASTERS)


@dataclass(slots=True)
class Tokens:
    """Users by bearer token. May change while the server runs: tokens expire and are renewed."""

    users: dict[str, User] = field(default_factory=dict)

    def authenticate(self, headers: Mapping[str, str]) -> User | None:
        """The user of a request; None when its token is not (or no longer) valid."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if not token:
            return ANONYMOUS
        return self.users.get(token.strip()) if scheme.lower() == "bearer" else None

    def review(self, token: str) -> User | None:
        return self.users.get(token)
