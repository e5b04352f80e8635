"""Forwards requests to API servers and streams their answers back.

Answers stream, so watches work. An answer that breaks off is aborted for the client too; a proper
end would make the client believe that it is complete.
"""

from __future__ import annotations

import json
import logging
import ssl
from collections.abc import Mapping
from typing import Final

import aiohttp
from aiohttp import web
from yarl import URL

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.api_errors import StatusError
from compute_sim_planes.api_server.authz.identity import ANONYMOUS, User
from compute_sim_planes.api_server.http.request_info import parse_path
from compute_sim_planes.json_types import JsonObject, JsonValue, objects_at, string_at
from compute_sim_planes.milo.kinds import REGISTRATIONS
from e2e.harness.gateway.admission import find_refusal, may_create
from e2e.harness.gateway.fault_routes import FaultRoutes, RouteCutError
from e2e.harness.gateway.identity import (
    Header,
    derive_forwarded,
    derive_returned,
    user_of_certificate,
    user_of_token,
)
from e2e.harness.gateway.issuer import Issuer
from e2e.harness.gateway.missing_project import AskRoot, answer_for_missing_project
from e2e.harness.gateway.routing import RouteTarget, parse_target
from e2e.harness.gateway.suspensions import (
    KnownProjects,
    find_refusal_of_suspended,
    may_be_refused,
    path_of_object,
)

UNAVAILABLE: Final = "the server is currently unable to handle the request"
# The gateway's own identity.
AS_GATEWAY: Final = (("X-Remote-User", "milo-gateway"), ("X-Remote-Group", "system:masters"))
FOUND: Final = 200
CREATED: Final = 201
CONFLICT: Final = 409
_log: Final = logging.getLogger(__name__)


class Gateway:
    """The endpoint of Milo; projects may be added and removed while it runs."""

    def __init__(
        self,
        root: str,
        projects: KnownProjects,
        users: Mapping[str, User],
        upstream: aiohttp.ClientSession,
        fault_routes: FaultRoutes,
        issuer: Issuer | None = None,
    ) -> None:
        self._root = root
        self._directory = projects.directory
        self._suspended = projects.suspended
        self._users = users
        self._upstream = upstream
        self._fault_routes = fault_routes
        self._issuer = issuer

    async def serve(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._serve(request)
        except StatusError as refused:
            return as_answer(refused)
        except RouteCutError:
            if request.transport:
                request.transport.abort()
            return web.Response()  # never sent
        except aiohttp.ClientConnectionError as cause:
            # Nothing was answered yet; the client only learns that the plane is unavailable.
            _log.warning("Reaching the plane of %s: %s", request.path, cause)
            return as_answer(StatusError(503, "ServiceUnavailable", UNAVAILABLE))

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        user = await self._authenticate(request)
        target = parse_target(request.raw_path)
        project = target.project or ""
        await self._fault_routes.enter(user.name, project)
        with self._fault_routes.holding(user.name, project, request.transport):
            return await self._answer(request, target, user)

    async def _answer(
        self, request: web.Request, target: RouteTarget, user: User
    ) -> web.StreamResponse:
        headers = derive_forwarded(request.headers.items(), user, target.project)
        asked = parse_path(target.path)
        if target.project is None:
            return await self._admit_and_forward(request, self._root, target, headers)
        origin = self._directory.read().get(target.project)
        if origin is None:
            match answer_for_missing_project(request.method, target, asked):
                case AskRoot(target=instead):
                    return await self._forward(request, self._root, instead, headers)
                case StatusError() as refusal:
                    raise refusal
        await self._refuse_if_suspended(request, origin, target, headers, user)
        return await self._admit_and_forward(request, origin, target, headers)

    async def _authenticate(self, request: web.Request) -> User:
        if authorization := request.headers.get("Authorization"):
            user = user_of_token(authorization, self._users)
            if user is None and self._issuer:
                user = await self._issuer.user_of(authorization.partition(" ")[2].strip())
            if user is None:
                raise api_errors.unauthorized()
            return user
        connection = request.transport.get_extra_info("ssl_object") if request.transport else None
        shown = (
            connection.getpeercert(binary_form=True)
            if isinstance(connection, ssl.SSLObject)
            else None
        )
        # Verified in the TLS handshake, which fails for a foreign CA.
        return user_of_certificate(shown) if shown else ANONYMOUS

    async def _admit_and_forward(
        self, request: web.Request, origin: str, target: RouteTarget, headers: list[Header]
    ) -> web.StreamResponse:
        asked = parse_path(target.path)
        form = request.headers.get("Content-Type", "")
        if asked is not None and may_create(request.method, form, asked):
            wanted = await self._dry_run(request, origin, target, headers)
            if wanted is not None and (
                refusal := find_refusal(asked, wanted, await self._registrations())
            ):
                raise refusal
        return await self._forward(request, origin, target, headers)

    async def _refuse_if_suspended(
        self,
        request: web.Request,
        origin: str,
        target: RouteTarget,
        headers: list[Header],
        user: User,
    ) -> None:
        """Raises where Milo's admission would: after authorization and schema, which a dry run
        checks; what fails there is answered by the API server.
        """
        asked = parse_path(target.path)
        project = self._suspended.find(target.project or "")
        if project is None or asked is None or not may_be_refused(request.method, asked):
            return
        wanted = await self._dry_run(request, origin, target, headers, with_updates=True)
        if wanted is None:
            return
        existing = None
        if request.method != "POST":
            url = URL(f"{origin}{path_of_object(target.path, asked)}", encoded=True)
            async with self._upstream.get(url, headers=AS_GATEWAY) as answer:
                existing = _as_object(await answer.read()) if answer.status == FOUND else None
        name = string_at(wanted, "metadata", "name")
        if refusal := find_refusal_of_suspended(project, asked, user, existing, name):
            raise refusal

    async def _dry_run(
        self,
        request: web.Request,
        origin: str,
        target: RouteTarget,
        headers: list[Header],
        *,
        with_updates: bool = False,
    ) -> JsonObject | None:
        """The object that the API server would store, by a dry run; authorization and schema are
        checked before admission.

        None if it is refused for any reason; the real request then reports it to the client.
        """
        separator = "&" if target.query else "?"
        dry_run_url = URL(f"{origin}{target.url}{separator}dryRun=All", encoded=True)
        body = await request.read()
        # Without the client's Accept header, as a Table could not be evaluated.
        plain = [(name, value) for name, value in headers if name.lower() != "accept"]
        plain.append(("Accept", "application/json"))
        async with self._upstream.request(
            request.method, dry_run_url, headers=plain, data=body
        ) as answer:
            if answer.status == CREATED or (answer.status == FOUND and with_updates):
                return _as_object(await answer.read())
            # A name conflict is detected by storage, after admission.
            return _as_object(body) if answer.status == CONFLICT else None

    async def _registrations(self) -> list[JsonObject]:
        url = URL(f"{self._root}{REGISTRATIONS.path()}", encoded=True)
        async with self._upstream.get(url, headers=AS_GATEWAY) as answer:
            return objects_at(_as_object(await answer.read()), "items")

    async def _forward(
        self, request: web.Request, origin: str, target: RouteTarget, headers: list[Header]
    ) -> web.StreamResponse:
        # The whole body: a claim was read for admission already, and objects are small.
        body = await request.read() or None
        url = URL(f"{origin}{target.url}", encoded=True)
        async with self._upstream.request(
            request.method, url, headers=headers, data=body, allow_redirects=False
        ) as answer:
            return await _stream_back(request, answer)


async def _stream_back(request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    returned = web.StreamResponse(status=answer.status, reason=answer.reason)
    for name, value in derive_returned(answer.headers.items()):
        returned.headers.add(name, value)
    await returned.prepare(request)
    try:
        async for chunk in answer.content.iter_any():
            await returned.write(chunk)
    except aiohttp.ClientError:
        if request.transport:
            request.transport.abort()
        return returned
    await returned.write_eof()
    return returned


def as_answer(refused: StatusError) -> web.Response:
    headers = {} if refused.retry_after is None else {"Retry-After": str(refused.retry_after)}
    return web.json_response(refused.body(), status=refused.code, headers=headers)


def _as_object(body: bytes) -> JsonObject:
    try:
        parsed: JsonValue = json.loads(body)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}
