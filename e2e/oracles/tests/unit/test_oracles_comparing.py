from __future__ import annotations

import pytest

from compute_api_types import labels
from compute_api_types.wire import JsonObject
from e2e.oracles.comparison import compare, end_state, update_summary
from e2e.oracles.testing import HistoryBuilder, an_object

UID = "3bea65ed-100f-4d8d-b0ef-c7cbf3074b4b"
OTHER_UID = "56941665-e943-493e-94f4-b0fc3921d0be"


def test_runs_that_differ_in_identities_and_times_alone_end_alike(
    script: HistoryBuilder, another_script: HistoryBuilder
) -> None:
    for one, uid, moment in (
        (script, UID, "2026-03-01T00:00:01Z"),
        (another_script, OTHER_UID, "2026-03-01T00:07:00Z"),
    ):
        one.write("tenant", "acme", an_object("Namespace", "shop", uid))
        status: JsonObject = {"seen": moment}
        one.write("management", "hub", an_object("Thing", f"ns-{uid}/web", status=status))
    assert end_state(script.history, another_script.history) == []


def a_thing(generation: int, observed: int, **annotations: str) -> JsonObject:
    metadata: JsonObject = {"generation": generation, "annotations": {**annotations}}
    status: JsonObject = {
        "observedGeneration": observed,
        "conditions": [{"type": "Ready", "observedGeneration": observed}],
    }
    return an_object("Thing", "ns/web", metadata=metadata, status=status)


@pytest.mark.spec("FS-07")
def test_how_often_a_spec_was_written_is_no_state_and_how_far_it_was_seen_is(
    script: HistoryBuilder, another_script: HistoryBuilder
) -> None:
    another_script.write("management", "hub", a_thing(2, 2, **{labels.PROJECT_GENERATION: "2"}))
    script.write("management", "hub", a_thing(3, 3, **{labels.PROJECT_GENERATION: "3"}))
    assert end_state(script.history, another_script.history) == []
    script.write("management", "hub", a_thing(4, 3, **{labels.PROJECT_GENERATION: "3"}))
    (violation,) = end_state(script.history, another_script.history)
    assert "observedGeneration" in violation.message


@pytest.mark.spec("FS-07")
def test_which_address_a_provider_gave_is_no_state(
    script: HistoryBuilder, another_script: HistoryBuilder
) -> None:
    for one, address in ((script, "10.128.0.2"), (another_script, "10.128.0.3")):
        status: JsonObject = {"networkInterfaces": [{"assignments": {"networkIP": address}}]}
        one.write("provider", "dfw-1", an_object("Instance", "ns/web-0", status=status))
    assert end_state(script.history, another_script.history) == []


@pytest.mark.spec("FS-07")
def test_projects_without_faults_are_compared_by_their_waits() -> None:
    usual, slow = HistoryBuilder(), HistoryBuilder()
    for script, seconds in ((usual, 0.5), (slow, 2.0)):
        for project, uid in (("acme", UID), ("beta", OTHER_UID)):
            federate(script, project, uid, seconds)
    slow.history.add_injected("D2", "acme get WorkloadDeployment shop/web")
    projects = ("acme", "beta")
    assert [one.oracle for one in compare(slow.history, usual.history, projects)] == ["O8"]
    # A fault on the hub affects every project.
    slow.history.add_injected("D1", "hub get WorkloadDeployment ns/web")
    assert compare(slow.history, usual.history, projects) == []


def test_a_crash_affects_every_project_of_its_process() -> None:
    usual, slow = HistoryBuilder(), HistoryBuilder()
    for script, seconds in ((usual, 0.5), (slow, 2.0)):
        federate(script, "beta", OTHER_UID, seconds)
    slow.history.add_injected("A1", "acme update WorkloadDeployment shop/web")
    assert compare(slow.history, usual.history, ("acme", "beta")) == []


def federate(script: HistoryBuilder, project: str, uid: str, seconds: float) -> None:
    """A deployment of a project, and its copy on the hub after `seconds`."""
    script.write("tenant", project, an_object("Namespace", "shop", uid))
    script.write("tenant", project, an_object("WorkloadDeployment", "shop/web"))
    script.wait(seconds)
    noted: JsonObject = {"annotations": {labels.PROJECT_GENERATION: "1"}}
    copy = an_object("WorkloadDeployment", f"ns-{uid}/web", metadata=noted)
    script.write("management", "hub", copy)


def test_an_object_that_is_left_missing_or_different_breaks_o1(
    script: HistoryBuilder, another_script: HistoryBuilder
) -> None:
    script.write("management", "hub", an_object("Thing", "ns/left"))
    script.write("management", "hub", an_object("Thing", "ns/other", spec={"size": 2}))
    another_script.write("management", "hub", an_object("Thing", "ns/missing"))
    another_script.write("management", "hub", an_object("Thing", "ns/other", spec={"size": 1}))
    messages = [one.message for one in end_state(script.history, another_script.history)]
    assert any("ns/left is left" in message for message in messages)
    assert any("ns/missing is missing" in message for message in messages)
    assert any('"size":2' in message for message in messages)


def test_a_different_number_of_objects_names_its_kind(
    script: HistoryBuilder, another_script: HistoryBuilder
) -> None:
    script.write("management", "hub", an_object("Thing", "ns/one"))
    messages = [one.message for one in end_state(script.history, another_script.history)]
    assert "hub holds 1 Thing, not 0" in messages


def test_events_and_leases_are_no_state(
    script: HistoryBuilder, another_script: HistoryBuilder
) -> None:
    script.write("management", "hub", an_object("Event", "ns/told"))
    script.write("management", "hub", an_object("Lease", "ns/held"))
    assert end_state(script.history, another_script.history) == []
    assert update_summary(script.history, another_script.history) == []


def test_a_second_create_breaks_o2_whatever_was_injected(
    script: HistoryBuilder, another_script: HistoryBuilder
) -> None:
    thing = an_object("Thing", "ns/web")
    for one in (script, another_script):
        one.write("management", "hub", thing)
    script.fault()
    script.remove("management", "hub", thing)
    script.write("management", "hub", thing)
    messages = [one.message for one in update_summary(script.history, another_script.history)]
    assert messages == [
        "hub Thing ns/web was ADDED 2 times, in the reference 1",
        "hub Thing ns/web was DELETED 1 times, in the reference 0",
    ]


def test_two_more_updates_are_allowed_for_each_fault_and_no_third(
    script: HistoryBuilder, another_script: HistoryBuilder
) -> None:
    thing = an_object("Thing", "ns/web")
    for one in (script, another_script):
        one.write("management", "hub", thing)
    script.fault()
    for _ in range(2):
        script.write("management", "hub", thing)
    assert update_summary(script.history, another_script.history) == []
    script.write("management", "hub", thing)
    assert len(update_summary(script.history, another_script.history)) == 1


def test_a_copy_may_be_updated_as_often_as_its_source_and_not_more(
    script: HistoryBuilder, another_script: HistoryBuilder
) -> None:
    for one, versions in ((another_script, 2), (script, 8)):
        for number in range(versions):
            for plane, key in (("dfw-1", "ns-1/web-0"), ("hub", "ns-1/web-0"), ("acme", "s/web-0")):
                one.write("x", plane, an_object("Instance", key, status={"n": number}))
    script.fault()
    (violation,) = update_summary(script.history, another_script.history)
    assert violation.message.startswith("dfw-1 Instance")
    script.write("x", "acme", an_object("Instance", "s/web-0", status={"n": "once more"}))
    assert len(update_summary(script.history, another_script.history)) == 2


def test_a_copy_counts_the_generations_of_its_source(
    script: HistoryBuilder, another_script: HistoryBuilder
) -> None:
    for one, generation in ((another_script, 2), (script, 3)):
        source = an_object("Instance", "ns-1/web-0", UID, metadata={"generation": generation})
        one.write("dfw-1", "dfw-1", source)
        status: JsonObject = {"conditions": [{"type": "Ready", "observedGeneration": generation}]}
        noted: JsonObject = {"generation": 1, "annotations": {labels.INSTANCE_UID: UID}}
        copy = an_object("Instance", "ns-1/web-0", metadata=noted, status=status)
        one.write("dfw-1", "hub", copy)
    assert end_state(script.history, another_script.history) == []


def test_what_karmada_gathers_counts_the_generations_of_the_member(
    script: HistoryBuilder, another_script: HistoryBuilder
) -> None:
    for one, own in ((another_script, 2), (script, 3)):
        one.write("dfw-1", "dfw-1", an_object("WorkloadDeployment", "ns-1/web"))
        for gathered in gathering(own, 1):
            one.write("karmada", "hub", gathered)
    assert end_state(script.history, another_script.history) == []
    for gathered in gathering(3, 0):
        script.write("karmada", "hub", gathered)
    assert len(end_state(script.history, another_script.history)) == 2


def test_a_template_counts_its_own_generations(
    script: HistoryBuilder, another_script: HistoryBuilder
) -> None:
    for one, generation, observed in ((another_script, 2, 2), (script, 3, 3), (script, 3, 2)):
        noted: JsonObject = {"resourcetemplate.karmada.io/generation": str(generation)}
        status: JsonObject = {"observedTemplateGeneration": observed}
        metadata: JsonObject = {"annotations": noted}
        copied = an_object("WorkloadDeployment", "ns-1/web", metadata=metadata, status=status)
        one.write("karmada", "dfw-1", copied)
        if one is script:
            violations = end_state(script.history, another_script.history)
            assert len(violations) == generation - observed


def gathering(own: int, observed: int) -> list[JsonObject]:
    """A binding and a Work of these generations, with the status of a deployment in dfw-1."""
    reference: JsonObject = {"kind": "WorkloadDeployment", "namespace": "ns-1", "name": "web"}
    member: JsonObject = {"conditions": [{"type": "Ready", "observedGeneration": observed}]}
    metadata: JsonObject = {"generation": own}
    aggregated: JsonObject = {"clusterName": "dfw-1", "status": member}
    bound: JsonObject = {"aggregatedStatus": [aggregated], "schedulerObservedGeneration": own}
    applied: JsonObject = {"manifestStatuses": [{"identifier": reference, "status": member}]}
    spec: JsonObject = {"resource": reference}
    return [
        an_object("ResourceBinding", "ns-1/web", metadata=metadata, spec=spec, status=bound),
        an_object("Work", "karmada-es-dfw-1/web", metadata=metadata, status=applied),
    ]


def test_a_binding_that_is_collected_at_once_may_be_made_once_more_per_fault(
    script: HistoryBuilder, another_script: HistoryBuilder
) -> None:
    binding = an_object("NetworkBinding", "ns-1/web-net-0")
    collector = "system:serviceaccount:kube-system:generic-garbage-collector"
    for one, times in ((another_script, 1), (script, 2)):
        for _ in range(times):
            one.write("cell", "dfw-1", binding)
            one.remove(collector, "dfw-1", binding)
    script.fault()
    assert update_summary(script.history, another_script.history) == []
    script.write("cell", "dfw-1", binding)
    script.wait(6)
    script.remove(collector, "dfw-1", binding)
    assert len(update_summary(script.history, another_script.history)) == 2


@pytest.mark.parametrize(("reason", "violations"), [("QuotaExceeded", 0), ("QuotaAvailable", 2)])
def test_a_denied_claim_may_be_made_once_more_per_fault(
    script: HistoryBuilder, another_script: HistoryBuilder, reason: str, violations: int
) -> None:
    status: JsonObject = {"conditions": [{"type": "Granted", "reason": reason}]}
    claim = an_object("ResourceClaim", "shop/instance-web-0", status=status)
    for one, times in ((another_script, 1), (script, 2)):
        for _ in range(times):
            one.write("cell", "acme", claim)
            one.remove("cell", "acme", claim)
    script.fault()
    assert len(update_summary(script.history, another_script.history)) == violations


def test_what_karmada_gathers_may_be_updated_as_often_as_the_deployments(
    script: HistoryBuilder, another_script: HistoryBuilder
) -> None:
    gathering_kinds = (("ResourceBinding", "ns-1/web-workloaddeployment"), ("Work", "es/web-5f"))
    for one, versions in ((another_script, 2), (script, 6)):
        for number in range(versions):
            status: JsonObject = {"n": number}
            for plane in ("hub", "dfw-1") if number < 4 else ():
                one.write("x", plane, an_object("WorkloadDeployment", "ns-1/web", status=status))
            for kind, key in gathering_kinds:
                one.write("karmada", "hub", an_object(kind, key, status=status))
    script.fault()
    assert update_summary(script.history, another_script.history) == []
    for number in range(2):
        script.write("karmada", "hub", an_object("Work", "es/web-5f", status={"again": number}))
    (violation,) = update_summary(script.history, another_script.history)
    assert violation.message.startswith("hub Work")


def test_a_bucket_may_be_updated_as_often_as_its_claims(
    script: HistoryBuilder, another_script: HistoryBuilder
) -> None:
    for one, versions in ((another_script, 2), (script, 6)):
        for number in range(versions):
            one.write("milo", "acme", an_object("AllowanceBucket", "m/b", status={"n": number}))
        for number in range(5):
            one.write("x", "acme", an_object("ResourceClaim", f"shop/instance-{number}"))
    script.fault()
    assert update_summary(script.history, another_script.history) == []
    script.write("milo", "acme", an_object("AllowanceBucket", "m/b", status={"n": "again"}))
    (violation,) = update_summary(script.history, another_script.history)
    assert violation.message.startswith("acme AllowanceBucket")


def test_a_sum_may_be_updated_as_often_as_its_parts_and_not_more(
    script: HistoryBuilder, another_script: HistoryBuilder
) -> None:
    for one, versions in ((another_script, 2), (script, 5)):
        for number in range(versions):
            status: JsonObject = {"n": number}
            for city in ("dfw", "ord") if number < 4 else ():
                name = f"shop/web-default-{city}"
                one.write("x", "acme", an_object("WorkloadDeployment", name, status=status))
            one.write("x", "acme", an_object("Workload", "shop/web", status=status))
    script.fault()
    assert update_summary(script.history, another_script.history) == []
    for number in range(3):
        script.write("x", "acme", an_object("Workload", "shop/web", status={"again": number}))
    (violation,) = update_summary(script.history, another_script.history)
    assert violation.message.startswith("acme Workload")
