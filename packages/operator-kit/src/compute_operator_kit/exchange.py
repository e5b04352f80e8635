"""One request and its answer: admitted by the plane's lane, sent in time, judged once.

Below is the seam `Transport`, above it `kube_http.py`, which knows what an API server is asked.
Here is what every request has in common: limits, credentials, deadline, bounded bodies, counting,
and the translation of failures. It retries nothing but a request answered 401, once, with
credentials read again: such a request was not carried out. Bodies are never logged.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Protocol

import msgspec

from compute_operator_kit import measures as names
from compute_operator_kit.answers import (
    DEFAULT_RETRY_AFTER,
    Request,
    error_of_answer,
    error_of_connection,
    error_of_garbage,
    is_storage_starting,
    parse_retry_after,
    parse_status,
)
from compute_operator_kit.deadlines import Deadline
from compute_operator_kit.errors import ReconcileError, UnavailableError
from compute_operator_kit.keys import Kind, PlaneName, Role
from compute_operator_kit.kube import Writer
from compute_operator_kit.lane import Lane
from compute_operator_kit.measures import Measures, NoMeasures
from compute_operator_kit.wire import JsonObject, UndecodableError, decode_foreign

# What an API server stores of one object is 1.5 MB, and of a page less is asked for where it is
# larger (`reflector.py`). One page is in memory several times while it is read.
LARGEST_ANSWER: Final = 4 * 1024 * 1024
LARGEST_ERROR: Final = 64 * 1024  # more than any Status has to say
ANSWER_TOO_LARGE: Final = "AnswerTooLarge"

JSON: Final = "application/json"
JSON_PATCH: Final = "application/json-patch+json"
_MUTATING: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_LONG: Final = frozenset({"list", "watch"})
LARGEST_IN_ONE: Final = 512 * 1024  # what is larger is sent piece by piece


class Answer(Protocol):
    """What a server replies; the body may be endless, and whoever asked closes it."""

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
    ) -> Answer: ...


class Credentials(Protocol):
    """Who we are to one server, read again when the server does not believe it."""

    async def headers(self) -> Mapping[str, str]: ...

    async def refresh(self) -> bool:
        """Reads again; whether there is anything new to try with."""
        ...


class NoCredentials:
    """For servers that ask for none, or that know us by the connection."""

    async def headers(self) -> Mapping[str, str]:
        return {}

    async def refresh(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Connection:
    """All it takes to talk to one plane."""

    plane: PlaneName
    role: Role
    transport: Transport
    lane: Lane
    credentials: Credentials = field(default_factory=NoCredentials)
    base_path: str = ""  # a plane may live under a path of a server it shares with others
    user_agent: str = "compute-operator-kit"
    request_timeout: timedelta = timedelta(seconds=10)
    measures: Measures = field(default_factory=NoMeasures)
    short: Transport | None = None  # a quicker way for single objects, where there is one


class Call(msgspec.Struct, frozen=True, gc=False):
    """One request, before it is sent."""

    method: str
    target: str
    doing: str
    verb: str  # as RBAC and `compute_writes_total` spell it
    kind: Kind
    body: bytes | None = None
    content_type: str = JSON
    is_probe: bool = False
    is_question: bool = False  # a POST that changes nothing: a review

    @property
    def is_mutating(self) -> bool:
        return self.method in _MUTATING and not self.is_question

    @property
    def is_short(self) -> bool:
        """One object there and one back; neither is a page, a stream or a large body."""
        if self.verb in _LONG:
            return False
        return self.body is None or len(self.body) <= LARGEST_IN_ONE

    def carrying(self, body: bytes, content_type: str = JSON) -> Call:
        """The same with a body."""
        return Call(self.method, self.target, self.doing, self.verb, self.kind, body, content_type)


class Reply(msgspec.Struct, frozen=True, gc=False):
    """An answer that has arrived to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self.body

    async def close(self) -> None:
        """Nothing is open."""


@contextlib.asynccontextmanager
async def closing_chunks(answer: Answer) -> AsyncGenerator[AsyncIterator[bytes]]:
    """The chunks of an answer, ended when we leave: a generator left to the collector
    ends some other time.
    """
    chunks = answer.chunks()
    try:
        yield chunks
    finally:
        await _end(chunks)


async def _read_whole(answer: Answer, limit: int) -> Reply:
    """Reads to the end, or until it is clear that this is too much."""
    pieces: list[bytes] = []
    length = 0
    chunks = answer.chunks()
    try:
        async for chunk in chunks:
            pieces.append(chunk)
            length += len(chunk)
            if length > limit:
                await _end(chunks)
                break
    finally:
        await answer.close()
    return Reply(answer.status, answer.headers, b"".join(pieces))


async def _end(chunks: AsyncIterator[bytes]) -> None:
    if isinstance(chunks, AsyncGenerator):
        await chunks.aclose()


class Exchange:
    """Requests to one plane, in one writer's name."""

    def __init__(self, connection: Connection, writer: Writer) -> None:
        self._at = connection
        self._writer = writer
        self._short = connection.short or connection.transport
        self._deadline = Deadline(connection.request_timeout.total_seconds())
        self._role = connection.role.value
        self._headers = {
            "Accept": JSON,
            "User-Agent": f"{connection.user_agent} ({writer.controller})",
        }

    async def send(self, call: Call) -> Reply:
        """Sends and reads to the end, within the request's time."""
        await self._at.lane.admit(is_probe=call.is_probe)
        try:
            with self._deadline.start():
                answer = await self._exchange(call)
                reply = await self.finish(call, answer)
        except OSError as cause:
            self._failed(call)
            raise error_of_connection(self.request_of(call), cause) from cause
        self._answered(call, reply.status, reply.headers, reply.body)
        return reply

    async def open(self, call: Call) -> Answer:
        """Sends, and leaves the body to the caller."""
        await self._at.lane.admit()
        try:
            with self._deadline.start():
                answer = await self._exchange(call)
        except OSError as cause:
            self._failed(call)
            raise error_of_connection(self.request_of(call), cause) from cause
        self._answered(call, answer.status, answer.headers)
        return answer

    async def fail(self, call: Call, answer: Answer) -> ReconcileError:
        """The error for an answer whose body nobody has read yet."""
        try:
            with self._deadline.start():
                return self.error_of(call, await self.finish(call, answer))
        except OSError as cause:
            return error_of_connection(self.request_of(call), cause)

    async def _exchange(self, call: Call) -> Answer:
        answer = await self._attempt(call)
        if answer.status == 401 and await self._at.credentials.refresh():
            await answer.close()
            answer = await self._attempt(call)
        return answer

    async def _attempt(self, call: Call) -> Answer:
        identity = await self._at.credentials.headers()
        headers = {**self._headers, **identity}
        if call.body is not None:
            headers["Content-Type"] = call.content_type
        if call.is_mutating:
            self._count_write(call)
        way = self._short if call.is_short else self._at.transport
        return await way.request(call.method, call.target, headers, call.body)

    async def finish(self, call: Call, answer: Answer) -> Reply:
        limit = LARGEST_ANSWER if answer.status < 400 else LARGEST_ERROR
        reply = answer if isinstance(answer, Reply) else await _read_whole(answer, limit)
        if len(reply.body) > limit and answer.status < 400:
            raise UnavailableError(
                ANSWER_TOO_LARGE,
                f"{call.doing}: an answer of over {limit} bytes",
                plane=self._at.plane,
            )
        return reply

    def request_of(self, call: Call) -> Request:
        return Request(
            call.doing,
            self._at.plane,
            is_mutating=call.is_mutating,
            is_json_patch=call.content_type == JSON_PATCH,
        )

    def error_of(self, call: Call, reply: Reply) -> ReconcileError:
        answer = parse_status(reply.status, reply.body)
        return error_of_answer(self.request_of(call), answer, parse_retry_after(reply.headers))

    def decode(self, call: Call, reply: Reply, *, expected: Sequence[int]) -> JsonObject:
        if reply.status not in expected:
            raise self.error_of(call, reply)
        try:
            return decode_foreign(reply.body)
        except UndecodableError as cause:
            raise error_of_garbage(self.request_of(call), cause) from cause

    def _answered(
        self, call: Call, status: int, headers: Mapping[str, str], body: bytes = b""
    ) -> None:
        retry_after = parse_retry_after(headers) if status >= 400 else None
        if status == 429:
            # Who asked waits in any case; the plane's other kinds do not wait for this one.
            is_alone = is_storage_starting(parse_status(status, body))
            retry_after = None if is_alone else retry_after or DEFAULT_RETRY_AFTER
        self._at.lane.answered(status, retry_after)
        self._count_request(call, str(status))

    def _failed(self, call: Call) -> None:
        self._at.lane.failed()
        self._count_request(call, "<error>")  # client-go's word for a request without an answer

    def _count_request(self, call: Call, code: str) -> None:
        self._at.measures.count(names.REST_REQUESTS, code=code, method=call.method, host=self._role)

    def _count_write(self, call: Call) -> None:
        self._at.measures.count(
            names.WRITES,
            plane=self._role,
            kind=call.kind.kind,
            verb=call.verb,
            controller=self._writer.controller,
        )
