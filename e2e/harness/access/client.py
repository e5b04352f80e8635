"""A small client for one API server, for starting and inspecting planes.

It is independent of the operators' client, which is under test. Paths of kinds come from the
server's discovery. Any answer but success raises with the server's message.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType
from typing import Final, Self

import aiohttp

from compute_sim_planes.json_types import JsonObject, JsonValue, objects_at, string_at
from e2e.harness.access.kubeconfig import Token

FIELD_MANAGER: Final = "e2e-planes"
APPLY: Final = "application/apply-patch+yaml"
MERGE: Final = "application/merge-patch+json"
METADATA: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
REQUEST_TIMEOUT: Final = timedelta(seconds=30)


class ApiError(Exception):
    """An answer of the API server that is not a success."""

    def __init__(self, request: str, code: int, status: JsonObject) -> None:
        self.code = code
        self.reason = string_at(status, "reason")
        self.status = status
        super().__init__(f"{request}: {code} {self.reason}: {string_at(status, 'message')}")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address and CA of a plane, and a token; anonymous without one."""

    server: str
    authority: bytes
    token: Token | None = None

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token.token}"} if self.token else {}


class PlaneClient:
    """Sends requests to one API server as one user; a context manager, because it holds
    connections.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._paths: dict[tuple[str, str], str] = {}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        trusted = ssl.create_default_context(cadata=self._endpoint.authority.decode())
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=trusted),
            headers=self._endpoint.headers(),
            timeout=aiohttp.ClientTimeout(total=REQUEST_TIMEOUT.total_seconds()),
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session:
            await self._session.close()
            # Aborted connections are released in the loop's next iteration, which may be its last.
            await asyncio.sleep(0)

    async def get(self, path: str) -> JsonObject:
        return await self._request("GET", path)

    async def get_metadata(self, path: str) -> JsonObject:
        """A collection with metadata only."""
        return await self._request("GET", path, headers={"Accept": METADATA})

    async def find(self, path: str) -> JsonObject | None:
        """Like `get`, but returns None for an absent object."""
        try:
            return await self.get(path)
        except ApiError as refused:
            if refused.code == 404:
                return None
            raise

    async def create(self, wanted: JsonObject) -> JsonObject:
        return await self._request("POST", await self._collection_of(wanted), wanted)

    async def post(self, path: str, wanted: JsonObject) -> JsonObject:
        """For requests that are not objects, such as one for a token."""
        return await self._request("POST", path, wanted)

    async def is_refused(self, path: str) -> bool:
        """Whether the server answers 401."""
        try:
            await self.get(path)
        except ApiError as refused:
            return refused.code == 401
        return False

    async def apply(self, wanted: JsonObject) -> JsonObject:
        """Server-side apply: some CRDs exceed the annotation of client-side apply."""
        path = f"{await self.path_of(wanted)}?fieldManager={FIELD_MANAGER}&force=true"
        return await self._request("PATCH", path, wanted, headers={"Content-Type": APPLY})

    async def patch(self, path: str, change: JsonObject) -> JsonObject:
        return await self._request("PATCH", path, change, headers={"Content-Type": MERGE})

    async def delete(self, path: str) -> None:
        await self._request("DELETE", path)

    @asynccontextmanager
    async def watch(self, path: str, version: str) -> AsyncGenerator[aiohttp.StreamReader]:
        """The events after a version, one JSON object per line, while the block runs."""
        url = f"{self._endpoint.server}{path}?watch=true&resourceVersion={version}"
        forever = aiohttp.ClientTimeout(total=None)
        async with self._opened().get(url, timeout=forever) as answer:
            try:
                if answer.status >= 400:
                    raise ApiError(f"GET {path}", answer.status, _as_object(await answer.read()))
                yield answer.content
            finally:
                _abort(answer)

    async def path_of(self, wanted: JsonObject) -> str:
        return f"{await self._collection_of(wanted)}/{string_at(wanted, 'metadata', 'name')}"

    async def _collection_of(self, wanted: JsonObject) -> str:
        version, kind = string_at(wanted, "apiVersion"), string_at(wanted, "kind")
        namespace = string_at(wanted, "metadata", "namespace")
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if (version, kind) not in self._paths:
            self._paths[version, kind] = _plural(await self.get(root), kind)
        within = f"/namespaces/{namespace}" if namespace else ""
        return f"{root}{within}/{self._paths[version, kind]}"

    async def _request(
        self,
        method: str,
        path: str,
        body: JsonObject | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> JsonObject:
        payload = json.dumps(body) if body is not None else None
        usual = {"Content-Type": "application/json"} if payload else {}
        url = f"{self._endpoint.server}{path}"
        sent = {**usual, **(headers or {})}
        async with self._opened().request(method, url, data=payload, headers=sent) as answer:
            try:
                document = _as_object(await answer.read())
            except BaseException:
                _abort(answer)
                raise
            if answer.status >= 400:
                raise ApiError(f"{method} {path}", answer.status, document)
            return document

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("PlaneClient is a context manager: use `async with`")
        return self._session


def _abort(answer: aiohttp.ClientResponse) -> None:
    """Ends a connection in the middle of an answer.

    A TLS shutdown would wait for the server, and the event loop may end before that.
    """
    if answer.connection and answer.connection.transport:
        answer.connection.transport.abort()


def _as_object(raw: bytes) -> JsonObject:
    """The body; anything but a JSON object (a proxy's page, plain text) becomes a message."""
    try:
        decoded: JsonValue = json.loads(raw)
    except ValueError:
        decoded = None
    return decoded if isinstance(decoded, dict) else {"message": raw.decode(errors="replace")}


def _plural(served: JsonObject, kind: str) -> str:
    for resource in objects_at(served, "resources"):
        name = string_at(resource, "name")
        if string_at(resource, "kind") == kind and "/" not in name:
            return name
    raise ApiError(f"looking for {kind}", 404, {"message": "kind not served", "reason": "NotFound"})


def has_condition(document: JsonObject | None, kind: str, status: str = "True") -> bool:
    """Whether the object has the condition with this status."""
    conditions = objects_at(document, "status", "conditions")
    return any(
        string_at(condition, "type") == kind and string_at(condition, "status") == status
        for condition in conditions
    )
