"""S3 on simulated planes, with the roles, bindings and policies that ship."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from compute_api_types import labels
from compute_api_types.wire import JsonObject, JsonValue
from e2e.backends.port import ADMIN, DFW, HOME, HUB, ORD, ROOT, Backend, Call, Needs
from e2e.backends.shipped import manifests
from e2e.backends.sim.backend import SimBackend
from e2e.backends.sim.stage import SimStage
from e2e.documents import a_bare_deployment, a_claim, a_hub_instance
from e2e.faults.sweep import READS, Sweep, Target, Tried, discover, publish
from e2e.handles import Plane
from e2e.kinds import CLAIM, DEPLOYMENT, INSTANCE, NAMESPACE
from e2e.objects import condition_of, labels_of, name_of, object_at
from e2e.world import World, within

TREE: Final = Path(__file__).parents[4]
NEEDS: Final = Needs(projects=2, cells=(DFW, ORD), has_quota=True)
# A person of project `acme` whom Milo has given nothing elsewhere. The name has a colon, so that
# he has the rights of the roles that ship and no others.
TENANT_OF_A: Final = "tenant:acme"
CELL_X: Final = f"compute:cell:{DFW.name}"

# operations.md 5, C and E: reads cannot be told apart by a label, so a cell reads the hub copies of
# every tenant and city, all claims, and the identity of a namespace. The threat model has the same
# set as a table.
READ_ON_HUB: Final = {
    ("namespaces.core", "get"),
    ("workloaddeployments.compute.datumapis.com", "get"),
    *(("instances.compute.datumapis.com", verb) for verb in READS),
}
READ_IN_PROJECTS: Final = {
    ("namespaces.core", "get"),
    *(("resourceclaims.quota.miloapis.com", verb) for verb in READS),
}
# Roles for projects are kept at Milo's root and hold there too, where no claim is anybody's: what
# gets past them there finds nothing (404) or says nothing (422).
CLAIMS_AT_ROOT: Final = READ_IN_PROJECTS | {
    ("resourceclaims.quota.miloapis.com", verb) for verb in ("create", "patch", "delete")
}
# Kubernetes lets everybody who has a name ask who he is and what he may (system:basic-user).
ABOUT_ONESELF: Final = {
    ("selfsubjectaccessreviews.authorization.k8s.io", "create"),
    ("selfsubjectreviews.authentication.k8s.io", "create"),
    ("selfsubjectrulesreviews.authorization.k8s.io", "create"),
}


@dataclass(slots=True)
class Swept:
    """What a run of sweeps found."""

    tried: list[Tried] = field(default_factory=list[Tried])

    def of(self, who: str, plane: str) -> list[Tried]:
        return [one for one in self.tried if (one.who, one.plane) == (who, plane)]

    def passed(self, who: str, plane: str) -> set[tuple[str, str]]:
        return {one.right for one in self.of(who, plane) if not one.is_denied}


# A resource of another service, which Milo knows.
STORAGE: Final = "storage.example.com/gib"
# Name of a claim that is there without a label, name of one to be made, and what both ask for.
OTHERS_CLAIMS: Final = (
    ("bucket-logs", "bucket-more", STORAGE),
    ("instance-bucket-0", "instance-bucket-1", STORAGE),
    ("notes", "more-notes", labels.INSTANCES_RESOURCE),
    ("instance-web-ord-0", "instance-web-ord-1", labels.INSTANCES_RESOURCE),
)
REGISTRATIONS: Final = "/apis/quota.miloapis.com/v1alpha1/resourceregistrations"


async def _furnish(world: World) -> None:
    """In project B a deployment per city, so that each cell has a copy and a claim of its own."""
    project = world.projects[1]
    made = await world.backend.send(ROOT, ADMIN, Call("POST", REGISTRATIONS, _a_registration()))
    assert made.status == 201
    for cell in NEEDS.cells:
        await project.create(a_bare_deployment(f"in-{cell.name}", cell.city))
        await world.eventually(
            partial(_is_ready, project, f"in-{cell.name}-0"), within(120, real=240)
        )
    await world.settle()


async def _is_ready(project: Plane, name: str) -> None:
    assert condition_of(await project.get(INSTANCE, name), "Ready").status == "True"


async def _copy_of_y(world: World) -> tuple[str, Target]:
    """The hub copy that cell Y keeps, and another that would be Y's."""
    hub = await world.hub_of(world.projects[1])
    root = await hub.get(DEPLOYMENT, f"in-{ORD.name}")
    known = labels_of(await hub.get(NAMESPACE, hub.namespace))
    identity = {key: known[key] for key in labels.IDENTITY_LABELS}
    found = await hub.get(INSTANCE, f"in-{ORD.name}-0")
    wanted = a_hub_instance(root, identity, ORD.name, 5)
    return hub.namespace, Target(found, _placed(wanted, hub.namespace))


async def _claim_of_y(world: World) -> Target:
    project = world.projects[1]
    mine = [
        one
        for one in await project.list(CLAIM)
        if labels_of(one).get(labels.SOURCE_CLUSTER) == ORD.name
    ]
    (found,) = mine
    metadata: JsonObject = {"name": f"{name_of(found)}-more", "labels": {**labels_of(found)}}
    wanted: JsonObject = {
        "apiVersion": found["apiVersion"],
        "kind": found["kind"],
        "metadata": metadata,
        "spec": object_at(found, "spec"),
    }
    return Target(found, _placed(wanted, project.namespace))


def _a_registration() -> JsonObject:
    """Another service's, made from one of ours."""
    ours = next(one for one in manifests("milo") if one["kind"] == "ResourceRegistration")
    spec: JsonObject = {**object_at(ours, "spec"), "resourceType": STORAGE}
    return {**ours, "metadata": {"name": "storage-gib"}, "spec": spec}


async def _claims_of_others(world: World) -> list[Target]:
    """Another service's claim, an unlabelled one, and one in the place of a slot of city Y; each
    also as the cell would make it under its own label.
    """
    project = world.projects[1]
    found: list[Target] = []
    for name, another, resource in OTHERS_CLAIMS:
        made = await project.create(_without_cell(_claim(project, name, resource)))
        wanted = _claim(project, another, resource)
        found.append(Target(made, _placed(wanted, project.namespace)))
    return found


def _claim(project: Plane, name: str, resource: str) -> JsonObject:
    document = a_claim(project.name, "web-0", DFW.name)
    requests: list[JsonValue] = [{"resourceType": resource, "amount": 1}]
    metadata: JsonObject = {**object_at(document, "metadata"), "name": name}
    spec: JsonObject = {**object_at(document, "spec"), "requests": requests}
    return {**document, "metadata": metadata, "spec": spec}


def _without_cell(document: JsonObject) -> JsonObject:
    return {**document, "metadata": {"name": name_of(document)}}


async def _deployment_of_y(world: World) -> Target:
    """The hub copy of a deployment of another city, with what its owner wrote into it."""
    hub = await world.hub_of(world.projects[1])
    found = await hub.get(DEPLOYMENT, f"in-{ORD.name}")
    metadata: JsonObject = {"name": f"in-{ORD.name}-more", "namespace": hub.namespace}
    return Target(found, {**found, "metadata": metadata})


def _placed(document: JsonObject, namespace: str) -> JsonObject:
    return {**document, "metadata": {**object_at(document, "metadata"), "namespace": namespace}}


async def _sweep(backend: Backend, swept: Swept) -> None:
    """The tenant everywhere but at home, the cell everywhere but at home."""
    world = World(backend, NEEDS)
    await _furnish(world)
    victim = world.projects[1]
    namespace, copy = await _copy_of_y(world)
    claim = await _claim_of_y(world)
    in_hub = {
        (INSTANCE.group, INSTANCE.plural): copy,
        (DEPLOYMENT.group, DEPLOYMENT.plural): await _deployment_of_y(world),
    }
    of_claims = (CLAIM.group, CLAIM.plural)
    in_project = {of_claims: claim}
    others = await _claims_of_others(world)
    sweeps = [
        Sweep(TENANT_OF_A, victim.name, victim.namespace, in_project),
        Sweep(TENANT_OF_A, HUB, namespace, in_hub),
        *(Sweep(TENANT_OF_A, plane, "default", {}) for plane in (ROOT, HOME)),
        *(Sweep(TENANT_OF_A, cell.name, namespace, {}) for cell in NEEDS.cells),
        Sweep(CELL_X, HUB, namespace, in_hub),
        Sweep(CELL_X, victim.name, victim.namespace, in_project),
        *(
            Sweep(who, victim.name, victim.namespace, {of_claims: one}, only_targets=True)
            for who in (TENANT_OF_A, CELL_X)
            for one in others
        ),
        *(Sweep(CELL_X, plane, "default", {}) for plane in (ROOT, HOME)),
        Sweep(CELL_X, ORD.name, namespace, {}),
    ]
    for one in sweeps:
        swept.tried += await one.run(backend)


def _written_by(backend: SimBackend, people: Iterable[str]) -> list[str]:
    known = {*people}
    return [
        f"{one.verb} {one.resource} {one.name}"
        for one in backend.audit()
        if one.who in known and one.is_write and one.status < 400
    ]


@pytest.fixture(scope="module")
def swept() -> Swept:
    """One world, every sweep: what follows looks at the answers."""
    found = Swept()
    written: list[str] = []

    async def body(backend: Backend) -> None:
        assert isinstance(backend, SimBackend)
        await _sweep(backend, found)
        written.extend(_written_by(backend, (TENANT_OF_A, CELL_X)))

    SimStage().play("sweep_of_rights", NEEDS, body)
    assert written == []
    publish(found.tried)
    return found


@pytest.mark.fault("S3")
@pytest.mark.parametrize("plane", ["beta", ROOT, HUB, HOME, DFW.name, ORD.name])
def test_a_tenant_may_do_nothing_outside_his_project(swept: Swept, plane: str) -> None:
    assert len(swept.of(TENANT_OF_A, plane)) > 100
    assert swept.passed(TENANT_OF_A, plane) == ABOUT_ONESELF


@pytest.mark.fault("S3")
@pytest.mark.parametrize(
    ("plane", "reads"),
    [
        (HUB, READ_ON_HUB),
        ("beta", READ_IN_PROJECTS),
        (ROOT, CLAIMS_AT_ROOT),
        (HOME, set[tuple[str, str]]()),
        (ORD.name, set[tuple[str, str]]()),
    ],
)
def test_a_cell_changes_nothing_that_is_another_ones(
    swept: Swept, plane: str, reads: set[tuple[str, str]]
) -> None:
    assert len(swept.of(CELL_X, plane)) > 100
    assert swept.passed(CELL_X, plane) == reads | ABOUT_ONESELF


# What must not be readable by a cell on any plane but its own, whatever else is granted.
UNREADABLE: Final = {
    HUB: ("secrets.core", "configmaps.core", "works.work.karmada.io"),
    "beta": ("secrets.core", "configmaps.core", "workloads.compute.datumapis.com"),
    ROOT: ("secrets.core", "configmaps.core"),
}


@pytest.mark.spec("AT-08")
@pytest.mark.parametrize("plane", sorted(UNREADABLE))
def test_a_cell_reads_no_works_secrets_or_config_maps(swept: Swept, plane: str) -> None:
    for title in UNREADABLE[plane]:
        tried = [one for one in swept.of(CELL_X, plane) if one.served.title == title]
        reads = {one.verb for one in tried} & READS
        assert reads == READS, title
        assert all(one.is_denied for one in tried), title


@pytest.mark.spec("AT-08")
def test_the_threat_model_names_exactly_what_a_cell_reads() -> None:
    """The table there is the set that the sweep asserts."""
    assert read_table() == {
        "hub": {*READ_ON_HUB},
        "project planes": {*READ_IN_PROJECTS},
    }


@pytest.mark.spec("AT-08")
@pytest.mark.parametrize("page", ["SECURITY.md", "docs/howto/install.md"])
def test_other_pages_lead_to_that_table_and_to_secrets(page: str) -> None:
    text = (TREE / page).read_text("utf-8")
    assert "threat-model.md#what-a-cells-credential-reads" in text
    assert "in Secrets, not in `env` values" in text


def read_table() -> dict[str, set[tuple[str, str]]]:
    """Plane, resource, verbs and content, a line each, below the heading."""
    text = (TREE / "docs/explanation/threat-model.md").read_text("utf-8")
    _, _, rest = text.partition("## What a cell's credential reads\n")
    section, _, _ = rest.partition("\n## ")
    found: dict[str, set[tuple[str, str]]] = {}
    for line in section.splitlines():
        parts = [part.strip() for part in line.strip("|").split("|")]
        if line.startswith("| ") and parts[0] in {"hub", "project planes"}:
            rights = {(parts[1].strip("`"), verb) for verb in parts[2].split(", ")}
            found.setdefault(parts[0], set()).update(rights)
    return found


def test_whoever_has_the_rights_is_let_through() -> None:
    """A sweep that nobody passes would say as little as one that nobody made."""
    needs = Needs(runs_cells=False)

    async def body(backend: Backend) -> None:
        served = [one for one in await discover(backend, HUB) if "list" in one.verbs]
        sweep = Sweep(ADMIN, HUB, "default", {})
        for one in served:
            reply = await backend.send(HUB, ADMIN, sweep.call(one, "list"))
            assert reply.status == 200, one.title
        assert {"instances.compute.datumapis.com", "secrets.core"} <= {one.title for one in served}

    SimStage().play("sweep_by_an_admin", needs, body)
