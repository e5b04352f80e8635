"""Milo to its clients: one transport for the root and all projects, told apart by the path.

Users are known to the root; inside a project they carry the extras that name it. A project need
not exist, and answers its first request like any other (neighbours.md 2.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.answers import answer_error
from compute_sim_planes.api_server.api_errors import ApiError
from compute_sim_planes.api_server.dispatch import dispatch
from compute_sim_planes.api_server.identity import ADMIN, User
from compute_sim_planes.api_server.impersonation import impersonate
from compute_sim_planes.api_server.transport import Answer
from compute_sim_planes.milo.kinds import PROJECTS, RESOURCE_MANAGER_GROUP
from compute_sim_planes.milo.paths import parse_target
from compute_sim_planes.milo.planes import ROOT, Planes

UNAVAILABLE: Final = "the server is currently unable to handle the request"
_PARENT: Final = "iam.miloapis.com/parent-"
_IMPERSONATION: Final = "impersonate-"


class Front:
    """The one address of a Milo."""

    def __init__(self, planes: Planes) -> None:
        self._planes = planes

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Answer:
        """The answer to a request that proves its user by a token."""
        return await self.answer(None, method, target, headers, body)

    def connect(self, user: User = ADMIN) -> Connection:
        """A transport whose requests are all made by `user`."""
        return Connection(self, user)

    async def answer(
        self,
        user: User | None,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None,
    ) -> Answer:
        """The answer to one request; `user` is None when the request must prove who it is."""
        asked = parse_target(target)
        if self._planes.is_away(asked.project or ROOT):
            return answer_error(ApiError(503, "ServiceUnavailable", UNAVAILABLE))
        if asked.project is None:
            return await dispatch(self._planes.root.state, user, method, target, headers, body)
        try:
            who = self._identify(user, headers, asked.project)
        except ApiError as refused:
            return answer_error(refused)
        # Whoever was impersonated is `who` already.
        kept = {
            name: value
            for name, value in headers.items()
            if not name.lower().startswith(_IMPERSONATION)
        }
        state = self._planes.at(asked.project).state
        return await dispatch(state, who, method, asked.path, kept, body)

    def _identify(self, user: User | None, headers: Mapping[str, str], project: str) -> User:
        state = self._planes.root.state
        lowered = {name.lower(): value for name, value in headers.items()}
        who = state.tokens.authenticate(lowered) if user is None else user
        if who is None:
            raise api_errors.unauthorized()
        if "impersonate-user" in lowered:
            who = impersonate(state.authorizer, who, lowered)
        return derive_project_user(who, project)


def derive_project_user(user: User, project: str) -> User:
    """A user inside a project. Extras of these names from anywhere else do not count."""
    others = [(key, values) for key, values in user.extra if not key.startswith(_PARENT)]
    parent = {
        "api-group": RESOURCE_MANAGER_GROUP,
        "name": project,
        "type": PROJECTS.kind,
    }
    extra = [(f"{_PARENT}{key}", (value,)) for key, value in parent.items()]
    return User(user.name, user.groups, user.uid, (*others, *extra))


class Connection:
    """A Milo as one user sees it."""

    def __init__(self, front: Front, user: User) -> None:
        self._front = front
        self.user = user

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Answer:
        return await self._front.answer(self.user, method, target, headers, body)
