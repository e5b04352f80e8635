"""The documents of `kubectl_worlds` behind a TLS server, with a kubeconfig; every request is kept.

Lists have pages, field and label selectors, refusals and kinds that are not served; a PATCH is
merged and bumps the version, a dry run is not kept. The hub passes `clusters/<c>/proxy` on.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from kubectl_worlds import Documents, Planes, part
from typing_extensions import override

from compute_api_types.wire import JsonObject, JsonValue
from compute_sim_planes.certificates import make_server_files
from compute_sim_planes.kubeconfig import Context, write_kubeconfig

_PATH = re.compile(
    r"/(?:api/v1|apis/(?P<group>[^/]+)/[^/]+)(?:/namespaces/(?P<namespace>[^/]+)(?=/))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?"
)
_PROXY = re.compile(r"/apis/cluster\.karmada\.io/v1alpha1/clusters/([^/]+)/proxy(/.*)")


@dataclass(frozen=True)
class Request:
    """One request as the server got it."""

    plane: str
    method: str
    plural: str
    query: dict[str, str]
    by_proxy: bool = False
    group: str = ""


@dataclass
class ServedPlanes:
    """The planes of one server: what it serves, refuses and got."""

    planes: Planes
    kubeconfig: Path
    refused: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    allowed: dict[str, set[tuple[str, str]]] = field(
        default_factory=dict[str, set[tuple[str, str]]]
    )
    denial: str = ""
    requests: list[Request] = field(default_factory=list[Request])

    def documents(self, plane: str) -> Documents | None:
        return {"acme": self.planes.project, "hub": self.planes.hub, **self.planes.cells}.get(plane)

    def answer(self, method: str, target: str, body: bytes) -> tuple[int, JsonObject]:
        url = urlsplit(target)
        _, _, plane, *rest = url.path.split("/", 3)
        path = f"/{rest[0] if rest else ''}"
        proxied = _PROXY.fullmatch(path) if plane == "hub" else None
        if proxied:
            plane, path = proxied[1], proxied[2]
        found = _PATH.fullmatch(path)
        documents = self.documents(plane)
        if found is None or documents is None:
            return _status(404, "not found")
        plural, name = found["plural"], found["name"] or ""
        query = dict(parse_qsl(url.query))
        group = found["group"] or ""
        self.requests.append(Request(plane, method, plural, query, proxied is not None, group))
        allowed = self.allowed.get(plane)
        if (plane, plural) in self.refused or (allowed and (group, plural) not in allowed):
            return _status(403, f"{plural} is forbidden")
        if plural not in documents:
            return _status(404, "the server could not find the requested resource")
        if method in {"POST", "PUT"}:
            assert query == {"dryRun": "All"}
            return _status(422, self.denial) if self.denial else (200, json.loads(body))
        items = _chosen(documents[plural], found["namespace"] or "", name, query)
        if method == "PATCH":
            return self._patch(items[0], json.loads(body), "dryRun" in query)
        if name:
            if items:
                return 200, items[0]
            return 404, {**_status(404, "not found")[1], "details": {"name": name}}
        return 200, _page(items, query)

    def _patch(self, one: JsonObject, patch: JsonObject, dry: bool) -> tuple[int, JsonObject]:
        if self.denial:
            return _status(422, self.denial)
        metadata = part(one, "metadata")
        version = part(patch, "metadata").get("resourceVersion", "")
        if version not in ("", metadata.get("resourceVersion", "")):
            return _status(409, "the object has been modified")
        merged = _merge(one, patch)
        assert isinstance(merged, dict)
        if not dry:
            one.clear()
            one.update(merged)
            part(one, "metadata")["resourceVersion"] = "2"
        return 200, merged


def _merge(one: JsonValue, patch: JsonValue) -> JsonValue:
    if not isinstance(patch, dict):
        return patch
    base = dict(one) if isinstance(one, dict) else {}
    return {**base, **{key: _merge(base.get(key), value) for key, value in patch.items()}}


def _status(code: int, message: str) -> tuple[int, JsonObject]:
    return code, {"kind": "Status", "code": code, "message": message}


def _chosen(
    items: list[JsonObject], namespace: str, name: str, query: dict[str, str]
) -> list[JsonObject]:
    name = name or query.get("fieldSelector", "").removeprefix("metadata.name=")
    label, _, value = query.get("labelSelector", "").partition("=")
    return [
        one
        for one in items
        if namespace in ("", part(one, "metadata").get("namespace", ""))
        and name in ("", part(one, "metadata")["name"])
        and (not label or part(one, "metadata", "labels").get(label) == value)
    ]


def _page(items: list[JsonObject], query: dict[str, str]) -> JsonObject:
    first, size = int(query.get("continue", "0")), int(query.get("limit", "500"))
    more = str(first + size) if len(items) > first + size else ""
    listed: list[JsonValue] = [*items[first : first + size]]
    return {"kind": "List", "metadata": {"continue": more}, "items": listed}


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # joined when the server is closed
    request_queue_size = 128
    served: ServedPlanes


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        assert isinstance(self.server, _Server)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        code, document = self.server.served.answer(self.command, self.path, body)
        content = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PATCH = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815 (names of http.server)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """No log: the requests are kept."""


@contextmanager
def serve(
    planes: Planes, folder: Path, *, contexts: tuple[str, ...] = ()
) -> Generator[ServedPlanes]:
    """The planes until the block ends; by default with a context for each of them."""
    files = make_server_files(folder)
    server = _Server(("127.0.0.1", 0), _Handler)
    server.socket = files.context().wrap_socket(server.socket, server_side=True)
    kubeconfig = folder / "kubeconfig"
    served = server.served = ServedPlanes(planes, kubeconfig)
    base = f"https://127.0.0.1:{server.server_address[1]}/planes"
    names = contexts or ("acme", "hub", *planes.cells)
    authority = files.authority.read_bytes()
    write_kubeconfig(
        kubeconfig, [Context(name, f"{base}/{name}", "token", authority) for name in names]
    )
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
