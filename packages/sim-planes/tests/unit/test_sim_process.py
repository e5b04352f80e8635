"""Planes over HTTP and as a separate process, in wall time."""

from __future__ import annotations

import asyncio
import base64
import signal
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import orjson
import pytest
import yaml

from compute_sim_planes.__main__ import parse_arguments
from compute_sim_planes.api_server.authz.identity import ADMIN, Tokens
from compute_sim_planes.api_server.http.server import BODY_LIMIT, HttpServer, route_all
from compute_sim_planes.api_server.manifests import ManifestError, apply_manifests, read_manifests
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.api_server.testing import ServerAddress, ask, connect
from compute_sim_planes.json_types import JsonObject

NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: seeded}\n"
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: notes.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: notes, kind: Note}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema: {type: object, properties: {text: {type: string}}}
---
apiVersion: example.com/v1
kind: Note
metadata: {name: first, namespace: seeded}
text: hello
"""


async def test_a_watch_ends_when_its_client_goes() -> None:
    plane = Plane("plane", PlaneParts(tokens=Tokens({"t": ADMIN})))
    server = HttpServer(route_all(plane))
    await server.start()
    async with connect(ServerAddress(server.url, "t")) as api:
        async with api.watch("/api/v1/namespaces") as watch:
            await watch.next_event()
            assert len(plane.state.streams) == 1
        async with asyncio.timeout(5):
            while plane.state.streams:  # noqa: ASYNC110 (a disconnect has no event)
                await asyncio.sleep(0.01)
    await plane.close()
    await server.close()


async def test_a_path_without_a_plane_is_not_found() -> None:
    server = HttpServer(lambda _: None)
    await server.start()
    async with aiohttp.ClientSession() as session, session.get(f"{server.url}/api") as answer:
        assert answer.status == 404
    await server.close()
    await server.close()


async def test_a_body_without_a_length_is_read_up_to_the_limit() -> None:
    plane = Plane("plane", PlaneParts(tokens=Tokens({"t": ADMIN})))
    server = HttpServer(route_all(plane))
    await server.start()

    async def endless() -> AsyncIterator[bytes]:
        piece = b"x" * 65536
        for _ in range(BODY_LIMIT // len(piece) + 2):
            yield piece

    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{server.url}/api/v1/namespaces", data=endless()) as answer,
    ):
        assert answer.status == 413
        assert (await answer.json())["reason"] == "RequestEntityTooLarge"
    await plane.close()
    await server.close()


async def test_manifests_are_applied_in_order_and_definitions_waited_for(tmp_path: Path) -> None:
    (tmp_path / "1.yaml").write_text(NAMESPACE, "utf-8")
    (tmp_path / "2.yaml").write_text(DEFINITION, "utf-8")
    (tmp_path / "kustomization.yaml").write_text("resources: [1.yaml, 2.yaml]\n", "utf-8")
    plane = Plane("plane")
    await apply_manifests(plane.connect(), read_manifests(tmp_path))
    path = "/apis/example.com/v1/namespaces/seeded/notes/first"
    assert (await ask(plane.connect(), "GET", path)).expect(200)["text"] == "hello"
    await plane.close()


async def test_a_refused_manifest_is_reported_with_the_reason() -> None:
    plane = Plane("plane")
    unknown: JsonObject = {"apiVersion": "v1", "kind": "Ghost", "metadata": {"name": "x"}}
    with pytest.raises(ManifestError, match="does not serve that kind"):
        await apply_manifests(plane.connect(), [unknown])
    stranger: JsonObject = {"apiVersion": "x.io/v1", "kind": "Y", "metadata": {"name": "x"}}
    with pytest.raises(ManifestError, match="does not serve that kind"):
        await apply_manifests(plane.connect(), [stranger])
    bad: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "Bad_"}}
    with pytest.raises(ManifestError, match="Invalid value"):
        await apply_manifests(plane.connect(), [bad])
    await plane.close()


def test_the_command_line_has_a_plane_by_default() -> None:
    assert parse_arguments([]).planes == ("hub",)
    arguments = parse_arguments(["--plane", "a", "--plane", "b", "--plain-http", "--port", "1"])
    assert (arguments.planes, arguments.plain_http, arguments.port) == (("a", "b"), True, 1)


def test_a_wrong_manifest_ends_the_process_with_one_line(tmp_path: Path) -> None:
    manifests = tmp_path / "seed.yaml"
    manifests.write_text("apiVersion: v1\nkind: Ghost\nmetadata: {name: x}\n", "utf-8")
    ended = subprocess.run(
        [sys.executable, "-m", "compute_sim_planes", "--plain-http", "--apply", str(manifests)],
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr.decode() == "applying 'Ghost': 'v1' does not serve that kind\n"


async def test_the_process_serves_its_planes_and_stops_when_told(tmp_path: Path) -> None:
    manifests = tmp_path / "seed.yaml"
    manifests.write_text(NAMESPACE, "utf-8")
    kubeconfig = tmp_path / "kubeconfig"
    # Not asyncio's subprocess: on Python 3.11 it leaves a thread behind for a moment.
    process = subprocess.Popen(  # noqa: ASYNC220 (started once, and asyncio has none without a thread)
        [
            sys.executable, "-m", "compute_sim_planes", "--plane", "hub", "--plane", "dfw",
            "--kubeconfig", str(kubeconfig), "--apply", str(manifests),
        ],
        stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = await asyncio.wait_for(asyncio.to_thread(process.stdout.readline), 30)
        assert line.decode() == f"KUBECONFIG={kubeconfig}\n"
        document = yaml.safe_load(kubeconfig.read_text("utf-8"))
        assert [context["name"] for context in document["contexts"]] == ["hub", "dfw"]
        for entry, user in zip(document["clusters"], document["users"], strict=True):
            cluster = entry["cluster"]
            assert cluster["server"].startswith("https://127.0.0.1:")
            await read_namespace(cluster, user["user"]["token"])
    finally:
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 10) == 0
        process.communicate()


async def read_namespace(cluster: dict[str, str], token: str) -> None:
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    headers = {"Authorization": f"Bearer {token}"}
    url = f"{cluster['server']}/api/v1/namespaces/seeded"
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.get(url, ssl=context) as answer,
    ):
        assert answer.status == 200
        assert orjson.loads(await answer.read())["metadata"]["name"] == "seeded"
