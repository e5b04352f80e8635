"""A small Kubernetes REST client for the simulated systems, in-process or over HTTP.

Karmada, Milo, networking and the provider are written on it, so that each works with a simulated
and with a real API server. It shares no code with operator-kit, which it helps to test. It neither
retries nor caches; `reflector` and `informer` do.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias
from urllib.parse import quote, urlencode

import orjson

from compute_sim_planes.api_server.http.transport import Response, Transport, read_body
from compute_sim_planes.client.errors import UNDECODABLE, ApiError, WatchEndedError, error_of
from compute_sim_planes.json_types import JsonArray, JsonObject, JsonValue, object_at, string_at

PAGE: Final = 500
JSON: Final = "application/json"
_PATCH_TYPES: Final = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
Propagation: TypeAlias = Literal["", "Background", "Foreground", "Orphan"]


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind, as far as its URLs need it."""

    group: str
    version: str
    plural: str
    kind: str
    is_namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path of an object or a collection; every name is quoted as one segment."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [self.plural, name, subresource]
        if self.is_namespaced and namespace:
            parts = ["namespaces", namespace, *parts]
        return "/".join([root, *(quote(part, safe="") for part in parts if part)])


@dataclass(frozen=True, slots=True)
class ListOptions:
    """The objects of a kind to select; all by default."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""

    def query(self) -> dict[str, str]:
        selectors = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {name: text for name, text in selectors.items() if text}


EVERYTHING: Final = ListOptions()


@dataclass(frozen=True, slots=True)
class Listing:
    """The objects of one list, and the version to watch from."""

    items: list[JsonObject]
    version: str


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event; `type` is ADDED, MODIFIED, DELETED or BOOKMARK."""

    type: str
    object: JsonObject


class Client:
    """A client of one plane. An absent object is None; every other refusal raises."""

    def __init__(
        self,
        transport: Transport,
        *,
        manager: str,
        prefix: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """`manager` is the field manager and user agent; `prefix` is the path of a plane on its
        server.
        """
        self._transport = transport
        self._manager = manager
        self._prefix = prefix.rstrip("/")
        self._headers = {"User-Agent": manager, "Accept": JSON, **(headers or {})}

    async def get(
        self, resource: Resource, name: str, namespace: str = "", *, subresource: str = ""
    ) -> JsonObject | None:
        answer = await self._send("GET", resource.path(namespace, name, subresource))
        body = await read_body(answer)
        return None if answer.status == 404 else _object(answer.status, body)

    async def list(self, resource: Resource, selection: ListOptions = EVERYTHING) -> Listing:
        """All objects, page by page, as of the first page."""
        items: list[JsonObject] = []
        token = ""
        while True:
            query = {**selection.query(), "limit": str(PAGE)}
            if token:
                query["continue"] = token
            page = await self._ask("GET", resource.path(selection.namespace), query)
            items += [_with_type(item, resource) for item in _items(page)]
            token = string_at(page, "metadata", "continue")
            if not token:
                return Listing(items, string_at(page, "metadata", "resourceVersion"))

    async def watch(
        self, resource: Resource, version: str, selection: ListOptions = EVERYTHING
    ) -> AsyncGenerator[WatchEvent]:
        """Events after a version until the server ends the watch; must be closed when left early.

        An ERROR event raises the error it carries; a line that is no event raises WatchEndedError.
        """
        query = {
            **selection.query(),
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
        }
        answer = await self._send("GET", resource.path(selection.namespace), query)
        if answer.status != 200:
            raise error_of(answer.status, await read_body(answer))
        try:
            async for line in _lines(answer.chunks()):
                yield _event(line)
        finally:
            await answer.close()

    async def create(self, resource: Resource, desired: JsonObject) -> JsonObject:
        namespace = string_at(desired, "metadata", "namespace")
        return await self._write("POST", resource.path(namespace), desired)

    async def update(self, resource: Resource, desired: JsonObject) -> JsonObject:
        """Replaces the object; with a `resourceVersion` it fails after a concurrent write."""
        return await self._write("PUT", _path_of(resource, desired), desired)

    async def update_status(self, resource: Resource, desired: JsonObject) -> JsonObject:
        return await self._write("PUT", _path_of(resource, desired, "status"), desired)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: JsonObject | JsonArray,
        *,
        namespace: str = "",
        subresource: str = "",
    ) -> JsonObject:
        """A merge patch for an object, a JSON patch for a list of operations."""
        media = _PATCH_TYPES["merge" if isinstance(patch, dict) else "json"]
        path = resource.path(namespace, name, subresource)
        return await self._write("PATCH", path, patch, media=media)

    async def apply(
        self, resource: Resource, desired: JsonObject, *, force: bool = True, subresource: str = ""
    ) -> JsonObject:
        """Server-side apply of exactly the fields that the manager owns."""
        document = {**desired, "apiVersion": resource.api_version, "kind": resource.kind}
        path = _path_of(resource, desired, subresource)
        return await self._write("PATCH", path, document, media=_PATCH_TYPES["apply"], force=force)

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        version: str = "",
        propagation: Propagation = "",
    ) -> bool:
        """Whether the object existed. `uid` and `version` are preconditions if given."""
        options: JsonObject = {"apiVersion": "v1", "kind": "DeleteOptions"}
        preconditions: JsonObject = {
            field: text for field, text in (("uid", uid), ("resourceVersion", version)) if text
        }
        if preconditions:
            options["preconditions"] = preconditions
        if propagation:
            options["propagationPolicy"] = propagation
        answer = await self._send("DELETE", resource.path(namespace, name), body=options)
        body = await read_body(answer)
        if answer.status == 404:
            return False
        _object(answer.status, body)
        return True

    async def _write(
        self,
        method: str,
        path: str,
        document: JsonObject | JsonArray,
        *,
        media: str = JSON,
        force: bool | None = None,
    ) -> JsonObject:
        query = {"fieldManager": self._manager}
        if force is not None:
            query["force"] = "true" if force else "false"
        answer = await self._send(method, path, query, body=document, media=media)
        return _object(answer.status, await read_body(answer))

    async def _ask(self, method: str, path: str, query: Mapping[str, str]) -> JsonObject:
        answer = await self._send(method, path, query)
        return _object(answer.status, await read_body(answer))

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        body: JsonObject | JsonArray | None = None,
        media: str = JSON,
    ) -> Response:
        target = f"{self._prefix}{path}?{urlencode(query)}" if query else f"{self._prefix}{path}"
        raw = None if body is None else orjson.dumps(body)
        headers = self._headers if raw is None else {**self._headers, "Content-Type": media}
        return await self._transport.request(method, target, headers, raw)


def _path_of(resource: Resource, desired: JsonObject, subresource: str = "") -> str:
    namespace = string_at(desired, "metadata", "namespace")
    return resource.path(namespace, string_at(desired, "metadata", "name"), subresource)


def _object(status: int, body: bytes) -> JsonObject:
    if status >= 400:
        raise error_of(status, body)
    try:
        document: JsonValue = orjson.loads(body)
    except orjson.JSONDecodeError as failure:
        raise ApiError(status, UNDECODABLE, f"reading an answer: {failure}", {}) from failure
    return document if isinstance(document, dict) else {}


def _items(page: JsonObject) -> list[JsonObject]:
    existing = page.get("items")
    return (
        [item for item in existing if isinstance(item, dict)] if isinstance(existing, list) else []
    )


def _with_type(item: JsonObject, resource: Resource) -> JsonObject:
    """Real servers omit kind and version in list items of built-in kinds."""
    return {"apiVersion": resource.api_version, "kind": resource.kind, **item}


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.strip():
                yield line
    if rest.strip():
        raise WatchEndedError("the watch ended in the middle of a line")


def _event(line: bytes) -> WatchEvent:
    try:
        document: JsonValue = orjson.loads(line)
    except orjson.JSONDecodeError as failure:
        raise WatchEndedError(f"reading a line of a watch: {failure}") from failure
    received = object_at(document, "object")
    if string_at(document, "type") == "ERROR":
        code = received.get("code")
        raise error_of(code if isinstance(code, int) else 500, orjson.dumps(received))
    return WatchEvent(string_at(document, "type"), received)
