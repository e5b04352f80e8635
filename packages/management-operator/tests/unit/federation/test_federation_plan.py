"""The plan for one deployment on the hub, situation by situation."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

import pytest
from management_builders.federation import (
    COPY_KEY,
    HUB_NAMESPACE,
    IDENTITY,
    KEY,
    NAMESPACE_UID,
    NOW,
    OPERATOR,
    a_copy,
    a_deployment,
    a_hub_namespace,
    a_moment,
    a_policy,
)
from msgspec import structs

from compute_api_types import labels, reasons
from compute_management_operator.hub.delays import (
    IDENTITY_RETRY,
    LONGEST_FOR_BINDING,
    LOST_EVENT,
    RELEASE_LATE_AFTER,
    STEP,
    UNTIL_RESYNC,
)
from compute_management_operator.hub.federation.observe import (
    FederationLiveFacts,
    FederationMemory,
    ObservedDeployment,
    ProjectDeployment,
)
from compute_management_operator.hub.federation.plan import plan, policies_to_enqueue
from compute_management_operator.hub.referenced_data.expectation import UNSTATED, DataExpectation
from compute_management_operator.planes import HUB, NAMESPACE, POLICY
from compute_operator_kit.controller.mass_delete import RemovalAllowed, RemovalHeld
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Uid
from compute_operator_kit.core.objects import Absent
from compute_operator_kit.intents.intents import (
    AddFinalizer,
    Delete,
    Ensure,
    OwnedFields,
    Plan,
    RecordEvent,
    RemoveFinalizer,
    RequeueAfter,
    RequireExists,
    RequireGone,
)

UID = Uid("project-wd")
FOREIGN = {**IDENTITY, labels.UPSTREAM_CLUSTER_NAME: "cluster-other"}
NAMESPACE_KEY = ObjectKey(HUB, NAMESPACE, "", HUB_NAMESPACE)
CLAIMED = {"propagationpolicy.karmada.io/permanent-id": "p"}


def events(planned: Plan) -> list[str]:
    return [intent.reason for intent in planned if isinstance(intent, RecordEvent)]


def waits(planned: Plan) -> list[tuple[str, timedelta]]:
    return [(one.reason, one.retry_after) for one in planned if isinstance(one, RequeueAfter)]


def known(**since: timedelta) -> FederationMemory:
    """Situations by reason, and how long they have lasted."""
    lasting = {reason: NOW - length for reason, length in since.items()}
    return FederationMemory(since=lasting, repairs_left=3, operator=OPERATOR)


# --- finalizers of an older operator --------------------------------------------------------------


def retired(seen: ObservedDeployment) -> ObservedDeployment:
    """The same with the finalizer of an older operator beside its own."""
    assert not isinstance(seen.deployment, Absent)
    metadata = seen.deployment.metadata
    held = (labels.REFERENCED_DATA_FINALIZER, *metadata.finalizers)
    held_by_both = structs.replace(metadata, finalizers=held)
    deployment = replace(seen.deployment, metadata=held_by_both)
    return replace(seen, deployment=deployment)


@pytest.mark.parametrize(
    "seen",
    [
        a_moment(),
        a_moment(deployment=a_deployment(has_finalizer=False, recorded=""), copy=Absent()),
        a_moment(deployment=a_deployment(city="New York")),
        a_moment(deployment=a_deployment(is_deleting=True)),
        a_moment(deployment=a_deployment(is_deleting=True, has_finalizer=False)),
    ],
)
def test_a_retired_finalizer_goes_after_all_else_and_changes_nothing_else(
    seen: ObservedDeployment,
) -> None:
    removal = RemoveFinalizer(KEY, UID, labels.REFERENCED_DATA_FINALIZER, reasons.RETIRED_FINALIZER)
    assert plan(retired(seen), NOW) == Plan((*plan(seen, NOW).intents, removal))


# --- the ladder -----------------------------------------------------------------------------------


@pytest.mark.spec("M-26")
def test_finalizer_and_recorded_namespace_are_one_request_and_nothing_else_happens() -> None:
    seen = a_moment(
        deployment=a_deployment(has_finalizer=False, recorded=""),
        hub_namespace=Absent(),
        copy=Absent(),
    )
    stored = AddFinalizer(
        KEY,
        UID,
        labels.FEDERATION_FINALIZER,
        reasons.FINALIZER_MISSING,
        annotations={labels.FEDERATION_NAMESPACE: HUB_NAMESPACE},
    )
    assert plan(seen, NOW) == Plan.of(stored)


@pytest.mark.spec("M-35")
def test_recorded_namespace_that_was_forged_is_put_back() -> None:
    forged = a_deployment(recorded="ns-11111111-2222-3333-4444-555555555555")
    (stored,) = plan(a_moment(deployment=forged), NOW)
    assert isinstance(stored, AddFinalizer)
    assert stored.annotations == {labels.FEDERATION_NAMESPACE: HUB_NAMESPACE}


@pytest.mark.spec("M-42")
@pytest.mark.parametrize("city", ["New York", "", "-"])
def test_city_that_no_label_can_carry_is_refused_once(city: str) -> None:
    seen = a_moment(deployment=a_deployment(city=city))
    first = plan(seen, NOW)
    assert events(first) == [reasons.FEDERATION_REFUSED]
    assert waits(first) == [(reasons.FEDERATION_REFUSED, UNTIL_RESYNC)]
    assert not first.writes
    again = replace(seen, known=known(FederationRefused=timedelta(hours=1)))
    assert events(plan(again, NOW)) == []


def test_deployment_of_a_namespace_that_is_gone_is_left_alone() -> None:
    assert (
        plan(
            a_moment(
                hub_name="", live=FederationLiveFacts(namespace=Absent(), hub_namespace=Absent())
            ),
            NOW,
        )
        == Plan()
    )


# --- the hub namespace ----------------------------------------------------------------------------

# The version before the repair: no two repairs leave the same state behind.
REPAIRED: Final = {labels.IDENTITY_REPAIRED: "9"}


@pytest.mark.spec("M-27")
def test_hub_namespace_is_made_with_both_labels_before_anything_in_it() -> None:
    (made,) = plan(a_moment(hub_namespace=Absent(), copy=Absent()), NOW)
    assert made == Ensure(NAMESPACE_KEY, OwnedFields(labels=IDENTITY), reasons.ABSENT)


def test_label_that_is_missing_is_added_and_the_other_left_as_it_is() -> None:
    planned = a_hub_namespace({labels.UPSTREAM_CLUSTER_NAME: "cluster-org_acme"})
    (labelled,) = plan(a_moment(hub_namespace=planned), NOW)
    desired = OwnedFields(labels={labels.UPSTREAM_NAMESPACE: "default"}, annotations=REPAIRED)
    assert labelled == Ensure(NAMESPACE_KEY, desired, reasons.DRIFTED, uid=Uid("hub-ns"))


def test_label_that_cannot_be_decoded_is_replaced() -> None:
    planned = a_hub_namespace({**IDENTITY, labels.UPSTREAM_CLUSTER_NAME: "acme"})
    (labelled,) = plan(a_moment(hub_namespace=planned), NOW)
    assert isinstance(labelled, Ensure)
    identity = {labels.UPSTREAM_CLUSTER_NAME: "cluster-acme"}
    assert labelled.desired == OwnedFields(labels=identity, annotations=REPAIRED)


@pytest.mark.spec("M-38")
def test_equivalent_label_is_not_rewritten() -> None:
    planned = a_hub_namespace({**IDENTITY, labels.UPSTREAM_CLUSTER_NAME: "cluster-org_acme"})
    written = plan(a_moment(hub_namespace=planned), NOW).writes
    assert all(isinstance(one, Ensure) and one.key == COPY_KEY for one in written)


@pytest.mark.spec("M-38")
def test_label_of_another_project_is_repaired_where_copies_of_ours_are() -> None:
    seen = a_moment(hub_namespace=a_hub_namespace(FOREIGN), holds_ours=True)
    (repaired,) = plan(seen, NOW)
    assert isinstance(repaired, Ensure)
    identity = {labels.UPSTREAM_CLUSTER_NAME: "cluster-acme"}
    assert repaired.desired == OwnedFields(labels=identity, annotations=REPAIRED)


@pytest.mark.spec("M-38")
@pytest.mark.parametrize(("holds_ours", "repairs_left"), [(False, 3), (True, 0)])
def test_label_of_another_project_is_held_without_copies_of_ours_or_too_often(
    holds_ours: bool,
    repairs_left: int,
) -> None:
    seen = a_moment(
        hub_namespace=a_hub_namespace(FOREIGN),
        holds_ours=holds_ours,
        known=FederationMemory(repairs_left=repairs_left),
    )
    held = plan(seen, NOW)
    assert not held.writes
    assert events(held) == [reasons.HUB_IDENTITY_CONFLICT]
    assert waits(held) == [(reasons.HUB_IDENTITY_CONFLICT, IDENTITY_RETRY)]


def test_hub_namespace_that_is_going_is_waited_for() -> None:
    planned = plan(a_moment(hub_namespace=a_hub_namespace(is_deleting=True)), NOW)
    assert planned == Plan.of(RequeueAfter(KEY, reasons.STILL_TERMINATING, LOST_EVENT))


def test_project_with_a_long_name_is_written_with_its_full_name_beside() -> None:
    name = "north-american-retail-storefront-production-environment-two"
    seen = a_moment(hub_namespace=Absent(), copy=Absent())
    key = ObjectKey(PlaneName(name), KEY.kind, KEY.namespace, KEY.name)
    (made,) = plan(replace(seen, key=key), NOW)
    assert isinstance(made, Ensure)
    label = labels.UPSTREAM_CLUSTER_NAME
    assert made.desired.labels[label] == "cluster-h-b5aece8171cd0e48c3f2"
    assert made.desired.annotations == {label: name}


# --- the copy -------------------------------------------------------------------------------------


def test_copy_is_made_only_under_a_live_policy() -> None:
    planned = plan(a_moment(copy=Absent(), policies=()), NOW)
    assert planned == Plan.of(RequeueAfter(KEY, reasons.POLICY_ABSENT, LOST_EVENT))


@pytest.mark.spec("M-27")
def test_copy_carries_routing_identity_generation_and_spec() -> None:
    made, event = plan(a_moment(copy=Absent()), NOW)
    assert isinstance(made, Ensure)
    assert isinstance(event, RecordEvent)
    lock = ObjectKey(HUB, POLICY, HUB_NAMESPACE, "city-dfw")
    assert made.key == COPY_KEY
    assert made.requires == RequireExists(lock, lock=lock)
    assert made.desired.labels == {labels.TOPOLOGY_CITY_CODE: "DFW", **IDENTITY}
    assert made.desired.annotations == {
        labels.PROJECT_GENERATION: "3",
        labels.SUSPENDED: None,
        **dict.fromkeys(labels.PASSED_ON_ANNOTATIONS),
    }
    assert made.desired.replace == {
        "spec": {"cityCode": "DFW", "scaleSettings": {"minReplicas": 2}}
    }
    assert (event.reason, event.type, event.after) == (reasons.FEDERATED, "Normal", made)


def test_second_name_of_a_policy_is_locked_by_the_base_of_its_city() -> None:
    second = a_policy("lax", "city-lax-1a2b3c4d")
    seen = a_moment(deployment=a_deployment(city="lax"), copy=Absent(), policies=(second,))
    made = plan(seen, NOW).intents[0]
    assert isinstance(made, Ensure)
    lock = ObjectKey(HUB, POLICY, HUB_NAMESPACE, "city-lax")
    assert made.requires == RequireExists(second.key, lock=lock)


@pytest.mark.spec("M-40")
def test_left_over_binding_is_waited_for_and_not_for_ever() -> None:
    seen = a_moment(
        copy=Absent(),
        live=FederationLiveFacts(namespace=NAMESPACE_UID, has_left_over_binding=True),
    )
    assert waits(plan(seen, NOW)) == [(reasons.BINDING_LEFT_OVER, STEP)]
    almost = replace(seen, known=known(BindingLeftOver=LONGEST_FOR_BINDING - STEP))
    assert waits(plan(almost, NOW)) == [(reasons.BINDING_LEFT_OVER, STEP)]
    enough = replace(seen, known=known(BindingLeftOver=LONGEST_FOR_BINDING))
    assert isinstance(plan(enough, NOW).intents[0], Ensure)


def test_copy_that_is_going_is_waited_for() -> None:
    planned = plan(a_moment(copy=a_copy(is_deleting=True)), NOW)
    assert planned == Plan.of(RequeueAfter(KEY, reasons.STILL_TERMINATING, LOST_EVENT))


@pytest.mark.spec("M-39")
def test_copy_of_another_city_is_deleted_and_never_relabelled() -> None:
    planned = plan(a_moment(copy=a_copy(routed_to="LHR")), NOW)
    deleted, event, _ = planned
    assert deleted == Delete(COPY_KEY, Uid("hub-wd"), reasons.REROUTED)
    assert isinstance(event, RecordEvent)
    assert event.message == 'City changed from "LHR" to "DFW"'
    assert not any(isinstance(intent, Ensure) for intent in planned)


@pytest.mark.spec("M-29")
def test_copy_is_kept_equal_in_what_we_own_and_in_nothing_else() -> None:
    (kept,) = plan(a_moment(copy=a_copy(labels={**IDENTITY, **CLAIMED})), NOW)
    assert isinstance(kept, Ensure)
    assert (kept.uid, kept.resource_version) == (Uid("hub-wd"), "70")
    assert kept.desired.labels == {labels.TOPOLOGY_CITY_CODE: "DFW"}
    assert kept.requires is None


def test_identity_that_a_copy_lost_is_put_back() -> None:
    (kept,) = plan(a_moment(copy=a_copy(labels={})), NOW)
    assert isinstance(kept, Ensure)
    assert kept.desired.labels == {labels.TOPOLOGY_CITY_CODE: "DFW", **IDENTITY}


def test_reserved_annotations_are_passed_on_unread() -> None:
    own = {labels.EXPECTED_REFERENCED_DATA: "any text", "example.com/mine": "no"}
    (kept,) = plan(a_moment(deployment=a_deployment(annotations=own)), NOW)
    assert isinstance(kept, Ensure)
    assert kept.desired.annotations == {
        labels.PROJECT_GENERATION: "3",
        labels.EXPECTED_REFERENCED_DATA: "any text",
        labels.SUSPENDED: None,
    }


def suspended_on_hub(seen: ObservedDeployment) -> str | None:
    """The annotation that the plan gives the copy."""
    (kept, *_) = plan(seen, NOW)
    assert isinstance(kept, Ensure)
    return kept.desired.annotations[labels.SUSPENDED]


@pytest.mark.parametrize("copy", [a_copy(), a_copy(suspended="true"), Absent()])
def test_a_project_condition_or_the_own_annotation_suspends_and_each_is_a_lock(
    copy: ProjectDeployment | Absent,
) -> None:
    annotated = a_deployment(annotations={labels.SUSPENDED: "true"})
    by_project = a_moment(is_project_suspended=True, copy=copy)
    assert suspended_on_hub(by_project) == "true", "whatever the annotation in the project"
    by_annotation = a_moment(deployment=annotated, copy=copy)
    assert suspended_on_hub(by_annotation) == "true"
    assert suspended_on_hub(a_moment(copy=copy)) is None


@pytest.mark.parametrize("value", ["True", "1", "", "yes", "false"])
def test_any_other_value_of_the_annotation_is_none(value: str) -> None:
    deployment = a_deployment(annotations={labels.SUSPENDED: value})
    assert suspended_on_hub(a_moment(deployment=deployment)) is None


@pytest.mark.spec("SU-15")
def test_while_the_root_shows_no_project_the_copy_stays_as_it_is() -> None:
    unknown = a_moment(is_project_suspended=None)
    assert suspended_on_hub(unknown) is None
    kept = a_moment(is_project_suspended=None, copy=a_copy(suspended="true"))
    assert suspended_on_hub(kept) == "true"
    forged = a_moment(is_project_suspended=None, copy=a_copy(suspended="yes"))
    assert suspended_on_hub(forged) is None


# --- finalizing -----------------------------------------------------------------------------------

DELETING = a_deployment(is_deleting=True)


def deleting(seen: ObservedDeployment) -> ObservedDeployment:
    return replace(seen, deployment=DELETING)


def released(planned: Plan) -> bool:
    return any(isinstance(intent, RemoveFinalizer) for intent in planned)


def test_deployment_without_our_finalizer_is_left_alone() -> None:
    deployment = a_deployment(is_deleting=True, has_finalizer=False)
    assert plan(a_moment(deployment=deployment), NOW) == Plan()


@pytest.mark.spec("M-34")
def test_unknown_hub_namespace_holds_the_finalizer_and_is_recorded_once() -> None:
    seen = deleting(
        a_moment(
            hub_name="",
            live=FederationLiveFacts(namespace=Absent(), hub_namespace=Absent()),
            copy=Absent(),
        )
    )
    held = plan(seen, NOW)
    assert events(held) == [reasons.FEDERATION_NAMESPACE_UNRESOLVED]
    assert not held.writes
    again = replace(seen, known=known(FederationNamespaceUnresolved=timedelta(minutes=1)))
    assert events(plan(again, NOW)) == []


@pytest.mark.spec("M-33")
def test_hub_namespace_that_is_gone_has_no_copy_to_wait_for() -> None:
    planned = plan(deleting(a_moment(hub_namespace=Absent(), copy=Absent())), NOW)
    assert planned == Plan.of(
        RemoveFinalizer(
            KEY,
            UID,
            labels.FEDERATION_FINALIZER,
            reasons.FINALIZER_DONE,
            require_gone=RequireGone(COPY_KEY),
        )
    )


@pytest.mark.spec("M-32")
def test_copy_is_deleted_by_its_uid_and_the_finalizer_waits_for_it() -> None:
    planned = plan(deleting(a_moment()), NOW)
    assert planned.intents[0] == Delete(COPY_KEY, Uid("hub-wd"), reasons.NOT_WANTED)
    assert (reasons.STILL_TERMINATING, STEP) in waits(planned)
    assert not released(planned)


@pytest.mark.spec("M-32")
def test_copy_held_by_another_finalizer_holds_ours() -> None:
    planned = plan(deleting(a_moment(copy=a_copy(is_deleting=True))), NOW)
    assert not planned.writes
    assert (reasons.STILL_TERMINATING, STEP) in waits(planned)


@pytest.mark.spec("M-44")
def test_policy_that_no_other_deployment_needs_is_waited_for() -> None:
    planned = plan(deleting(a_moment(copy=Absent())), NOW)
    assert (reasons.POLICY_STILL_THERE, STEP) in waits(planned)
    assert not released(planned)


@pytest.mark.spec("M-44")
@pytest.mark.parametrize(
    "seen",
    [
        a_moment(copy=Absent(), needed_by_others=frozenset({"DFW"})),
        a_moment(copy=Absent(), policies=()),
        a_moment(copy=Absent(), policies=(a_policy("LHR"),)),
    ],
)
def test_policy_that_another_needs_or_that_is_gone_holds_nothing(seen: ObservedDeployment) -> None:
    assert released(plan(deleting(seen), NOW))


def test_policy_of_the_city_that_was_delivered_to_counts_not_that_of_the_spec() -> None:
    rerouted = FederationMemory(deleted_code="LHR", operator=OPERATOR)
    seen = deleting(a_moment(copy=Absent(), known=rerouted))
    assert released(plan(seen, NOW))
    left = replace(seen, policies=(a_policy("LHR"),))
    assert not released(plan(left, NOW))


def test_city_that_never_was_one_has_no_policy_to_wait_for() -> None:
    deployment = a_deployment(is_deleting=True, city="New York")
    assert released(plan(a_moment(deployment=deployment, copy=Absent()), NOW))


@pytest.mark.spec("M-33")
def test_recorded_namespace_is_believed_only_with_labels_that_prove_it() -> None:
    gone = FederationLiveFacts(namespace=Absent(), hub_namespace=Absent())
    assert plan(deleting(a_moment(live=gone)), NOW).writes
    for planned in ({}, FOREIGN):
        seen = deleting(
            a_moment(live=gone, hub_namespace=a_hub_namespace(planned), holds_ours=True)
        )
        held = plan(seen, NOW)
        assert not held.writes
        assert events(held) == [reasons.HUB_IDENTITY_CONFLICT]


def test_labels_are_repaired_first_where_the_namespace_has_the_uid() -> None:
    (first, *_) = plan(deleting(a_moment(hub_namespace=a_hub_namespace({}))), NOW)
    assert isinstance(first, Ensure)
    assert first.key == NAMESPACE_KEY
    foreign = a_moment(hub_namespace=a_hub_namespace(FOREIGN), holds_ours=True)
    assert isinstance(plan(deleting(foreign), NOW).intents[0], Ensure)
    held = plan(deleting(replace(foreign, holds_ours=False)), NOW)
    assert not held.writes


def test_labels_of_a_hub_namespace_that_is_going_are_not_touched() -> None:
    seen = a_moment(hub_namespace=a_hub_namespace({}, is_deleting=True))
    assert not plan(deleting(seen), NOW).writes


def test_finalizer_held_for_five_minutes_is_recorded_once() -> None:
    seen = deleting(a_moment(copy=a_copy(is_deleting=True)))
    early = replace(seen, known=known(Terminating=RELEASE_LATE_AFTER - STEP))
    assert events(plan(early, NOW)) == []
    late = replace(seen, known=known(Terminating=RELEASE_LATE_AFTER))
    assert events(plan(late, NOW)) == [reasons.FEDERATION_RELEASE_DELAYED]
    later = known(Terminating=RELEASE_LATE_AFTER * 2, FederationReleaseDelayed=RELEASE_LATE_AFTER)
    assert events(plan(replace(seen, known=later), NOW)) == []


@pytest.mark.parametrize("deployment", [DELETING, Absent()])
def test_nothing_is_deleted_on_live_reads_for_something_else(
    deployment: ProjectDeployment | Absent,
) -> None:
    seen = a_moment(deployment=deployment, live=FederationLiveFacts(namespace=NAMESPACE_UID))
    assert plan(seen, NOW) == Plan()


# --- orphans --------------------------------------------------------------------------------------

LIVE = FederationLiveFacts(
    namespace=NAMESPACE_UID, hub_namespace=a_hub_namespace(), ruling=RemovalAllowed()
)
ORPHAN = a_moment(deployment=Absent(), live=LIVE)


@pytest.mark.spec("M-31")
def test_nothing_on_either_side_is_nothing_to_do() -> None:
    assert plan(a_moment(deployment=Absent(), copy=Absent()), NOW) == Plan()


@pytest.mark.spec("M-41")
def test_orphaned_copy_is_deleted_on_full_proof() -> None:
    gone = RequireGone(KEY)
    removed = Delete(COPY_KEY, Uid("hub-wd"), reasons.ORPHANED, require_gone=gone)
    assert plan(ORPHAN, NOW) == Plan.of(removed)


@pytest.mark.spec("M-41")
@pytest.mark.parametrize(
    "seen",
    [
        replace(ORPHAN, copy=a_copy(stamped=None)),
        replace(ORPHAN, hub_namespace=Absent()),
        replace(ORPHAN, hub_namespace=a_hub_namespace({})),
        replace(ORPHAN, hub_namespace=a_hub_namespace(FOREIGN)),
        replace(ORPHAN, live=replace(LIVE, namespace=Absent())),
        replace(ORPHAN, copy=Absent(), strays=(a_copy(namespace="ns-other").key,)),
    ],
)
def test_copy_that_is_not_proven_ours_is_left_and_counted(seen: ObservedDeployment) -> None:
    assert plan(seen, NOW) == Plan.of(RequeueAfter(KEY, reasons.ORPHANED, UNTIL_RESYNC))


def test_orphan_that_is_being_deleted_is_left_alone() -> None:
    assert plan(replace(ORPHAN, copy=a_copy(is_deleting=True)), NOW) == Plan()


@pytest.mark.spec("M-94")
@pytest.mark.fault("D9")
def test_too_many_orphans_at_once_are_held_and_recorded_once() -> None:
    held = RemovalHeld(missing=40, total=50, wait=timedelta(seconds=60), is_news=True)
    seen = replace(ORPHAN, live=replace(ORPHAN.live, ruling=held))
    first = plan(seen, NOW)
    assert not first.writes
    assert events(first) == [reasons.MASS_DELETE_REFUSED]
    assert (reasons.MASS_DELETE_REFUSED, timedelta(seconds=60)) in waits(first)
    (event,) = [intent for intent in first if isinstance(intent, RecordEvent)]
    assert event.key == OPERATOR
    for quiet in (
        replace(seen, live=replace(seen.live, ruling=replace(held, is_news=False))),
        replace(seen, known=FederationMemory()),
    ):
        assert events(plan(quiet, NOW)) == []


# --- enqueued policies ----------------------------------------------------------------------------


def enqueued(seen: ObservedDeployment) -> list[str]:
    return [key.name for key in policies_to_enqueue(seen)]


def test_policy_that_is_missing_is_enqueued_and_an_existing_one_is_not() -> None:
    assert enqueued(a_moment(policies=())) == ["city-dfw"]
    assert enqueued(a_moment()) == []


def test_policies_of_both_cities_are_enqueued_by_a_change_of_city() -> None:
    seen = a_moment(copy=a_copy(routed_to="LHR"), policies=(a_policy("LHR"),))
    assert enqueued(seen) == ["city-dfw", "city-lhr"]


def test_policy_of_a_deployment_that_is_deleted_is_enqueued() -> None:
    assert enqueued(deleting(a_moment(copy=Absent()))) == ["city-dfw"]


def test_nothing_is_enqueued_where_the_hub_namespace_is_unknown_or_nothing_is_left() -> None:
    assert enqueued(a_moment(hub_name="")) == []
    assert enqueued(ORPHAN) == []


# --- referenced data ------------------------------------------------------------------------------


@pytest.mark.parametrize("copy", [Absent(), a_copy()])
def test_a_new_generation_waits_for_the_verdicts_about_its_data(
    copy: ProjectDeployment | Absent,
) -> None:
    left = timedelta(seconds=2)
    waiting = DataExpectation(UNSTATED, is_kept=True, awaited=left)
    seen = a_moment(copy=copy)
    planned = plan(replace(seen, live=replace(seen.live, data=waiting)), NOW)
    assert planned == Plan.of(RequeueAfter(KEY, reasons.RESOLVING, left))


@pytest.mark.spec("RD-18")
def test_annotations_about_data_are_ours_whatever_the_project_states() -> None:
    forged = a_deployment(annotations={labels.EXPECTED_REFERENCED_DATA: "[]"})
    stated = {**UNSTATED, labels.EXPECTED_REFERENCED_DATA: '["Secret/db"]'}
    seen = a_moment(deployment=forged, copy=a_copy())
    live = replace(seen.live, data=DataExpectation(stated))
    (written,) = plan(replace(seen, live=live), NOW).writes
    assert isinstance(written, Ensure)
    found = {name: written.desired.annotations[name] for name in UNSTATED}
    assert found == stated
