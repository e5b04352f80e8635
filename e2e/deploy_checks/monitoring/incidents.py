"""Incidents that alerts are for, each as a scenario, and a day without any.

They use the scenario API of `e2e/scenarios`. Each lasts longer than its alert waits and ends
healed, so that the alert resolves. `alert_cases.py` lists the alerts.
"""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from compute_api_types import labels
from compute_operator_kit.process.certificates import ServingCertificate
from compute_operator_kit.testing.certificates import Authority
from e2e.backends.sim.backend import SimBackend
from e2e.world.components import add_component, deliver_data, restart
from e2e.world.port import ADMIN, PlaneRequest
from e2e.world.scenario import (
    CLAIM,
    CLUSTER,
    DEPLOYMENT,
    DFW,
    HOME,
    HUB,
    INSTANCE,
    MANAGEMENT,
    NAMESPACE,
    ORD,
    SECRET,
    WORKLOAD,
    Cell,
    JsonObject,
    JsonValue,
    Kind,
    Plane,
    World,
    a_bare_deployment,
    a_claim,
    a_hub_instance,
    a_namespace,
    a_placement,
    a_template,
    a_workload,
    condition_of,
    labels_of,
    merge_of,
    name_of,
    object_at,
    within,
)

MINUTE: Final = 60
WD: Final = "web"
# Its operator has no city setting and accepts every deployment it is given.
ORD_WITHOUT_CITY: Final = Cell("ord-1", "ORD", has_city_setting=False)
WEBHOOKS: Final = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    is_namespaced=False,
)
CROWD: Final = 12  # the mass-delete guard applies from ten objects on


async def are_ready(plane: Plane, *names: str) -> None:
    for name in names:
        instance = await plane.get(INSTANCE, name)
        if condition_of(instance, "Ready").status != "True":
            raise AssertionError(f"{name} is not Ready")


async def run(world: World, name: str = WD, city: str = "DFW", replicas: int = 1) -> None:
    await world.project.create(a_bare_deployment(name, city, replicas=replicas))
    names = [f"{name}-{ordinal}" for ordinal in range(replicas)]
    await world.eventually(lambda: are_ready(world.project, *names), within(180))
    await world.sleep(2 * MINUTE)  # scraped at rest, before the incident


def replicas_of(count: int) -> JsonObject:
    return {"spec": {"scaleSettings": {"minReplicas": count}}}


# --- no incident ----------------------------------------------------------------------------------


async def a_day_without_trouble(world: World) -> None:
    """All acts of users, with pauses longer than any alert waits."""
    project = world.project
    placed = [a_placement(city.lower(), city, replicas=2) for city in ("DFW", "ORD")]
    fewer: list[JsonValue] = [placed[0]]
    await project.create(a_workload("web", *placed))
    names = [f"web-{city}-{city}-{ordinal}" for city in ("dfw", "ord") for ordinal in range(2)]
    await world.eventually(lambda: are_ready(project, *names), within(120))
    await world.sleep(20 * MINUTE)
    restart: JsonObject = {"metadata": {"annotations": {labels.RESTARTED_AT: "now"}}}
    await project.patch(WORKLOAD, "web", {"spec": {"template": restart}})
    await world.sleep(10 * MINUTE)
    for operator in (world.management, world.operator_of(DFW), world.operator_of(ORD)):
        await operator.stop()  # an upgrade
        await operator.start()
    await world.sleep(20 * MINUTE)
    await project.patch(WORKLOAD, "web", {"spec": {"placements": fewer}})
    await world.sleep(10 * MINUTE)
    await project.delete(WORKLOAD, "web")
    await world.sleep(20 * MINUTE)


# --- planes that are away -------------------------------------------------------------------------


async def the_hub_is_away(world: World) -> None:
    """E-35 for half an hour, with an Instance lost in the cell meanwhile."""
    project = world.project
    for name in ("edited", "deleted"):
        await run(world, name)
    cell = await world.cell_of(DFW, project)
    await world.settle()
    operators = (world.management, world.operator_of(DFW))
    for operator in operators:
        await operator.cut(HUB)
    await project.create(a_bare_deployment("created"))
    await project.patch(DEPLOYMENT, "edited", replicas_of(2))
    await project.delete(DEPLOYMENT, "deleted")
    await cell.delete(INSTANCE, "edited-0")
    await world.sleep(30 * MINUTE)
    for operator in operators:
        await operator.heal(HUB)
    shown = ("created-0", "edited-0", "edited-1")
    await world.eventually(lambda: are_ready(project, *shown), within(120))
    await world.sleep(10 * MINUTE)


async def a_project_is_away(world: World) -> None:
    """E-36 with an Instance lost in the cell meanwhile, and a project that never answered."""
    project = world.project
    await run(world)
    cell = await world.cell_of(DFW, project)
    await world.settle()
    await world.management.cut(project.name, "late")
    await world.add_project("late")
    await cell.delete(INSTANCE, f"{WD}-0")
    await world.sleep(25 * MINUTE)
    await world.management.heal(project.name, "late")
    await world.eventually(lambda: are_ready(project, f"{WD}-0"), within(120))
    await world.sleep(10 * MINUTE)


async def a_project_is_over_its_budget(world: World) -> None:
    """AT-01: deployments that an API server accepts beyond the limit of admission. No cell serves
    their city code, so that only their own plane is loaded.
    """
    await run(world)
    names = [f"heavy-{number}" for number in range(16)]
    for name in names:
        template = a_template()
        object_at(template, "spec", "runtime", "sandbox")["containers"] = [heavy_container(name)]
        await world.project.create(a_bare_deployment(name, "New York", template=template))
    await world.sleep(20 * MINUTE)
    for name in names:
        await world.project.delete(DEPLOYMENT, name)
    await world.sleep(15 * MINUTE)


def heavy_container(seed: str) -> JsonObject:
    """A container with an environment of 1.2 MB that compresses to no less than half."""
    chance = random.Random(seed)  # noqa: S311 - text, not a secret
    env: list[JsonValue] = [
        {"name": f"E{number}", "value": chance.randbytes(16_000).hex()} for number in range(38)
    ]
    return {"name": "web", "image": "registry.example/web:1", "env": env}


async def quota_cannot_be_asked(world: World) -> None:
    """E-21 for a quarter of an hour."""
    project, operator = world.project, world.operator_of(DFW)
    await operator.cut(project.name)
    await project.create(a_bare_deployment(WD))
    await world.sleep(15 * MINUTE)
    await operator.heal(project.name)
    await world.eventually(lambda: are_ready(project, f"{WD}-0"), within(120))


async def quota_is_not_enforced(world: World) -> None:
    await run(world)


async def a_link_comes_and_goes(world: World) -> None:
    await run(world)
    for _ in range(25 * 3):
        await world.management.cut(HUB)
        await world.sleep(2)
        await world.management.heal(HUB)
        await world.sleep(18)


# --- operators ------------------------------------------------------------------------------------


async def a_cell_has_no_operator(world: World) -> None:
    project, operator = world.project, world.operator_of(DFW)
    await run(world)
    await operator.kill()
    await project.create(a_bare_deployment("second"))
    await world.sleep(15 * MINUTE)
    await operator.start()
    await world.eventually(lambda: are_ready(project, "second-0"), within(120))


async def the_lease_cannot_be_taken(world: World) -> None:
    await run(world)
    await world.management.cut(HOME)
    await world.sleep(5 * MINUTE)
    await world.management.heal(HOME)
    await world.sleep(2 * MINUTE)


async def another_controller_fights_over_an_object(world: World) -> None:
    """Another controller keeps writing a different value to a deployment on the hub."""
    await run(world)
    hub = await world.hub_of(world.project)
    theirs = merge_of(labels={labels.UPSTREAM_NAMESPACE: None})
    for _ in range(11 * MINUTE):
        await hub.patch(DEPLOYMENT, WD, theirs)
        await world.sleep(2)


async def break_writes(world: World, plane: str, kind: Kind) -> None:
    """A foreign webhook `broken` that fails every create and update of a kind on a plane."""
    webhook: JsonObject = {
        "name": f"{kind.plural}.example.net",
        "clientConfig": {"service": {"namespace": "elsewhere", "name": "absent"}},
        "rules": [
            {
                "apiGroups": [kind.group],
                "apiVersions": [kind.version],
                "operations": ["CREATE", "UPDATE"],
                "resources": [kind.plural],
            }
        ],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    body: JsonObject = {
        "apiVersion": WEBHOOKS.api_version,
        "kind": WEBHOOKS.name,
        "metadata": {"name": "broken"},
        "webhooks": [webhook],
    }
    made = await world.backend.send(plane, ADMIN, PlaneRequest("POST", WEBHOOKS.path(), body))
    if made.status != 201:
        raise AssertionError(f"making a webhook: {made.body}")


async def a_webhook_on_the_hub_is_broken(world: World) -> None:
    """A foreign admission webhook on the hub fails every write of deployments, and is then
    removed.
    """
    project = world.project
    names = [f"web-{number}" for number in range(5)]
    for name in names:
        await run(world, name)
    await break_writes(world, HUB, DEPLOYMENT)
    for name in names:
        await project.patch(DEPLOYMENT, name, replicas_of(2))
    await world.sleep(25 * MINUTE)
    await world.hub.delete(WEBHOOKS, "broken")
    ready = [f"{name}-1" for name in names]
    await world.eventually(lambda: are_ready(project, *ready), within(180))
    await world.sleep(10 * MINUTE)


async def a_certificate_is_not_renewed(world: World) -> None:
    """It expires in a day and a quarter of an hour, and is renewed half an hour later."""
    backend = world.backend
    if not isinstance(backend, SimBackend):
        raise TypeError("following a certificate: only simulated processes can be looked into")
    (process,) = backend.replicas[MANAGEMENT].alive
    authority, names = Authority(), ("compute-webhook.compute-system.svc",)
    with TemporaryDirectory() as folder:
        ends = world.backend.now() + timedelta(hours=24, minutes=15)
        files = authority.issue(names, valid_until=ends).write(Path(folder))
        served = ServingCertificate(
            "webhook", *files, clock=backend.clock, measures=process.measures
        )
        following = asyncio.create_task(served.follow(), name="certificate")
        await world.sleep(30 * MINUTE)
        authority.issue(names, valid_until=ends + timedelta(days=30)).write(Path(folder))
        await world.sleep(10 * MINUTE)
        following.cancel()
        await asyncio.wait({following})


# --- quarantine -----------------------------------------------------------------------------------


async def objects_on_the_hub_say_what_cannot_be(world: World) -> None:
    """E-43: a copy under the name of a cell of another city, and one without a cell."""
    project = world.project
    await run(world, "theirs", "ORD")
    hub = await world.hub_of(project)
    await world.settle()
    root = await hub.get(DEPLOYMENT, "theirs")
    namespace_labels = labels_of(await hub.get(NAMESPACE, hub.namespace))
    identity: JsonObject = {key: namespace_labels[key] for key in labels.IDENTITY_LABELS}
    await world.operator_of(DFW).kill()  # a genuine operator would delete it
    await hub.create(a_hub_instance(root, identity, DFW.name, 6))
    await hub.create(a_hub_instance(root, identity, "", 7))
    await world.sleep(20 * MINUTE)
    for name in ("theirs-6", "theirs-7"):
        await hub.delete(INSTANCE, name)
    await world.operator_of(DFW).start()
    await world.sleep(5 * MINUTE)


async def a_name_on_the_hub_is_taken(world: World) -> None:
    project = world.project
    hub = await world.hub_of(project)
    taken = a_namespace(hub.namespace)
    others: JsonObject = {
        labels.UPSTREAM_CLUSTER_NAME: "cluster-beta",
        labels.UPSTREAM_NAMESPACE: "b",
    }
    taken["metadata"] = {"name": hub.namespace, "labels": others}
    await world.hub.create(taken)
    await project.create(a_bare_deployment(WD))
    await world.sleep(25 * MINUTE)
    freed: JsonObject = dict.fromkeys(others)
    await world.hub.patch(NAMESPACE, hub.namespace, merge_of(labels=freed))
    await world.eventually(lambda: are_ready(project, f"{WD}-0"), within(120))
    await world.sleep(10 * MINUTE)


async def two_cells_serve_one_city(world: World) -> None:
    """E-48, for ten minutes."""
    await run(world)
    city = labels.TOPOLOGY_CITY_CODE
    await world.hub.patch(CLUSTER, ORD_WITHOUT_CITY.name, merge_of(labels={city: "DFW"}))
    await world.sleep(10 * MINUTE)
    await world.hub.patch(CLUSTER, ORD_WITHOUT_CITY.name, merge_of(labels={city: "ORD"}))
    await world.sleep(2 * MINUTE)


async def a_cell_takes_slots_of_another(world: World) -> None:
    """AT-04: the credential of one cell makes the claim of a slot of another."""
    project = world.project
    await run(world, "first", "ORD")
    await world.operator_of(DFW).kill()  # a genuine operator would release a claim without a slot
    rogue = project.as_user(f"compute:cell:{DFW.name}")
    await rogue.create(a_claim(project.name, f"{WD}-0", DFW.name))
    await run(world, WD, "ORD")
    await world.sleep(5 * MINUTE)
    await world.operator_of(DFW).start()
    await world.sleep(20 * MINUTE)


async def a_cell_claims_for_nothing(world: World) -> None:
    """AT-07: the credential of one cell uses quota of a project for which it runs nothing."""
    project = world.project
    await run(world, WD, "ORD")
    await world.operator_of(DFW).kill()
    rogue = project.as_user(f"compute:cell:{DFW.name}")
    claim = a_claim(project.name, "nothing-0", DFW.name)
    await rogue.create(claim)
    world.backend.leave(project.name, CLAIM, f"{project.namespace}/{name_of(claim)}")
    await world.sleep(90 * MINUTE)
    await project.delete(CLAIM, name_of(claim))
    await world.operator_of(DFW).start()
    await world.sleep(30 * MINUTE)


async def a_crowd_vanished_unseen(world: World) -> None:
    """All copies of a cell are deleted from the hub while both operators are stopped."""
    project = world.project
    await world.grant(CROWD)
    await run(world, replicas=CROWD)
    hub = await world.hub_of(project)
    await world.management.stop()
    await world.operator_of(DFW).stop()
    for ordinal in range(CROWD):
        await hub.delete(INSTANCE, f"{WD}-{ordinal}")
    await world.management.start()
    await world.sleep(5 * MINUTE)
    await world.operator_of(DFW).start()
    names = [f"{WD}-{ordinal}" for ordinal in range(CROWD)]
    await world.eventually(lambda: are_ready(project, *names), within(120))
    await world.sleep(10 * MINUTE)


async def a_cell_does_not_hear_that_its_project_is_suspended(world: World) -> None:
    """Karmada is cut off from the cell before the order, which therefore runs on."""
    await run(world)
    await world.backend.cut_member(DFW.name)
    await world.suspend()
    await world.sleep(20 * MINUTE)
    await world.backend.heal_member(DFW.name)
    await world.sleep(10 * MINUTE)
    await world.resume()
    await world.sleep(10 * MINUTE)


# --- sites that are not heard ---------------------------------------------------------------------


async def _lose_for(world: World, minutes: float, *cells: Cell) -> None:
    for cell in cells:
        await world.operator_of(cell).kill()
        await world.backend.cut_member(cell.name)
    await world.sleep(minutes * MINUTE)
    for cell in cells:
        await world.backend.heal_member(cell.name)
        await world.operator_of(cell).start()


async def a_site_is_not_heard(world: World) -> None:
    """Both witnesses lose one of two cells for ten minutes."""
    await run(world, WD, "ORD")
    await _lose_for(world, 10, ORD)
    await world.eventually(lambda: are_ready(world.project, f"{WD}-0"), within(120))
    await world.sleep(10 * MINUTE)


async def all_sites_are_not_heard(world: World) -> None:
    """Both witnesses lose both cells for ten minutes, and no user reads anything."""
    await run(world, WD, "ORD")
    await _lose_for(world, 10, DFW, ORD)
    await world.sleep(10 * MINUTE)
    await are_ready(world.project, f"{WD}-0")


async def a_site_comes_and_goes(world: World) -> None:
    """Both witnesses lose a cell six times within an hour, for two minutes each."""
    await run(world, WD, "ORD")
    for _ in range(6):
        await world.operator_of(ORD).cut(HUB)
        await world.backend.cut_member(ORD.name)
        await world.sleep(2 * MINUTE)
        await world.backend.heal_member(ORD.name)
        await world.operator_of(ORD).heal(HUB)
        await world.sleep(7 * MINUTE)
    await world.sleep(70 * MINUTE)


async def autoscalers_have_no_metrics(world: World) -> None:
    """The metrics of Pods are away for half an hour in a cell with an autoscaled deployment."""
    await add_component(world.cell(DFW), "autoscaling/cell")
    await restart(world.operator_of(DFW), {"autoscaling": {"mode": "on"}})
    await world.autoscalers.start_autoscalers(DFW.name)
    scaled = a_bare_deployment(WD, "DFW", replicas=1)
    metric: JsonObject = {"resource": {"name": "cpu", "target": {"averageUtilization": 60}}}
    object_at(scaled, "spec", "scaleSettings").update({"maxReplicas": 3, "metrics": [metric]})
    await world.project.create(scaled)
    await world.eventually(lambda: are_ready(world.project, f"{WD}-0"), within(180))
    await world.sleep(2 * MINUTE)
    world.autoscalers.set_pod_metrics(DFW.name, is_up=False)
    await world.sleep(30 * MINUTE)
    world.autoscalers.set_pod_metrics(DFW.name, is_up=True)
    await world.sleep(10 * MINUTE)


# --- data that stays away -------------------------------------------------------------------------


async def run_with_secret(world: World) -> None:
    """A deployment that names a Secret of its project."""
    await world.project.create(a_secret("db"))
    template = a_template()
    named: JsonObject = {"secretRef": {"name": "db"}}
    container: JsonObject = {"name": "web", "image": "registry.example/web:1", "envFrom": [named]}
    object_at(template, "spec", "runtime", "sandbox")["containers"] = [container]
    await world.project.create(a_bare_deployment(WD, template=template))


def a_secret(name: str) -> JsonObject:
    data: JsonObject = {"k": "dmFsdWU="}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}


async def karmada_distributes_no_dependencies(world: World) -> None:
    """The hub gate `PropagateDeps` is off, as the Helm chart of Karmada has it."""
    backend = world.backend
    if not isinstance(backend, SimBackend):
        raise TypeError("turning a gate of Karmada off: only a simulated one has it as an option")
    backend.set_dependencies(is_on=False)
    await deliver_data(world)
    await run_with_secret(world)
    await world.sleep(20 * MINUTE)
    backend.set_dependencies(is_on=True)
    await world.eventually(lambda: are_ready(world.project, f"{WD}-0"), within(180))
    await world.sleep(15 * MINUTE)


async def a_cell_refuses_the_copies(world: World) -> None:
    """A broken webhook of the cell fails every write of Secrets."""
    await deliver_data(world)
    await break_writes(world, DFW.name, SECRET)
    await run_with_secret(world)
    await world.sleep(20 * MINUTE)
    await world.cell(DFW).delete(WEBHOOKS, "broken")
    await world.eventually(lambda: are_ready(world.project, f"{WD}-0"), within(180))
    await world.sleep(15 * MINUTE)
