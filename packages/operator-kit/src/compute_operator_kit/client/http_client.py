"""The Kubernetes client over HTTP: it builds requests of `KubeClient` and decodes responses.

Requests are sent by `rest.py` over a `Transport`: aiohttp and a connection pool in production, an
in-process server in a simulation, so that the client under test is the one that ships. It retries
nothing.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Final

import msgspec

from compute_operator_kit.client.interface import (
    EVERYTHING,
    PAGE_SIZE,
    AlreadyExists,
    Deleted,
    Expired,
    FieldOwner,
    KubeClient,
    NotServed,
    Page,
    Preconditions,
    Selector,
    WatchEvent,
)
from compute_operator_kit.client.rest import (
    JSON_PATCH,
    RestClient,
    RestConfig,
    RestRequest,
    RestResponse,
    closing_chunks,
)
from compute_operator_kit.client.status_errors import (
    error_of_connection,
    error_of_garbage,
    parse_status,
)
from compute_operator_kit.client.urls import collection_path, object_path, with_query
from compute_operator_kit.client.watch_decoder import LineSplitter, parse_event
from compute_operator_kit.core.errors import InvariantError
from compute_operator_kit.core.json import (
    JsonMapping,
    JsonObject,
    UndecodableError,
    encode,
    encode_canonical,
)
from compute_operator_kit.core.json_patch import PatchStep
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName
from compute_operator_kit.core.object_decoder import (
    awaiting_response,
    decode_object,
    decode_written,
    split_page,
)
from compute_operator_kit.core.objects import Absent, ReceivedObject, Snapshot

_MERGE_PATCH: Final = "application/merge-patch+json"
NO_QUERY: Final[Mapping[str, str]] = MappingProxyType({})


class HttpKubeClient:
    """The client of one plane, as one field owner."""

    def __init__(
        self,
        config: RestConfig,
        owner: FieldOwner,
        clients: dict[FieldOwner, HttpKubeClient] | None = None,
    ) -> None:
        self._config = config
        self._owner = owner
        self._rest = RestClient(config, owner)
        # Clients by field owner, shared by all of them: looked up before every request.
        self._clients: dict[FieldOwner, HttpKubeClient] = {} if clients is None else clients

    @property
    def plane(self) -> PlaneName:
        return self._config.plane

    def as_owner(self, owner: FieldOwner) -> KubeClient:
        client = self._clients.get(owner)
        if client is None:
            client = self._clients[owner] = HttpKubeClient(self._config, owner, self._clients)
        return client

    # reading ---------------------------------------------------------------------------------

    async def get(self, key: ObjectKey) -> Snapshot | Absent:
        request = self._on_object("GET", "get", key, doing="reading")
        response = await self._rest.send(request)
        if _is_absent(response, key):
            return Absent()
        return self._snapshot(request, response, key, expected=(200,))

    async def list(
        self,
        kind: Kind,
        *,
        namespace: str = "",
        selector: Selector = EVERYTHING,
        limit: int = PAGE_SIZE,
        continue_token: str = "",
    ) -> Page | Expired | NotServed:
        query = {
            "limit": str(limit),
            "continue": continue_token,
            "labelSelector": selector.labels,
            "fieldSelector": selector.fields,
        }
        request = self._on_collection("GET", "list", kind, namespace, query=query, doing="listing")
        response = await self._rest.send(request)
        if response.status == 410:
            return Expired()
        if response.status == 404:
            return NotServed()
        return self._page(request, response)

    async def watch(
        self,
        kind: Kind,
        *,
        resource_version: str,
        lasting: timedelta,
        selector: Selector = EVERYTHING,
    ) -> AsyncGenerator[Sequence[WatchEvent]]:
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(int(lasting.total_seconds())),
            "labelSelector": selector.labels,
            "fieldSelector": selector.fields,
        }
        request = self._on_collection("GET", "watch", kind, query=query, doing="watching")
        stream = await self._rest.open(request)
        try:
            if stream.status == 410:
                yield (Expired(),)
                return
            if stream.status != 200:
                raise await self._rest.fail(request, stream)
            splitter = LineSplitter()
            async with closing_chunks(stream) as chunks:
                async for chunk in chunks:
                    batch = [parse_event(self.plane, kind, line) for line in splitter.feed(chunk)]
                    if batch:
                        yield batch
        except OSError as cause:
            raise error_of_connection(self._rest.request_of(request), cause) from cause
        finally:
            await stream.close()

    async def probe(self, kind: Kind) -> None:
        request = self._on_collection("GET", "list", kind, query={"limit": "1"}, doing="probing")
        response = await self._rest.send(msgspec.structs.replace(request, is_probe=True))
        if response.status >= 500:
            raise self._rest.error_of(request, response)

    # writing ---------------------------------------------------------------------------------

    async def create(self, key: ObjectKey, body: JsonMapping) -> Snapshot | AlreadyExists:
        self._check_plane(key)
        path = self._config.base_path + collection_path(key.kind, key.namespace)
        request = RestRequest(
            "POST",
            with_query(path, self._field_manager()),
            f"creating {_describe(key)}",
            "create",
            key.kind,
            encode_canonical(body),  # the order of API servers, so that responses compare as bytes
        )
        response = await self._write(request, key)
        if response.status == 409 and parse_status(409, response.body).reason == "AlreadyExists":
            return AlreadyExists()
        return self._snapshot(request, response, key, expected=(200, 201, 202))

    async def delete(self, key: ObjectKey, *, preconditions: Preconditions) -> Deleted | Absent:
        conditions: dict[str, str] = {"uid": preconditions.uid}
        if preconditions.resource_version:
            conditions["resourceVersion"] = preconditions.resource_version
        options: JsonMapping = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": conditions,
            "propagationPolicy": "Background",
        }
        request = self._on_object("DELETE", "delete", key, doing="deleting")
        request = request.carrying(encode(options))
        response = await self._rest.send(request)
        if _is_absent(response, key):
            return Absent()
        if response.status not in {200, 202}:
            raise self._rest.error_of(request, response)
        return Deleted()

    async def patch_merge(
        self, key: ObjectKey, body: JsonMapping, *, subresource: str = ""
    ) -> Snapshot | Absent:
        return await self._patch(key, subresource, _MERGE_PATCH, encode(body))

    async def patch_json(
        self,
        key: ObjectKey,
        steps: Sequence[PatchStep],
        *,
        subresource: str = "",
        is_terminating: bool = False,
    ) -> Snapshot | Absent:
        body = encode([step.as_json() for step in steps])
        return await self._patch(key, subresource, JSON_PATCH, body, is_terminating=is_terminating)

    async def update(self, key: ObjectKey, body: JsonMapping) -> Snapshot | Absent:
        return await self._put(key, body, doing="updating")

    async def update_status(
        self, key: ObjectKey, body: JsonMapping, *, is_terminating: bool = False
    ) -> Snapshot | Absent:
        doing = "writing status of"
        return await self._put(
            key, body, doing=doing, subresource="status", is_terminating=is_terminating
        )

    async def _put(
        self,
        key: ObjectKey,
        body: JsonMapping,
        *,
        doing: str,
        subresource: str = "",
        is_terminating: bool = False,
    ) -> Snapshot | Absent:
        request = self._on_object(
            "PUT",
            "update",
            key,
            doing=doing,
            subresource=subresource,
            query=self._field_manager(),
        ).carrying(encode(body))
        if is_terminating:
            request = msgspec.structs.replace(request, is_terminating=True)
        response = await self._write(request, key)
        if _is_absent(response, key):
            return Absent()
        return self._snapshot(request, response, key, expected=(200,))

    async def review(self, kind: Kind, body: JsonMapping) -> JsonObject:
        request = self._on_collection("POST", "create", kind, doing="asking for")
        request = msgspec.structs.replace(request, body=encode(body), is_question=True)
        return self._rest.decode(request, await self._rest.send(request), expected=(200, 201))

    async def _patch(
        self,
        key: ObjectKey,
        subresource: str,
        content_type: str,
        body: bytes,
        *,
        is_terminating: bool = False,
    ) -> Snapshot | Absent:
        request = self._on_object(
            "PATCH",
            "patch",
            key,
            doing="patching",
            subresource=subresource,
            query=self._field_manager(),
        ).carrying(body, content_type)
        if is_terminating:
            request = msgspec.structs.replace(request, is_terminating=True)
        response = await self._write(request, key)
        if _is_absent(response, key):
            return Absent()
        return self._snapshot(request, response, key, expected=(200,))

    async def _write(self, request: RestRequest, key: ObjectKey) -> RestResponse:
        with awaiting_response(key):
            return await self._rest.send(request)

    # requests --------------------------------------------------------------------------------

    def _on_object(
        self,
        method: str,
        verb: str,
        key: ObjectKey,
        *,
        doing: str,
        subresource: str = "",
        query: Mapping[str, str] = NO_QUERY,
    ) -> RestRequest:
        self._check_plane(key)
        path = self._config.base_path + object_path(key, subresource)
        doing = f"{doing} {_describe(key)}"
        return RestRequest(method, with_query(path, query), doing, verb, key.kind)

    def _on_collection(
        self,
        method: str,
        verb: str,
        kind: Kind,
        namespace: str = "",
        *,
        doing: str,
        query: Mapping[str, str] | None = None,
    ) -> RestRequest:
        path = self._config.base_path + collection_path(kind, namespace)
        target = with_query(path, query or {})
        return RestRequest(method, target, f"{doing} {kind.plural} on {self.plane!r}", verb, kind)

    def _field_manager(self) -> dict[str, str]:
        return {"fieldManager": self._owner.field_manager}

    def _check_plane(self, key: ObjectKey) -> None:
        # A key of another plane would write to the object of the same name on this one.
        if key.plane != self.plane:
            raise InvariantError(f"asking {self.plane!r} about {key}: it is of another plane")

    # responses -------------------------------------------------------------------------------

    def _snapshot(
        self,
        request: RestRequest,
        response: RestResponse,
        key: ObjectKey,
        *,
        expected: Sequence[int],
    ) -> Snapshot:
        """The requested object; a response with another object is an error of the plane."""
        if response.status not in expected:
            raise self._rest.error_of(request, response)
        try:
            decode = decode_written if request.is_mutating else decode_object
            snapshot = decode(self.plane, request.kind, response.body).snapshot
            if (snapshot.key.namespace, snapshot.key.name) != (key.namespace, key.name):
                raise UndecodableError("the answer is another object")
        except UndecodableError as cause:
            raise error_of_garbage(self._rest.request_of(request), cause) from cause
        return snapshot

    def _page(self, request: RestRequest, response: RestResponse) -> Page:
        if response.status != 200:
            raise self._rest.error_of(request, response)
        try:
            pieces = split_page(response.body)
        except UndecodableError as cause:
            raise error_of_garbage(self._rest.request_of(request), cause) from cause
        items = [self._item(request.kind, piece) for piece in pieces.items]
        readable = tuple(item for item in items if item is not None)
        return Page(
            items=readable,
            resource_version=pieces.resource_version,
            continue_token=pieces.continue_token,
            unreadable=len(items) - len(readable),
            length=len(response.body),
        )

    def _item(self, kind: Kind, piece: bytes) -> ReceivedObject | None:
        try:
            return decode_object(self.plane, kind, piece)
        except UndecodableError:
            return None


def _describe(key: ObjectKey) -> str:
    path = f"{key.namespace}/{key.name}" if key.namespace else key.name
    return f"{key.kind.kind} {path!r} on {key.plane!r}"


def _is_absent(response: RestResponse, key: ObjectKey) -> bool:
    """Whether a 404 names the object; one without a name means that the kind is not served."""
    return response.status == 404 and parse_status(404, response.body).name == key.name
