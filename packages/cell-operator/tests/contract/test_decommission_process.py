"""The decommission command as a process: real command line, TLS, kubeconfigs, exit codes."""

from __future__ import annotations

import asyncio
import secrets
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest
import pytest_asyncio
from cell_builders.documents import (
    CELL_NAME,
    NS,
    PROJECT,
    a_namespace_document,
    an_instance_document,
)

from compute_api_types import labels
from compute_api_types.crd import derive_crds
from compute_sim_planes.api_server.authz.identity import ADMIN, Tokens
from compute_sim_planes.api_server.http.server import HttpServer, route_all
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.certificates import make_server_files
from compute_sim_planes.client.errors import ApiError
from compute_sim_planes.client.rest import Client
from compute_sim_planes.crds import load_crds
from compute_sim_planes.json_types import JsonObject
from compute_sim_planes.kubeconfig import Context, write_kubeconfig
from compute_sim_planes.milo.http_server import ServedMilo, serve_milo
from compute_sim_planes.milo.kinds import CLAIMS, REGISTRATIONS
from compute_sim_planes.milo.testing import a_claim, a_registration
from compute_sim_planes.provider import INSTANCES


@dataclass(frozen=True, slots=True)
class Hub:
    """A served hub, and the kubeconfig that leads to it."""

    client: Client
    kubeconfig: Path


@pytest_asyncio.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    folder = tmp_path / "hub"
    folder.mkdir()
    files = make_server_files(folder)
    token = secrets.token_urlsafe(8)
    plane = Plane("hub", PlaneParts(tokens=Tokens({token: ADMIN})))
    server = HttpServer(route_all(plane), tls=files.context())
    await server.start()
    kubeconfig = folder / "kubeconfig"
    context = Context("hub", server.url, token, files.authority.read_bytes())
    write_kubeconfig(kubeconfig, [context])
    crds = [orjson.loads(orjson.dumps(crd)) for crd in derive_crds()]
    copy = an_instance_document("web-0", labels={labels.CELL: CELL_NAME})
    await apply_manifests(
        plane.connect(), [*crds, *load_crds("karmada"), a_namespace_document(), copy]
    )
    try:
        yield Hub(Client(plane.connect(), manager="test"), kubeconfig)
    finally:
        await server.close()
        await plane.close()


@pytest_asyncio.fixture
async def quota(tmp_path: Path) -> AsyncIterator[ServedMilo]:
    folder = tmp_path / "quota"
    folder.mkdir()
    async with serve_milo(folder, PROJECT) as served:
        root, project = served.milo.client(), served.milo.planes.client(PROJECT)
        await root.create(REGISTRATIONS, a_registration("example.com/things"))
        found = {labels.SOURCE_CLUSTER: CELL_NAME}
        claim = a_claim(PROJECT, "instance-web-0", {"example.com/things": 1}, labels={**found})
        await make(project, claim)
        yield served


async def make(project: Client, claim: JsonObject) -> None:
    """As soon as the type it asks for is registered."""
    async with asyncio.timeout(10):
        while True:
            try:
                await project.create(CLAIMS, claim)
            except ApiError:
                await asyncio.sleep(0.05)
            else:
                return


async def run(*arguments: str) -> tuple[int | None, list[str], str]:
    """Exit code, lines of output, errors."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "compute_cell_operator",
        "decommission",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(30):
        out, errors = await process.communicate()
    return process.returncode, out.decode().splitlines(), errors.decode()


def totals(outcome: str, number: int) -> list[str]:
    """The last lines of the output; this hub has no Lease of the cell."""
    counted = {"copies": number, "claims": number, "leases": 0}
    return [f"{kind}: {count} {outcome}, 0 failed" for kind, count in counted.items()]


@pytest.mark.spec("C-97")
@pytest.mark.fault("D5")
async def test_listed_removed_and_listed_again(hub: Hub, quota: ServedMilo) -> None:
    given = (
        *("--cell", CELL_NAME),
        *("--hub-kubeconfig", str(hub.kubeconfig)),
        *("--quota-kubeconfig", str(quota.kubeconfig)),
    )
    code, lines, errors = await run(*given)
    assert (code, errors) == (0, "")
    assert [line.partition(" ")[0] for line in lines[:2]] == ["hub", PROJECT]
    assert lines[2:] == totals("would delete", 1)
    assert await hub.client.get(INSTANCES, "web-0", NS) is not None
    code, lines, errors = await run(*given, "--execute")
    assert (code, errors) == (0, "")
    assert lines[2:] == totals("deleted", 1)
    assert await hub.client.get(INSTANCES, "web-0", NS) is None
    assert (await quota.milo.planes.client(PROJECT).list(CLAIMS)).items == []
    code, lines, _ = await run(*given)
    assert code == 0
    assert lines == totals("would delete", 0)


@pytest.mark.spec("C-97")
async def test_a_hub_that_cannot_be_reached_is_refused(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    write_kubeconfig(kubeconfig, [Context("hub", "https://127.0.0.1:1", "none")])
    given = ("--cell", CELL_NAME, "--hub-kubeconfig", str(kubeconfig), "--no-claims")
    code, lines, _ = await run(*given, "--execute")
    assert code == 2
    assert lines[0].startswith("refused: Cluster 'dfw-1' cannot be read: ")
