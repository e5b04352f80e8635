"""Applying manifests to a plane, as `kubectl apply --server-side` does.

Requests pass through the plane like those of any client, so invalid manifests are refused. Each CRD
is waited for, because later documents need its kind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Final

import orjson
import yaml

from compute_sim_planes.api_server.http.transport import Transport, read_body
from compute_sim_planes.api_server.kinds.crd_documents import is_established
from compute_sim_planes.json_types import JsonObject, object_at, objects_at, string_at

MANAGER: Final = "seeding"
_APPLY: Final = {"Content-Type": "application/apply-patch+yaml"}
_POLL: Final = timedelta(milliseconds=10)


class ManifestError(Exception):
    """A manifest that the plane refused."""


def read_manifests(path: Path) -> list[JsonObject]:
    """Every document of a YAML file, or of all YAML files in a folder, sorted by file name.

    Files named kustomization.yaml are skipped: they are not API objects.
    """
    files = sorted(path.rglob("*.yaml")) if path.is_dir() else [path]
    files = [file for file in files if file.name != "kustomization.yaml"]
    manifests: list[JsonObject] = []
    for file in files:
        documents: Iterable[object] = yaml.safe_load_all(file.read_text("utf-8"))
        manifests += [orjson.loads(orjson.dumps(document)) for document in documents if document]
    return manifests


async def apply_manifests(transport: Transport, manifests: Iterable[JsonObject]) -> None:
    """Apply documents in order; wait until a CRD is served before the next one is sent."""
    for manifest in manifests:
        target = await _target(transport, manifest)
        query = f"?fieldManager={MANAGER}&force=true&fieldValidation=Strict"
        answer = await transport.request("PATCH", target + query, _APPLY, orjson.dumps(manifest))
        body = await read_body(answer)
        if answer.status not in {200, 201}:
            raise ManifestError(f"applying {target!r}: {body.decode(errors='replace')[:1000]}")
        if string_at(manifest, "kind") == "CustomResourceDefinition":
            await _await_established(transport, target)


async def _target(transport: Transport, manifest: JsonObject) -> str:
    """The path of an object, from discovery."""
    api_version, kind = string_at(manifest, "apiVersion"), string_at(manifest, "kind")
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    answer = await transport.request("GET", root, {}, None)
    body = await read_body(answer)
    # An unknown version is answered in plain text.
    listed: JsonObject = orjson.loads(body) if answer.status == 200 else {}
    for resource in objects_at(listed, "resources"):
        if string_at(resource, "kind") == kind and "/" not in string_at(resource, "name"):
            metadata = object_at(manifest, "metadata")
            namespace = string_at(metadata, "namespace") or "default"
            place = f"/namespaces/{namespace}" if resource.get("namespaced") is True else ""
            return f"{root}{place}/{string_at(resource, 'name')}/{string_at(metadata, 'name')}"
    raise ManifestError(f"applying {kind!r}: {api_version!r} does not serve that kind")


async def _await_established(transport: Transport, target: str) -> None:
    while True:
        body = await read_body(await transport.request("GET", target, {}, None))
        if is_established(orjson.loads(body)):
            return
        await asyncio.sleep(_POLL.total_seconds())
