"""One project cannot take the memory of the operator: attacks on a process under its limit."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from management_builders.documents import a_template_document, a_workload_document
from management_builders.limited_process import (
    SHIPPED_LIMIT,
    LimitedProcess,
    eventually,
    limited_process,
)
from management_builders.served_planes import ServedPlanes

from compute_api_types import labels, names
from compute_operator_kit.core.json import Json, JsonObject, encode, member_list, member_object
from compute_sim_planes.api_server.http.transport import BytesResponse

WORKLOADS = "/apis/compute.datumapis.com/v1alpha/namespaces/default/workloads"
HUB_DEPLOYMENTS = "/apis/compute.datumapis.com/v1alpha/workloaddeployments"
ATTACK_SECONDS = 60.0  # the code before took all of the limit in 4


@pytest.fixture
async def operator(tmp_path: Path) -> AsyncIterator[LimitedProcess]:
    planes = await ServedPlanes.start(tmp_path)
    try:
        async with limited_process(tmp_path, planes) as started:
            yield started
    finally:
        await planes.close()


async def is_federated(planes: ServedPlanes, name: str) -> bool:
    """A Workload of the bystander; only its own copies are listed, because the heavy ones take the
    time of the planes.
    """
    owner = f"{labels.UPSTREAM_CLUSTER_NAME}={names.encode_cluster_name('acme').value}"
    path = f"{HUB_DEPLOYMENTS}?labelSelector={quote(owner)}"
    return any(one.startswith(name) for one in await names_on(planes, "hub", path))


class EndlessLists:
    """A control plane on which every page of every list has a token for the next one."""

    def __init__(self) -> None:
        self.pages = 0

    async def request(
        self,
        method: str,  # noqa: ARG002 - whatever is asked, a list is answered
        target: str,
        headers: Mapping[str, str],  # noqa: ARG002
        body: bytes | None,  # noqa: ARG002
    ) -> BytesResponse:
        query = parse_qs(urlsplit(target).query)
        if "watch" in query:
            return BytesResponse(200, {"Content-Type": "application/json"}, b"")
        self.pages += 1
        items: list[Json] = [
            a_padded_document(f"w{self.pages}-{number}")
            for number in range(int(query.get("limit", ["500"])[0]))
        ]
        page: JsonObject = {
            "apiVersion": "v1",
            "kind": "List",
            "metadata": {"resourceVersion": "7", "continue": str(self.pages)},
            "items": items,
        }
        return BytesResponse(200, {"Content-Type": "application/json"}, encode(page))


def a_padded_document(name: str) -> JsonObject:
    metadata: JsonObject = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "resourceVersion": "5",
    }
    return {"metadata": metadata, "spec": {"padding": name * 250}}


@pytest.mark.spec("AT-02")
async def test_lists_that_never_end_take_neither_the_process_nor_a_bystander(
    operator: LimitedProcess,
) -> None:
    planes, endless = operator.planes, EndlessLists()
    await planes.add_project("endless", endless)
    await asyncio.sleep(ATTACK_SECONDS)
    assert endless.pages > 0
    assert operator.is_alive
    await planes.put("acme", WORKLOADS, a_workload_document("web"))
    await eventually(lambda: is_federated(planes, "web"))
    assert operator.is_alive
    assert operator.peak < SHIPPED_LIMIT


HEAVY = 28  # Workloads: 17 took the code before beyond its limit
HEAVY_VALUES, HEAVY_LENGTH = 38, 32_000  # 1.2 MB, as API servers take it


def a_heavy_workload(name: str, values: int) -> JsonObject:
    """A Workload with an environment that does not compress."""
    chance = random.Random(name)  # noqa: S311 - text, not a secret
    template = a_template_document()
    runtime = member_object(member_object(template, "spec"), "runtime")
    container = member_list(member_object(runtime, "sandbox"), "containers")[0]
    assert isinstance(container, dict)
    env: list[Json] = [
        {"name": f"E{number}", "value": chance.randbytes(HEAVY_LENGTH // 2).hex()}
        for number in range(values)
    ]
    container["env"] = env
    return a_workload_document(name, {"us": ("DFW", "ORD")}, template=template)


async def names_on(planes: ServedPlanes, plane: str, path: str) -> set[str]:
    listed = await planes.ask(plane, "GET", path)
    items = [item for item in member_list(listed, "items") if isinstance(item, dict)]
    return {str(member_object(item, "metadata")["name"]) for item in items}


@pytest.mark.spec("AT-01")
async def test_workloads_that_fill_the_memory_slow_down_their_own_project_alone(
    operator: LimitedProcess,
) -> None:
    planes = operator.planes
    await planes.add_tenant("heavy", cities=("DFW", "ORD"))
    for number in range(HEAVY):
        document = a_heavy_workload(f"heavy-{number}", HEAVY_VALUES)
        await planes.put("heavy", WORKLOADS, document)
    await asyncio.sleep(ATTACK_SECONDS)
    assert operator.is_alive
    await planes.put("acme", WORKLOADS, a_workload_document("web"))
    await eventually(lambda: is_federated(planes, "web"))
    assert operator.is_alive
    assert operator.peak < SHIPPED_LIMIT
    assert "Caching less than all of a plane" in operator.log.read_text()
