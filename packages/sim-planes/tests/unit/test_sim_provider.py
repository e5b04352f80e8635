"""The simulated provider: pods, status and recorded violations."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

import orjson
import pytest

from compute_api_types.crd import derive_crds
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.client.rest import Client
from compute_sim_planes.conditions import find_condition
from compute_sim_planes.json_types import JsonObject, JsonValue, objects_at, string_at, value_at
from compute_sim_planes.pod_life import FirstContainer, Phase, ProviderOptions, derive_pod_state
from compute_sim_planes.provider import FINALIZER, INSTANCES, Provider
from compute_sim_planes.time.clock import VirtualClock, run

START: Final = datetime(2026, 3, 1, tzinfo=UTC)
OPTIONS: Final = ProviderOptions()
IMAGE: Final = "registry.example.net:5000/x"
ROOT_IMAGE: Final = "the image runs as root, which this cell does not allow"


class Cell:
    """A plane with our kinds and the provider."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.plane = Plane("cell", PlaneParts(clock=clock, identities=clock.identities))
        self.client = Client(self.plane.connect(), manager="test")
        provider = Client(self.plane.connect(), manager="provider")
        self.provider = Provider(provider, clock, ProviderOptions())

    async def add(self, name: str, tag: str = "1.0", *gates: str, sandbox: bool = True) -> None:
        runtime: JsonObject = {"resources": {"instanceType": "datumcloud/d1-standard-2"}}
        if sandbox:
            container: JsonObject = {"name": "app", "image": f"{IMAGE}:{tag}"}
            runtime["sandbox"] = {"containers": [container]}
        listed: list[JsonValue] = [{"name": gate} for gate in gates]
        desired: JsonObject = {
            "apiVersion": INSTANCES.api_version,
            "kind": INSTANCES.kind,
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "runtime": runtime,
                "networkInterfaces": [{"network": {"name": "default"}}],
                "controller": {"templateHash": f"v1-{name}", "schedulingGates": listed},
            },
        }
        await self.client.create(INSTANCES, desired)

    async def get(self, name: str) -> JsonObject:
        existing = await self.client.get(INSTANCES, name, "default")
        assert existing is not None
        return existing

    async def condition(self, name: str, kind: str) -> tuple[str, str, str]:
        entry = find_condition(await self.get(name), kind)
        return tuple(string_at(entry, part) for part in ("status", "reason", "message"))  # type: ignore[return-value]  # three parts

    async def patch(self, name: str, patch: JsonObject, subresource: str = "") -> None:
        await self.client.patch(
            INSTANCES, name, patch, namespace="default", subresource=subresource
        )


def run_scenario(scenario: Callable[[Cell], Awaitable[None]]) -> None:
    async def main(clock: VirtualClock) -> None:
        cell = Cell(clock)
        crds = [orjson.loads(orjson.dumps(crd)) for crd in derive_crds()]
        await apply_manifests(cell.plane.connect(), crds)
        working = asyncio.create_task(cell.provider.run())
        try:
            await scenario(cell)
        finally:
            working.cancel()
            with suppress(asyncio.CancelledError):
                await working
            await cell.plane.close()

    run(main, seed=1, start=START)


@pytest.mark.parametrize(
    ("tag", "seconds", "phase", "reason"),
    [
        ("1.0", 0.5, Phase.PENDING, "Provisioning"),
        ("1.0", 1, Phase.RUNNING, "Provisioning"),
        ("1.0", 2, Phase.RUNNING, "Available"),
        ("slow-7", 6, Phase.PENDING, "Provisioning"),
        ("slow-7", 8, Phase.RUNNING, "Available"),
        ("hang", 9999, Phase.PENDING, "Provisioning"),
        ("image-unavailable", 9999, Phase.PENDING, "ImageUnavailable"),
        ("config-error", 9999, Phase.PENDING, "ConfigurationError"),
        ("failed", 1, Phase.RUNNING, "Provisioning"),
        ("failed", 2, Phase.FAILED, "Failed"),
        ("stopped", 2, Phase.SUCCEEDED, "Stopping"),
    ],
)
def test_the_image_tag_determines_phase_and_report(
    tag: str, seconds: float, phase: Phase, reason: str
) -> None:
    state = derive_pod_state(image(tag), timedelta(seconds=seconds), OPTIONS)
    assert (state.phase, state.available.reason) == (phase, reason)


def image(tag: str) -> FirstContainer:
    return FirstContainer("app", f"{IMAGE}:{tag}")


def history(tag: str, seconds: int) -> list[tuple[float, str]]:
    """The reasons of Available with their times, followed from change to change."""
    age, found = timedelta(), list[tuple[float, str]]()
    while age < timedelta(seconds=seconds):
        state = derive_pod_state(image(tag), age, OPTIONS)
        if not found or found[-1][1] != state.available.reason:
            found.append((age.total_seconds(), state.available.reason))
        if state.changes_in is None:
            break
        age += state.changes_in
    return found


@pytest.mark.spec("C-91")
def test_a_crashing_image_is_never_available() -> None:
    expected = [
        (0, "Provisioning"),
        (1.3, "InstanceCrashing"),
        (2.3, "Starting"),  # after the first restart
        (2.6, "InstanceCrashing"),
    ]
    assert history("crash", 3600) == expected
    assert history("oom", 3600) == expected


@pytest.mark.spec("C-91")
def test_an_image_that_flaps_is_available_only_once_it_has_run_for_long_enough() -> None:
    assert history("flap", 70) == [
        (0, "Provisioning"),
        (2, "Available"),
        (16, "InstanceCrashing"),
        (17, "Starting"),  # after the first restart
        (27, "Available"),
        (32, "InstanceCrashing"),  # waits 10 s, and from the second restart until it is settled
        (52, "Available"),
        (57, "InstanceCrashing"),
    ]
    assert history("crash-after-15", 70) == history("flap", 70)


def test_without_delays_a_pod_is_available_at_once() -> None:
    at_once = timedelta()
    options = ProviderOptions(start_delay=at_once, available_after=at_once)
    state = derive_pod_state(image("1.0"), at_once, options)
    assert (state.available.status, state.has_started, state.changes_in) == ("True", True, None)


@pytest.mark.spec("C-91")
def test_a_gated_instance_gets_nothing_not_even_the_finalizer() -> None:
    async def scenario(cell: Cell) -> None:
        await cell.add("web-0", "1.0", "Quota")
        await asyncio.sleep(30)
        existing = await cell.get("web-0")
        assert "finalizers" not in str(existing["metadata"])
        assert (await cell.condition("web-0", "Programmed"))[1] == "Pending"
        assert cell.provider.started == []

    run_scenario(scenario)


@pytest.mark.spec("C-91")
def test_an_ungated_instance_runs_its_frozen_spec_and_echoes_the_hash_when_it_runs() -> None:
    async def scenario(cell: Cell) -> None:
        await cell.add("web-0", "slow-5")
        await asyncio.sleep(1)
        existing = await cell.get("web-0")
        assert value_at(existing, "metadata", "finalizers") == [FINALIZER]
        provisioning = ("Unknown", "Provisioning", "Instance is provisioning")
        assert await cell.condition("web-0", "Available") == provisioning
        assert (await cell.condition("web-0", "Programmed"))[:2] == (
            "Unknown",
            "ProgrammingInProgress",
        )
        assert value_at(existing, "status", "controller") is None
        await cell.patch("web-0", {"spec": {"controller": {"templateHash": "v1-changed"}}})
        await asyncio.sleep(10)
        existing = await cell.get("web-0")
        assert string_at(existing, "status", "controller", "observedTemplateHash") == "v1-web-0"
        address = objects_at(existing, "status", "networkInterfaces")[0]
        assert string_at(address, "assignments", "networkIP") == "10.128.0.2"
        available = find_condition(existing, "Available")
        assert value_at(available, "observedGeneration") == 2
        assert (await cell.condition("web-0", "Ready"))[1] == "Pending"
        assert (await cell.condition("web-0", "QuotaGranted"))[1] == "PendingEvaluation"
        assert cell.provider.violations == []

    run_scenario(scenario)


@pytest.mark.spec("C-91")
@pytest.mark.parametrize(
    ("tag", "reason", "message"),
    [
        (
            "image-unavailable",
            "ImageUnavailable",
            f'Image "{IMAGE}:image-unavailable" of container "app" could not be pulled: not found',
        ),
        (
            "config-error",
            "ConfigurationError",
            f'Container "app" could not be started: {ROOT_IMAGE}',
        ),
    ],
)
def test_a_container_that_never_started_is_reported(tag: str, reason: str, message: str) -> None:
    async def scenario(cell: Cell) -> None:
        await cell.add("web-0", tag)
        await asyncio.sleep(3)
        assert await cell.condition("web-0", "Available") == ("False", reason, message)
        programmed = await cell.condition("web-0", "Programmed")
        assert programmed == ("Unknown", "ProgrammingInProgress", message)

    run_scenario(scenario)


@pytest.mark.spec("C-91")
@pytest.mark.parametrize(
    ("tag", "message"),
    [
        ("crash", 'Container "app" ends again and again (exit code 1)'),
        ("oom", 'Container "app" runs out of memory (2Gi)'),
    ],
)
def test_a_container_that_ends_again_and_again_is_reported(tag: str, message: str) -> None:
    async def scenario(cell: Cell) -> None:
        await cell.add("web-0", tag)
        await asyncio.sleep(3)
        expected = ("False", "InstanceCrashing", message)
        assert await cell.condition("web-0", "Available") == expected
        programmed = await cell.condition("web-0", "Programmed")
        assert programmed == ("True", "Programmed", "Instance is programmed")

    run_scenario(scenario)


@pytest.mark.spec("C-91")
def test_a_node_that_does_not_answer_is_reported_until_it_does() -> None:
    async def scenario(cell: Cell) -> None:
        await cell.add("web-0")
        await asyncio.sleep(3)
        cell.provider.set_node_away(is_away=True)
        await asyncio.sleep(1)
        reported = await cell.condition("web-0", "Available")
        assert reported[:2] == ("Unknown", "NodeUnreachable")
        cell.provider.set_node_away(is_away=False)
        await asyncio.sleep(1)
        assert (await cell.condition("web-0", "Available"))[0] == "True"
        assert len(cell.provider.started) == 1

    run_scenario(scenario)


def test_an_ended_instance_reports_its_result() -> None:
    async def scenario(cell: Cell) -> None:
        await cell.add("a", "failed")
        await cell.add("b", "stopped")
        await asyncio.sleep(5)
        assert await cell.condition("a", "Programmed") == ("False", "Failed", "Instance failed")
        assert await cell.condition("b", "Available") == (
            "False",
            "Stopping",
            "Instance has stopped",
        )

    run_scenario(scenario)


def test_without_a_sandbox_nothing_is_done() -> None:
    async def scenario(cell: Cell) -> None:
        await cell.add("vm-0", sandbox=False)
        await asyncio.sleep(5)
        assert cell.provider.started == []

    run_scenario(scenario)


@pytest.mark.spec("C-91")
def test_the_finalizer_is_held_until_the_pod_is_gone() -> None:
    async def scenario(cell: Cell) -> None:
        cell.provider.options.stop_delay = timedelta(seconds=10)
        await cell.add("web-0")
        await asyncio.sleep(3)
        await cell.client.delete(INSTANCES, "web-0", namespace="default")
        await asyncio.sleep(9)
        assert value_at(await cell.get("web-0"), "metadata", "finalizers") == [FINALIZER]
        await asyncio.sleep(2)
        assert await cell.client.get(INSTANCES, "web-0", "default") is None
        assert cell.provider.pods == {}

    run_scenario(scenario)


@pytest.mark.spec("C-91")
def test_what_others_must_not_do_is_recorded() -> None:
    async def scenario(cell: Cell) -> None:
        for name in ("gate", "twice", "foreign"):
            await cell.add(name)
        await asyncio.sleep(3)
        gates: JsonObject = {"controller": {"schedulingGates": [{"name": "Quota"}]}}
        await cell.patch("gate", {"spec": gates})
        await cell.patch("twice", {"metadata": {"finalizers": None}})
        existing = await cell.get("foreign")
        conditions = objects_at(existing, "status", "conditions")
        for entry in conditions:
            if entry["type"] == "Available":
                entry.update(status="False", reason="PendingQuota")
        listed: list[JsonValue] = [*conditions]
        await cell.patch("foreign", {"status": {"conditions": listed}}, "status")
        await asyncio.sleep(3)
        assert sorted(cell.provider.violations) == [
            "default/foreign: foreign write to Available",
            "default/gate: started with a gate",
            "default/twice: started twice for one UID",
        ]

    run_scenario(scenario)
