"""The REST client: flow control, credentials, deadline, bounded bodies and metrics of one request.

`http_client.py` builds the requests, a `Transport` sends them. Failures become `ReconcileError`s
here, so that no caller handles HTTP. Only a request answered 401 is sent again, once, with
credentials read anew: it was not carried out. Bodies are never logged.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Protocol

import msgspec

from compute_kubeconfig.exec_plugins import ExecPluginError
from compute_operator_kit.client.flow_control import FlowControl
from compute_operator_kit.client.interface import FieldOwner
from compute_operator_kit.client.status_errors import (
    DEFAULT_RETRY_AFTER,
    RequestInfo,
    error_of_answer,
    error_of_connection,
    error_of_garbage,
    error_of_suspension,
    is_project_suspended,
    is_storage_starting,
    parse_retry_after,
    parse_status,
)
from compute_operator_kit.core import metrics as names
from compute_operator_kit.core.errors import ReconcileError, UnavailableError
from compute_operator_kit.core.json import JsonObject, UndecodableError, decode_foreign
from compute_operator_kit.core.keys import Kind, PlaneName, Role
from compute_operator_kit.core.metrics import MetricsPort, NoMetrics
from compute_operator_kit.core.timeouts import Deadline

# An API server stores at most 1.5 MB per object; larger pages are requested with a lower limit
# (`reflector.py`). A page is in memory several times while it is decoded.
LARGEST_ANSWER: Final = 4 * 1024 * 1024
LARGEST_ERROR: Final = 64 * 1024  # larger than any Status object
ANSWER_TOO_LARGE: Final = "AnswerTooLarge"
PLUGIN_FAILED: Final = "CredentialPluginFailed"

JSON: Final = "application/json"
JSON_PATCH: Final = "application/json-patch+json"
_AS: Final = "application/json;as={};g=meta.k8s.io;v=v1,application/json"
METADATA: Final = _AS.format("PartialObjectMetadata")
METADATA_LIST: Final = _AS.format("PartialObjectMetadataList")
_MUTATING: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_LONG: Final = frozenset({"list", "watch"})
LARGEST_IN_ONE: Final = 512 * 1024  # a larger body is sent in pieces


class StreamingResponse(Protocol):
    """A response with a body that is read in chunks and may be endless; the caller closes it."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def chunks(self) -> AsyncIterator[bytes]: ...

    async def close(self) -> None: ...


class Transport(Protocol):
    """Sends one request to one server.

    Raises `ConnectionRefusedError` when nothing was sent, and any other `OSError` (`TimeoutError`
    is one) when that is not known.
    """

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> StreamingResponse: ...


class Credentials(Protocol):
    """The credentials for one server, read again after a 401."""

    async def headers(self) -> Mapping[str, str]: ...

    async def refresh(self) -> bool:
        """Reads the credentials again; whether they have changed."""
        ...


class NoCredentials:
    """For servers without authentication, or with client certificates."""

    async def headers(self) -> Mapping[str, str]:
        return {}

    async def refresh(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class RestConfig:
    """The configuration of the client of one plane."""

    plane: PlaneName
    role: Role
    transport: Transport
    lane: FlowControl
    credentials: Credentials = field(default_factory=NoCredentials)
    base_path: str = ""  # planes of one server differ by their path
    user_agent: str = "compute-operator-kit"
    request_timeout: timedelta = timedelta(seconds=10)
    measures: MetricsPort = field(default_factory=NoMetrics)
    short: Transport | None = None  # for requests of single objects, if there is one


class RestRequest(msgspec.Struct, frozen=True, gc=False):
    """One request to an API server."""

    method: str
    target: str
    doing: str
    verb: str  # as RBAC and `compute_writes_total` spell it
    kind: Kind
    body: bytes | None = None
    content_type: str = JSON
    is_probe: bool = False
    is_question: bool = False  # a review: a POST that stores nothing
    is_terminating: bool = False  # to an object that is being deleted

    @property
    def is_mutating(self) -> bool:
        return self.method in _MUTATING and not self.is_question

    @property
    def is_suspendable(self) -> bool:
        """Whether a suspended project refuses it: a create or an update of an object that stays."""
        return self.is_mutating and self.method != "DELETE" and not self.is_terminating

    @property
    def is_short(self) -> bool:
        """Whether request and response are single objects: no page, stream or large body."""
        if self.verb in _LONG:
            return False
        return self.body is None or len(self.body) <= LARGEST_IN_ONE

    def carrying(self, body: bytes, content_type: str = JSON) -> RestRequest:
        """The same request with a body."""
        return RestRequest(
            self.method, self.target, self.doing, self.verb, self.kind, body, content_type
        )


class RestResponse(msgspec.Struct, frozen=True, gc=False):
    """A response that was read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self.body

    async def close(self) -> None:
        """Does nothing: the body was read."""


@contextlib.asynccontextmanager
async def closing_chunks(answer: StreamingResponse) -> AsyncGenerator[AsyncIterator[bytes]]:
    """The chunks of a response, closed with the block: the garbage collector would close the
    generator, and with it the connection, at some later time.
    """
    chunks = answer.chunks()
    try:
        yield chunks
    finally:
        await _close_chunks(chunks)


async def _read_whole(answer: StreamingResponse, limit: int) -> RestResponse:
    """Reads the body to its end, or until it exceeds the limit."""
    pieces: list[bytes] = []
    length = 0
    chunks = answer.chunks()
    try:
        async for chunk in chunks:
            pieces.append(chunk)
            length += len(chunk)
            if length > limit:
                await _close_chunks(chunks)
                break
    finally:
        await answer.close()
    return RestResponse(answer.status, answer.headers, b"".join(pieces))


async def _close_chunks(chunks: AsyncIterator[bytes]) -> None:
    if isinstance(chunks, AsyncGenerator):
        await chunks.aclose()


class RestClient:
    """Sends requests to one plane as one field owner."""

    def __init__(self, config: RestConfig, owner: FieldOwner) -> None:
        self._config = config
        self._owner = owner
        self._short = config.short or config.transport
        self._deadline = Deadline(config.request_timeout.total_seconds())
        self._role = config.role.value
        self._headers = {
            "Accept": JSON,
            "User-Agent": f"{config.user_agent} ({owner.controller})",
        }

    async def send(self, request: RestRequest) -> RestResponse:
        """Sends a request and reads the response, within the request timeout."""
        await self._config.lane.admit(is_probe=request.is_probe)
        suspension = self._config.lane.suspension
        is_held = suspension.is_suspended and request.is_suspendable
        if is_held and not suspension.take_permit():
            raise error_of_suspension(self.request_of(request))
        try:
            with self._deadline.start():
                answer = await self._send_authenticated(request)
                response = await self.finish(request, answer)
        except OSError as cause:
            self._failed(request)
            raise error_of_connection(self.request_of(request), cause) from cause
        self._answered(request, response.status, response.headers, response.body)
        if response.status == 403 and is_project_suspended(parse_status(403, response.body)):
            suspension.refused()
        elif is_held:
            suspension.answered(response.status)
        return response

    async def open(self, request: RestRequest) -> StreamingResponse:
        """Sends a request and leaves the body of the response to the caller."""
        await self._config.lane.admit()
        try:
            with self._deadline.start():
                answer = await self._send_authenticated(request)
        except OSError as cause:
            self._failed(request)
            raise error_of_connection(self.request_of(request), cause) from cause
        self._answered(request, answer.status, answer.headers)
        return answer

    async def fail(self, request: RestRequest, answer: StreamingResponse) -> ReconcileError:
        """The error for a response with an unread body."""
        try:
            with self._deadline.start():
                return self.error_of(request, await self.finish(request, answer))
        except OSError as cause:
            return error_of_connection(self.request_of(request), cause)

    async def _send_authenticated(self, request: RestRequest) -> StreamingResponse:
        try:
            answer = await self._attempt(request)
            if answer.status == 401 and await self._config.credentials.refresh():
                await answer.close()
                answer = await self._attempt(request)
        except ExecPluginError as cause:
            raise UnavailableError(PLUGIN_FAILED, str(cause)) from None
        return answer

    async def _attempt(self, request: RestRequest) -> StreamingResponse:
        identity = await self._config.credentials.headers()
        headers = {**self._headers, **identity}
        if request.kind.is_metadata_only and request.method != "DELETE":
            headers["Accept"] = METADATA_LIST if request.verb == "list" else METADATA
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        if request.is_mutating:
            self._count_write(request)
        transport = self._short if request.is_short else self._config.transport
        return await transport.request(request.method, request.target, headers, request.body)

    async def finish(self, request: RestRequest, answer: StreamingResponse) -> RestResponse:
        limit = LARGEST_ANSWER if answer.status < 400 else LARGEST_ERROR
        response = answer if isinstance(answer, RestResponse) else await _read_whole(answer, limit)
        if len(response.body) > limit and answer.status < 400:
            raise UnavailableError(
                ANSWER_TOO_LARGE,
                f"{request.doing}: an answer of over {limit} bytes",
                plane=self._config.plane,
            )
        return response

    def request_of(self, request: RestRequest) -> RequestInfo:
        return RequestInfo(
            request.doing,
            self._config.plane,
            is_mutating=request.is_mutating,
            is_json_patch=request.content_type == JSON_PATCH,
        )

    def error_of(self, request: RestRequest, response: RestResponse) -> ReconcileError:
        answer = parse_status(response.status, response.body)
        return error_of_answer(
            self.request_of(request), answer, parse_retry_after(response.headers)
        )

    def decode(
        self, request: RestRequest, response: RestResponse, *, expected: Sequence[int]
    ) -> JsonObject:
        if response.status not in expected:
            raise self.error_of(request, response)
        try:
            return decode_foreign(response.body)
        except UndecodableError as cause:
            raise error_of_garbage(self.request_of(request), cause) from cause

    def _answered(
        self, request: RestRequest, status: int, headers: Mapping[str, str], body: bytes = b""
    ) -> None:
        retry_after = parse_retry_after(headers) if status >= 400 else None
        if status == 429:
            # The storage of one kind starts: requests for other kinds of the plane go on.
            is_alone = is_storage_starting(parse_status(status, body))
            retry_after = None if is_alone else retry_after or DEFAULT_RETRY_AFTER
        self._config.lane.answered(status, retry_after)
        self._count_request(request, str(status))

    def _failed(self, request: RestRequest) -> None:
        self._config.lane.failed()
        self._count_request(request, "<error>")  # client-go's word for a request without an answer

    def _count_request(self, request: RestRequest, code: str) -> None:
        self._config.measures.count(
            names.REST_REQUESTS, code=code, method=request.method, host=self._role
        )

    def _count_write(self, request: RestRequest) -> None:
        self._config.measures.count(
            names.WRITES,
            plane=self._role,
            kind=request.kind.kind,
            verb=request.verb,
            controller=self._owner.controller,
        )
