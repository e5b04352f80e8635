"""The demo's planes enforce the shipped rights, and a city can be cut off."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import aiohttp
import pytest
import pytest_asyncio
import yaml

from e2e.demo.credentials import credential_path
from e2e.demo.embedded import READY, Embedded
from e2e.world.kinds import CLUSTER, DEPLOYMENT, INSTANCE, POLICY
from e2e.world.port import HUB, MANAGEMENT

NAMESPACE = "default"


@pytest_asyncio.fixture
async def folder(tmp_path: Path) -> AsyncIterator[Path]:
    """The folder with the credentials of running planes."""
    (tmp_path / "pki").mkdir()
    embedded = Embedded(tmp_path, webhook=1)  # no server listens there, and none is called
    try:
        await embedded.open()
        yield tmp_path
    finally:
        await embedded.close()


async def _ask(folder: Path, operator: str, plane: str, method: str, path: str) -> int:
    """The status of an operator's request to a plane with its own kubeconfig."""
    document = yaml.safe_load(credential_path(folder, operator, plane).read_text("utf-8"))
    server = str(document["clusters"][0]["cluster"]["server"])
    return await _request(folder, method, server + path, str(document["users"][0]["user"]["token"]))


async def _request(folder: Path, method: str, url: str, token: str) -> int:
    trusted = ssl.create_default_context(cafile=str(folder / "pki" / "ca.crt"))
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusted)) as session,
        session.request(method, url, headers=headers) as answer,
    ):
        return answer.status


async def _control(folder: Path, what: str) -> int:
    announced = json.loads((folder / READY).read_text("utf-8"))
    return await _request(folder, "POST", f"{announced['url']}/demo{what}", announced["token"])


GRANTED: Final = (
    ("dfw-1", "GET", INSTANCE.path(), 200),
    ("dfw-1", "DELETE", DEPLOYMENT.path(NAMESPACE, "web"), 403),
    ("dfw-1", "GET", POLICY.path(), 403),
    (MANAGEMENT, "GET", CLUSTER.path(), 200),
    (MANAGEMENT, "DELETE", CLUSTER.path(name="dfw-1"), 403),
)


async def test_an_operator_may_do_on_the_hub_what_its_role_grants(folder: Path) -> None:
    for operator, method, path, status in GRANTED:
        assert await _ask(folder, operator, HUB, method, path) == status, (operator, method, path)


async def test_a_cell_that_is_cut_off_reaches_no_plane_until_it_is_back(folder: Path) -> None:
    path = INSTANCE.path()
    assert await _ask(folder, "ord-1", HUB, "GET", path) == 200
    assert await _control(folder, "/cells/ord-1/cut") == 200
    for far in (HUB, "milo"):
        with pytest.raises(aiohttp.ClientConnectorError):
            await _ask(folder, "ord-1", far, "GET", path)
    assert await _ask(folder, "ord-1", "home", "GET", path) == 200
    assert await _ask(folder, "dfw-1", HUB, "GET", path) == 200
    assert await _control(folder, "/cells/ord-1/heal") == 200
    assert await _ask(folder, "ord-1", HUB, "GET", path) == 200


async def test_only_the_stage_may_cut_a_city_off(folder: Path) -> None:
    announced = json.loads((folder / READY).read_text("utf-8"))
    url = f"{announced['url']}/demo/cells/ord-1/cut"
    assert await _request(folder, "POST", url, "somebody") == 401
    assert await _control(folder, "/cells/nowhere/cut") == 404
    assert await _ask(folder, "ord-1", HUB, "GET", INSTANCE.path()) == 200


async def test_what_holds_tokens_is_for_its_owner_alone(folder: Path) -> None:
    files = [folder / READY, folder / "kubeconfig", *(folder / "operators").iterdir()]
    assert {oct(file.stat().st_mode & 0o777) for file in files} == {"0o600"}
