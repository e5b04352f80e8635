"""Claims of single Instances: what is claimed, what each verdict and failure reports, and what is
waited for.
"""

from __future__ import annotations

from collections import Counter

import pytest
from cell_builders.documents import (
    CELL_NAME,
    NS,
    PROJECT,
    PROJECT_NAMESPACE,
    a_deployment_document,
    a_namespace_document,
    a_template_document,
    an_instance_document,
)
from cell_builders.quota_scenes import (
    CLAIM,
    NOTHING,
    OFTEN,
    ONE,
    begin,
    claim_reads,
    claim_writes,
    claims,
    cut,
    drop_claim,
    enforcing,
    has_claims,
    is_gated,
    make_claim,
    milo_of,
    most_claims_at_once,
    open_cell,
    quota_of,
    recorded_uid,
    refuse,
    says,
    times,
)
from cell_builders.world import (
    World,
    condition_of,
    gates_of,
    generation_of,
    play,
    spec_of,
    uid_of,
)

from compute_api_types import labels
from compute_cell_operator.planes import CELL, INSTANCE, NAMESPACE
from compute_operator_kit.core.json import JsonObject, member_list, member_object
from compute_sim_planes.faults.plans import Action, Fault, Point
from compute_sim_planes.history import Injected
from compute_sim_planes.json_types import JsonObject as Manifest
from compute_sim_planes.json_types import JsonValue as ManifestValue
from compute_sim_planes.milo.kinds import CLAIMS, REGISTRATIONS
from compute_sim_planes.milo.testing import a_registration

FAILURES = "compute_quota_eval_failures_total"


@pytest.mark.spec("Q-23")
def test_the_claim_is_exactly_as_specified_and_its_spec_is_never_updated() -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        claim = (await claims(world))["instance-web-0"]
        metadata = member_object(claim, "metadata")
        project = {
            "apiGroup": "resourcemanager.miloapis.com",
            "kind": "Project",
            "name": PROJECT,
        }
        assert metadata["namespace"] == PROJECT_NAMESPACE
        assert metadata["labels"] == {
            "compute.datumapis.com/source-cluster": CELL_NAME,
            "compute.datumapis.com/instance-namespace": NS,
        }
        assert metadata["annotations"] == {
            "compute.datumapis.com/instance-uid": uid_of(await world.instance("web-0"))
        }
        assert "ownerReferences" not in metadata
        assert "finalizers" not in metadata
        assert member_object(claim, "spec") == {
            "consumerRef": project,
            "resourceRef": project,
            "requests": [
                {"resourceType": "compute.datumapis.com/instances", "amount": 1},
                {"resourceType": "compute.datumapis.com/vcpus", "amount": 1000},
                {"resourceType": "compute.datumapis.com/memory", "amount": 2048},
            ],
        }
        await world.set_image("web", "2.0")
        await world.sleep(30)
        claim = (await claims(world))["instance-web-0"]
        assert generation_of(claim) == 1
        managers = {
            str(entry["manager"])
            for entry in member_list(member_object(claim, "metadata"), "managedFields")
            if isinstance(entry, dict) and "subresource" not in entry
        }
        assert managers == {"compute-quota"}

    play(scenario, has_networking=False)


# --- the project that pays ------------------------------------------------------------------------


@pytest.mark.spec("Q-24", "Q-25")
@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("meta.datumapis.com/upstream-cluster-name", "Could not resolve project ID: "),
        ("meta.datumapis.com/upstream-namespace", "Could not resolve project namespace: "),
    ],
)
def test_a_namespace_without_its_label_claims_nothing_and_names_it(
    label: str, expected: str
) -> None:
    async def scenario(world: World) -> None:
        process = await open_cell(world)
        metadata: JsonObject = {"metadata": {"labels": {label: None}}}
        await world.patch(CELL, NAMESPACE, NS, metadata)
        await world.deliver("web", 1)
        await world.eventually(says(world, "False", "QuotaProjectIDUnresolvable"))
        _, _, message = await quota_of(world)
        assert message.startswith(expected)
        assert NS in message
        assert label in message
        await world.sleep(120)
        assert await is_gated(world)
        assert claim_writes(world) == []
        assert process.measures.total(FAILURES, reason="project_id_unresolvable") == 1
        assert process.reasons().count("QuotaProjectIDUnresolvable") == 1
        # Permanent until the Namespace changes.
        await world.patch(
            CELL, NAMESPACE, NS, {"metadata": member_object(a_namespace_document(), "metadata")}
        )
        await world.eventually(world.is_converged)

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-24")
def test_a_namespace_with_another_uid_is_not_claimed_in() -> None:
    async def scenario(world: World) -> None:
        await open_cell(world)
        other = "ns-11111111-2222-4333-8444-555555555555"
        await world.create(CELL, a_namespace_document(other))
        await world.create(CELL, a_deployment_document("web", 1, namespace=other))

        async def is_told() -> bool:
            instance = await world.find(CELL, INSTANCE, "web-0", other)
            return instance is not None and condition_of(instance, "QuotaGranted")[1] == (
                "QuotaProjectIDUnresolvable"
            )

        await world.eventually(is_told)
        instance = await world.get(CELL, INSTANCE, "web-0", other)
        _, _, message = condition_of(instance, "QuotaGranted")
        assert message.startswith("Could not resolve project namespace: ")
        assert other in message
        assert "meta.datumapis.com/upstream-namespace" in message
        await world.sleep(60)
        assert claim_writes(world) == []
        assert "Quota" in gates_of(await world.get(CELL, INSTANCE, "web-0", other))

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-24", "Q-25", "Q-33")
def test_a_proof_that_cannot_be_read_is_transient() -> None:
    async def scenario(world: World) -> None:
        await open_cell(world)
        world.injector.arm(refuse("get", 403, "Forbidden", kind=NAMESPACE.kind))
        await world.deliver("web", 1)
        await world.eventually(says(world, "False", "QuotaBackendUnavailable"))
        assert (await quota_of(world))[2].startswith(
            "Quota backend unreachable getting ResourceClaim: "
        )
        assert claim_writes(world) == []
        world.injector.disarm("get:403")
        await world.eventually(world.is_converged)

    play(scenario, has_networking=False)


# --- every row of the table -----------------------------------------------------------------------


ROWS = [
    pytest.param(
        refuse("get", 403, "Forbidden"),
        ("False", "QuotaBackendUnavailable", "Quota backend unreachable getting ResourceClaim: "),
        "backend_unavailable",
        id="3-read-refused",
    ),
    pytest.param(
        refuse("get", 401, "Unauthorized"),
        ("False", "QuotaBackendUnavailable", "Quota backend unreachable getting ResourceClaim: "),
        "backend_unavailable",
        id="3-read-unauthorized",
    ),
    pytest.param(
        refuse("create", 500, "InternalError"),
        ("False", "QuotaBackendUnavailable", "Quota backend unreachable creating ResourceClaim: "),
        "backend_unavailable",
        id="3-create-failed",
    ),
    pytest.param(
        refuse("create", 404, "NotFound"),
        ("False", "QuotaProjectNotFound", 'Milo project "acme" not found'),
        "project_not_found",
        id="8-project",
    ),
    pytest.param(
        refuse("create", 403, "Forbidden"),
        (
            "False",
            "QuotaMisconfigured",
            'Quota admission rejected ResourceClaim for project "acme": ',
        ),
        "misconfigured",
        id="9-forbidden",
    ),
    pytest.param(
        refuse("create", 422, "Invalid"),
        (
            "False",
            "QuotaMisconfigured",
            'Quota admission rejected ResourceClaim for project "acme": ',
        ),
        "misconfigured",
        id="9-invalid",
    ),
]


@pytest.mark.spec("Q-25")
@pytest.mark.parametrize(("fault", "expected", "counted"), ROWS)
def test_a_failure_has_its_words_one_event_and_one_count_and_heals(
    fault: Fault, expected: tuple[str, str, str], counted: str
) -> None:
    status, reason, message = expected

    async def scenario(world: World) -> None:
        process = await open_cell(world)
        world.injector.arm(fault)
        await world.deliver("web", 1)
        await world.eventually(says(world, status, reason))
        instance = await world.instance("web-0")
        assert condition_of(instance, "QuotaGranted")[2].startswith(message)
        assert observed_generation(instance) == generation_of(instance)
        await world.sleep(120)
        assert await is_gated(world)
        assert process.reasons(kind=INSTANCE).count(reason) == 1
        assert process.measures.total(FAILURES, reason=counted) == 1
        world.injector.disarm(fault.id)
        await world.eventually(world.is_converged)

    play(scenario, has_networking=False)


def observed_generation(instance: JsonObject) -> object:
    for entry in member_list(member_object(instance, "status"), "conditions"):
        if isinstance(entry, dict) and entry.get("type") == "QuotaGranted":
            return entry.get("observedGeneration")
    return None


@pytest.mark.spec("Q-25")
def test_a_namespace_that_is_not_in_the_project_is_named() -> None:
    async def scenario(world: World) -> None:
        process = await open_cell(world)
        labelled: JsonObject = {
            "metadata": {"labels": {"meta.datumapis.com/upstream-namespace": "elsewhere"}}
        }
        await world.patch(CELL, NAMESPACE, NS, labelled)
        await world.deliver("web", 1)
        await world.eventually(says(world, "False", "QuotaNamespaceNotFound"))
        assert (await quota_of(world))[2] == (
            'Quota claim namespace "elsewhere" not found on project "acme" control plane'
        )
        assert process.measures.total(FAILURES, reason="namespace_not_found") == 1

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-25")
def test_an_unknown_size_claims_nothing() -> None:
    async def scenario(world: World) -> None:
        process = await open_cell(world)
        template = a_template_document()
        spec = member_object(template, "spec")
        member_object(member_object(spec, "runtime"), "resources")["instanceType"] = "acme/huge"
        await world.create(CELL, a_deployment_document("web", 1, template=template))
        await world.eventually(says(world, "False", "UnknownInstanceType"))
        assert (await quota_of(world))[2] == (
            'Instance type "acme/huge" is unknown and no explicit size is given'
        )
        await world.sleep(30)
        assert claim_writes(world) == []
        assert await is_gated(world)
        assert process.measures.total(FAILURES, reason="misconfigured") == 1

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-25", "Q-26", "Q-31")
def test_pending_is_reported_after_its_grace_and_costs_no_read_while_the_watch_lives() -> None:
    async def scenario(world: World) -> None:
        process = await open_cell(world)
        milo_of(world).milo.options.pause()
        await world.deliver("web", 1)
        await world.eventually(has_claims(world, "instance-web-0"))
        await world.sleep(2)
        reads = len(claim_reads(world))
        assert (await quota_of(world))[:2] == ("Unknown", "PendingEvaluation")
        assert process.reasons(kind=INSTANCE) == []
        await world.eventually(says(world, "Unknown", "QuotaNoBudget"), within=35)
        assert (await quota_of(world))[2] == (
            "ResourceClaim is pending: the quota service has not evaluated it yet"
        )
        await world.sleep(25)
        assert len(claim_reads(world)) == reads  # a minute of pending
        await world.sleep(120)
        assert 1 <= len(claim_reads(world)) - reads <= 2  # then one a minute
        assert process.reasons(kind=INSTANCE) == ["QuotaNoBudget"]
        assert process.measures.total(FAILURES, reason="no_budget") == 1
        milo_of(world).milo.options.resume()
        # Noticed by the watch, not by the next look.
        taken = await world.eventually(says(world, "True", "QuotaAvailable"))
        assert taken <= 1

    play(scenario, has_networking=False)


@pytest.mark.spec("FS-03")
@pytest.mark.parametrize("action", [Action.DROP, Action.DELAY_PAST_NEXT])
def test_a_grant_that_the_watch_lost_is_read(action: Action) -> None:
    async def scenario(world: World) -> None:
        await open_cell(world)
        milo_of(world).milo.options.pause()
        await world.deliver("web", 1)
        await world.eventually(has_claims(world, "instance-web-0"))
        await world.eventually(says(world, "Unknown", "PendingEvaluation"))
        world.injector.arm(Fault("lost", action, Point(plane=PROJECT, kind=CLAIM, times=0)))
        milo_of(world).milo.options.resume()
        await world.eventually(says(world, "True", "QuotaAvailable"), within=80)
        assert not await is_gated(world)
        await world.eventually(world.is_converged)

    play(scenario, has_networking=False)


async def decide(world: World, status: str, reason: str) -> None:
    """Writes a verdict into the status of a claim, as Milo does."""
    claim = (await claims(world))["instance-web-0"]
    condition: Manifest = {
        "type": "Granted",
        "status": status,
        "reason": reason,
        "message": "by hand",
        "lastTransitionTime": "2026-03-01T00:00:00Z",
        "observedGeneration": 1,
    }
    verdict = "Granted" if status == "True" else "Denied"
    allocations: list[ManifestValue] = [
        {
            "resourceType": kind,
            "status": verdict,
            "allocatedAmount": amount,
            "allocatingBucket": "by-hand",
            "lastTransitionTime": "2026-03-01T00:00:00Z",
        }
        for kind, amount in times(1).items()
    ]
    decided: Manifest = {"conditions": [condition], "allocations": allocations}
    await milo_of(world).inside().update_status(CLAIMS, {**claim, "status": decided})


def test_a_denial_of_the_watch_is_read_again_before_its_claim_is_released() -> None:
    """The plane has a grant already, and the watch lags behind it."""

    async def scenario(world: World) -> None:
        await open_cell(world)
        milo_of(world).milo.options.pause()
        await world.deliver("web", 1)
        await world.eventually(has_claims(world, "instance-web-0"))
        await world.eventually(says(world, "Unknown", "PendingEvaluation"))
        before = uid_of((await claims(world))["instance-web-0"])
        second = Point(plane=PROJECT, verb="watch", kind=CLAIM, nth=2)
        world.injector.arm(Fault("lost", Action.DROP, second))
        await decide(world, "False", "QuotaExceeded")
        await decide(world, "True", "QuotaAvailable")
        await world.eventually(says(world, "True", "QuotaAvailable"), within=10)
        assert list(world.history.of(Injected)), "the fault never took effect"
        assert claim_writes(world, "delete") == []
        assert uid_of((await claims(world))["instance-web-0"]) == before

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-31")
def test_without_a_watch_every_look_is_one_read() -> None:
    async def scenario(world: World) -> None:
        await open_cell(world)
        world.injector.arm(refuse("list", 403, "Forbidden"))
        milo_of(world).milo.options.pause()
        await world.deliver("web", 1)
        await world.eventually(has_claims(world, "instance-web-0"))
        reads = len(claim_reads(world))
        await world.sleep(30)
        assert 25 <= len(claim_reads(world)) - reads <= 32  # one a second in the first minute
        await world.sleep(60)
        reads = len(claim_reads(world))
        await world.sleep(60)
        assert 3 <= len(claim_reads(world)) - reads <= 5  # then one in 15 seconds
        milo_of(world).milo.options.resume()
        await world.eventually(world.is_converged)

    play(scenario, has_networking=False)


# --- verdicts -------------------------------------------------------------------------------------


@pytest.mark.spec("Q-27")
def test_a_grant_opens_the_quota_gate_in_one_pass_and_leaves_the_network_gate() -> None:
    async def scenario(world: World) -> None:
        await world.add_milo()
        process = enforcing(world)
        process.start()
        await world.federate()
        await world.deliver("web", 1)
        await world.eventually(says(world, "True", "QuotaAvailable"))
        await world.sleep(1)
        assert gates_of(await world.instance("web-0")) == ["Network"]
        assert process.reasons(kind=INSTANCE).count("QuotaGranted") == 1
        ungate = process.measures.values[("compute_quota_grant_to_ungate_seconds", ())]
        assert max(ungate) <= 0.25

    play(scenario)


@pytest.mark.spec("Q-28", "Q-25")
def test_a_denial_is_reported_on_ready_with_what_is_short_and_touches_no_other_condition() -> None:
    async def scenario(world: World) -> None:
        process = await open_cell(world, {**times(1), labels.VCPUS_RESOURCE: 500})
        await world.deliver("web", 1)
        await world.eventually(says(world, "False", "QuotaExceeded"))
        await world.sleep(1)
        instance = await world.instance("web-0")
        _, _, message = condition_of(instance, "QuotaGranted")
        assert " vcpus: " in message
        assert condition_of(instance, "Ready") == ("False", "PendingQuota", message)
        assert condition_of(instance, "Programmed")[:2] == ("Unknown", "Pending")
        assert condition_of(instance, "Available")[:2] == ("Unknown", "Pending")
        assert await is_gated(world)
        assert process.reasons(kind=INSTANCE).count("QuotaExceeded") == 1
        status, reason, _ = condition_of(await world.deployment(), "ReplicasReady")
        assert (status, reason) == ("False", "QuotaExceeded")

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-29", "Q-25")
def test_a_denied_claim_goes_at_once_and_is_asked_for_again_until_it_fits() -> None:
    async def scenario(world: World) -> None:
        process = await open_cell(world, NOTHING)
        await world.deliver("web", 1)
        await world.eventually(says(world, "False", "QuotaExceeded"))
        await world.eventually(has_claims(world), within=1)
        seen: Counter[tuple[str, str]] = Counter()
        for _ in range(120):
            seen[(await quota_of(world))[:2]] += 1
            await world.sleep(1)
        # Two attempts later it is the same: it never flapped to Unknown in between.
        assert seen.keys() == {("False", "QuotaExceeded")}
        assert len(claim_writes(world, "create")) == 3
        await milo_of(world).grant(times(1), "more")
        await world.eventually(world.is_converged, within=150)
        assert most_claims_at_once(world) == 1
        recreated = process.measures.total("compute_quota_claims_recreated_total", reason="denied")
        assert recreated == 3
        assert process.reasons(kind=INSTANCE).count("QuotaExceeded") == 1

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-29")
def test_what_a_denied_claim_reserved_in_part_is_free_for_others() -> None:
    async def scenario(world: World) -> None:
        await open_cell(world, {**times(1), labels.VCPUS_RESOURCE: 500})
        await world.deliver("web", 1)
        await world.eventually(says(world, "False", "QuotaExceeded"))
        await world.eventually(has_claims(world), within=1)
        other = {labels.INSTANCES_RESOURCE: 1, labels.MEMORY_RESOURCE: 2048}
        await make_claim(world, "somebody", cell="", requests=other)
        await world.sleep(1)
        claim = (await claims(world))["somebody"]
        assert condition_of(claim, "Granted")[0] == "True"

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-25")
def test_an_invalid_claim_is_reported_released_and_requested_again() -> None:
    async def scenario(world: World) -> None:
        process = await open_cell(world)
        milo_of(world).milo.options.pause()
        await world.deliver("web", 1)
        await world.eventually(has_claims(world, "instance-web-0"))
        claim = (await claims(world))["instance-web-0"]
        refused: Manifest = {
            "type": "Granted",
            "status": "False",
            "reason": "ValidationFailed",
            "message": "not a claim we know",
            "lastTransitionTime": "2026-03-01T00:00:00Z",
        }
        invalid: Manifest = {**claim, "status": {"conditions": [refused]}}
        await milo_of(world).inside().update_status(CLAIMS, invalid)
        await world.eventually(says(world, "False", "ValidationFailed"))
        assert (await quota_of(world))[2] == "not a claim we know"
        await world.eventually(has_claims(world), within=1)
        assert process.reasons(kind=INSTANCE).count("ValidationFailed") == 1
        milo_of(world).milo.options.resume()
        await world.eventually(world.is_converged, within=60)

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-25")
def test_an_instance_without_a_valid_claim_is_reported_and_stops_no_other() -> None:
    async def scenario(world: World) -> None:
        await open_cell(world)
        # A claim's name is nine characters longer, and then too long for any object.
        name = "x" * 250
        await world.create(CELL, an_instance_document(name))
        await world.eventually(says(world, "False", "QuotaBackendUnavailable", name))
        assert (await quota_of(world, name))[2].startswith(
            'Failed to build quota client for project "acme": '
        )
        await world.deliver("web", 1)
        await world.eventually(world.is_converged)

    play(scenario, has_networking=False)


# --- claims of others -----------------------------------------------------------------------------


@pytest.mark.spec("Q-35")
def test_a_tenants_claim_is_replaced_and_not_trusted() -> None:
    async def scenario(world: World) -> None:
        process = await open_cell(world)
        forged = await make_claim(world, "instance-web-0", cell="", uid="forged")
        await world.sleep(1)
        await world.deliver("web", 1)
        await world.eventually(world.is_converged)
        claim = (await claims(world))["instance-web-0"]
        assert uid_of(claim) != uid_of(forged)
        assert recorded_uid(claim) == uid_of(await world.instance("web-0"))
        assert process.measures.total("compute_quota_claims_recreated_total", reason="foreign") == 1

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-35", "Q-25")
def test_another_cells_claim_is_never_touched_and_named() -> None:
    async def scenario(world: World) -> None:
        process = await open_cell(world)
        other = await make_claim(world, "instance-web-0", cell="ord-1", uid="theirs")
        await world.deliver("web", 1)
        await world.eventually(says(world, "False", "QuotaMisconfigured"))
        assert (await quota_of(world))[2] == (
            'ResourceClaim "shop/instance-web-0" belongs to cell "ord-1"'
        )
        await world.sleep(90)
        assert claim_writes(world) == []
        assert uid_of((await claims(world))["instance-web-0"]) == uid_of(other)
        assert process.measures.total(FAILURES, reason="misconfigured") == 1
        # Gone: ours is made with the next look.
        await drop_claim(world)
        await world.eventually(world.is_converged)

    play(scenario, has_networking=False)


@pytest.mark.spec("AT-04", "Q-30")
def test_a_slot_that_another_cell_holds_is_granted_soon_after_that_claim_is_gone() -> None:
    async def scenario(world: World) -> None:
        await open_cell(world)
        await world.deliver("web", 1)
        for _ in range(2):
            await world.eventually(world.is_converged)
            await world.scale("web", 0)
            await world.eventually(has_claims(world))
            await make_claim(world, "instance-web-0", cell="ord-1", uid="theirs")
            await world.scale("web", 1)
            await world.eventually(says(world, "False", "QuotaMisconfigured"))
            # So long that any other wait would be looked at every five minutes.
            await world.sleep(1200)
            before = len(claim_reads(world))
            await world.sleep(60)
            assert len(claim_reads(world)) - before == 4
            await drop_claim(world)
            await world.eventually(world.is_converged, within=20)

    play(scenario, has_networking=False)


@pytest.mark.spec("AT-13", "Q-35")
@pytest.mark.parametrize("cell", ["", "dfw-1"])
def test_the_claim_of_another_service_is_never_touched_and_named(cell: str) -> None:
    async def scenario(world: World) -> None:
        await open_cell(world, quota=OFTEN)
        root = milo_of(world).milo.client()
        await root.create(REGISTRATIONS, a_registration("storage.example.com/gib"))
        await world.sleep(5)
        asked = {**ONE, "storage.example.com/gib": 5}
        other = await make_claim(world, "instance-db-0", cell=cell, requests=asked)
        await world.deliver("db", 1)
        await world.eventually(says(world, "False", "QuotaMisconfigured", "db-0"))
        assert (await quota_of(world, "db-0"))[2] == (
            'ResourceClaim "shop/instance-db-0" belongs to another service: it asks for '
            '"storage.example.com/gib"; delete it or give the Workload another name'
        )
        await world.sleep(180)
        assert claim_writes(world) == []
        # Nor is it released with the slot, nor swept.
        await world.withdraw("db")
        await world.sleep(300)
        assert claim_writes(world) == []
        assert spec_of((await claims(world))["instance-db-0"]) == spec_of(other)

    play(scenario, has_networking=False)


@pytest.mark.spec("OU-03", "Q-34")
@pytest.mark.parametrize(
    ("namespace", "requests", "is_kept"),
    [(NS, ONE, True), (NS, times(2), False), ("ns-of-another", ONE, False), ("", ONE, False)],
)
def test_a_claim_without_uid_is_adopted_only_if_slot_and_size_agree(
    namespace: str, requests: dict[str, int], is_kept: bool
) -> None:
    async def scenario(world: World) -> None:
        await open_cell(world)
        made = await make_claim(world, "instance-web-0", namespace=namespace, requests=requests)
        await world.deliver("web", 1)
        await world.eventually(world.is_converged)
        claim = (await claims(world))["instance-web-0"]
        assert (uid_of(claim) == uid_of(made)) is is_kept
        assert recorded_uid(claim) == uid_of(await world.instance("web-0"))
        assert len(claim_writes(world, "delete")) == (0 if is_kept else 1)

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-34")
def test_the_claim_of_a_live_other_instance_is_waited_for() -> None:
    async def scenario(world: World) -> None:
        await open_cell(world)
        # Not in scope, so no controller reconciles it: it only exists.
        await world.create(CELL, a_namespace_document("elsewhere"))
        made = await world.create(CELL, an_instance_document("web-0", namespace="elsewhere"))
        kept = await make_claim(world, "instance-web-0", uid=uid_of(made), namespace="elsewhere")
        await world.deliver("web", 1)
        await world.sleep(30)
        assert (await quota_of(world))[:2] == ("Unknown", "PendingEvaluation")
        assert claim_writes(world) == []
        await world.delete(CELL, INSTANCE, "web-0", "elsewhere")
        await world.eventually(world.is_converged)
        claim = (await claims(world))["instance-web-0"]
        assert uid_of(claim) == uid_of(kept)
        assert recorded_uid(claim) == uid_of(await world.instance("web-0"))

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-34")
@pytest.mark.parametrize(("requests", "is_kept"), [(ONE, True), (times(2), False)])
def test_the_claim_of_a_gone_predecessor_is_adopted_if_it_is_of_the_same_size(
    requests: dict[str, int], is_kept: bool
) -> None:
    async def scenario(world: World) -> None:
        process = await open_cell(world)
        made = await make_claim(world, "instance-web-0", uid="gone", requests=requests)
        await world.deliver("web", 1)
        await world.eventually(world.is_converged)
        after = (await claims(world))["instance-web-0"]
        assert (uid_of(after) == uid_of(made)) is is_kept
        assert recorded_uid(after) == uid_of(await world.instance("web-0"))
        adopted = process.measures.total("compute_quota_claims_adopted_total")
        replaced = process.measures.total(
            "compute_quota_claims_recreated_total", reason="size_changed"
        )
        assert (adopted, replaced) == ((1, 0) if is_kept else (0, 1))

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-34")
def test_a_claim_that_is_being_deleted_is_waited_for() -> None:
    async def scenario(world: World) -> None:
        await open_cell(world)
        made = await make_claim(world, "instance-web-0", uid="gone")
        inside = milo_of(world).inside()
        finalizer: Manifest = {"metadata": {"finalizers": ["example.com/keep"]}}
        await inside.patch(CLAIMS, "instance-web-0", finalizer, namespace=PROJECT_NAMESPACE)
        await drop_claim(world)
        await world.deliver("web", 1)
        await world.sleep(20)
        assert claim_writes(world) == []
        assert (await quota_of(world))[:2] == ("Unknown", "PendingEvaluation")
        nothing: Manifest = {"metadata": {"finalizers": None}}
        await inside.patch(CLAIMS, "instance-web-0", nothing, namespace=PROJECT_NAMESPACE)
        await world.eventually(world.is_converged)
        assert uid_of((await claims(world))["instance-web-0"]) != uid_of(made)

    play(scenario, has_networking=False)


# --- switched off, and unreachable ----------------------------------------------------------------


@pytest.mark.spec("Q-36")
def test_disabled_quota_opens_the_gate_without_a_request() -> None:
    async def scenario(world: World) -> None:
        world.start_neighbours()
        world.process().start()
        await world.federate()
        await world.deliver("web", 1)
        await world.eventually(world.is_converged)
        assert await quota_of(world) == (
            "True",
            "QuotaDisabled",
            "Quota enforcement is disabled by configuration",
        )
        assert PROJECT not in {request.address.plane for request in world.requests()}

    play(scenario, has_networking=False)


@pytest.mark.spec("Q-41")
def test_the_operator_starts_and_stays_up_without_any_project_plane() -> None:
    async def scenario(world: World) -> None:
        await world.add_milo()
        world.start_neighbours()
        cut(world)
        process = enforcing(world)
        process.start()
        await world.federate()
        await world.deliver("web", 1)
        await world.eventually(says(world, "False", "QuotaBackendUnavailable"))
        await world.sleep(600)
        assert process.operator.find_unsynced() is None
        assert (await quota_of(world))[:2] == ("False", "QuotaBackendUnavailable")
        assert [one for one in world.writes() if one.address.kind == CLAIM] == []

    play(scenario, has_networking=False)
