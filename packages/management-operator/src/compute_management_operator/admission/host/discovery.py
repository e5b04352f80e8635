"""A loopback API server with nothing but discovery of the admitted kinds, for kopf.

kopf opens its webhook only after it has discovered the kinds of its handlers. Served from here,
admission depends on no cluster and kopf has no credentials. The kinds have no verbs, so that kopf
can neither watch nor patch them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import groupby

from aiohttp import web

from compute_operator_kit.config.settings import Bind
from compute_operator_kit.core.json import Json, JsonObject
from compute_operator_kit.core.keys import Kind
from compute_operator_kit.process.http_server import Handler, HttpServer


@asynccontextmanager
async def serve_discovery(kinds: Sequence[Kind]) -> AsyncGenerator[str]:
    """Serves in the running loop; the URL of the server."""
    documents = build_discovery(kinds)
    routes = {path: _answer_with(document) for path, document in documents.items()}
    server = HttpServer(Bind("127.0.0.1", 0), routes)
    await server.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        await server.stop()


def build_discovery(kinds: Sequence[Kind]) -> dict[str, JsonObject]:
    """The discovery documents by path, for kinds outside of the core group."""
    documents: dict[str, JsonObject] = {
        "/api": {"kind": "APIVersions", "versions": []},
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": _groups(kinds)},
    }
    for api_version, members in groupby(sorted(kinds), lambda kind: kind.api_version):
        documents[f"/apis/{api_version}"] = {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": api_version,
            "resources": [_resource(kind) for kind in members],
        }
    return documents


def _groups(kinds: Iterable[Kind]) -> list[Json]:
    groups: list[Json] = []
    for group, members in groupby(sorted(kinds), lambda kind: kind.group):
        versions: list[Json] = [
            {"groupVersion": f"{group}/{version}", "version": version}
            for version in sorted({kind.version for kind in members})
        ]
        groups.append({"name": group, "versions": versions, "preferredVersion": versions[-1]})
    return groups


def _resource(kind: Kind) -> JsonObject:
    return {
        "name": kind.plural,
        "singularName": kind.kind.lower(),
        "kind": kind.kind,
        "namespaced": kind.namespaced,
        "verbs": [],
    }


def _answer_with(document: JsonObject) -> Handler:
    async def answer(_: web.BaseRequest) -> web.Response:
        response = web.json_response(document)
        # A connection left open is a task in kopf's loop, for which kopf would wait when it ends.
        response.force_close()
        return response

    return answer
