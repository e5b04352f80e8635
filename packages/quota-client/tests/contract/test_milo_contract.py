"""What any Milo owes this library, row by row of docs/spec/quota.md A7.

The same bodies run on every backend: `fake` is this package's own, `sim` the one of sim-planes,
`real` the gateway before real API servers (with `--planes real`), and `named` any Milo that
MILO_CONTRACT_KUBECONFIG (an admin kubeconfig of its root) and MILO_CONTRACT_PROJECT (a Ready
project the tests may fill) name. Everything a body needs it brings
itself, over HTTP, under names of its own, and takes it away again.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Protocol

import httpx
import pytest
from pydantic import JsonValue

from compute_kubeconfig.access import read_material
from compute_kubeconfig.kubeconfig import load_kubeconfig
from compute_kubeconfig.tls import share_client_context
from compute_quota_client import (
    Absent,
    Claim,
    ClaimKey,
    ClaimTracker,
    Denied,
    Granted,
    Mismatch,
    NotOurs,
    ObjectRef,
    Pending,
    ProjectQuota,
    QuotaClient,
    QuotaNamespaceNotFoundError,
    QuotaRejectedError,
    QuotaUsageError,
    Released,
    Verdict,
    project_ref,
)
from compute_quota_client._urls import origin_of
from compute_quota_client._wire import claim_body
from compute_quota_client.testing import SERVER, FakeQuota

QUOTA: Final = "/apis/quota.miloapis.com/v1alpha1"
PROJECTS: Final = "/apis/resourcemanager.miloapis.com/v1alpha1/projects"
MERGE: Final = "application/merge-patch+json"
PROJECT_KIND: Final = {"apiGroup": "resourcemanager.miloapis.com", "kind": "Project"}
# A real Milo decides in 60–160 ms; a loaded one may take its time.
PATIENCE: Final = 30.0


@dataclass
class Milo:
    """One Milo to try: the library's way to it, and an administrator's."""

    quota: QuotaClient
    admin: httpx.AsyncClient
    name: str
    other: str | None
    run: str = field(default_factory=lambda: f"t{secrets.token_hex(4)}")
    cleanups: list[str] = field(default_factory=list[str])

    @property
    def project(self) -> ProjectQuota:
        return self.quota.project(self.name)

    @property
    def widgets(self) -> str:
        return f"{self.run}.example.com/widgets"

    @property
    def grams(self) -> str:
        return f"{self.run}.example.com/grams"

    def plane(self, project: str | None = None) -> str:
        return f"{PROJECTS}/{project or self.name}/control-plane"

    def claim_path(self, name: str = "") -> str:
        path = f"{self.plane()}{QUOTA}/namespaces/default/resourceclaims"
        return f"{path}/{self.run}-{name}" if name else path

    def claim(self, name: str, widgets: int, grams: int = 0) -> Claim:
        requests = {self.widgets: widgets} | ({self.grams: grams} if grams else {})
        return Claim(
            namespace="default",
            name=f"{self.run}-{name}",
            requests=requests,
            consumer=project_ref(self.name),
            owner={"contract.example.com/run": self.run},
            subject={"contract.example.com/uid": "u1"},
        )

    async def ask(
        self, method: str, path: str, body: JsonValue = None, kind: str = "application/json"
    ) -> httpx.Response:
        """An administrator's request; a server that starts and answers 429 is waited for."""
        content = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": kind}
        while True:
            response = await self.admin.request(method, path, content=content, headers=headers)
            if response.status_code != 429:
                return response
            await asyncio.sleep(float(response.headers.get("Retry-After", "1")))

    async def register(self, *resource_types: str) -> None:
        for resource_type in resource_types:
            name = resource_type.replace("/", "-").replace(".", "-")
            path = f"{QUOTA}/resourceregistrations"
            spec: dict[str, JsonValue] = {
                "consumerType": dict(PROJECT_KIND),
                "type": "Entity",
                "resourceType": resource_type,
                "description": "made by a contract test",
                "baseUnit": "unit",
                "displayUnit": "unit",
                "unitConversionFactor": 1,
                "claimingResources": [
                    dict(PROJECT_KIND),
                    {"apiGroup": "compute.datumapis.com", "kind": "Instance"},
                ],
            }
            body: dict[str, JsonValue] = {
                "apiVersion": "quota.miloapis.com/v1alpha1",
                "kind": "ResourceRegistration",
                "metadata": {"name": name},
                "spec": spec,
            }
            answer = await self.ask("POST", path, body)
            assert answer.status_code == 201, answer.text
            self.cleanups.append(f"{path}/{name}")
            await self.eventually(f"{path}/{name}", "Active")

    async def grant(self, amounts: dict[str, int], project: str | None = None) -> None:
        """Grants so much, or changes an earlier grant to it."""
        name, consumer = f"{self.run}-grant", project or self.name
        path = f"{self.plane(consumer)}{QUOTA}/namespaces/milo-system/resourcegrants"
        allowances: list[JsonValue] = [
            {"resourceType": kind, "buckets": [{"amount": amount}]}
            for kind, amount in amounts.items()
        ]
        body: dict[str, JsonValue] = {
            "apiVersion": "quota.miloapis.com/v1alpha1",
            "kind": "ResourceGrant",
            "metadata": {"name": name},
            "spec": {"consumerRef": {**PROJECT_KIND, "name": consumer}, "allowances": allowances},
        }
        answer = await self.ask("POST", path, body)
        if answer.status_code == 409:
            change: JsonValue = {"spec": {"allowances": allowances}}
            answer = await self.ask("PATCH", f"{path}/{name}", change, MERGE)
        else:
            self.cleanups.append(f"{path}/{name}")
        assert answer.status_code in {200, 201}, answer.text
        await self.eventually(f"{path}/{name}", "Active")

    async def eventually(self, path: str, condition: str) -> None:
        """Waits until the object at `path` has the condition True."""

        async def holds() -> bool:
            stored = (await self.ask("GET", path)).json()
            conditions = stored.get("status", {}).get("conditions", [])
            return {"type": condition, "status": "True"}.items() <= {
                key: value for one in conditions for key, value in one.items()
            }.items()

        await wait_until(holds)

    async def decided(self, name: str) -> Verdict:
        """The verdict on a claim once it is not pending any more."""
        seen: list[Verdict] = []

        async def is_decided() -> bool:
            verdict = await self.project.read("default", f"{self.run}-{name}")
            assert not isinstance(verdict, Absent)
            seen.append(verdict)
            return not isinstance(verdict, Pending)

        await wait_until(is_decided)
        return seen[-1]

    async def claimed(self, claim: Claim) -> Verdict:
        """Claims, and waits for the verdict."""
        await self.project.claim(claim)
        return await self.decided(claim.name.removeprefix(f"{self.run}-"))

    async def release_all(self) -> None:
        for claim in await self.project.list(f"contract.example.com/run={self.run}"):
            await self.project.release(claim.namespace, claim.name, uid=claim.uid)
        for path in reversed(self.cleanups):
            await self.ask("DELETE", path)


async def wait_until(holds: Callable[[], Awaitable[bool]]) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE
    while not await holds():
        assert loop.time() < deadline, "it did not come true in time"
        await asyncio.sleep(0.05)


async def fake_milo(stack: AsyncExitStack, _: pytest.FixtureRequest) -> Milo:
    fake = FakeQuota()
    fake.add_project("acme")
    fake.add_project("other")
    quota = await stack.enter_async_context(fake.client())
    admin = httpx.AsyncClient(transport=fake.transport, base_url=SERVER)
    return Milo(quota, await stack.enter_async_context(admin), "acme", "other")


async def simulated_milo(stack: AsyncExitStack, request: pytest.FixtureRequest) -> Milo:
    """The one of sim-planes, over TLS on loopback, so that everything between is real."""
    if importlib.util.find_spec("compute_sim_planes") is None:
        pytest.skip("sim-planes is not installed: this package's own environment has no sibling")
    # Only here: see above.
    from compute_sim_planes.milo.http_server import serve_milo

    request.getfixturevalue("enter_real_time")()
    folder: Path = request.getfixturevalue("tmp_path")
    served = await stack.enter_async_context(serve_milo(folder, "acme", "other"))
    quota = await stack.enter_async_context(QuotaClient.from_kubeconfig(served.kubeconfig))
    admin = await stack.enter_async_context(administrator(served.kubeconfig))
    return Milo(quota, admin, "acme", "other")


def administrator(kubeconfig: Path) -> httpx.AsyncClient:
    access = load_kubeconfig(kubeconfig)
    material = read_material(access)
    context = share_client_context(material.ca, material.identity)
    headers = {"Authorization": f"Bearer {material.token}"} if material.token else {}
    return httpx.AsyncClient(
        base_url=origin_of(access.server), verify=context, headers=headers, trust_env=False
    )


async def named_milo(stack: AsyncExitStack, request: pytest.FixtureRequest) -> Milo:
    path, project = os.getenv("MILO_CONTRACT_KUBECONFIG"), os.getenv("MILO_CONTRACT_PROJECT")
    if not path or not project:
        pytest.skip("MILO_CONTRACT_KUBECONFIG and MILO_CONTRACT_PROJECT are not set")
    request.getfixturevalue("enter_real_time")()
    request.getfixturevalue("socket_enabled")
    quota = await stack.enter_async_context(QuotaClient.from_kubeconfig(path))
    admin = await stack.enter_async_context(administrator(Path(path)))
    return Milo(quota, admin, project, None)


async def real_milo(stack: AsyncExitStack, request: pytest.FixtureRequest) -> Milo:
    """Milo's part played by real API servers behind a gateway."""
    real: RealMilo = request.getfixturevalue("real_milo_address")
    request.getfixturevalue("enter_real_time")()
    quota = await stack.enter_async_context(QuotaClient.from_kubeconfig(real.kubeconfig))
    admin = await stack.enter_async_context(administrator(real.kubeconfig))
    return Milo(quota, admin, real.project, real.other)


class RealMilo(Protocol):
    """What the real planes say of their Milo; this package cannot import them."""

    @property
    def kubeconfig(self) -> Path: ...
    @property
    def project(self) -> str: ...
    @property
    def other(self) -> str: ...


SIMULATED: Final = {"fake": fake_milo, "sim": simulated_milo, "named": named_milo}
REAL: Final = {"named": named_milo, "real": real_milo}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "milo" in metafunc.fixturenames:
        chosen = REAL if metafunc.config.getoption("--planes") == "real" else SIMULATED
        metafunc.parametrize("milo", sorted(chosen), indirect=True)


@pytest.fixture(scope="session")
def real_milo_address(request: pytest.FixtureRequest) -> RealMilo | None:
    """Not async: real planes are brought up outside of any test's loop."""
    if request.config.getoption("--planes") != "real":
        return None
    address: RealMilo = request.getfixturevalue("real_milo")
    return address


@pytest.fixture
async def milo(
    request: pytest.FixtureRequest, real_milo_address: RealMilo | None
) -> AsyncIterator[Milo]:
    """A Milo with two resource types of this test's own, and no grant."""
    backends = SIMULATED if real_milo_address is None else REAL
    async with AsyncExitStack() as stack:
        backend = await backends[str(request.param)](stack, request)
        try:
            await backend.register(backend.widgets, backend.grams)
            yield backend
        finally:
            await backend.release_all()


def held(verdict: Verdict) -> dict[str, tuple[str, int]]:
    """What became of each request, by the last word of its type."""
    return {
        one.resource_type.rpartition("/")[2]: (one.status, one.amount)
        for one in verdict.found.allocations
    }


@pytest.mark.spec("Q-20")
async def test_a_claim_begins_pending_and_is_granted_with_its_allocations(milo: Milo) -> None:
    await milo.grant({milo.widgets: 2, milo.grams: 1000})
    created = await milo.project.claim(milo.claim("c", 1, 100))
    assert isinstance(created, Pending)
    assert created.found.granted is not None
    assert created.found.granted.reason == "PendingEvaluation"
    verdict = await milo.decided("c")
    assert isinstance(verdict, Granted)
    assert verdict.message == "All 2 resource requests have been granted"
    assert held(verdict) == {"widgets": ("Granted", 1), "grams": ("Granted", 100)}
    assert isinstance(await milo.project.claim(milo.claim("c", 1, 100)), Granted)


@pytest.mark.spec("Q-20")
async def test_the_condition_of_a_claim_is_never_unknown_and_observes_no_generation(
    milo: Milo,
) -> None:
    await milo.grant({milo.widgets: 1})
    body = await milo.project.claim(milo.claim("c", 1))
    seen = [body.found.granted]
    seen.append((await milo.decided("c")).found.granted)
    assert [one.status for one in seen if one is not None] == ["False", "True"]
    stored = (await milo.ask("GET", milo.claim_path("c"))).json()
    (condition,) = stored["status"]["conditions"]
    assert "observedGeneration" not in condition


@pytest.mark.spec("Q-20")
async def test_no_grant_at_all_is_a_denial(milo: Milo) -> None:
    verdict = await milo.claimed(milo.claim("c", 1))
    assert isinstance(verdict, Denied)
    assert verdict.reason == "QuotaExceeded"
    assert verdict.message == (
        "Insufficient quota resources. Contact your account administrator to review quota limits"
        " and usage."
    )
    (allocation,) = verdict.allocations
    assert allocation.message == "Resource quota exceeded: requested 1, available 0"


@pytest.mark.spec("Q-20")
async def test_a_denial_is_final_and_a_new_claim_is_needed_after_a_raised_grant(
    milo: Milo,
) -> None:
    claim = milo.claim("c", 3)
    await milo.grant({milo.widgets: 2})
    denied = await milo.claimed(claim)
    assert isinstance(denied, Denied)
    await milo.grant({milo.widgets: 10})
    await asyncio.sleep(1)
    assert isinstance(await milo.decided("c"), Denied)
    await milo.project.release("default", claim.name, uid=denied.found.uid)
    assert isinstance(await milo.claimed(claim), Granted)


@pytest.mark.spec("Q-20")
async def test_parts_of_a_denied_claim_stay_reserved_until_it_is_released(milo: Milo) -> None:
    await milo.grant({milo.widgets: 1, milo.grams: 100})
    denied = await milo.claimed(milo.claim("greedy", 5, 100))
    assert isinstance(denied, Denied)

    async def both_requests_are_evaluated() -> bool:
        return len(held(await milo.decided("greedy"))) == 2

    await wait_until(both_requests_are_evaluated)
    assert held(await milo.decided("greedy")) == {
        "widgets": ("Denied", 0),
        "grams": ("Granted", 100),
    }
    second = replace(milo.claim("second", 1), requests={milo.grams: 100})
    waiting = await milo.claimed(second)
    assert isinstance(waiting, Denied)
    for verdict in (denied, waiting):
        await milo.project.release("default", verdict.found.name, uid=verdict.found.uid)
    assert isinstance(await milo.claimed(second), Granted)


@pytest.mark.spec("Q-20")
async def test_a_spec_changed_after_its_evaluation_is_accepted_and_not_looked_at(
    milo: Milo,
) -> None:
    await milo.grant({milo.widgets: 2, milo.grams: 100})
    await milo.claimed(milo.claim("c", 1, 100))
    raised: JsonValue = {
        "spec": {
            "requests": [
                {"resourceType": milo.widgets, "amount": 50},
                {"resourceType": milo.grams, "amount": 100},
            ]
        }
    }
    answer = await milo.ask("PATCH", milo.claim_path("c"), raised, MERGE)
    assert answer.status_code == 200
    await asyncio.sleep(1)
    verdict = await milo.decided("c")
    assert isinstance(verdict, Mismatch)
    assert verdict.fields == ("allocations",)
    assert verdict.found.granted is not None
    assert verdict.found.granted.status == "True"
    assert held(verdict)["widgets"] == ("Granted", 1)
    # One widget of two is left, after any change of the spec.
    assert isinstance(await milo.claimed(milo.claim("one", 1)), Granted)


@pytest.mark.spec("Q-20")
async def test_a_request_dropped_from_a_spec_frees_its_part(milo: Milo) -> None:
    await milo.grant({milo.widgets: 1, milo.grams: 100})
    await milo.claimed(milo.claim("c", 1, 100))
    dropped: JsonValue = {"spec": {"requests": [{"resourceType": milo.widgets, "amount": 1}]}}
    answer = await milo.ask("PATCH", milo.claim_path("c"), dropped, MERGE)
    assert answer.status_code == 200
    attempts = 0

    async def is_granted() -> bool:
        nonlocal attempts
        attempts += 1
        claim = replace(milo.claim(f"try-{attempts}", 1), requests={milo.grams: 100})
        return isinstance(await milo.claimed(claim), Granted)

    await wait_until(is_granted)


@pytest.mark.spec("Q-20")
async def test_deletion_frees_and_lowering_a_grant_never_revokes(milo: Milo) -> None:
    await milo.grant({milo.widgets: 1})
    first = await milo.claimed(milo.claim("first", 1))
    assert isinstance(first, Granted)
    assert isinstance(await milo.claimed(milo.claim("second", 1)), Denied)
    await milo.grant({milo.widgets: 0})
    await asyncio.sleep(1)
    assert isinstance(await milo.decided("first"), Granted)
    await milo.grant({milo.widgets: 1})
    released = await milo.project.release("default", first.found.name, uid=first.found.uid)
    assert isinstance(released, Released)
    assert isinstance(await milo.claimed(milo.claim("third", 1)), Granted)


@pytest.mark.spec("Q-20", "OU-02")
async def test_a_fresh_project_answers_its_first_request(milo: Milo) -> None:
    fresh = f"{milo.run}-fresh"
    answer = await milo.admin.get(f"{milo.plane(fresh)}{QUOTA}/resourceclaims")
    assert answer.status_code == 200
    assert answer.json()["items"] == []
    another = milo.quota.project(f"{milo.run}-another")
    assert await another.read("default", "nothing") == Absent()


@pytest.mark.spec("Q-20")
async def test_a_project_that_does_not_exist_answers_like_an_empty_one(milo: Milo) -> None:
    missing_project = milo.quota.project(f"{milo.run}-missing")
    assert await missing_project.list() == []
    assert await missing_project.read("default", "x") == Absent()
    assert await missing_project.namespace_uid("default") == Absent()
    with pytest.raises(QuotaNamespaceNotFoundError):
        await missing_project.claim(milo.claim("c", 1))


@pytest.mark.spec("Q-20")
async def test_a_metadata_patch_hands_a_granted_claim_on_without_losing_the_grant(
    milo: Milo,
) -> None:
    await milo.grant({milo.widgets: 1})
    claim = milo.claim("c", 1)
    before = (await milo.claimed(claim)).found
    next_one = {"contract.example.com/uid": "u2"}
    adopted = await milo.project.adopt(
        "default", claim.name, owner=claim.owner, old_subject=claim.subject, new_subject=next_one
    )
    assert isinstance(adopted, Granted)
    after = adopted.found
    assert (after.uid, after.requests, after.allocations, after.granted) == (
        before.uid,
        before.requests,
        before.allocations,
        before.granted,
    )
    assert after.annotations == next_one
    late = await milo.project.adopt(
        "default",
        claim.name,
        owner=claim.owner,
        old_subject=claim.subject,
        new_subject={"contract.example.com/uid": "u3"},
    )
    assert isinstance(late, Mismatch)


@pytest.mark.spec("Q-20", "OU-03")
async def test_a_granted_claim_that_records_no_subject_is_handed_on_without_losing_the_grant(
    milo: Milo,
) -> None:
    await milo.grant({milo.widgets: 1})
    unmarked = replace(milo.claim("c", 1), subject={})
    before = (await milo.claimed(unmarked)).found
    adopted = await milo.project.adopt(
        "default",
        unmarked.name,
        owner=unmarked.owner,
        old_subject={"contract.example.com/uid": None},
        new_subject={"contract.example.com/uid": "u1"},
    )
    assert isinstance(adopted, Granted)
    after = adopted.found
    assert (after.uid, after.allocations) == (before.uid, before.allocations)
    assert after.value_of("contract.example.com/uid") == "u1"


@pytest.mark.spec("Q-20")
async def test_a_failed_test_of_a_patch_is_a_422_and_changes_nothing(milo: Milo) -> None:
    await milo.project.claim(milo.claim("c", 1))
    before = await milo.decided("c")
    pointer = "/metadata/annotations/contract.example.com~1uid"
    patch: list[JsonValue] = [
        {"op": "test", "path": "/metadata/uid", "value": before.found.uid},
        {"op": "test", "path": pointer, "value": "other"},
        {"op": "replace", "path": pointer, "value": "u2"},
    ]
    answer = await milo.ask("PATCH", milo.claim_path("c"), patch, "application/json-patch+json")
    assert answer.status_code == 422
    assert (await milo.decided("c")).found.annotations == before.found.annotations


@pytest.mark.spec("Q-20")
async def test_admission_refuses_what_no_registration_allows(milo: Milo) -> None:
    claim = milo.claim("c", 1)
    unregistered = replace(claim, requests={f"{milo.run}.example.com/unknown": 1})
    consumer = ObjectRef("resourcemanager.miloapis.com", "Organization", "o")
    wrong_consumer = replace(claim, consumer=consumer, resource=project_ref(milo.name))
    workload = ObjectRef("compute.datumapis.com", "Workload", "w", "default")
    for refused in (unregistered, wrong_consumer, replace(claim, resource=workload)):
        with pytest.raises(QuotaRejectedError) as caught:
            await milo.project.claim(refused)
        assert caught.value.status == 403
        assert caught.value.causes
    assert await milo.project.list(f"contract.example.com/run={milo.run}") == []


@pytest.mark.spec("Q-20")
@pytest.mark.parametrize("what", ["duplicate", "zero"])
async def test_admission_refuses_what_the_library_would_not_even_send(
    milo: Milo, what: str
) -> None:
    amount = 0 if what == "zero" else 1
    one: dict[str, JsonValue] = {"resourceType": milo.widgets, "amount": amount}
    requests: list[JsonValue] = [one, dict(one)] if what == "duplicate" else [one]
    reference: dict[str, JsonValue] = {**PROJECT_KIND, "name": milo.name}
    body: dict[str, JsonValue] = {
        "apiVersion": "quota.miloapis.com/v1alpha1",
        "kind": "ResourceClaim",
        "metadata": {"name": f"{milo.run}-c"},
        "spec": {"consumerRef": reference, "resourceRef": reference, "requests": requests},
    }
    answer = await milo.ask("POST", milo.claim_path(), body)
    assert (answer.status_code, answer.json()["reason"]) == (403, "Forbidden")
    assert "is forbidden: ResourceClaim.quota.miloapis.com" in answer.json()["message"]


@pytest.mark.spec("Q-20")
async def test_a_denied_claim_marked_as_auto_created_is_cleaned_up_and_refused_by_claim(
    milo: Milo,
) -> None:
    label, annotation = "quota.miloapis.com/auto-created", "quota.miloapis.com/created-by"
    with pytest.raises(QuotaUsageError):
        replace(milo.claim("c", 1), labels={label: "true"})
    with pytest.raises(QuotaUsageError):
        replace(milo.claim("c", 1), annotations={annotation: "claim-creation-plugin"})
    reference: dict[str, JsonValue] = {**PROJECT_KIND, "name": milo.name}
    metadata: dict[str, JsonValue] = {
        "name": f"{milo.run}-auto",
        "labels": {label: "true", "contract.example.com/run": milo.run},
        "annotations": {annotation: "claim-creation-plugin"},
    }
    requests: list[JsonValue] = [{"resourceType": milo.widgets, "amount": 1}]
    body: dict[str, JsonValue] = {
        "apiVersion": "quota.miloapis.com/v1alpha1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": {"consumerRef": reference, "resourceRef": reference, "requests": requests},
    }
    assert (await milo.ask("POST", milo.claim_path(), body)).status_code == 201

    async def is_gone() -> bool:
        return (await milo.ask("GET", milo.claim_path("auto"))).status_code == 404

    await wait_until(is_gone)


@pytest.mark.spec("Q-20")
async def test_claims_match_grants_of_their_own_plane_only(milo: Milo) -> None:
    if milo.other is None:
        pytest.skip("this Milo was named with one project; two planes are needed")
    await milo.grant({milo.widgets: 10}, milo.other)
    assert isinstance(await milo.claimed(milo.claim("c", 1)), Denied)


@pytest.mark.spec("Q-20")
async def test_an_existing_name_is_read_and_judged(milo: Milo) -> None:
    await milo.project.claim(milo.claim("c", 1))
    again: JsonValue = json.loads(claim_body(milo.claim("c", 1)))
    answer = await milo.ask("POST", milo.claim_path(), again)
    assert (answer.status_code, answer.json()["reason"]) == (409, "AlreadyExists")
    other = await milo.project.claim(replace(milo.claim("c", 1), subject={"x": "y"}))
    assert isinstance(other, Mismatch)
    assert other.fields == ("subject",)


@pytest.mark.spec("Q-20")
async def test_deletes_keep_their_preconditions(milo: Milo) -> None:
    await milo.project.claim(milo.claim("c", 1))
    stored = (await milo.decided("c")).found
    for preconditions in (
        {"uid": "00000000-0000-0000-0000-000000000000"},
        {"uid": stored.uid, "resourceVersion": "1"},
    ):
        body: dict[str, JsonValue] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": dict[str, JsonValue](preconditions),
        }
        answer = await milo.ask("DELETE", milo.claim_path("c"), body)
        assert (answer.status_code, answer.json()["reason"]) == (409, "Conflict")
    claim = milo.claim("c", 1)
    not_ours = await milo.project.release(
        "default", claim.name, owner=claim.owner, subject={"contract.example.com/uid": "u9"}
    )
    assert isinstance(not_ours, NotOurs)
    released = await milo.project.release(
        "default", claim.name, owner=claim.owner, subject=claim.subject
    )
    assert isinstance(released, Released)
    assert await milo.project.read("default", claim.name) == Absent()


@pytest.mark.spec("Q-20")
async def test_a_tracker_sees_a_grant_and_a_deletion(milo: Milo) -> None:
    await milo.grant({milo.widgets: 1})
    claim = milo.claim("c", 1)
    key = ClaimKey("default", claim.name)
    tracker = ClaimTracker(milo.project, f"contract.example.com/run={milo.run}")
    woken: list[ClaimKey] = []

    async def is_granted() -> bool:
        return isinstance(tracker.verdict(*key), Granted)

    async def is_absent() -> bool:
        return tracker.verdict(*key) == Absent()

    with tracker.follow(woken.append):
        await wait_until(is_absent)
        await milo.project.claim(claim)
        await wait_until(is_granted)
        await milo.project.release("default", claim.name, owner=claim.owner, subject=claim.subject)
        await wait_until(is_absent)
    assert set(woken) == {key}
