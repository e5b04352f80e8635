"""The port `Kube` over HTTP: the one real form of it, in production and in simulation alike.

Says what an API server is asked and reads what it answers. How a request travels is
`exchange.py`'s; below that sits a seam of one method, `Transport.request`, filled by aiohttp in
production (`http_transport.py`) and by an in-process server in simulation, so what is tested is
what ships. Decides nothing and retries nothing.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Final

import msgspec

from compute_operator_kit.answers import error_of_connection, error_of_garbage, parse_status
from compute_operator_kit.errors import InvariantError
from compute_operator_kit.exchange import (
    JSON_PATCH,
    Call,
    Connection,
    Exchange,
    Reply,
    closing_chunks,
)
from compute_operator_kit.json_patch import PatchStep
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName
from compute_operator_kit.kube import (
    EVERYTHING,
    PAGE_SIZE,
    AlreadyExists,
    Deleted,
    Expired,
    Kube,
    NotServed,
    Page,
    Preconditions,
    Propagation,
    Selector,
    WatchEvent,
    Writer,
)
from compute_operator_kit.objects import Absent, Delivered, Snapshot
from compute_operator_kit.paths import collection_path, group_path, object_path, with_query
from compute_operator_kit.served import parse_echo, parse_served, split_page
from compute_operator_kit.watch_lines import LineSplitter, parse_event
from compute_operator_kit.wire import (
    JsonMapping,
    JsonObject,
    UndecodableError,
    encode,
    encode_canonical,
    member_list,
    member_text,
)

_MERGE_PATCH: Final = "application/merge-patch+json"
NO_QUERY: Final[Mapping[str, str]] = MappingProxyType({})
_APPLY_PATCH: Final = "application/apply-patch+yaml"  # JSON is YAML


class KubeHttp:
    """One plane, as one writer."""

    def __init__(
        self,
        connection: Connection,
        writer: Writer,
        acting: dict[Writer, KubeHttp] | None = None,
    ) -> None:
        self._at = connection
        self._writer = writer
        self._exchange = Exchange(connection, writer)
        # Everybody who acts here: asked for before every request.
        self._acting: dict[Writer, KubeHttp] = {} if acting is None else acting

    @property
    def plane(self) -> PlaneName:
        return self._at.plane

    def acting_as(self, writer: Writer) -> Kube:
        found = self._acting.get(writer)
        if found is None:
            found = self._acting[writer] = KubeHttp(self._at, writer, self._acting)
        return found

    # reading ---------------------------------------------------------------------------------

    async def get(self, key: ObjectKey) -> Snapshot | Absent:
        call = self._on_object("GET", "get", key, doing="reading")
        reply = await self._exchange.send(call)
        if _is_absent(reply, key):
            return Absent()
        return self._snapshot(call, reply, key, expected=(200,))

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
        call = self._on_collection("GET", "list", kind, namespace, query=query, doing="listing")
        reply = await self._exchange.send(call)
        if reply.status == 410:
            return Expired()
        if reply.status == 404:
            return NotServed()
        return self._page(call, reply)

    async def watch(
        self,
        kind: Kind,
        *,
        resource_version: str,
        lasting: timedelta,
        namespace: str = "",
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
        call = self._on_collection("GET", "watch", kind, namespace, query=query, doing="watching")
        answer = await self._exchange.open(call)
        try:
            if answer.status == 410:
                yield (Expired(),)
                return
            if answer.status != 200:
                raise await self._exchange.fail(call, answer)
            splitter = LineSplitter()
            async with closing_chunks(answer) as chunks:
                async for chunk in chunks:
                    batch = [parse_event(self.plane, kind, line) for line in splitter.feed(chunk)]
                    if batch:
                        yield batch
        except OSError as cause:
            raise error_of_connection(self._exchange.request_of(call), cause) from cause
        finally:
            await answer.close()

    async def serves(self, kind: Kind) -> bool:
        call = Call(
            method="GET",
            target=self._at.base_path + group_path(kind),
            doing=f"asking {self.plane!r} whether it serves {kind.kind}",
            verb="get",
            kind=kind,
        )
        reply = await self._exchange.send(call)
        if reply.status == 404:
            return False
        served = member_list(self._exchange.decode(call, reply, expected=(200,)), "resources")
        return any(
            isinstance(item, dict) and member_text(item, "name") == kind.plural for item in served
        )

    async def probe(self, kind: Kind) -> None:
        call = self._on_collection("GET", "list", kind, query={"limit": "1"}, doing="probing")
        reply = await self._exchange.send(msgspec.structs.replace(call, is_probe=True))
        if reply.status >= 500:
            raise self._exchange.error_of(call, reply)

    # writing ---------------------------------------------------------------------------------

    async def create(self, key: ObjectKey, body: JsonMapping) -> Snapshot | AlreadyExists:
        self._check_plane(key)
        path = self._at.base_path + collection_path(key.kind, key.namespace)
        call = Call(
            "POST",
            with_query(path, self._manager()),
            f"creating {_describe(key)}",
            "create",
            key.kind,
            encode_canonical(body),  # so that what comes back can be told by its bytes
        )
        reply = await self._exchange.send(call)
        if reply.status == 409 and parse_status(409, reply.body).reason == "AlreadyExists":
            return AlreadyExists()
        return self._snapshot(call, reply, key, expected=(200, 201, 202))

    async def delete(
        self,
        key: ObjectKey,
        *,
        preconditions: Preconditions,
        propagation: Propagation = "Background",
    ) -> Deleted | Absent:
        wanted: dict[str, str] = {"uid": preconditions.uid}
        if preconditions.resource_version:
            wanted["resourceVersion"] = preconditions.resource_version
        options: JsonMapping = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": wanted,
            "propagationPolicy": propagation,
        }
        call = self._on_object("DELETE", "delete", key, doing="deleting")
        call = call.carrying(encode(options))
        reply = await self._exchange.send(call)
        if _is_absent(reply, key):
            return Absent()
        if reply.status not in {200, 202}:
            raise self._exchange.error_of(call, reply)
        return Deleted()

    async def apply(self, key: ObjectKey, body: JsonMapping, *, force: bool = False) -> Snapshot:
        query = self._manager() | {"force": "true" if force else ""}
        call = self._on_object("PATCH", "patch", key, doing="applying", query=query)
        call = call.carrying(encode(body), _APPLY_PATCH)
        return self._snapshot(call, await self._exchange.send(call), key, expected=(200, 201))

    async def patch_merge(
        self, key: ObjectKey, body: JsonMapping, *, subresource: str = ""
    ) -> Snapshot | Absent:
        return await self._patch(key, subresource, _MERGE_PATCH, encode(body))

    async def patch_json(
        self, key: ObjectKey, steps: Sequence[PatchStep], *, subresource: str = ""
    ) -> Snapshot | Absent:
        body = encode([step.as_json() for step in steps])
        return await self._patch(key, subresource, JSON_PATCH, body)

    async def update(self, key: ObjectKey, body: JsonMapping) -> Snapshot | Absent:
        return await self._put(key, body, doing="updating")

    async def update_status(self, key: ObjectKey, body: JsonMapping) -> Snapshot | Absent:
        return await self._put(key, body, doing="writing status of", subresource="status")

    async def _put(
        self, key: ObjectKey, body: JsonMapping, *, doing: str, subresource: str = ""
    ) -> Snapshot | Absent:
        call = self._on_object(
            "PUT",
            "update",
            key,
            doing=doing,
            subresource=subresource,
            query=self._manager(),
        ).carrying(encode(body))
        reply = await self._exchange.send(call)
        if _is_absent(reply, key):
            return Absent()
        return self._snapshot(call, reply, key, expected=(200,))

    async def review(self, kind: Kind, body: JsonMapping) -> JsonObject:
        call = self._on_collection("POST", "create", kind, doing="asking for")
        call = msgspec.structs.replace(call, body=encode(body), is_question=True)
        return self._exchange.decode(call, await self._exchange.send(call), expected=(200, 201))

    async def _patch(
        self, key: ObjectKey, subresource: str, content_type: str, body: bytes
    ) -> Snapshot | Absent:
        call = self._on_object(
            "PATCH",
            "patch",
            key,
            doing="patching",
            subresource=subresource,
            query=self._manager(),
        ).carrying(body, content_type)
        reply = await self._exchange.send(call)
        if _is_absent(reply, key):
            return Absent()
        return self._snapshot(call, reply, key, expected=(200,))

    # building --------------------------------------------------------------------------------

    def _on_object(
        self,
        method: str,
        verb: str,
        key: ObjectKey,
        *,
        doing: str,
        subresource: str = "",
        query: Mapping[str, str] = NO_QUERY,
    ) -> Call:
        self._check_plane(key)
        path = self._at.base_path + object_path(key, subresource)
        doing = f"{doing} {_describe(key)}"
        return Call(method, with_query(path, query), doing, verb, key.kind)

    def _on_collection(
        self,
        method: str,
        verb: str,
        kind: Kind,
        namespace: str = "",
        *,
        doing: str,
        query: Mapping[str, str] | None = None,
    ) -> Call:
        path = self._at.base_path + collection_path(kind, namespace)
        target = with_query(path, query or {})
        return Call(method, target, f"{doing} {kind.plural} on {self.plane!r}", verb, kind)

    def _manager(self) -> dict[str, str]:
        return {"fieldManager": self._writer.field_manager}

    def _check_plane(self, key: ObjectKey) -> None:
        # A key of another plane would act on the object of the same name here.
        if key.plane != self.plane:
            raise InvariantError(f"asking {self.plane!r} about {key}: it is of another plane")

    # reading answers ---------------------------------------------------------------------------

    def _snapshot(
        self, call: Call, reply: Reply, key: ObjectKey, *, expected: Sequence[int]
    ) -> Snapshot:
        """The object that was asked for; an answer about any other is garbage of that plane."""
        if reply.status not in expected:
            raise self._exchange.error_of(call, reply)
        try:
            parse = parse_echo if call.is_mutating else parse_served
            found = parse(self.plane, call.kind, reply.body).snapshot
            if (found.key.namespace, found.key.name) != (key.namespace, key.name):
                raise UndecodableError("the answer is another object")
        except UndecodableError as cause:
            raise error_of_garbage(self._exchange.request_of(call), cause) from cause
        return found

    def _page(self, call: Call, reply: Reply) -> Page:
        if reply.status != 200:
            raise self._exchange.error_of(call, reply)
        try:
            pieces = split_page(reply.body)
        except UndecodableError as cause:
            raise error_of_garbage(self._exchange.request_of(call), cause) from cause
        items = [self._item(call.kind, piece) for piece in pieces.items]
        readable = tuple(item for item in items if item is not None)
        return Page(
            items=readable,
            resource_version=pieces.resource_version,
            continue_token=pieces.continue_token,
            unreadable=len(items) - len(readable),
            length=len(reply.body),
        )

    def _item(self, kind: Kind, piece: bytes) -> Delivered | None:
        try:
            return parse_served(self.plane, kind, piece)
        except UndecodableError:
            return None


def _describe(key: ObjectKey) -> str:
    path = f"{key.namespace}/{key.name}" if key.namespace else key.name
    return f"{key.kind.kind} {path!r} on {key.plane!r}"


def _is_absent(reply: Reply, key: ObjectKey) -> bool:
    """404 for this object; a 404 that names none means that the kind is not served."""
    return reply.status == 404 and parse_status(404, reply.body).name == key.name
