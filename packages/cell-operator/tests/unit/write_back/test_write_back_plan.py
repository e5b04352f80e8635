"""The copy of an Instance on the hub (cell.md 11, 12)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType

import msgspec
import pytest

from compute_cell_operator.planes import CELL, DEPLOYMENT, HUB, INSTANCE
from compute_cell_operator.write_back.checks import NotKnown, RefusalReason, find_obstacle
from compute_cell_operator.write_back.observe import (
    HubFacts,
    InstanceDocument,
    ObservedCopy,
    read_deployment_uid,
    read_document,
)
from compute_cell_operator.write_back.plan import (
    SETTLED,
    AskHub,
    Decided,
    Decision,
    derive_hashes,
    plan,
    plan_removal,
)
from compute_operator_kit.core.json import Json, JsonObject
from compute_operator_kit.core.keys import ObjectKey, Uid
from compute_operator_kit.core.objects import (
    Absent,
    Metadata,
    OwnerReference,
    Unreadable,
    parse_object,
)
from compute_operator_kit.intents.intents import (
    Delete,
    Ensure,
    RequeueAfter,
    RequireGone,
    SetStatus,
)

NS = "ns-6a1f1c1e-3f6c-4a44-9a52-0c2f9f3b7a10"
KEY = ObjectKey(CELL, INSTANCE, NS, "web-0")
COPY_KEY = ObjectKey(HUB, INSTANCE, NS, "web-0")
PREFIX = "compute.datumapis.com/"
LINKS = {
    PREFIX + "workload-uid": "w-1",
    PREFIX + "workload-name": "shop",
    PREFIX + "workload-deployment-uid": "d-1",
    PREFIX + "workload-deployment-name": "web",
    PREFIX + "placement-name": "us",
    PREFIX + "city-code": "DFW",
    PREFIX + "instance-index": "0",
}
IDENTITY = {
    "meta.datumapis.com/upstream-cluster-name": "cluster-acme",
    "meta.datumapis.com/upstream-namespace": "default",
}
LABELS = {**LINKS, **IDENTITY, PREFIX + "cell": "dfw-1"}
OWNER = OwnerReference(
    DEPLOYMENT.api_version, "WorkloadDeployment", "web", Uid("hub-d"), True, True
)
FOREIGN = OwnerReference("v1", "ConfigMap", "x", Uid("x-1"), True)
SPEC: JsonObject = {"controller": {"schedulingGates": [{"name": "Quota"}]}}
READY: JsonObject = {"type": "Ready", "status": "True", "reason": "Available", "message": ""}
STATUS: JsonObject = {"conditions": [READY]}
MINUTES = timedelta(minutes=5)


def a_namespace(labels: dict[str, str] | None = None) -> Metadata:
    given = IDENTITY if labels is None else labels
    return Metadata(NS, "", Uid("n"), "1", labels=MappingProxyType(dict(given)))


def a_deployment(uid: str = "hub-d", *, terminating: bool = False) -> Metadata:
    gone = "2026-06-20T09:00:00Z" if terminating else ""
    return Metadata("web", NS, Uid(uid), "1", deletion_timestamp=gone)


def an_instance(
    labels: dict[str, str] | None = None,
    *,
    uid: str = "i-1",
    terminating: bool = False,
    annotations: dict[str, str] | None = None,
    spec: JsonObject = SPEC,
    status: JsonObject = STATUS,
) -> InstanceDocument:
    metadata = Metadata(
        "web-0",
        NS,
        Uid(uid),
        "7",
        deletion_timestamp="2026-06-20T09:00:00Z" if terminating else "",
        labels=MappingProxyType({"app": "web", **(LINKS if labels is None else labels)}),
        annotations=MappingProxyType({"note": "not copied", **(annotations or {})}),
    )
    return InstanceDocument(KEY, metadata, spec, status)


def a_copy(
    labels: dict[str, str] | None = None,
    *,
    owners: tuple[OwnerReference, ...] = (OWNER,),
    annotations: dict[str, str] | None = None,
    spec: JsonObject = SPEC,
    status: JsonObject = STATUS,
    terminating: bool = False,
) -> InstanceDocument:
    recorded = {PREFIX + "instance-uid": "i-1"} if annotations is None else annotations
    metadata = Metadata(
        "web-0",
        NS,
        Uid("copy-1"),
        "9",
        deletion_timestamp="2026-06-20T09:00:00Z" if terminating else "",
        labels=MappingProxyType({"theirs": "x", **(LABELS if labels is None else labels)}),
        annotations=MappingProxyType({PREFIX + "quarantine-reason": "oversized", **recorded}),
        owners=owners,
    )
    return InstanceDocument(COPY_KEY, metadata, spec, status)


ANSWER = HubFacts(a_namespace(), a_deployment())


def a_seen(
    copy: InstanceDocument | Absent | Unreadable | None = None,
    *,
    instance: InstanceDocument | None = None,
    hub: HubFacts | None = ANSWER,
    namespace: Metadata | Absent | Unreadable | None = None,
    deployment_uid: str = "hub-d",
    owner_misses: int = 0,
) -> ObservedCopy:
    return ObservedCopy(
        cell="dfw-1",
        copy_key=COPY_KEY,
        instance=instance or an_instance(),
        namespace=namespace or a_namespace(),
        deployment_uid=deployment_uid,
        copy=Absent() if copy is None else copy,
        hub=hub,
        owner_misses=owner_misses,
    )


def decided(seen: ObservedCopy) -> Decided:
    decision: Decision = plan(seen)
    assert isinstance(decision, Decided)
    return decision


def intents(seen: ObservedCopy) -> tuple[Ensure | SetStatus | Delete | RequeueAfter, ...]:
    planned = decided(seen).plan.intents
    return tuple(
        one for one in planned if isinstance(one, Ensure | SetStatus | Delete | RequeueAfter)
    )


# --- compare first --------------------------------------------------------------------------------


@pytest.mark.parametrize("deployment_uid", ["hub-d", ""])
def test_an_equal_copy_asks_nothing_and_writes_nothing(deployment_uid: str) -> None:
    assert decided(a_seen(a_copy(), hub=None, deployment_uid=deployment_uid)) == SETTLED


def test_the_order_of_keys_makes_no_difference() -> None:
    spec: JsonObject = {"b": 1, "a": {"d": 1, "c": 2}}
    turned: JsonObject = {"a": {"c": 2, "d": 1}, "b": 1}
    seen = a_seen(a_copy(spec=turned), instance=an_instance(spec=spec), hub=None)
    assert intents(seen) == ()


@pytest.mark.parametrize(
    ("copy", "is_create"),
    [
        (Absent(), True),
        (a_copy(spec={}), False),
        (a_copy(status={}), False),
        (a_copy({**LABELS, PREFIX + "city-code": "LHR"}), False),
        (a_copy(owners=()), False),
        (a_copy(annotations={}), False),
        (
            a_copy(annotations={PREFIX + "instance-uid": "i-1", PREFIX + "workload-name": "x"}),
            False,
        ),
    ],
)
def test_a_difference_leads_to_live_reads_of_the_hub(
    copy: InstanceDocument | Absent, is_create: bool
) -> None:
    assert plan(a_seen(copy, hub=None)) == AskHub(is_create=is_create)


def test_a_copy_without_owner_is_adopted_also_where_karmada_names_no_uid() -> None:
    assert plan(a_seen(a_copy(owners=()), hub=None, deployment_uid="")) == AskHub(is_create=False)
    ensure = intents(a_seen(a_copy(owners=()), deployment_uid=""))[0]
    assert isinstance(ensure, Ensure)
    assert ensure.desired.owners == (OWNER,)


def test_a_field_that_the_hub_prunes_is_written_once_per_change() -> None:
    seen = a_seen(a_copy(spec={}), hub=None)
    hashes = derive_hashes(seen)
    assert hashes is not None
    again = replace(seen, written=hashes)
    assert intents(again) == ()
    changed = replace(again, instance=an_instance(status={}))
    assert plan(changed) == AskHub(is_create=False)
    edited = replace(again, copy=a_copy(spec={"x": 1}))
    assert plan(edited) == AskHub(is_create=False)


@pytest.mark.parametrize(
    "seen",
    [
        a_seen(Unreadable("HubUnreadable")),
        a_seen(namespace=Unreadable("HubUnreadable")),
        a_seen(hub=HubFacts(Unreadable("HubUnreadable"), a_deployment())),
        a_seen(hub=HubFacts(a_namespace(), Unreadable("HubUnreadable"))),
    ],
)
def test_what_cannot_be_read_is_waited_for(seen: ObservedCopy) -> None:
    (wait,) = intents(seen)
    assert isinstance(wait, RequeueAfter)
    assert wait.reason == "HubUnreadable"
    assert decided(seen).refusal is None


def test_a_copy_that_could_not_be_read_before_a_write_is_waited_for_too() -> None:
    unreadable = a_seen(Unreadable("HubUnreadable"))
    assert find_obstacle(unreadable, ANSWER) == NotKnown("HubUnreadable")


# --- writing --------------------------------------------------------------------------------------


def test_a_new_copy_has_ten_labels_the_uid_the_owner_spec_and_status() -> None:
    ensure, status = intents(a_seen())
    assert isinstance(ensure, Ensure)
    assert isinstance(status, SetStatus)
    assert (ensure.key, ensure.uid, ensure.reason) == (COPY_KEY, None, "Absent")
    assert ensure.desired.labels == LABELS
    kept = {key: text for key, text in ensure.desired.annotations.items() if text is not None}
    assert kept == {PREFIX + "instance-uid": "i-1"}
    assert ensure.desired.owners == (OWNER,)
    assert ensure.desired.replace == {"spec": SPEC}
    assert (status.uid, status.resource_version, status.status) == (None, "", STATUS)


def test_an_existing_copy_is_brought_in_line_by_its_uid() -> None:
    ensure, status = intents(a_seen(a_copy(spec={}, status={})))
    assert isinstance(ensure, Ensure)
    assert isinstance(status, SetStatus)
    assert (ensure.uid, ensure.reason) == ("copy-1", "Drifted")
    assert "theirs" not in ensure.desired.labels
    assert PREFIX + "quarantine-reason" not in ensure.desired.annotations
    assert (status.uid, status.resource_version) == ("copy-1", "9")


def test_an_equal_status_is_not_written() -> None:
    (ensure,) = intents(a_seen(a_copy(spec={})))
    assert isinstance(ensure, Ensure)
    (made,) = intents(a_seen(instance=an_instance(status={})))
    assert isinstance(made, Ensure)


def test_full_values_go_with_the_labels_they_complete() -> None:
    long = {PREFIX + "workload-name": "w" * 80}
    ensure = intents(a_seen(instance=an_instance(annotations=long)))[0]
    assert isinstance(ensure, Ensure)
    assert ensure.desired.annotations[PREFIX + "workload-name"] == "w" * 80


def test_the_copy_of_a_predecessor_is_deleted_before_a_new_one_is_made() -> None:
    (delete,) = intents(a_seen(a_copy(), instance=an_instance(uid="i-2")))
    assert delete == Delete(COPY_KEY, Uid("copy-1"), "Replaced")


def test_a_predecessor_outside_the_watch_is_deleted_and_its_end_is_waited_for() -> None:
    """The watch selects by the label of the cell: without it the deletion sends no event."""
    unlabelled = {key: text for key, text in LABELS.items() if key != PREFIX + "cell"}
    assert intents(a_seen(a_copy(unlabelled), instance=an_instance(uid="i-2"))) == (
        Delete(COPY_KEY, Uid("copy-1"), "Replaced"),
        RequeueAfter(KEY, "Replaced", timedelta(seconds=1)),
    )


def test_nothing_is_made_for_what_is_going_and_an_existing_copy_shows_it() -> None:
    going = an_instance(terminating=True, status={"conditions": []})
    assert intents(a_seen(instance=going, hub=None)) == ()
    (_, status) = intents(a_seen(a_copy(), instance=going))
    assert isinstance(status, SetStatus)
    assert not status.may_defer


def a_status(ready: str, quota: str = "True") -> JsonObject:
    granted: Json = {"type": "QuotaGranted", "status": quota, "reason": "QuotaAvailable"}
    waiting: Json = {"type": "Ready", "status": "False", "reason": ready}
    return {"conditions": [granted, waiting]}


def test_a_provisional_first_write_waits_before_the_hub_is_asked_and_a_later_one_after() -> None:
    coming = an_instance(status=a_status("SchedulingGatesPresent"))
    asked = plan(a_seen(Absent(), instance=coming, hub=None))
    assert asked == AskHub(is_create=True, is_provisional=True)
    assert plan(a_seen(a_copy(status={}), instance=coming, hub=None)) == AskHub(is_create=False)
    # It has waited by the time it is made: one wait, not two.
    for intent in intents(a_seen(instance=coming)):
        assert isinstance(intent, Ensure | SetStatus)
        assert not intent.may_defer
    for intent in intents(a_seen(a_copy(status={}), instance=coming)):
        assert isinstance(intent, Ensure | SetStatus)
        assert (intent.may_defer, intent.defer_for) == (True, timedelta(milliseconds=100))


@pytest.mark.parametrize("copy", [a_copy(), Absent()])
def test_news_is_never_held(copy: InstanceDocument | Absent) -> None:
    broken = an_instance(status=a_status("ImageUnavailable"))
    planned = intents(a_seen(copy, instance=broken))
    assert planned
    for intent in planned:
        assert isinstance(intent, Ensure | SetStatus)
        assert not intent.may_defer


# --- checks 1 to 6 --------------------------------------------------------------------------------


def refusal_of(seen: ObservedCopy) -> tuple[RefusalReason, str]:
    decision = decided(seen)
    assert decision.refusal is not None
    assert intents(seen) == (RequeueAfter(KEY, "Refused", MINUTES),)
    return decision.refusal.reason, decision.refusal.message


@pytest.mark.parametrize("copy", [Absent(), a_copy()])
@pytest.mark.parametrize("missing", [[key] for key in LINKS] + [list(LINKS)])
def test_exactly_the_missing_links_are_named(
    missing: list[str], copy: InstanceDocument | Absent
) -> None:
    kept = {key: text for key, text in LINKS.items() if key not in missing}
    reason, message = refusal_of(a_seen(copy, instance=an_instance(kept)))
    assert reason is RefusalReason.MISSING_LABELS
    assert {
        key for key in LINKS if key in message.removeprefix("labels missing: ").split(", ")
    } == {*missing}


@pytest.mark.parametrize("copy", [Absent(), a_copy(spec={})])
def test_missing_links_are_refused_before_the_hub_is_asked(copy: InstanceDocument | Absent) -> None:
    kept = {key: text for key, text in LINKS.items() if key != PREFIX + "city-code"}
    reason, message = refusal_of(a_seen(copy, instance=an_instance(kept), hub=None))
    assert reason is RefusalReason.MISSING_LABELS
    assert PREFIX + "city-code" in message


@pytest.mark.spec("OU-03")
def test_an_instance_of_another_controller_is_not_written_back() -> None:
    ours = an_instance()
    stranger = replace(ours, metadata=replace_owners(ours.metadata, FOREIGN))
    reason, _ = refusal_of(a_seen(Absent(), instance=stranger))
    assert reason is RefusalReason.FOREIGN_OWNER


def replace_owners(metadata: Metadata, *owners: OwnerReference) -> Metadata:
    return msgspec.structs.replace(metadata, owners=owners)


@pytest.mark.parametrize("key", IDENTITY)
def test_namespaces_must_name_the_same_project(key: str) -> None:
    without = a_namespace({k: v for k, v in IDENTITY.items() if k != key})
    empty, other = a_namespace({**IDENTITY, key: ""}), a_namespace({**IDENTITY, key: "other"})
    for namespace in (without, empty, other):
        reason, message = refusal_of(a_seen(hub=HubFacts(namespace, a_deployment())))
        assert reason is RefusalReason.NAMESPACE_IDENTITY
        assert NS in message
        assert key in message
    reason, message = refusal_of(a_seen(namespace=without))
    assert reason is RefusalReason.NAMESPACE_IDENTITY
    assert key in message


def test_a_namespace_must_exist_on_both_planes() -> None:
    for seen, where in (
        (a_seen(hub=HubFacts(Absent(), a_deployment())), "hub"),
        (a_seen(namespace=Absent()), "cell"),
    ):
        reason, message = refusal_of(seen)
        assert reason is RefusalReason.NAMESPACE_IDENTITY
        assert NS in message
        assert where in message


@pytest.mark.parametrize("deployment", [Absent(), a_deployment(terminating=True)])
@pytest.mark.parametrize(("misses", "seconds"), [(0, 30), (9, 30), (10, 300)])
def test_without_a_live_owner_there_is_no_copy_and_no_error(
    deployment: Metadata | Absent, misses: int, seconds: int
) -> None:
    seen = a_seen(hub=HubFacts(a_namespace(), deployment), owner_misses=misses)
    assert intents(seen) == (RequeueAfter(KEY, "OwnerAbsent", timedelta(seconds=seconds)),)
    decision = decided(seen)
    assert decision.refusal is None
    assert decision.is_ownerless


def test_the_owner_must_be_the_one_that_karmada_delivered() -> None:
    other = HubFacts(a_namespace(), a_deployment("hub-e"))
    reason, message = refusal_of(a_seen(hub=other))
    assert reason is RefusalReason.OWNER_MISMATCH
    assert "hub-e" in message
    assert len(intents(a_seen(hub=other, deployment_uid=""))) == 2


@pytest.mark.spec("FS-08")
def test_an_instance_that_goes_with_its_deployment_gets_no_new_copy() -> None:
    orphan = replace(a_seen(deployment_uid=""), is_orphaned=True)
    assert decided(orphan).is_ownerless
    assert [type(one) for one in intents(orphan)] == [RequeueAfter]
    # One that it has is kept up to date, so that its end is shown.
    kept = replace(a_seen(a_copy(), deployment_uid=""), is_orphaned=True)
    assert not decided(kept).is_ownerless


def test_a_copy_of_another_cell_is_never_touched() -> None:
    copy = a_copy({**LABELS, PREFIX + "cell": "lhr-1"})
    assert refusal_of(a_seen(copy))[0] is RefusalReason.OTHER_CELL
    older = a_copy({**LABELS, PREFIX + "cell": "lhr-1"}, annotations={PREFIX + "instance-uid": "x"})
    assert refusal_of(a_seen(older))[0] is RefusalReason.OTHER_CELL


def test_a_copy_with_another_controller_is_never_touched() -> None:
    reason, message = refusal_of(a_seen(a_copy(owners=(FOREIGN,))))
    assert reason is RefusalReason.FOREIGN_OWNER
    assert '"x"' in message


def test_a_copy_without_cell_and_owner_is_adopted() -> None:
    copy = a_copy({}, owners=(), annotations={})
    (ensure,) = intents(a_seen(copy))
    assert isinstance(ensure, Ensure)
    assert ensure.uid == "copy-1"
    assert ensure.desired.owners == (OWNER,)


def test_the_first_obstacle_decides() -> None:
    worst = a_seen(
        a_copy({PREFIX + "cell": "lhr-1"}, owners=(FOREIGN,)),
        instance=an_instance({}),
        hub=HubFacts(Absent(), Absent()),
    )
    assert refusal_of(worst)[0] is RefusalReason.MISSING_LABELS
    named = replace(worst, instance=an_instance())
    assert refusal_of(named)[0] is RefusalReason.NAMESPACE_IDENTITY
    ownerless = replace(named, hub=HubFacts(a_namespace(), Absent()))
    assert decided(ownerless).is_ownerless
    mismatched = replace(named, hub=HubFacts(a_namespace(), a_deployment("hub-e")))
    assert refusal_of(mismatched)[0] is RefusalReason.OWNER_MISMATCH
    assert refusal_of(replace(named, hub=ANSWER))[0] is RefusalReason.OTHER_CELL


# --- release --------------------------------------------------------------------------------------


def test_a_copy_goes_only_where_its_instance_is_proven_gone() -> None:
    (delete,) = plan_removal("dfw-1", KEY, a_copy()).intents
    gone = RequireGone(KEY, Uid("i-1"))
    assert delete == Delete(COPY_KEY, Uid("copy-1"), "NotWanted", require_gone=gone)
    (bare,) = plan_removal("dfw-1", KEY, a_copy(annotations={})).intents
    assert bare == Delete(COPY_KEY, Uid("copy-1"), "NotWanted", require_gone=RequireGone(KEY, None))


@pytest.mark.parametrize(
    "copy",
    [
        a_copy({**LABELS, PREFIX + "cell": "lhr-1"}),
        a_copy(LINKS),
        a_copy(terminating=True),
    ],
)
def test_what_is_not_ours_or_is_going_is_not_removed(copy: InstanceDocument) -> None:
    assert plan_removal("dfw-1", KEY, copy).intents == ()


# --- reading --------------------------------------------------------------------------------------


def test_a_document_is_read_as_if_it_could_be_anything() -> None:
    body: JsonObject = {"metadata": {"name": "web-0", "namespace": NS}, "spec": [], "status": 3}
    document = read_document(parse_object(CELL, INSTANCE, body, None).snapshot)
    assert (document.key, document.spec, document.status, document.conditions) == (KEY, {}, {}, ())


def test_the_uid_on_the_hub_is_what_karmada_annotated() -> None:
    annotations = {"resourcetemplate.karmada.io/uid": "hub-d"}
    annotated = Metadata("web", NS, Uid("d-1"), "1", annotations=MappingProxyType(annotations))
    assert read_deployment_uid(annotated) == "hub-d"
    assert read_deployment_uid(a_deployment()) == ""
