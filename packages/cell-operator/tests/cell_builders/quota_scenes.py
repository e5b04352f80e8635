"""Scenes with quota: a cell with quota on beside a simulated Milo, and what to see there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from cell_builders.documents import CELL_NAME, NS, PROJECT, PROJECT_NAMESPACE
from cell_builders.milo import BUDGET, SimulatedMilo
from cell_builders.world import (
    QUOTA_ON,
    Process,
    World,
    condition_of,
    gates_of,
    settings_of,
    uid_of,
)
from compute_api_types import labels
from compute_cell_operator.planes import CELL, DEPLOYMENT
from compute_operator_kit.core.json import (
    Json,
    JsonObject,
    decode_json_object,
    member_list,
    member_object,
    member_text,
)
from compute_sim_planes.faults.links import Link, LinkState
from compute_sim_planes.faults.plans import Action, Fault, Parameters, Point
from compute_sim_planes.history import Commit, Request
from compute_sim_planes.json_types import JsonObject as Manifest
from compute_sim_planes.milo.kinds import CLAIMS

CLAIM: Final = "ResourceClaim"
ONE: Final = {
    labels.INSTANCES_RESOURCE: 1,
    labels.VCPUS_RESOURCE: 1000,
    labels.MEMORY_RESOURCE: 2048,
}
"""What one Instance of the usual type takes."""
OFTEN: Final[JsonObject] = {**QUOTA_ON, "sweepInterval": "1m"}
"""Quota on, and claims swept every minute."""
NOTHING: Final = dict.fromkeys(ONE, 0)


def times(number: int) -> dict[str, int]:
    """A budget for so many Instances."""
    return {name: amount * number for name, amount in ONE.items()}


def enforcing(world: World, name: str = "operator", quota: JsonObject = QUOTA_ON) -> Process:
    """A process with quota on."""
    return world.process(name, settings_of(quota=quota))


async def begin(
    world: World,
    replicas: int = 1,
    budget: Mapping[str, int] = BUDGET,
    quota: JsonObject = QUOTA_ON,
) -> Process:
    """A Milo, a cell with quota on and a deployment that has come up."""
    process = await open_cell(world, budget, quota)
    await world.deliver("web", replicas)
    await world.eventually(world.is_converged)
    return process


async def open_cell(
    world: World, budget: Mapping[str, int] = BUDGET, quota: JsonObject = QUOTA_ON
) -> Process:
    """A Milo and a cell with quota on, and nothing to do yet."""
    await world.add_milo(budget)
    world.start_neighbours()
    process = enforcing(world, quota=quota)
    process.start()
    await world.federate()
    return process


def milo_of(world: World) -> SimulatedMilo:
    assert world.milo is not None
    return world.milo


# --- what is to be seen ---------------------------------------------------------------------------


async def quota_of(world: World, name: str = "web-0") -> tuple[str, str, str]:
    """`QuotaGranted` of an Instance: status, reason, message."""
    return condition_of(await world.instance(name), "QuotaGranted")


def says(
    world: World, status: str, reason: str, name: str = "web-0"
) -> Callable[[], Awaitable[bool]]:
    """For `eventually`: the Instance exists and has this `QuotaGranted`."""

    async def is_so() -> bool:
        if name not in await world.instances():
            return False
        return (await quota_of(world, name))[:2] == (status, reason)

    return is_so


async def is_gated(world: World, name: str = "web-0") -> bool:
    return "Quota" in gates_of(await world.instance(name))


async def claims(world: World) -> dict[str, Manifest]:
    return await milo_of(world).claims()


def has_claims(world: World, *names: str) -> Callable[[], Awaitable[bool]]:
    async def is_so() -> bool:
        return sorted(await claims(world)) == sorted(names)

    return is_so


def records(world: World, name: str = "web-0") -> Callable[[], Awaitable[bool]]:
    """For `eventually`: the claim of a slot records the Instance that is in it."""

    async def is_so() -> bool:
        claim = (await claims(world)).get(f"instance-{name}")
        if claim is None or name not in await world.instances():
            return False
        return recorded_uid(claim) == uid_of(await world.instance(name))

    return is_so


def recorded_uid(claim: Manifest) -> str:
    annotations = member_object(member_object(claim, "metadata"), "annotations")
    return member_text(annotations, labels.INSTANCE_UID)


def is_granted(claim: Manifest) -> bool:
    return condition_of(claim, "Granted")[0] == "True"


def claim_writes(world: World, verb: str = "", identity: str = "operator") -> list[Request]:
    """Mutating requests about claims that a process sent."""
    return world.writes(identity, plane=PROJECT, kind=CLAIM, verb=verb)


def claim_reads(world: World) -> list[Request]:
    return [
        one
        for one in world.requests()
        if one.address.plane == PROJECT and one.address.kind == CLAIM and one.address.verb == "get"
    ]


def claim_commits(world: World) -> list[Commit]:
    """All changes of claims, by any writer."""
    return [one for one in world.history.of(Commit) if one.plane == PROJECT and one.kind == CLAIM]


def most_claims_at_once(world: World) -> int:
    """How many claims of one name ever existed at a time: one, or it is a bug."""
    standing: dict[str, set[str]] = {}
    most = 0
    for commit in claim_commits(world):
        uids = standing.setdefault(commit.key, set())
        if commit.before:
            uids.discard(uid_of(decode_json_object(commit.before)))
        if commit.after:
            uids.add(uid_of(decode_json_object(commit.after)))
        most = max(most, len(uids))
    return most


# --- what happens ---------------------------------------------------------------------------------


def link(world: World) -> Link:
    """The operators' way to the project plane."""
    return world.links.setdefault(PROJECT, Link())


def cut(world: World, state: LinkState = LinkState.REFUSED) -> None:
    link(world).cut(state)


def heal(world: World) -> None:
    link(world).heal()


def refuse(verb: str, status: int, reason: str = "", kind: str = CLAIM) -> Fault:
    """From now on the project plane answers so."""
    at = Point(plane=PROJECT, verb=verb, kind=kind, times=0)
    return Fault(f"{verb}:{status}", Action.ERROR, at, Parameters(status=status, reason=reason))


async def make_claim(
    world: World,
    name: str,
    *,
    cell: str = CELL_NAME,
    uid: str = "",
    namespace: str = NS,
    requests: Mapping[str, int] = ONE,
) -> Manifest:
    """A claim of another writer; `cell` "" is a tenant's, `uid` "" records no Instance."""
    marks: dict[str, str] = {}
    if cell:
        marks[labels.SOURCE_CLUSTER] = cell
    if namespace:
        marks[labels.INSTANCE_NAMESPACE] = namespace
    reference: Manifest = {
        "apiGroup": "resourcemanager.miloapis.com",
        "kind": "Project",
        "name": PROJECT,
    }
    return (
        await milo_of(world)
        .inside()
        .create(
            CLAIMS,
            {
                "apiVersion": CLAIMS.api_version,
                "kind": CLAIMS.kind,
                "metadata": {
                    "name": name,
                    "namespace": PROJECT_NAMESPACE,
                    "labels": {**marks},
                    "annotations": {labels.INSTANCE_UID: uid} if uid else {},
                },
                "spec": {
                    "consumerRef": {**reference},
                    "resourceRef": {**reference},
                    "requests": [
                        {"resourceType": kind, "amount": amount}
                        for kind, amount in requests.items()
                    ],
                },
            },
        )
    )


async def drop_claim(world: World, name: str = "instance-web-0") -> None:
    """A tenant deletes a claim."""
    await milo_of(world).inside().delete(CLAIMS, name, namespace=PROJECT_NAMESPACE)


async def resize(world: World, cpu: str = "2", name: str = "web") -> None:
    """A new template of another size."""
    deployment = await world.deployment(name)
    template = member_object(member_object(deployment, "spec"), "template")
    runtime = member_object(member_object(template, "spec"), "runtime")
    sandbox = member_object(runtime, "sandbox")
    containers: list[Json] = [
        {**one, "resources": {"limits": {"cpu": cpu, "memory": "4Gi"}}}
        for one in member_list(sandbox, "containers")
        if isinstance(one, dict)
    ]
    patch: JsonObject = {
        "spec": {"template": {"spec": {"runtime": {"sandbox": {"containers": containers}}}}}
    }
    await world.patch(CELL, DEPLOYMENT, name, patch)
