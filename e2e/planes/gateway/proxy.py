"""Hands requests on to API servers and their answers back, as they come.

Answers stream, so a watch is a watch. An answer that breaks off breaks off for the client
too: an orderly end would tell it that it has seen everything.
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
from compute_sim_planes.api_server.api_errors import ApiError
from compute_sim_planes.api_server.identity import ANONYMOUS, User
from compute_sim_planes.api_server.request_info import parse_path
from compute_sim_planes.json_types import JsonObject, JsonValue, objects_at
from compute_sim_planes.milo.kinds import REGISTRATIONS
from e2e.planes.gateway.admission import judge, may_create
from e2e.planes.gateway.directory import ProjectDirectory
from e2e.planes.gateway.identity import (
    Header,
    derive_forwarded,
    derive_returned,
    user_of_certificate,
    user_of_token,
)
from e2e.planes.gateway.issuer import Issuer
from e2e.planes.gateway.nowhere import AskRoot, answer_nowhere
from e2e.planes.gateway.routing import Target, parse_target
from e2e.planes.gateway.ways import WayCutError, Ways

UNAVAILABLE: Final = "the server is currently unable to handle the request"
# Who the gateway is when it asks for itself.
AS_GATEWAY: Final = (("X-Remote-User", "milo-gateway"), ("X-Remote-Group", "system:masters"))
CREATED: Final = 201
CONFLICT: Final = 409
_log: Final = logging.getLogger(__name__)


class Gateway:
    """The one endpoint; projects may come and go while it runs."""

    def __init__(
        self,
        root: str,
        directory: ProjectDirectory,
        users: Mapping[str, User],
        upstream: aiohttp.ClientSession,
        ways: Ways,
        issuer: Issuer | None = None,
    ) -> None:
        self._root = root
        self._directory = directory
        self._users = users
        self._upstream = upstream
        self._ways = ways
        self._issuer = issuer

    async def serve(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._serve(request)
        except ApiError as refused:
            return as_answer(refused)
        except WayCutError:
            if request.transport:
                request.transport.abort()
            return web.Response()  # that nobody gets
        except aiohttp.ClientConnectionError as cause:
            # Before anything was answered: the plane is away, and that is all the client learns.
            _log.warning("Reaching the plane of %s: %s", request.path, cause)
            return as_answer(ApiError(503, "ServiceUnavailable", UNAVAILABLE))

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        user = await self._authenticate(request)
        target = parse_target(request.raw_path)
        project = target.project or ""
        await self._ways.enter(user.name, project)
        with self._ways.holding(user.name, project, request.transport):
            return await self._answer(request, target, user)

    async def _answer(self, request: web.Request, target: Target, user: User) -> web.StreamResponse:
        headers = derive_forwarded(request.headers.items(), user, target.project)
        asked = parse_path(target.path)
        if target.project is None:
            return await self._judge_and_forward(request, self._root, target, headers)
        origin = self._directory.read().get(target.project)
        if origin is None:
            match answer_nowhere(request.method, target, asked):
                case AskRoot(target=instead):
                    return await self._forward(request, self._root, instead, headers)
                case ApiError() as refusal:
                    raise refusal
        return await self._judge_and_forward(request, origin, target, headers)

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
        # Checked in the handshake: one of a foreign authority ended it there.
        return user_of_certificate(shown) if shown else ANONYMOUS

    async def _judge_and_forward(
        self, request: web.Request, origin: str, target: Target, headers: list[Header]
    ) -> web.StreamResponse:
        asked = parse_path(target.path)
        form = request.headers.get("Content-Type", "")
        if asked is not None and may_create(request.method, form, asked):
            wanted = await self._rehearse(request, origin, target, headers)
            if wanted is not None and (
                refusal := judge(asked, wanted, await self._registrations())
            ):
                raise refusal
        return await self._forward(request, origin, target, headers)

    async def _rehearse(
        self, request: web.Request, origin: str, target: Target, headers: list[Header]
    ) -> JsonObject | None:
        """What the API server would make of it: rights and schema are refused before admission.

        None when it would make nothing, whatever its reason; the real request tells the client.
        """
        separator = "&" if target.query else "?"
        rehearsal = URL(f"{origin}{target.url}{separator}dryRun=All", encoded=True)
        body = await request.read()
        # Tables and other forms a client may ask for cannot be judged.
        plain = [(name, value) for name, value in headers if name.lower() != "accept"]
        plain.append(("Accept", "application/json"))
        async with self._upstream.request(
            request.method, rehearsal, headers=plain, data=body
        ) as answer:
            if answer.status == CREATED:
                return _as_object(await answer.read())
            # A name that is taken is found out by storage, after admission.
            return _as_object(body) if answer.status == CONFLICT else None

    async def _registrations(self) -> list[JsonObject]:
        url = URL(f"{self._root}{REGISTRATIONS.path()}", encoded=True)
        async with self._upstream.get(url, headers=AS_GATEWAY) as answer:
            return objects_at(_as_object(await answer.read()), "items")

    async def _forward(
        self, request: web.Request, origin: str, target: Target, headers: list[Header]
    ) -> web.StreamResponse:
        # Whole: a claim was read for its judgement already, and objects are small.
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


def as_answer(refused: ApiError) -> web.Response:
    headers = {} if refused.retry_after is None else {"Retry-After": str(refused.retry_after)}
    return web.json_response(refused.body(), status=refused.code, headers=headers)


def _as_object(body: bytes) -> JsonObject:
    try:
        found: JsonValue = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
