"""The load of `bench.kit`: a simulated server in its own process, and a writer.

The objects are Workloads as an API server serves them, nested and with `managedFields`: 4.5 KB on
the wire, 3 KiB in a cache, 14 µs to decode. `docs/spec/runtime.md` was measured with such objects
(3.9 KB, 3 KiB, 15 µs); a single text of that size decodes in 2 µs and would make both sides look
fast.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp
import yaml

from bench.api import a_realistic_workload
from compute_api_types import JsonObject, JsonValue
from tools.workspace import ROOT

IN_FLIGHT: Final = 64  # many at once, so that events arrive as a burst
_MERGE: Final = {"Content-Type": "application/merge-patch+json"}


@dataclass(frozen=True, slots=True)
class Server:
    """A running simulated server: its kubeconfig, and a connection for writes."""

    kubeconfig: Path
    origin: str
    token: str
    ca: str


@contextlib.contextmanager
def serving(planes: int) -> Generator[Server]:
    """A simulated server with planes `p0` … and our CRDs, in its own process."""
    folder = Path(tempfile.mkdtemp(prefix="bench-kit-"))
    names = [part for number in range(planes) for part in ("--plane", f"p{number}")]
    path = folder / "kubeconfig"
    command = [
        *(sys.executable, "-m", "compute_sim_planes", *names),
        *("--kubeconfig", str(path), "--apply", str(ROOT / "deploy" / "crds")),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None  # noqa: S101 - asked for above
        if not process.stdout.readline():
            raise RuntimeError("the simulated server did not start; see its output above")
        yield _server(path)
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)


def _server(path: Path) -> Server:
    document = yaml.safe_load(path.read_text("utf-8"))
    cluster = document["clusters"][0]["cluster"]
    origin = "/".join(cluster["server"].split("/")[:3])
    token: str = document["users"][0]["user"]["token"]
    return Server(path, origin, token, cluster["certificate-authority-data"])


@contextlib.asynccontextmanager
async def sending(server: Server) -> AsyncGenerator[aiohttp.ClientSession]:
    context = ssl.create_default_context(cadata=base64.b64decode(server.ca).decode())
    headers = {"Authorization": f"Bearer {server.token}"}
    connector = aiohttp.TCPConnector(ssl=context, limit=IN_FLIGHT)
    async with aiohttp.ClientSession(
        server.origin, headers=headers, connector=connector
    ) as session:
        yield session


def a_served_workload(name: str) -> JsonObject:
    """The realistic Workload with one container and one city."""
    workload = a_realistic_workload()
    spec, metadata = _object(workload, "spec"), _object(workload, "metadata")
    template = _object(_object(spec, "template"), "spec")
    sandbox = _object(_object(template, "runtime"), "sandbox")
    container = _first(sandbox, "containers")
    env = container["env"]
    assert isinstance(env, list)  # noqa: S101 - as `bench.api` builds it
    kept = {key: value for key, value in container.items() if key != "volumeAttachments"}
    sandbox["containers"] = [{**kept, "env": env[:2]}]
    spec["placements"] = [_first(spec, "placements")]
    del template["volumes"]
    workload["metadata"] = {
        "name": name,
        "labels": metadata["labels"],
        "annotations": {"sent": str(time.time())},
    }
    return workload


def _object(parent: JsonObject, name: str) -> JsonObject:
    member = parent[name]
    assert isinstance(member, dict)  # noqa: S101 - as `bench.api` builds it
    return member


def _first(parent: JsonObject, name: str) -> JsonObject:
    members = parent[name]
    assert isinstance(members, list)  # noqa: S101 - as `bench.api` builds it
    assert isinstance(members[0], dict)  # noqa: S101 - as `bench.api` builds it
    return members[0]


def _collection(plane: str) -> str:
    return f"/planes/{plane}/apis/compute.datumapis.com/v1alpha/namespaces/default/workloads"


async def create(server: Server, plane: str, count: int) -> None:
    async with sending(server) as session:
        for batch in range(0, count, IN_FLIGHT):
            names = [f"w{n}" for n in range(batch, min(count, batch + IN_FLIGHT))]
            await asyncio.gather(*(_create(session, plane, name) for name in names))


async def _create(session: aiohttp.ClientSession, plane: str, name: str) -> None:
    workload = a_served_workload(name)
    async with session.post(_collection(plane), json=workload) as answer:
        answer.raise_for_status()
    await _patch(session, f"{_collection(plane)}/{name}/status", {"status": workload["status"]})


async def update(server: Server, plane: str, *, objects: int, rounds: int) -> float:
    """Patches every object `rounds` times; returns the server's requests per second."""
    began = time.monotonic()
    async with sending(server) as session:
        for _ in range(rounds):
            for batch in range(0, objects, IN_FLIGHT):
                numbers = range(batch, min(objects, batch + IN_FLIGHT))
                await asyncio.gather(*(_stamp(session, plane, f"w{n}") for n in numbers))
    return rounds * objects / (time.monotonic() - began)


async def _stamp(session: aiohttp.ClientSession, plane: str, name: str) -> None:
    body: JsonObject = {"metadata": {"annotations": {"sent": str(time.time())}}}
    await _patch(session, f"{_collection(plane)}/{name}", body)


async def _patch(session: aiohttp.ClientSession, path: str, body: dict[str, JsonValue]) -> None:
    async with session.patch(path, data=json.dumps(body), headers=_MERGE) as answer:
        answer.raise_for_status()
