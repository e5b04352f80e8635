"""Instances wait for the ConfigMaps and Secrets that their template names; a federation brings
them to their cells.
"""

from __future__ import annotations

import base64
import random
from dataclasses import replace
from functools import partial
from typing import Final

import pytest

from compute_api_types import labels
from e2e.world.scenario import (
    CLUSTER_POLICY,
    CONFIG_MAP,
    DEPLOYMENT,
    DFW,
    INSTANCE,
    ORD,
    POLICY,
    RESOURCE_BINDING,
    SECRET,
    SINGLE,
    WORK,
    WORKLOAD,
    JsonObject,
    JsonValue,
    Needs,
    Plane,
    RefusedError,
    World,
    a_placement,
    a_template,
    a_workload,
    add_component,
    annotations_of,
    condition_of,
    deliver_data,
    gates_of,
    labels_of,
    object_at,
    objects_at,
    scenario,
    text_at,
    uid_of,
    version_of,
    within,
)

NAME: Final = "web-default-dfw-0"
VALUE: Final = base64.b64encode(b"a password").decode()
ON: Final[JsonObject] = {"referencedData": "on"}
ONE_CLUSTER: Final = Needs(
    cells=(SINGLE,),
    has_networking=False,
    is_single=True,
    is_alone=True,
    settings={"management": ON},
)


FEDERATION: Final = Needs(cells=(DFW, ORD), is_alone=True, reads_data=True)
AT_NIGHT: Final = replace(FEDERATION, is_slow=True)
USER: Final = "system:serviceaccount:compute-system:compute-management-operator"


def a_config_map(name: str, value: str = "1") -> JsonObject:
    metadata: JsonObject = {"name": name}
    data: JsonObject = {"k": value}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def a_naming_workload(
    *cities: str, config_map: str = "", names: tuple[str, ...] = ()
) -> JsonObject:
    workload = a_workload("web", a_placement("default", *cities, replicas=1))
    spec = workload["spec"]
    assert isinstance(spec, dict)
    spec["template"] = naming(*names, config_map=config_map)
    return workload


async def is_ready(project: Plane) -> None:
    assert condition_of(await project.get(WORKLOAD, "web"), "Ready").status == "True"


def a_secret(name: str) -> JsonObject:
    metadata: JsonObject = {"name": name}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"k": VALUE}}


def naming(*secrets: str, tag: str = "1.0", config_map: str = "") -> JsonObject:
    template = a_template(tag)
    container: JsonObject = {"name": "web", "image": f"registry.example.net/web:{tag}"}
    sources: list[JsonValue] = [{"secretRef": {"name": name}} for name in secrets]
    if config_map:
        sources.append({"configMapRef": {"name": config_map}})
    spec = template["spec"]
    assert isinstance(spec, dict)
    runtime = spec["runtime"]
    assert isinstance(runtime, dict)
    runtime["sandbox"] = {"containers": [{**container, "envFrom": sources}]}
    return template


@pytest.mark.spec("RD-24")
@scenario(ONE_CLUSTER)
async def test_an_instance_of_a_single_cluster_waits_for_its_secret(world: World) -> None:
    project, operator = world.project, world.operator_of(SINGLE)
    await operator.stop()
    await add_component(project, "referenced-data/cell")
    await operator.start(ON)
    workload = a_workload("web")
    spec = workload["spec"]
    assert isinstance(spec, dict)
    spec["template"] = naming("db")
    await project.create(workload)

    async def waits() -> None:
        for kind, name in ((INSTANCE, NAME), (DEPLOYMENT, "web-default-dfw"), (WORKLOAD, "web")):
            ready = condition_of(await project.get(kind, name), "Ready")
            assert (ready.status, ready.reason) == ("False", "SourceNotFound"), (kind, ready)
            assert 'Secret "db" not found in namespace' in ready.message

    await world.eventually(waits, within(30))
    assert gates_of(await project.get(INSTANCE, NAME)) == ["ReferencedData"]
    created = await project.create(a_secret("db"))

    async def runs() -> None:
        assert condition_of(await project.get(WORKLOAD, "web"), "Ready").status == "True"

    await world.eventually(runs, within(60))
    first = uid_of(await project.get(INSTANCE, NAME))
    await project.patch(WORKLOAD, "web", {"spec": {"template": naming("db", "token")}})

    async def is_held() -> None:
        ready = condition_of(await project.get(WORKLOAD, "web"), "Ready")
        assert (ready.status, ready.reason) == ("False", "SourceNotFound")
        assert "keeps running the former template" in ready.message

    await world.eventually(is_held, within(30))
    instance = await project.get(INSTANCE, NAME)
    assert uid_of(instance) == first
    assert condition_of(instance, "Ready").status == "True"
    await project.create(a_secret("token"))

    async def is_rolled() -> None:
        assert uid_of(await project.get(INSTANCE, NAME)) != first
        await runs()

    await world.eventually(is_rolled, within(60))
    stored = await project.get(SECRET, "db")
    assert stored["metadata"] == created["metadata"]


@pytest.mark.spec("RD-02")
@pytest.mark.spec("RD-04")
@scenario(AT_NIGHT)
async def test_data_of_a_template_is_in_both_cities_before_its_instances_run(world: World) -> None:
    project = world.project
    await deliver_data(world)
    await project.create(a_config_map("app"))
    await project.create(a_secret("db"))
    await project.create(a_naming_workload("DFW", "ORD", config_map="app", names=("db",)))
    await world.eventually(lambda: is_ready(project), within(90, real=180))
    hub = await world.hub_of(project)
    for code in ("dfw", "ord"):
        policy = await hub.get(POLICY, f"city-{code}")
        assert object_at(policy, "spec")["propagateDeps"] is True
        assert len(objects_at(policy, "spec", "resourceSelectors")) == 1
    for cell in (DFW, ORD):
        place = await world.cell_of(cell, project)
        assert text_at(await place.get(CONFIG_MAP, "app"), "data", "k") == "1"
        assert text_at(await place.get(SECRET, "db"), "data", "k") == VALUE
        name = f"web-default-{cell.city.lower()}-0"
        versions = place.versions(INSTANCE, name)
        gates = [gates_of(one.object) for one in versions if one.object]
        assert "ReferencedData" in gates[0]
        assert gates[0][-1] == "ReferencedData"
    companion = await hub.get(SECRET, "db")
    place_of = f"{project.namespace}/web-default-"
    named = f'["{place_of}dfw","{place_of}ord"]'
    annotations = object_at(companion, "metadata", "annotations")
    assert annotations["compute.datumapis.com/referenced-by"] == named


@pytest.mark.spec("RD-05")
@scenario(FEDERATION)
async def test_a_missing_secret_is_named_everywhere_and_its_creation_is_enough(
    world: World,
) -> None:
    project = world.project
    await deliver_data(world)
    await project.create(a_naming_workload("DFW", names=("db",)))
    message = f'Secret "db" not found in namespace "{project.namespace}"'

    async def is_named() -> None:
        for kind, name in ((INSTANCE, NAME), (DEPLOYMENT, "web-default-dfw"), (WORKLOAD, "web")):
            ready = condition_of(await project.get(kind, name), "Ready")
            assert (ready.status, ready.reason) == ("False", "SourceNotFound"), (kind, ready)
            assert message in ready.message

    await world.eventually(is_named, within(5, real=30))
    await project.create(a_secret("db"))
    await world.eventually(lambda: is_ready(project), within(30, real=90))


@pytest.mark.spec("RD-08")
@pytest.mark.spec("RD-15")
@scenario(AT_NIGHT)
async def test_an_edit_reaches_the_cell_and_a_deleted_source_leaves_it(world: World) -> None:
    project = world.project
    await deliver_data(world)
    await project.create(a_config_map("app"))
    await project.create(a_naming_workload("DFW", config_map="app"))
    await world.eventually(lambda: is_ready(project), within(90, real=180))
    cell = await world.cell_of(DFW, project)
    first = uid_of(await cell.get(INSTANCE, NAME))
    await project.patch(CONFIG_MAP, "app", {"data": {"k": "2"}})

    async def follows() -> None:
        assert text_at(await cell.get(CONFIG_MAP, "app"), "data", "k") == "2"

    await world.eventually(follows, within(15, real=60))
    await project.delete(CONFIG_MAP, "app")

    async def is_withdrawn() -> None:
        hub = await world.hub_of(project)
        await hub.expect_gone(CONFIG_MAP, "app")
        await cell.expect_gone(CONFIG_MAP, "app")

    await world.eventually(is_withdrawn, within(15, real=60))
    instance = await cell.get(INSTANCE, NAME)
    assert uid_of(instance) == first
    assert condition_of(instance, "Ready").status == "True"


@pytest.mark.spec("RD-09")
@scenario(AT_NIGHT)
async def test_data_goes_with_its_workload_though_management_is_killed(world: World) -> None:
    project = world.project
    await deliver_data(world)
    await project.create(a_config_map("app"))
    await project.create(a_secret("db"))
    await project.create(a_naming_workload("DFW", config_map="app", names=("db",)))
    await world.eventually(lambda: is_ready(project), within(90, real=180))
    await project.delete(WORKLOAD, "web")
    await world.sleep(0.5, real=1)
    await world.management.kill()
    await world.management.start(ON)

    async def is_gone() -> None:
        hub, cell = await world.hub_of(project), await world.cell_of(DFW, project)
        for plane in (hub, cell):
            await plane.expect_gone(CONFIG_MAP, "app")
            await plane.expect_gone(SECRET, "db")
        await hub.expect_gone(RESOURCE_BINDING, "app-configmap", "db-secret")

    await world.eventually(is_gone, within(60, real=180))
    await world.stays(is_gone, within(30, real=10))
    await project.get(SECRET, "db")


@pytest.mark.spec("RD-19")
@scenario(AT_NIGHT)
async def test_no_cell_reads_data_on_the_hub_and_management_writes_only_companions(
    world: World,
) -> None:
    project = world.project
    await deliver_data(world)
    await project.create(a_secret("db"))
    await project.create(a_naming_workload("DFW", names=("db",)))
    await world.eventually(lambda: is_ready(project), within(90, real=180))
    hub = await world.hub_of(project)
    cell = hub.as_user("compute:cell:dfw-1")
    for kind, plane in ((SECRET, cell), (WORK, cell.in_namespace("karmada-es-dfw-1"))):
        with pytest.raises(RefusedError) as refused:
            await plane.list(kind)
        assert refused.value.status == 403
    management = hub.as_user(USER)
    with pytest.raises(RefusedError) as unlabelled:
        await management.create(a_secret("own"))
    assert unlabelled.value.status == 403
    labelled = a_secret("own")
    metadata: JsonObject = {"compute.datumapis.com/referenced-data": "true"}
    labelled["metadata"] = {"name": "own", "labels": metadata}
    with pytest.raises(RefusedError) as outside:
        await management.in_namespace("default").create(labelled)
    assert outside.value.status == 403


# --- restarts while Karmada is slow ---------------------------------------------------------------


async def restart_on_edits(world: World, times: int) -> None:
    """Each time a ConfigMap is edited and its Workload restarted at once, while Karmada does not
    reach the cell for a moment, from before the one or after the other.
    """
    project, chance = world.project, random.Random(7)  # noqa: S311 - repeatable, not a secret
    await deliver_data(world)
    await project.create(a_config_map("app", "0"))
    await project.create(a_naming_workload("DFW", config_map="app"))
    await world.eventually(lambda: is_ready(project), within(90, real=180))
    cell = await world.cell_of(DFW, project)
    for number in range(1, times + 1):
        is_early = chance.random() < 0.5
        if is_early:
            await world.backend.cut_member(DFW.name)
        await project.patch(CONFIG_MAP, "app", {"data": {"k": str(number)}})
        restart: JsonObject = {"metadata": {"annotations": {labels.RESTARTED_AT: str(number)}}}
        await project.patch(WORKLOAD, "web", {"spec": {"template": restart}})
        await world.sleep(chance.random() * 0.5)
        if not is_early:
            await world.backend.cut_member(DFW.name)
        await world.sleep(chance.random() * 3)
        await world.backend.heal_member(DFW.name)
        await world.eventually(partial(runs_with, cell, number), within(60, real=180))
    if world.backend.name == "sim":  # a real cell's ConfigMaps are not recorded
        assert find_starts_on_old_data(cell) == []


async def runs_with(cell: Plane, number: int) -> None:
    instance = await cell.get(INSTANCE, NAME)
    assert annotations_of(instance).get(labels.RESTARTED_AT) == str(number)
    assert condition_of(instance, "Ready").status == "True"
    assert int(text_at(await cell.get(CONFIG_MAP, "app"), "data", "k")) >= number


def find_starts_on_old_data(cell: Plane) -> list[str]:
    """Instances that lost their gate while the copy was older than the edit before the restart."""
    changes = [(int(version_of(one.object)), one.object) for one in cell.versions(INSTANCE, NAME)]
    changes += [(int(version_of(one.object)), one.object) for one in cell.versions(CONFIG_MAP)]
    wrong: list[str] = []
    started: set[str] = set()
    value = 0
    for version, changed in sorted(changes, key=lambda change: change[0]):
        if text_at(changed, "kind") == "ConfigMap":
            value = int(text_at(changed, "data", "k"))
        elif "ReferencedData" not in gates_of(changed) and uid_of(changed) not in started:
            started.add(uid_of(changed))
            restart = int(str(annotations_of(changed).get(labels.RESTARTED_AT, "0")))
            if value < restart:
                wrong.append(f"restart {restart} began on {value} at version {version}")
    assert len(started) > 1, "no Instance was started"
    return wrong


@pytest.mark.spec("RD-07")
@scenario(AT_NIGHT)
async def test_no_restart_begins_on_data_older_than_the_edit_before_it(world: World) -> None:
    await restart_on_edits(world, 5)


@pytest.mark.slow
@pytest.mark.spec("RD-07")
@scenario(AT_NIGHT)
async def test_none_of_200_restarts_begins_on_data_older_than_the_edit_before_it(
    world: World,
) -> None:
    await restart_on_edits(world, 200)


# --- the policy of the network services -----------------------------------------------------------


def a_broadcast() -> JsonObject:
    """As NSO installs it, to one cell that stands for its gateways."""
    expression: JsonObject = {"key": labels.UPSTREAM_NAMESPACE, "operator": "Exists"}
    selectors: list[JsonValue] = [
        {"apiVersion": "v1", "kind": kind, "labelSelector": {"matchExpressions": [expression]}}
        for kind in ("ConfigMap", "Secret")
    ]
    return {
        "apiVersion": CLUSTER_POLICY.api_version,
        "kind": CLUSTER_POLICY.name,
        "metadata": {"name": "nso-resources"},
        "spec": {
            "resourceSelectors": selectors,
            "conflictResolution": "Overwrite",
            "placement": {"clusterAffinity": {"clusterNames": [ORD.name]}},
        },
    }


@pytest.mark.spec("RD-16")
@scenario(FEDERATION)
async def test_a_companion_is_not_broadcast_by_the_policy_of_the_network_services(
    world: World,
) -> None:
    project = world.project
    await deliver_data(world)
    await world.hub.create(a_broadcast())
    for source in (a_config_map("app"), a_secret("db")):
        object_at(source, "metadata")["labels"] = {labels.UPSTREAM_NAMESPACE: project.namespace}
        await project.create(source)
    await project.create(a_naming_workload("DFW", config_map="app", names=("db",)))
    await world.eventually(lambda: is_ready(project), within(90, real=180))
    hub, elsewhere = await world.hub_of(project), await world.cell_of(ORD, project)
    for kind, name in ((CONFIG_MAP, "app"), (SECRET, "db")):
        companion = await hub.get(kind, name)
        claims = {key for key in labels_of(companion) if "propagationpolicy" in key}
        assert labels.UPSTREAM_NAMESPACE not in labels_of(companion)
        assert claims == set()
    # What carries the label is broadcast: the policy works.
    theirs = a_config_map("theirs")
    object_at(theirs, "metadata")["labels"] = {labels.UPSTREAM_NAMESPACE: project.namespace}
    await hub.create(theirs)
    await world.eventually(lambda: elsewhere.get(CONFIG_MAP, "theirs"), within(30, real=60))
    await elsewhere.expect_gone(CONFIG_MAP, "app")
    await elsewhere.expect_gone(SECRET, "db")
    await hub.delete(CONFIG_MAP, "theirs")
    await world.hub.delete(CLUSTER_POLICY, "nso-resources")
