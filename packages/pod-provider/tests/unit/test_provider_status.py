from __future__ import annotations

from datetime import timedelta

import pytest
from provider_builders.documents import (
    NOW,
    OPTIONS,
    a_container,
    a_pod,
    a_running_pod,
    a_spec,
    an_instance,
    ended,
    observed,
    running,
    waiting,
)

from compute_api_types.wire import JsonObject, JsonValue
from compute_pod_provider.pod_facts import NO_POD, NoPod, ObservedPod
from compute_pod_provider.status import report
from compute_pod_provider.verdict import Evidence, Run, Verdict, judge, refused, suspended

TIME = "2026-11-18T12:00:00Z"


def verdict_of(pod: ObservedPod) -> Verdict:
    runs = {name: Run(0, NOW - timedelta(minutes=1)) for name in ("main", "one", "two")}
    return judge(pod, Evidence(NOW, OPTIONS, runs))


def status_of(instance: JsonObject, pod: ObservedPod | NoPod, verdict: Verdict) -> JsonObject:
    patch = report(observed(instance), pod, verdict, NOW)
    assert patch is not None
    assert patch["metadata"] == {"resourceVersion": "7"}
    status = patch["status"]
    assert isinstance(status, dict)
    return status


def applied(instance: JsonObject, status: JsonObject) -> JsonObject:
    """The Instance after the merge patch."""
    before = instance.get("status")
    merged = (before if isinstance(before, dict) else {}) | status
    kept: JsonObject = {key: one for key, one in merged.items() if one is not None}
    return {**instance, "status": kept}


def test_a_settled_instance_is_written_once() -> None:
    instance, pod = an_instance(), a_running_pod()
    status = status_of(instance, pod, verdict_of(pod))
    assert status["networkInterfaces"] == [{"assignments": {"networkIP": "10.0.0.7"}}]
    assert status["controller"] == {"observedTemplateHash": "hash-1"}
    after = applied(instance, status)
    assert report(observed(after), pod, verdict_of(pod), NOW + timedelta(hours=1)) is None


@pytest.mark.spec("PP-10")
def test_the_address_is_in_the_first_of_two_interfaces_and_goes_with_the_pod() -> None:
    two: list[JsonValue] = [{"network": {"name": "a"}}, {"network": {"name": "b"}}]
    instance = an_instance(spec=a_spec(networkInterfaces=two))
    pod = a_running_pod(podIPs=[{"ip": "fd00::7"}, {"ip": "10.0.0.7"}])
    status = status_of(instance, pod, verdict_of(pod))
    assert status["networkInterfaces"] == [{"assignments": {"networkIP": "fd00::7"}}, {}]
    gone = status_of(applied(instance, status), NO_POD, suspended())
    assert gone["networkInterfaces"] is None
    replaced = a_running_pod(podIPs=[], podIP="10.0.0.9")
    again = status_of(instance, replaced, verdict_of(replaced))
    assert again["networkInterfaces"] == [{"assignments": {"networkIP": "10.0.0.9"}}, {}]


@pytest.mark.spec("PP-11")
def test_the_hash_is_absent_until_all_containers_have_started_and_then_kept() -> None:
    instance = an_instance(spec=a_spec(a_container("one"), a_container("two")))
    half = a_pod(
        instance,
        containerStatuses=[running(name="one"), waiting("ContainerCreating", name="two")],
    )
    assert "controller" not in status_of(instance, half, verdict_of(half))
    whole = a_running_pod(running(name="one"), running(name="two"), instance=instance)
    status = status_of(instance, whole, verdict_of(whole))
    assert status["controller"] == {"observedTemplateHash": "hash-1"}
    crashed = a_running_pod(
        waiting("CrashLoopBackOff", name="one", lastState=ended()),
        running(name="two"),
        instance=instance,
    )
    kept = applied(instance, status)
    assert "controller" not in status_of(kept, crashed, verdict_of(crashed))
    replaced = a_pod(instance, containerStatuses=[])
    assert "controller" not in status_of(kept, replaced, verdict_of(replaced))


@pytest.mark.spec("PP-12")
def test_conditions_follow_the_rules_of_every_writer() -> None:
    foreign: JsonObject = {"type": "Ready", "status": "False", "extra": 1}
    epoch = "1970-01-01T00:00:00Z"
    existing: list[JsonValue] = [
        "no condition at all",
        foreign,
        {
            "type": "Available",
            "status": "Unknown",
            "lastTransitionTime": epoch,
            "reason": "Pending",
        },
        {"type": "Available", "status": "True", "lastTransitionTime": epoch, "reason": "Twice"},
    ]
    instance = an_instance(status={"conditions": existing}, generation=3)
    pod = a_running_pod()
    assert status_of(instance, pod, verdict_of(pod))["conditions"] == [
        "no condition at all",
        foreign,
        {
            "type": "Available",
            "status": "True",
            "reason": "Available",
            "message": "Instance is available",
            "lastTransitionTime": TIME,
            "observedGeneration": 3,
        },
        {
            "type": "Programmed",
            "status": "True",
            "reason": "Programmed",
            "message": "Instance is available",
            "lastTransitionTime": TIME,
            "observedGeneration": 3,
        },
    ]


@pytest.mark.spec("PP-12")
def test_the_time_stays_while_the_status_does() -> None:
    instance = an_instance()
    first = applied(instance, status_of(instance, NO_POD, refused("a")))
    later = report(observed(first), NO_POD, refused("b"), NOW + timedelta(hours=1))
    assert later is not None
    status = later["status"]
    assert isinstance(status, dict)
    conditions = status["conditions"]
    assert isinstance(conditions, list)
    times = {str(one["lastTransitionTime"]) for one in conditions if isinstance(one, dict)}
    assert times == {TIME}


def test_an_instance_without_interfaces_has_no_address() -> None:
    spec = a_spec()
    spec["networkInterfaces"] = "none"
    instance = an_instance(status={"conditions": "none"})
    instance["spec"] = spec
    pod = a_running_pod()
    assert status_of(instance, pod, verdict_of(pod)).get("networkInterfaces") is None
