"""Looks at a simulated hub: no cell that is heard is ever dark, and one that died soon is."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from management_builders.documents import a_cluster_document
from management_builders.world import Process, World, play, settings_of

from compute_api_types import labels, names
from compute_kubeconfig.problems import ConfigurationError
from compute_management_operator.hub.hearing.judge import CellState
from compute_management_operator.hub.metrics import CELL_LEASE_AGE, CELLS, DARK_TRANSITIONS
from compute_management_operator.planes import CLUSTER, HUB, LEASE
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.json import JsonObject
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.json_types import JsonObject as Manifest

BEAT = timedelta(seconds=15)


@dataclass(frozen=True)
class SkewedClock:
    """A wall clock that is wrong; the monotonic one cannot be."""

    inner: Clock
    skew: timedelta

    def now(self) -> datetime:
        return self.inner.now() + self.skew

    def monotonic(self) -> timedelta:
        return self.inner.monotonic()

    async def sleep(self, delay: timedelta) -> None:
        await self.inner.sleep(delay)


@dataclass
class Cells:
    """Cells of a hub, of which only Lease and Cluster are there."""

    world: World
    names: tuple[str, ...]
    silent: set[str] = field(default_factory=set[str])
    is_hub_away: bool = False
    tasks: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])

    async def join(self) -> None:
        hub = self.world.planes[HUB].connect()
        for number, cell in enumerate(self.names):
            await self.world.create(HUB, a_cluster_document(cell, f"C{number}"))
            await self.set_ready(cell)
            lease: Manifest = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {
                    "name": names.derive_cell_lease(cell),
                    "namespace": names.CELL_LEASES,
                },
            }
            await apply_manifests(hub, [lease])
            skew = timedelta(hours=1) * (number % 3 - 1)
            beat = self._beat(cell, skew)
            self.tasks.append(asyncio.create_task(beat, name=cell))

    async def set_ready(self, cell: str, *, is_ready: bool = True) -> None:
        condition: JsonObject = {
            "type": "Ready",
            "status": "True" if is_ready else "False",
            "reason": "ClusterReady" if is_ready else "ClusterNotReachable",
            "message": "",
            "lastTransitionTime": "2026-03-01T00:00:00Z",
        }
        await self.world.set_status(HUB, CLUSTER, cell, {"conditions": [condition]}, "")

    async def renew(self, cell: str, now: datetime) -> None:
        spec: JsonObject = {
            "holderIdentity": cell,
            "leaseDurationSeconds": 60,
            "renewTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }
        name = names.derive_cell_lease(cell)
        await self.world.patch(HUB, LEASE, name, {"spec": spec}, names.CELL_LEASES)

    async def _beat(self, cell: str, skew: timedelta) -> None:
        random = self.world.clock.random(cell)
        while True:
            await self.world.clock.sleep(BEAT * (0.9 + 0.2 * random.random()))
            if cell not in self.silent and not self.is_hub_away:
                await self.renew(cell, self.world.clock.now() + skew)

    async def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.wait(self.tasks)


def states(process: Process) -> dict[str, float]:
    return {
        dict(series)["state"]: number
        for (name, series), number in process.measures.gauges.items()
        if name == CELLS and number
    }


def darkened(world: World) -> int:
    return sum(
        process.measures.total(DARK_TRANSITIONS, direction="dark") for process in world.processes
    )


async def a_site_dies(cells: Cells, process: Process, cell: str) -> None:
    """Darkness within 75 s of its last renewal, so that the soak could have failed."""
    world = cells.world
    cells.silent.add(cell)
    await world.sleep(30)
    await cells.set_ready(cell, is_ready=False)
    await world.sleep(46)
    assert states(process).get(CellState.DARK.value) == 1
    assert darkened(world) == 1
    cells.silent.discard(cell)
    await cells.set_ready(cell)
    await world.sleep(60)
    assert CellState.DARK.value not in states(process)


@pytest.mark.spec("DS-08")
@pytest.mark.parametrize(
    ("number", "hours"), [(10, 2), pytest.param(200, 24, marks=pytest.mark.slow)]
)
def test_a_soak_declares_no_site_dark_that_was_heard(number: int, hours: int) -> None:
    async def scenario(world: World) -> None:
        random = world.clock.random("soak")
        cells = Cells(world, tuple(f"cell-{one}" for one in range(number)))
        await cells.join()
        process = world.process("operator-0")
        process.start()
        await world.sleep(120)
        end, round_ = world.clock.now() + timedelta(hours=hours), 0
        while world.clock.now() < end:
            round_ += 1
            one = cells.names[int(random.random() * number)]
            match round_ % 5:
                case 0:  # the hub restarts: no cell and no process reaches it
                    cells.is_hub_away = True
                    world.links[HUB].cut()
                    await world.sleep(20 + 200 * random.random())
                    cells.is_hub_away = False
                    world.links[HUB].heal()
                case 1:  # management restarts, with a clock that is wrong
                    await process.stop()
                    await world.sleep(200 * random.random())
                    skew = timedelta(hours=2 * random.random() - 1)
                    clock = SkewedClock(world.clock, skew)
                    process = world.process(f"operator-{round_}", clock=clock)
                    process.start()
                case 2:  # management alone is cut off from the hub
                    world.links[HUB].cut()
                    await world.sleep(20 + 200 * random.random())
                    world.links[HUB].heal()
                case 3:  # an operator of a cell is away, and Karmada reaches the cell
                    cells.silent.add(one)
                    await world.sleep(30 + 200 * random.random())
                    cells.silent.discard(one)
                case _:  # Karmada cannot reach a cell that renews its Lease
                    await cells.set_ready(one, is_ready=False)
                    await world.sleep(30 + 200 * random.random())
                    await cells.set_ready(one)
            await world.sleep(60 + 60 * random.random())
            assert darkened(world) == 0, f"after {round_} rounds"
        await world.sleep(120)
        assert states(process) == {CellState.HEARD.value: number}
        await a_site_dies(cells, process, cells.names[0])
        await cells.stop()

    play(scenario, is_clean=False)


@pytest.mark.spec("DS-10")
def test_zero_never_darkens_a_cell() -> None:
    async def scenario(world: World) -> None:
        cells = Cells(world, ("dfw-1", "ord-1"))
        await cells.join()
        process = world.process(settings=settings_of(cellHealth={"unreachableAfter": "0s"}))
        process.start()
        await world.sleep(120)
        cells.silent.add("ord-1")
        await cells.set_ready("ord-1", is_ready=False)
        await world.sleep(900)
        assert darkened(world) == 0
        assert CellState.DARK.value not in states(process)
        await cells.stop()

    play(scenario)


@pytest.mark.parametrize("text", ["1s", "11m", "60"])
def test_an_illegal_limit_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"cellHealth\.unreachableAfter"):
        settings_of(cellHealth={"unreachableAfter": text})


@pytest.mark.spec("DS-08", "DS-15")
def test_all_sites_at_once_are_withheld() -> None:
    async def scenario(world: World) -> None:
        cells = Cells(world, ("dfw-1", "ord-1", "lhr-1"))
        await cells.join()
        process = world.process()
        process.start()
        await world.sleep(120)
        for cell in cells.names:
            cells.silent.add(cell)
            await cells.set_ready(cell, is_ready=False)
        await world.sleep(300)
        assert states(process) == {CellState.WITHHELD.value: 3}
        assert darkened(world) == 0
        await cells.stop()

    play(scenario)


@pytest.mark.spec("DS-15")
def test_the_age_of_each_lease_is_measured() -> None:
    async def scenario(world: World) -> None:
        cells = Cells(world, ("dfw-1", "ord-1"))
        await cells.join()
        process = world.process()
        process.start()
        await world.sleep(120)
        cells.silent.add("ord-1")
        await world.sleep(100)
        ages = {
            dict(series)["cell"]: age
            for (name, series), age in process.measures.gauges.items()
            if name == CELL_LEASE_AGE
        }
        assert ages["dfw-1"] <= 20
        assert 80 <= ages["ord-1"] <= 120
        assert states(process) == {CellState.HEARD.value: 1, CellState.SILENT.value: 1}
        await cells.stop()

    play(scenario)


@pytest.mark.spec("DS-08", "DS-13")
def test_garbage_in_a_lease_concerns_its_own_cell_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)

    async def scenario(world: World) -> None:
        cells = Cells(world, ("dfw-1", "ord-1"))
        await cells.join()
        process = world.process()
        process.start()
        await world.sleep(120)
        cells.silent.add("ord-1")
        garbage: JsonObject = {
            "spec": {"holderIdentity": "dfw-1", "leaseDurationSeconds": 2**31 - 1}
        }
        name = names.derive_cell_lease("ord-1")
        await world.patch(HUB, LEASE, name, garbage, names.CELL_LEASES)
        await world.sleep(300)
        assert states(process) == {CellState.HEARD.value: 2}
        await world.sleep(360)  # whatever it states, ten minutes are the longest patience
        assert states(process) == {CellState.HEARD.value: 1, CellState.SILENT.value: 1}
        assert [one for one in caplog.records if one.levelno >= logging.ERROR] == []
        await cells.stop()

    play(scenario)


@pytest.mark.spec("DS-11")
def test_an_annotation_that_means_nothing_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)

    async def scenario(world: World) -> None:
        cells = Cells(world, ("dfw-1", "ord-1"))
        await cells.join()
        process = world.process()
        process.start()
        await world.sleep(60)
        note: JsonObject = {"metadata": {"annotations": {labels.UNREACHABLE: "perhaps"}}}
        await world.patch(HUB, CLUSTER, "ord-1", note, "")
        await world.sleep(120)
        assert states(process) == {CellState.HEARD.value: 2}
        said = [one for one in caplog.records if "annotation" in one.getMessage()]
        assert len(said) == 1
        await cells.stop()

    play(scenario)
