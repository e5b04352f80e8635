"""Instances that wait for the ConfigMaps and Secrets of their template (referenced-data.md 6)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
import yaml
from cell_builders.documents import NS, a_deployment_document, a_template_document
from cell_builders.world import World, condition_of, gates_of, play, settings_of, uid_of

from compute_api_types import labels
from compute_api_types.referenced_data.annotations import (
    DataError,
    render_error,
    render_expected,
    render_versions,
)
from compute_cell_operator.planes import CELL, CONFIG_MAP, DEPLOYMENT, HUB, INSTANCE, SECRET
from compute_cell_operator.settings import CellSettings
from compute_operator_kit.core.json import Json, JsonObject, decode_json_object, member_object
from compute_operator_kit.core.keys import Kind
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.faults.links import LinkState
from compute_sim_planes.history import Commit

COMPONENT: Final = Path(__file__).parents[4] / "deploy/components/referenced-data/cell"
MARKER: Final = "bWFya2VyLW9mLWEtc2VjcmV0"
MISSING: Final = 'Secret "db" not found in namespace "shop"'
NOT_FOUND: Final = render_error(DataError("SourceNotFound", MISSING))
FEDERATED: Final[dict[str, Json]] = {"referencedData": "on"}
SINGLE: Final[dict[str, Json]] = {
    "referencedData": "on",
    "federation": {"mode": "none"},
    "networking": "off",
}


async def open_world(world: World, **settings: Json) -> CellSettings:
    """The component's rights, and one operator with these settings."""
    text = (COMPONENT / "role.yaml").read_text("utf-8")
    await apply_manifests(world.planes[CELL].connect(), list(yaml.safe_load_all(text)))
    world.start_neighbours()
    chosen = settings_of(**settings)
    world.process(settings=chosen, writes_events=True).start()
    return chosen


def an_object(kind: Kind, name: str, version: str = "", **members: Json) -> JsonObject:
    """As Karmada delivers it; without a version it is somebody's own."""
    metadata: JsonObject = {"name": name, "namespace": NS}
    if version:
        metadata["labels"] = {labels.REFERENCED_DATA: "true"}
        metadata["annotations"] = {labels.SOURCE_VERSION: version}
    data: JsonObject = {"data": {"k": MARKER}}
    return {"apiVersion": "v1", "kind": kind.kind, "metadata": metadata, **data, **members}


def a_template(*secrets: str, config_map: str = "", tag: str = "1.0") -> JsonObject:
    template = a_template_document(tag)
    sources: list[Json] = [{"secretRef": {"name": name}} for name in secrets]
    if config_map:
        sources.append({"configMapRef": {"name": config_map}})
    runtime = member_object(member_object(template, "spec"), "runtime")
    containers = member_object(runtime, "sandbox")["containers"]
    assert isinstance(containers, list)
    assert isinstance(containers[0], dict)
    containers[0]["envFrom"] = sources
    return template


def expecting(versions: dict[str, str], error: str | None = None) -> JsonObject:
    """The annotations of a deployment that expects these source versions."""
    return {
        labels.EXPECTED_REFERENCED_DATA: render_expected(sorted(versions)),
        labels.EXPECTED_REFERENCED_VERSIONS: render_versions(versions),
        labels.REFERENCED_DATA_ERROR: error,
    }


async def deploy(
    world: World, replicas: int, template: JsonObject, annotations: JsonObject | None = None
) -> None:
    document = a_deployment_document("web", replicas, template=template)
    stated = {name: text for name, text in (annotations or {}).items() if text is not None}
    member_object(member_object(document, "metadata"), "annotations").update(stated)
    await world.create(CELL, document)


async def change(world: World, template: JsonObject, annotations: JsonObject) -> None:
    patch: JsonObject = {"metadata": {"annotations": annotations}, "spec": {"template": template}}
    await world.patch(CELL, DEPLOYMENT, "web", patch)


async def data_of(world: World, name: str = "web-0") -> tuple[str, str]:
    if name not in await world.instances():
        return "", ""
    return condition_of(await world.instance(name), "ReferencedDataReady")[:2]


async def ready_of(world: World) -> tuple[str, str, str]:
    return condition_of(await world.deployment(), "Ready")


async def are_running(world: World, *names: str) -> bool:
    if await world.instances() != sorted(names):
        return False
    found = [await world.instance(name) for name in names]
    return all(condition_of(one, "Ready")[0] == "True" for one in found)


@pytest.mark.spec("RD-04")
def test_an_instance_starts_when_every_copy_is_there() -> None:
    async def scenario(world: World) -> None:
        await open_world(world, **FEDERATED)
        versions = {"Secret/db": "u/5", "ConfigMap/app": "v/7"}
        template = a_template("db", config_map="app")
        await deploy(world, 1, template, expecting(versions))
        await world.eventually(lambda: is_data(world, "False", "AwaitingPropagation"))
        assert gates_of(await world.instance("web-0"))[-1] == "ReferencedData"
        created = _created_gates(world)
        assert created == ["Network", "Quota", "ReferencedData"]
        await world.create(CELL, an_object(SECRET, "db", "u/5"))
        await world.create(CELL, an_object(CONFIG_MAP, "app"))  # not the user's: no label
        await world.sleep(5)
        assert "ReferencedData" in gates_of(await world.instance("web-0"))
        assert not world.provider.pods
        await world.patch(
            CELL,
            CONFIG_MAP,
            "app",
            {
                "metadata": {
                    "labels": {labels.REFERENCED_DATA: "true"},
                    "annotations": {labels.SOURCE_VERSION: "v/8"},
                }
            },
        )
        await world.eventually(lambda: are_running(world, "web-0"))
        assert await data_of(world) == ("True", "Ready")

    play(scenario)


def test_the_wait_for_data_is_counted_and_measured() -> None:
    async def scenario(world: World) -> None:
        await open_world(world, **FEDERATED)
        (process,) = world.processes
        await deploy(world, 1, a_template("db"), expecting({"Secret/db": "u/5"}))
        await world.sleep(20)
        waiting = "compute_referenced_data_waiting_instances"
        awaiting = (waiting, (("reason", "AwaitingPropagation"),))
        assert process.measures.gauges[awaiting] == 1
        await world.create(CELL, an_object(SECRET, "db", "u/5"))
        await world.eventually(lambda: are_running(world, "web-0"))
        await world.sleep(20)
        assert process.measures.gauges[awaiting] == 0
        waits = process.measures.values[("compute_referenced_data_gate_wait_seconds", ())]
        assert [20 <= wait < 30 for wait in waits] == [True]
        assert len(process.measures.values[("compute_quota_wait_seconds", ())]) == 1

    play(scenario)


async def is_data(world: World, status: str, reason: str, name: str = "web-0") -> bool:
    return await data_of(world, name) == (status, reason)


def _created_gates(world: World) -> list[str]:
    """The gates with which the first Instance was created."""
    commits = (one for one in world.history.of(Commit) if one.kind == "Instance")
    return gates_of(decode_json_object(next(commits).after))


@pytest.mark.spec("RD-07")
def test_no_instance_starts_on_a_copy_older_than_the_edit_before_its_restart() -> None:
    async def scenario(world: World) -> None:
        await open_world(world, **FEDERATED)
        await world.create(CELL, an_object(SECRET, "db", "u/5"))
        await deploy(world, 1, a_template("db"), expecting({"Secret/db": "u/5"}))
        await world.eventually(lambda: are_running(world, "web-0"))
        before = uid_of(await world.instance("web-0"))
        await change(world, a_template("db", tag="2.0"), expecting({"Secret/db": "u/9"}))
        await world.sleep(30)
        assert uid_of(await world.instance("web-0")) == before
        status, reason, message = await ready_of(world)
        assert (status, reason) == ("False", "ReferencedDataNotReady")
        assert message.startswith('Instance "web-0" keeps running the former template: Waiting for')
        patch: JsonObject = {"metadata": {"annotations": {labels.SOURCE_VERSION: "u/9"}}}
        await world.patch(CELL, SECRET, "db", patch)

        async def is_replaced() -> bool:
            is_running = await are_running(world, "web-0")
            return is_running and uid_of(await world.instance("web-0")) != before

        await world.eventually(is_replaced)

    play(scenario)


@pytest.mark.spec("RD-06")
def test_a_roll_to_a_missing_secret_takes_no_running_instance_down() -> None:
    async def scenario(world: World) -> None:
        await open_world(world, **FEDERATED)
        await deploy(world, 3, a_template_document("1.0"))
        names = ("web-0", "web-1", "web-2")
        await world.eventually(lambda: are_running(world, *names))
        before = [uid_of(await world.instance(name)) for name in names]
        await change(world, a_template("db"), expecting({"Secret/db": "u/1"}, NOT_FOUND))
        await world.sleep(60)
        assert [uid_of(await world.instance(name)) for name in names] == before
        status, reason, shown = await ready_of(world)
        assert (status, reason) == ("False", "SourceNotFound")
        assert shown == f'Instance "web-2" keeps running the former template: {MISSING}'
        await world.create(CELL, an_object(SECRET, "db", "u/1"))
        await change(world, a_template("db"), expecting({"Secret/db": "u/1"}))

        async def is_rolled() -> bool:
            if not await are_running(world, *names):
                return False
            return not {uid_of(await world.instance(name)) for name in names} & set(before)

        await world.eventually(is_rolled, within=120)

    play(scenario)


@pytest.mark.spec("RD-05")
def test_a_source_that_is_missing_is_shown_and_cured_without_another_act() -> None:
    async def scenario(world: World) -> None:
        await open_world(world, **FEDERATED)
        await deploy(world, 1, a_template("db"), expecting({"Secret/db": "u/1"}, NOT_FOUND))
        await world.eventually(lambda: is_data(world, "False", "SourceNotFound"), within=5)

        async def is_shown() -> bool:
            shown = ("False", "SourceNotFound", f'Instance "web-0": {MISSING}')
            return await ready_of(world) == shown

        await world.eventually(is_shown, within=5)
        await world.create(CELL, an_object(SECRET, "db", "u/1"))
        patch: JsonObject = {"metadata": {"annotations": expecting({"Secret/db": "u/1"})}}
        await world.patch(CELL, DEPLOYMENT, "web", patch)
        await world.eventually(lambda: are_running(world, "web-0"))

    play(scenario)


@pytest.mark.spec("RD-15")
def test_a_copy_that_goes_later_changes_nothing_on_a_started_instance() -> None:
    async def scenario(world: World) -> None:
        await open_world(world, **FEDERATED)
        await world.create(CELL, an_object(SECRET, "db", "u/5"))
        await deploy(world, 1, a_template("db"), expecting({"Secret/db": "u/5"}))
        await world.eventually(lambda: are_running(world, "web-0"))
        before = uid_of(await world.instance("web-0"))
        await world.delete(CELL, SECRET, "db")
        await world.sleep(60)
        assert uid_of(await world.instance("web-0")) == before
        assert await are_running(world, "web-0")
        assert await data_of(world) == ("True", "Ready")

    play(scenario)


@pytest.mark.spec("RD-21")
def test_a_broken_instance_is_replaced_from_local_copies_while_the_hub_is_away() -> None:
    async def scenario(world: World) -> None:
        await open_world(world, **FEDERATED)
        await world.create(CELL, an_object(SECRET, "db", "u/5"))
        await deploy(world, 1, a_template("db"), expecting({"Secret/db": "u/5"}))
        await world.eventually(lambda: are_running(world, "web-0"))
        before = uid_of(await world.instance("web-0"))
        world.links[HUB].cut(LinkState.REFUSED)
        await world.delete(CELL, INSTANCE, "web-0")

        async def is_replaced() -> bool:
            is_running = await are_running(world, "web-0")
            return is_running and uid_of(await world.instance("web-0")) != before

        await world.eventually(is_replaced)

    play(scenario)


@pytest.mark.spec("RD-22")
def test_a_malformed_annotation_holds_its_own_instances_alone() -> None:
    async def scenario(world: World) -> None:
        await open_world(world, **FEDERATED)
        await world.create(CELL, an_object(SECRET, "db", "u/5"))
        broken: JsonObject = {labels.EXPECTED_REFERENCED_DATA: '["Secret/db"'}
        await deploy(world, 1, a_template("db"), broken)
        other = a_deployment_document("api", 1)
        await world.create(CELL, other)

        async def is_other_running() -> bool:
            names = await world.instances()
            if "api-0" not in names or "web-0" not in names:
                return False
            one = await world.instance("api-0")
            return condition_of(one, "Ready")[0] == "True"

        await world.eventually(is_other_running)
        await world.eventually(lambda: is_data(world, "Unknown", "Resolving"))
        assert "ReferencedData" in gates_of(await world.instance("web-0"))

    play(scenario)


@pytest.mark.spec("RD-24")
def test_in_a_single_cluster_the_gate_opens_when_the_source_exists() -> None:
    async def scenario(world: World) -> None:
        await open_world(world, **SINGLE)
        await deploy(world, 1, a_template("db"))
        await world.eventually(lambda: is_data(world, "False", "SourceNotFound"), within=5)
        await world.create(CELL, an_object(SECRET, "db"))
        await world.eventually(lambda: are_running(world, "web-0"))
        written = [one for one in world.history.of(Commit) if one.kind in {"Secret", "ConfigMap"}]
        assert len(written) == 1  # the user's own

    play(scenario)


@pytest.mark.spec("RD-25")
def test_switched_off_nothing_is_read_and_no_gate_is_added() -> None:
    async def scenario(world: World) -> None:
        world.start_neighbours()  # without the component's rights: `play` fails at a refusal
        await deploy(world, 1, a_template("db"))
        world.process().start()
        await world.eventually(lambda: are_running(world, "web-0"))
        assert await data_of(world) == ("", "")
        assert _created_gates(world) == ["Network", "Quota"]

    play(scenario)


def test_turning_it_off_starts_what_waits_and_deletes_nothing() -> None:
    async def scenario(world: World) -> None:
        await open_world(world, **FEDERATED)
        await deploy(world, 1, a_template("db"))
        await world.eventually(lambda: is_data(world, "Unknown", "Resolving"))
        before = uid_of(await world.instance("web-0"))
        await world.processes[0].stop()
        world.process("next").start()
        await world.eventually(lambda: are_running(world, "web-0"))
        assert uid_of(await world.instance("web-0")) == before

    play(scenario)


@pytest.mark.spec("RD-23")
def test_nothing_is_written_at_rest_or_after_a_restart() -> None:
    async def scenario(world: World) -> None:
        chosen = await open_world(world, **FEDERATED)
        await world.create(CELL, an_object(SECRET, "db", "u/5"))
        await deploy(world, 1, a_template("db"), expecting({"Secret/db": "u/5"}))
        await world.eventually(lambda: are_running(world, "web-0"))
        await world.sleep(60)
        assert await world.rests() == []
        await world.processes[0].stop()
        world.process("next", settings=chosen).start()
        assert await world.rests(identity="next") == []

    play(scenario)


@pytest.mark.spec("RD-20")
def test_no_cache_of_the_operator_holds_a_value() -> None:
    async def scenario(world: World) -> None:
        await open_world(world, **FEDERATED)
        kept = {"kubectl.kubernetes.io/last-applied-configuration": MARKER}
        secret = an_object(SECRET, "db", "u/5")
        member_object(member_object(secret, "metadata"), "annotations").update(kept)
        await world.create(CELL, secret)
        await deploy(world, 1, a_template("db"), expecting({"Secret/db": "u/5"}))
        await world.eventually(lambda: are_running(world, "web-0"))
        store = world.processes[0].operator.planes.find_store(CELL, SECRET)
        assert store is not None
        snapshots = store.snapshots()
        assert isinstance(snapshots, tuple)
        assert [one.metadata.name for one in snapshots] == ["db"]
        assert all(MARKER.encode() not in one.raw for one in snapshots)

    play(scenario)
