"""The router of a simulated Milo: one transport for the root and all projects, by path.

Users are authenticated by the root; in a project their extras name it. A project need not exist,
and its first request is served like any other (neighbours.md 2.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.api_errors import StatusError
from compute_sim_planes.api_server.authz.identity import ADMIN, User
from compute_sim_planes.api_server.authz.impersonation import impersonate
from compute_sim_planes.api_server.dispatch import dispatch
from compute_sim_planes.api_server.http.responses import error_response
from compute_sim_planes.api_server.http.transport import Response
from compute_sim_planes.milo.kinds import PARENT, PROJECTS, RESOURCE_MANAGER_GROUP
from compute_sim_planes.milo.paths import parse_target
from compute_sim_planes.milo.planes import ROOT, Planes

UNAVAILABLE: Final = "the server is currently unable to handle the request"
_IMPERSONATION: Final = "impersonate-"


class Router:
    """The single address of a Milo."""

    def __init__(self, planes: Planes) -> None:
        self._planes = planes

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        """The response to a request that authenticates by token."""
        return await self.route(None, method, target, headers, body)

    def connect(self, user: User = ADMIN) -> RouterTransport:
        """A transport with `user` as the user of every request."""
        return RouterTransport(self, user)

    async def route(
        self,
        user: User | None,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None,
    ) -> Response:
        """The response to one request; without `user` it is authenticated by its token."""
        asked = parse_target(target)
        if self._planes.is_unavailable(asked.project or ROOT):
            return error_response(StatusError(503, "ServiceUnavailable", UNAVAILABLE))
        if asked.project is None:
            return await dispatch(self._planes.root.state, user, method, target, headers, body)
        try:
            requester = self._identify(user, headers, asked.project)
        except StatusError as refused:
            return error_response(refused)
        # The impersonated user was already determined above.
        kept = {
            name: value
            for name, value in headers.items()
            if not name.lower().startswith(_IMPERSONATION)
        }
        state = self._planes.at(asked.project).state
        return await dispatch(state, requester, method, asked.path, kept, body)

    def _identify(self, user: User | None, headers: Mapping[str, str], project: str) -> User:
        state = self._planes.root.state
        lowered = {name.lower(): value for name, value in headers.items()}
        requester = state.tokens.authenticate(lowered) if user is None else user
        if requester is None:
            raise api_errors.unauthorized()
        if "impersonate-user" in lowered:
            requester = impersonate(state.authorizer, requester, lowered)
        return derive_project_user(requester, project)


def derive_project_user(user: User, project: str) -> User:
    """The user inside a project. Extras of these names from other sources are dropped."""
    others = [(key, values) for key, values in user.extra if not key.startswith(PARENT)]
    parent = {
        "api-group": RESOURCE_MANAGER_GROUP,
        "name": project,
        "type": PROJECTS.kind,
    }
    extra = [(f"{PARENT}{key}", (value,)) for key, value in parent.items()]
    return User(user.name, user.groups, user.uid, (*others, *extra))


class RouterTransport:
    """A transport to a Milo with a fixed user."""

    def __init__(self, router: Router, user: User) -> None:
        self._router = router
        self.user = user

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        return await self._router.route(self.user, method, target, headers, body)
