"""The plan for one hub Instance: projected, updated, replaced, marked or removed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from management_builders.federation import OPERATOR
from management_builders.projection import (
    IDENTITY,
    LINKS,
    NOW,
    OURS,
    PROJECTED,
    SOURCE,
    a_moment,
    a_project_deployment,
    a_projection,
    a_source,
    a_status,
)

from compute_api_types import labels, names, reasons
from compute_api_types.reasons import QuarantineReason
from compute_management_operator.hub.delays import INSTANCE_PATIENCE, LOST_EVENT
from compute_management_operator.hub.projection.observe import LARGEST, ObservedInstance
from compute_management_operator.hub.projection.plan import plan
from compute_management_operator.hub.projection.recently_created import MOST, RecentlyCreated
from compute_management_operator.planes import DEPLOYMENT, HUB, INSTANCE
from compute_operator_kit.controller.mass_delete import RemovalHeld
from compute_operator_kit.core.json import JsonObject
from compute_operator_kit.core.keys import ObjectKey, Uid
from compute_operator_kit.core.objects import Absent, OwnerReference, Unreadable
from compute_operator_kit.intents.compare import compare
from compute_operator_kit.intents.intents import (
    Delete,
    Ensure,
    OwnedFields,
    Plan,
    RecordEvent,
    RequeueAfter,
    RequireExists,
    RequireGone,
)

STARTING: JsonObject = {"type": "Ready", "status": "False", "reason": "PendingProgramming"}
GRANTED: JsonObject = {"type": "QuotaGranted", "status": "True", "reason": "QuotaAvailable"}
READY: JsonObject = {"type": "Ready", "status": "True", "reason": "Available"}
GONE = a_moment(source=Absent(), projection=a_projection(), deployment=Unreadable("NotEngaged"))


def ensured(seen: ObservedInstance) -> Ensure:
    (intent,) = plan(seen, NOW)
    assert isinstance(intent, Ensure), intent
    return intent


# --- built ----------------------------------------------------------------------------------------


@pytest.mark.spec("M-65")
def test_projection_belongs_to_the_projects_own_deployment_alone() -> None:
    made = ensured(a_moment())
    assert made.key == PROJECTED
    assert made.uid is None
    assert made.desired.owners == (OURS,)
    assert made.desired.has_only_these_owners
    assert not made.desired.owners[0].controller


@pytest.mark.spec("FS-01")
def test_only_a_projection_that_is_missing_again_costs_a_read_of_its_deployment() -> None:
    assert ensured(a_moment()).requires is None
    again = ensured(replace(a_moment(), was_created=True)).requires
    owner = ObjectKey(PROJECTED.plane, DEPLOYMENT, PROJECTED.namespace, OURS.name)
    assert again == RequireExists(owner, lock=owner, uid=OURS.uid)


def test_what_was_made_is_remembered_within_bounds() -> None:
    made = RecentlyCreated()
    keys = [ObjectKey(HUB, INSTANCE, "ns", f"web-{number}") for number in range(MOST + 1)]
    for key in keys:
        made.add(key)
    assert len(made) == MOST
    assert keys[0] not in made
    assert keys[-1] in made
    made.forget(keys[-1])
    made.forget(keys[-1])
    assert keys[-1] not in made


@pytest.mark.spec("M-65")
def test_projection_has_reserved_labels_its_own_owner_uid_and_the_spec_whole() -> None:
    gates: JsonObject = {"controller": {"schedulingGates": [{"name": "Quota"}]}}
    source = a_source(
        labels={**LINKS, "app": "shop"},
        annotations={
            labels.INSTANCE_UID: "cell-1",
            labels.WORKLOAD_NAME: "a-very-long-name",
            labels.QUARANTINE_REASON: "unidentifiable",
            "example.com/note": "mine",
        },
        spec=gates,
    )
    made = plan(a_moment(source=source), NOW).intents[-1]
    assert isinstance(made, Ensure)
    assert made.desired.labels == {**LINKS, labels.WORKLOAD_DEPLOYMENT_UID: "project-wd"}
    annotations = {key: text for key, text in made.desired.annotations.items() if text is not None}
    assert annotations == {labels.INSTANCE_UID: "cell-1", labels.WORKLOAD_NAME: "a-very-long-name"}
    assert made.desired.replace == {"spec": gates}


@pytest.mark.spec("M-70")
def test_what_a_user_changed_is_put_back_and_what_is_foreign_stays() -> None:
    held = {**LINKS, labels.COMPUTE_PREFIX + "old": "x", labels.CELL: "forged", "mine": "stays"}
    kept = ensured(a_moment(projection=a_projection(labels=held)))
    assert kept.uid == Uid("uid-on-acme")
    assert kept.desired.labels[labels.COMPUTE_PREFIX + "old"] is None
    assert kept.desired.labels[labels.CELL] == "dfw-1"
    assert "mine" not in kept.desired.labels


def test_projection_that_is_as_wanted_is_not_written() -> None:
    existing = a_projection(labels={**LINKS, labels.WORKLOAD_DEPLOYMENT_UID: "project-wd"})
    kept = ensured(a_moment(projection=existing))
    owner: JsonObject = {
        "apiVersion": OURS.api_version,
        "kind": OURS.kind,
        "name": OURS.name,
        "uid": OURS.uid,
    }
    body: JsonObject = {
        "metadata": {
            "labels": {**existing.metadata.labels},
            "annotations": {**existing.metadata.annotations},
            "ownerReferences": [owner],
        },
        "spec": existing.spec,
    }
    assert not compare(body, kept.desired)


@pytest.mark.spec("M-74")
def test_projection_of_another_instance_is_replaced() -> None:
    existing = a_projection(annotations={labels.INSTANCE_UID: "cell-0"})
    assert plan(a_moment(projection=existing), NOW) == Plan.of(
        Delete(PROJECTED, Uid("uid-on-acme"), reasons.REPLACED)
    )


def test_projection_without_its_origin_is_repaired_and_not_replaced() -> None:
    kept = ensured(a_moment(projection=a_projection(annotations={})))
    assert kept.desired.annotations[labels.INSTANCE_UID] == "cell-1"


def test_projection_that_is_going_is_left_to_go() -> None:
    assert plan(a_moment(projection=a_projection(is_deleting=True)), NOW) == Plan()


@pytest.mark.parametrize(
    "seen",
    [
        a_moment(source=a_source(is_deleting=True)),
        a_moment(deployment=a_project_deployment(is_deleting=True)),
        a_moment(is_project_deleting=True),
        a_moment(projection=Unreadable("NotSynced")),
    ],
)
def test_nothing_new_is_shown_of_what_is_being_deleted(seen: ObservedInstance) -> None:
    assert plan(seen, NOW) == Plan()


def test_terminating_source_is_kept_up_to_date_where_it_is_shown() -> None:
    seen = a_moment(source=a_source(is_deleting=True), projection=a_projection())
    assert ensured(seen).uid == Uid("uid-on-acme")


@pytest.mark.spec("M-96")
def test_difference_waits_while_the_source_is_provisional() -> None:
    starting = a_source(status={"conditions": ["odd", STARTING, GRANTED]})
    assert ensured(a_moment(source=starting)).may_defer
    assert not ensured(a_moment(source=a_source(status=a_status(READY, GRANTED)))).may_defer
    lost = a_moment(source=starting, projection=a_projection(status=a_status(READY)))
    assert not ensured(lost).may_defer


@pytest.mark.spec("M-69")
def test_projection_from_an_absent_cell_is_updated_and_reconciled_again() -> None:
    kept, waits = plan(a_moment(cell=Absent(), projection=a_projection()), NOW)
    assert isinstance(kept, Ensure)
    assert waits == RequeueAfter(SOURCE, reasons.CELL_MISSING, LOST_EVENT)
    assert plan(a_moment(cell=Absent()), NOW) == Plan.of(waits)


@pytest.mark.spec("M-66")
def test_nothing_is_shown_without_its_deployment() -> None:
    planned = plan(a_moment(deployment=Absent()), NOW)
    assert planned == Plan.of(RequeueAfter(SOURCE, reasons.DEPLOYMENT_MISSING, INSTANCE_PATIENCE))


def test_unknown_project_namespace_shows_nothing() -> None:
    assert plan(a_moment(place=None), NOW) == Plan()


# --- quarantined ----------------------------------------------------------------------------------

OVERSIZED = a_source(size=LARGEST + 1)
FINGERPRINT = names.derive_quarantine_fingerprint(LINKS)


def marked(reason: str = "oversized", fingerprint: str = FINGERPRINT) -> dict[str, str]:
    return {
        labels.QUARANTINE_REASON: reason,
        labels.QUARANTINE_MESSAGE: "because",
        labels.QUARANTINED_AT: "2026-06-20T08:00:00Z",
        labels.QUARANTINE_FINGERPRINT: fingerprint,
    }


@pytest.mark.spec("M-76")
def test_quarantine_is_written_and_recorded_once() -> None:
    mark, event = plan(a_moment(source=OVERSIZED), NOW)
    assert isinstance(mark, Ensure)
    assert mark.desired == OwnedFields(
        annotations={
            labels.QUARANTINE_REASON: "oversized",
            labels.QUARANTINE_MESSAGE: "Spec and status are larger than 256 KiB",
            labels.QUARANTINED_AT: "2026-06-20T09:00:00Z",
            labels.QUARANTINE_FINGERPRINT: FINGERPRINT,
        }
    )
    assert isinstance(event, RecordEvent)
    assert (event.key, event.reason, event.action, event.type, event.after) == (
        SOURCE,
        QuarantineReason.OVERSIZED.event,
        "QuarantiningProjection",
        "Warning",
        mark,
    )
    settled = a_source(size=LARGEST + 1, annotations=marked())
    assert plan(a_moment(source=settled), NOW) == Plan()


@pytest.mark.spec("M-76")
@pytest.mark.parametrize("held", [marked(reason="cell_unknown"), marked(fingerprint="0" * 16)])
def test_mark_of_another_reason_or_of_other_labels_is_written_again(held: dict[str, str]) -> None:
    seen = a_moment(source=a_source(size=LARGEST + 1, annotations=held))
    assert len(plan(seen, NOW).writes) == 1


@pytest.mark.spec("M-77")
def test_what_is_going_is_not_quarantined() -> None:
    leaving = a_source(size=LARGEST + 1, is_deleting=True)
    assert plan(a_moment(source=leaving), NOW) == Plan()


@pytest.mark.spec("M-76")
def test_mark_is_removed_from_an_instance_that_can_be_projected() -> None:
    healed = a_source(annotations={**marked(), labels.INSTANCE_UID: "cell-1"})
    cleared, projected = plan(a_moment(source=healed), NOW)
    assert cleared == Ensure(
        SOURCE,
        OwnedFields(annotations=dict.fromkeys(labels.QUARANTINE_ANNOTATIONS)),
        reasons.DRIFTED,
        uid=Uid("uid-on-@hub"),
    )
    assert projected.key == PROJECTED


@pytest.mark.spec("M-77")
def test_patience_that_ran_out_does_not_begin_again() -> None:
    since = {reasons.DEPLOYMENT_MISSING: NOW - INSTANCE_PATIENCE}
    planned = plan(a_moment(deployment=Absent(), since=since), NOW)
    assert [one.reason for one in planned if isinstance(one, RequeueAfter)] == [
        reasons.DEPLOYMENT_MISSING
    ]


# --- removed --------------------------------------------------------------------------------------


@pytest.mark.spec("M-71")
@pytest.mark.spec("M-72")
def test_projection_is_deleted_once_a_live_read_of_the_hub_shows_no_source() -> None:
    gone = RequireGone(SOURCE)
    removed = Delete(PROJECTED, Uid("uid-on-acme"), reasons.NOT_WANTED, require_gone=gone)
    assert plan(GONE, NOW) == Plan.of(removed)


@pytest.mark.spec("M-67")
@pytest.mark.spec("M-71")
@pytest.mark.parametrize(
    "seen",
    [
        replace(GONE, projection=Absent()),
        replace(GONE, projection=Unreadable("NotEngaged")),
        replace(GONE, projection=a_projection(is_deleting=True)),
        replace(GONE, project_namespace=None),
        replace(GONE, namespace_uid=Uid("another")),
        replace(GONE, namespace_uid=Absent()),
    ],
)
def test_nothing_is_removed_where_nothing_is_or_nothing_is_proven(seen: ObservedInstance) -> None:
    assert plan(seen, NOW) == Plan()


@pytest.mark.spec("M-73")
@pytest.mark.parametrize(
    "owners",
    [
        (),
        (OwnerReference("v1", "Pod", "p", Uid("p")),),
        (replace(OURS, controller=True),),
        (OURS, replace(OURS, uid=Uid("other"))),
    ],
)
def test_instance_of_a_user_is_not_removed(owners: tuple[OwnerReference, ...]) -> None:
    assert plan(replace(GONE, projection=a_projection(labels={}, owners=owners)), NOW) == Plan()


def test_projection_is_known_by_its_labels_or_by_its_owner() -> None:
    for existing in (a_projection(labels={}), a_projection(labels=IDENTITY, owners=())):
        assert len(plan(replace(GONE, projection=existing), NOW).writes) == 1


@pytest.mark.spec("M-72")
@pytest.mark.spec("M-94")
@pytest.mark.fault("D9")
def test_too_many_removals_by_inference_are_held_and_recorded_once() -> None:
    held = RemovalHeld(missing=40, total=50, wait=timedelta(seconds=60), is_news=True)
    event, waits = plan(replace(GONE, ruling=held), NOW)
    assert isinstance(event, RecordEvent)
    assert (event.key, event.reason) == (OPERATOR, reasons.MASS_DELETE_REFUSED)
    assert waits == RequeueAfter(SOURCE, reasons.MASS_DELETE_REFUSED, timedelta(seconds=60))
    quiet = replace(GONE, ruling=replace(held, is_news=False))
    assert plan(quiet, NOW) == Plan.of(waits)
    assert plan(replace(GONE, ruling=held, operator=None), NOW) == Plan.of(waits)


@pytest.mark.spec("AT-18")
def test_annotations_of_a_cell_are_shown_without_characters_that_cannot_be_seen() -> None:
    source = a_source(annotations={labels.INSTANCE_UID: "cell\u202e-1\x1b"})
    assert ensured(a_moment(source=source)).desired.annotations[labels.INSTANCE_UID] == "cell-1 "
    # The projection is of the same Instance: it is not replaced by each reconcile.
    shown = a_projection(annotations={labels.INSTANCE_UID: "cell-1 "})
    assert ensured(a_moment(source=source, projection=shown)).uid == shown.metadata.uid
