"""The simulated NSO: networks become ready or fail, depending on its options."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.client.rest import Client, Resource
from compute_sim_planes.conditions import find_condition
from compute_sim_planes.crds import load_crds
from compute_sim_planes.json_types import JsonObject, object_at, string_at, value_at
from compute_sim_planes.networking import (
    BINDINGS,
    CLAIMS,
    CONTEXTS,
    LOCATIONS,
    NETWORKS,
    SUBNETS,
    NetworkServices,
    NsoOptions,
)
from compute_sim_planes.time.clock import VirtualClock, run

START: Final = datetime(2026, 3, 1, tzinfo=UTC)
PROVIDER: Final[JsonObject] = {"gcp": {"projectId": "p", "region": "r", "zone": "z"}}


class Cell:
    """A plane with NSO."""

    def __init__(self, clock: VirtualClock, options: NsoOptions) -> None:
        self.plane = Plane("cell", PlaneParts(clock=clock, identities=clock.identities))
        self.client = Client(self.plane.connect(), manager="test")
        nso = Client(self.plane.connect(), manager="nso")
        self.nso = NetworkServices(nso, clock, options)

    async def add(self, resource: Resource, name: str, spec: JsonObject) -> JsonObject:
        metadata: JsonObject = {"name": name}
        if resource.is_namespaced:
            metadata["namespace"] = "default"
        desired: JsonObject = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": metadata,
            "spec": spec,
        }
        return await self.client.create(resource, desired)

    async def add_city(self, code: str = "DFW", name: str = "dfw") -> None:
        topology: JsonObject = {"topology.datum.net/city-code": code}
        spec: JsonObject = {
            "locationClassName": "datum-managed",
            "topology": topology,
            "provider": PROVIDER,
        }
        await self.add(LOCATIONS, name, spec)

    async def add_network(self, name: str = "default") -> JsonObject:
        return await self.add(NETWORKS, name, {"ipam": {"mode": "Auto"}})

    async def bind(self, location: str = "dfw") -> None:
        spec: JsonObject = {
            "network": {"name": "default"},
            "location": {"name": location},
        }
        await self.add(BINDINGS, "web-net-0", spec)

    async def claim(self, context: str = "default-dfw", location: str = "dfw") -> None:
        spec: JsonObject = {
            "subnetClass": "private",
            "ipFamily": "IPv4",
            "networkContext": {"name": context},
            "location": {"name": location},
        }
        await self.add(CLAIMS, f"{context}-0", spec)

    async def get(self, resource: Resource, name: str) -> JsonObject:
        existing = await self.client.get(resource, name, "default")
        assert existing is not None, name
        return existing

    async def ready(self, resource: Resource, name: str) -> tuple[str, str]:
        ready = find_condition(await self.get(resource, name), "Ready")
        return string_at(ready, "status"), string_at(ready, "reason")


def run_scenario(
    scenario: Callable[[Cell], Awaitable[None]],
    options: NsoOptions | None = None,
    *,
    is_served: bool = True,
) -> None:
    async def main(clock: VirtualClock) -> None:
        cell = Cell(clock, options or NsoOptions())
        if is_served:
            await apply_manifests(cell.plane.connect(), load_crds("networking"))
        working = asyncio.create_task(cell.nso.run())
        try:
            await scenario(cell)
        finally:
            working.cancel()
            with suppress(asyncio.CancelledError):
                await working
            await cell.plane.close()

    run(main, seed=1, start=START)


@pytest.mark.spec("C-91")
def test_a_binding_becomes_ready_with_its_context() -> None:
    async def scenario(cell: Cell) -> None:
        await cell.add_city()
        network = await cell.add_network()
        await cell.bind()
        assert await cell.ready(BINDINGS, "web-net-0") == ("Unknown", "Pending")
        await asyncio.sleep(0.5)
        assert await cell.ready(BINDINGS, "web-net-0") == ("False", "NetworkContextNotReady")
        await asyncio.sleep(6)
        assert await cell.ready(BINDINGS, "web-net-0") == ("True", "NetworkContextReady")
        binding = await cell.get(BINDINGS, "web-net-0")
        reference = object_at(binding, "status", "networkContextRef")
        assert reference == {"namespace": "default", "name": "default-dfw"}
        context = await cell.get(CONTEXTS, "default-dfw")
        owners = value_at(context, "metadata", "ownerReferences")
        assert isinstance(owners, list)
        assert string_at(owners[0], "uid") == string_at(network, "metadata", "uid")
        assert value_at(owners[0], "controller") is True

    run_scenario(scenario)


@pytest.mark.spec("C-91")
@pytest.mark.parametrize(
    ("city", "start"),
    [("DFW", "10.128.0.0"), ("DLS", "10.130.0.0"), ("LHR", "10.132.0.0"), ("ORD", "")],
)
def test_a_claim_gets_a_subnet_of_its_city(city: str, start: str) -> None:
    async def scenario(cell: Cell) -> None:
        await cell.add_city(city)
        await cell.add_network()
        await cell.bind()
        await asyncio.sleep(7)
        await cell.claim()
        await asyncio.sleep(6)
        assert await cell.ready(CLAIMS, "default-dfw-0") == ("True", "SubnetReady")
        claim = await cell.get(CLAIMS, "default-dfw-0")
        assert object_at(claim, "status", "subnetRef") == {"name": "default-dfw-0"}
        subnet = await cell.get(SUBNETS, "default-dfw-0")
        block = (value_at(subnet, "spec", "startAddress"), value_at(subnet, "spec", "prefixLength"))
        assert block == (start, 20)
        allocated = find_condition(subnet, "Allocated")
        assert (string_at(allocated, "status"), string_at(allocated, "reason")) == (
            "True",
            "PrefixAllocated",
        )

    run_scenario(scenario)


@pytest.mark.spec("C-91")
def test_a_missing_network_is_reported_and_heals() -> None:
    async def scenario(cell: Cell) -> None:
        await cell.add_city()
        await cell.bind()
        await asyncio.sleep(1)
        assert await cell.ready(BINDINGS, "web-net-0") == ("False", "NetworkNotFound")
        await cell.add_network()
        await asyncio.sleep(15)
        assert await cell.ready(BINDINGS, "web-net-0") == ("True", "NetworkContextReady")

    run_scenario(scenario)


@pytest.mark.spec("C-91")
def test_the_knobs_keep_it_from_becoming_ready() -> None:
    async def never(cell: Cell) -> None:
        await cell.add_city()
        await cell.add_network()
        await cell.bind()
        await asyncio.sleep(60)
        assert await cell.ready(BINDINGS, "web-net-0") == ("False", "NetworkContextNotReady")

    async def failing(cell: Cell) -> None:
        await cell.add_city()
        await cell.add_network()
        await cell.bind()
        await asyncio.sleep(20)
        binding = find_condition(await cell.get(BINDINGS, "web-net-0"), "Ready")
        assert string_at(binding, "reason") == "NetworkFailedToCreate"
        assert string_at(binding, "message") == "no space"

    run_scenario(never, NsoOptions(is_context_never_ready=True))
    run_scenario(failing, NsoOptions(failure="no space"))


@pytest.mark.spec("C-91")
def test_references_can_be_left_out_of_what_is_ready() -> None:
    async def scenario(cell: Cell) -> None:
        await cell.add_city()
        await cell.add_network()
        await cell.bind()
        await asyncio.sleep(10)
        await cell.claim()
        await asyncio.sleep(10)
        assert await cell.ready(BINDINGS, "web-net-0") == ("True", "NetworkContextReady")
        binding = await cell.get(BINDINGS, "web-net-0")
        assert value_at(binding, "status", "networkContextRef") is None
        assert await cell.ready(CLAIMS, "default-dfw-0") == ("True", "SubnetReady")
        claim = await cell.get(CLAIMS, "default-dfw-0")
        assert value_at(claim, "status", "subnetRef") is None

    run_scenario(scenario, NsoOptions(omits_context_ref=True, omits_subnet_ref=True))


@pytest.mark.spec("C-91")
def test_kinds_may_come_late() -> None:
    async def scenario(cell: Cell) -> None:
        await asyncio.sleep(10)
        await apply_manifests(cell.plane.connect(), load_crds("networking"))
        await cell.add_city()
        await cell.add_network()
        await cell.bind()
        await asyncio.sleep(15)
        binding = await cell.get(BINDINGS, "web-net-0")
        assert object_at(binding, "spec", "location") == {"name": "dfw"}
        assert string_at(binding, "status", "networkContextRef", "name") == "default-dfw"

    options = NsoOptions(context_delay=timedelta(seconds=2))
    run_scenario(scenario, options, is_served=False)
