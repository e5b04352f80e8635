"""S3 on simulated planes with the shipped roles, bindings and policies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from compute_api_types import labels
from compute_api_types.wire import JsonObject, JsonValue
from e2e.backends.sim.backend import SimBackend
from e2e.backends.sim.scheduler import SimScheduler
from e2e.harness.deploy.shipped import manifests
from e2e.oracles.sweep import READS, Sweep, SweepResult, SweepTarget, discover, publish
from e2e.world.documents import a_bare_deployment, a_claim, a_hub_instance
from e2e.world.handles import Plane
from e2e.world.kinds import CLAIM, DEPLOYMENT, INSTANCE, NAMESPACE
from e2e.world.objects import condition_of, labels_of, name_of, object_at
from e2e.world.port import ADMIN, DFW, HOME, HUB, ORD, ROOT, Backend, Needs, PlaneRequest
from e2e.world.scenario import World, within

TREE: Final = Path(__file__).parents[4]
NEEDS: Final = Needs(projects=2, cells=(DFW, ORD), has_quota=True)
# A user of project `acme` without rights elsewhere in Milo. The name has a colon, so that the user
# has only the rights of the shipped roles.
TENANT_OF_A: Final = "tenant:acme"
CELL_X: Final = f"compute:cell:{DFW.name}"

# operations.md 5, C and E: RBAC cannot restrict reads by label, so a cell reads the hub copies of
# all tenants and cities, all claims, and the identity of a namespace. The threat model has the same
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
# Roles for projects are stored at Milo's root and apply there too. No claim is there, so an allowed
# request is answered 404 or 422.
CLAIMS_AT_ROOT: Final = READ_IN_PROJECTS | {
    ("resourceclaims.quota.miloapis.com", verb) for verb in ("create", "patch", "delete")
}
# system:basic-user: every authenticated user may review its own identity and rights.
ABOUT_ONESELF: Final = {
    ("selfsubjectaccessreviews.authorization.k8s.io", "create"),
    ("selfsubjectreviews.authentication.k8s.io", "create"),
    ("selfsubjectrulesreviews.authorization.k8s.io", "create"),
}


@dataclass(slots=True)
class Swept:
    """The results of all sweeps."""

    tried: list[SweepResult] = field(default_factory=list[SweepResult])

    def of(self, user: str, plane: str) -> list[SweepResult]:
        return [one for one in self.tried if (one.user, one.plane) == (user, plane)]

    def passed(self, user: str, plane: str) -> set[tuple[str, str]]:
        return {one.right for one in self.of(user, plane) if not one.is_denied}


# A resource of another service that is registered with Milo.
STORAGE: Final = "storage.example.com/gib"
# Name of an existing claim without label, name of one to create, and the resource of both.
OTHERS_CLAIMS: Final = (
    ("bucket-logs", "bucket-more", STORAGE),
    ("instance-bucket-0", "instance-bucket-1", STORAGE),
    ("notes", "more-notes", labels.INSTANCES_RESOURCE),
    ("instance-web-ord-0", "instance-web-ord-1", labels.INSTANCES_RESOURCE),
)
REGISTRATIONS: Final = "/apis/quota.miloapis.com/v1alpha1/resourceregistrations"


async def _create_deployments(world: World) -> None:
    """Creates a deployment per city in project B, so that each cell has its own copy and claim."""
    project = world.projects[1]
    made = await world.backend.send(
        ROOT, ADMIN, PlaneRequest("POST", REGISTRATIONS, _a_registration())
    )
    assert made.status == 201
    for cell in NEEDS.cells:
        await project.create(a_bare_deployment(f"in-{cell.name}", cell.city))
        await world.eventually(
            partial(_is_ready, project, f"in-{cell.name}-0"), within(120, real=240)
        )
    await world.settle()


async def _is_ready(project: Plane, name: str) -> None:
    assert condition_of(await project.get(INSTANCE, name), "Ready").status == "True"


async def _copy_of_y(world: World) -> tuple[str, SweepTarget]:
    """The hub copy of cell Y, and another to create in its name."""
    hub = await world.hub_of(world.projects[1])
    root = await hub.get(DEPLOYMENT, f"in-{ORD.name}")
    known = labels_of(await hub.get(NAMESPACE, hub.namespace))
    identity = {key: known[key] for key in labels.IDENTITY_LABELS}
    existing = await hub.get(INSTANCE, f"in-{ORD.name}-0")
    wanted = a_hub_instance(root, identity, ORD.name, 5)
    return hub.namespace, SweepTarget(existing, _placed(wanted, hub.namespace))


async def _claim_of_y(world: World) -> SweepTarget:
    project = world.projects[1]
    mine = [
        one
        for one in await project.list(CLAIM)
        if labels_of(one).get(labels.SOURCE_CLUSTER) == ORD.name
    ]
    (existing,) = mine
    metadata: JsonObject = {"name": f"{name_of(existing)}-more", "labels": {**labels_of(existing)}}
    wanted: JsonObject = {
        "apiVersion": existing["apiVersion"],
        "kind": existing["kind"],
        "metadata": metadata,
        "spec": object_at(existing, "spec"),
    }
    return SweepTarget(existing, _placed(wanted, project.namespace))


def _a_registration() -> JsonObject:
    """A registration of another service."""
    ours = next(one for one in manifests("milo") if one["kind"] == "ResourceRegistration")
    spec: JsonObject = {**object_at(ours, "spec"), "resourceType": STORAGE}
    return {**ours, "metadata": {"name": "storage-gib"}, "spec": spec}


async def _claims_of_others(world: World) -> list[SweepTarget]:
    """A claim of another service, one without label, and one with the name of a slot of city Y;
    each also with the label of cell X.
    """
    project = world.projects[1]
    targets: list[SweepTarget] = []
    for name, another, resource in OTHERS_CLAIMS:
        made = await project.create(_without_cell(_claim(project, name, resource)))
        wanted = _claim(project, another, resource)
        targets.append(SweepTarget(made, _placed(wanted, project.namespace)))
    return targets


def _claim(project: Plane, name: str, resource: str) -> JsonObject:
    document = a_claim(project.name, "web-0", DFW.name)
    requests: list[JsonValue] = [{"resourceType": resource, "amount": 1}]
    metadata: JsonObject = {**object_at(document, "metadata"), "name": name}
    spec: JsonObject = {**object_at(document, "spec"), "requests": requests}
    return {**document, "metadata": metadata, "spec": spec}


def _without_cell(document: JsonObject) -> JsonObject:
    return {**document, "metadata": {"name": name_of(document)}}


async def _deployment_of_y(world: World) -> SweepTarget:
    """The hub copy of another city's deployment, with fields that its owner wrote."""
    hub = await world.hub_of(world.projects[1])
    existing = await hub.get(DEPLOYMENT, f"in-{ORD.name}")
    metadata: JsonObject = {"name": f"in-{ORD.name}-more", "namespace": hub.namespace}
    return SweepTarget(existing, {**existing, "metadata": metadata})


def _placed(document: JsonObject, namespace: str) -> JsonObject:
    return {**document, "metadata": {**object_at(document, "metadata"), "namespace": namespace}}


async def _sweep(backend: Backend, swept: Swept) -> None:
    """The tenant on all planes except its project, the cell on all planes except its own."""
    world = World(backend, NEEDS)
    await _create_deployments(world)
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
            Sweep(user, victim.name, victim.namespace, {of_claims: one}, only_targets=True)
            for user in (TENANT_OF_A, CELL_X)
            for one in others
        ),
        *(Sweep(CELL_X, plane, "default", {}) for plane in (ROOT, HOME)),
        Sweep(CELL_X, ORD.name, namespace, {}),
    ]
    for one in sweeps:
        swept.tried += await one.run(backend)


def _written_by(backend: SimBackend, users: Iterable[str]) -> list[str]:
    known = {*users}
    return [
        f"{one.verb} {one.resource} {one.name}"
        for one in backend.audit()
        if one.user in known and one.is_write and one.status < 400
    ]


@pytest.fixture(scope="module")
def swept() -> Swept:
    """All sweeps of one run, for the tests below."""
    result = Swept()
    written: list[str] = []

    async def body(backend: Backend) -> None:
        assert isinstance(backend, SimBackend)
        await _sweep(backend, result)
        written.extend(_written_by(backend, (TENANT_OF_A, CELL_X)))

    SimScheduler().run("sweep_of_rights", NEEDS, body)
    assert written == []
    publish(result.tried)
    return result


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


# Resources that a cell must not read on any plane but its own, whatever else is granted.
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
    """The table in the threat model equals the set that the sweep asserts."""
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
    """Plane, resource, verbs and content of each line below the heading."""
    text = (TREE / "docs/explanation/threat-model.md").read_text("utf-8")
    _, _, rest = text.partition("## What a cell's credential reads\n")
    section, _, _ = rest.partition("\n## ")
    table: dict[str, set[tuple[str, str]]] = {}
    for line in section.splitlines():
        parts = [part.strip() for part in line.strip("|").split("|")]
        if line.startswith("| ") and parts[0] in {"hub", "project planes"}:
            rights = {(parts[1].strip("`"), verb) for verb in parts[2].split(", ")}
            table.setdefault(parts[0], set()).update(rights)
    return table


def test_requests_with_the_right_are_allowed() -> None:
    """A sweep that denied everything for a wrong reason would pass the other tests."""
    needs = Needs(runs_cells=False)

    async def body(backend: Backend) -> None:
        served = [one for one in await discover(backend, HUB) if "list" in one.verbs]
        sweep = Sweep(ADMIN, HUB, "default", {})
        for one in served:
            reply = await backend.send(HUB, ADMIN, sweep.call(one, "list"))
            assert reply.status == 200, one.title
        assert {"instances.compute.datumapis.com", "secrets.core"} <= {one.title for one in served}

    SimScheduler().run("sweep_by_an_admin", needs, body)
