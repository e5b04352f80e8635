"""Instances of one deployment, with the fields that the rollout planner reads."""

from __future__ import annotations

from compute_api_types import labels
from compute_api_types.template_hash import HashVerdict
from compute_cell_operator.conditions import ReportedCondition
from compute_cell_operator.deployment.slots import SlotInstance, Slots, derive_slots
from compute_cell_operator.planes import CELL, INSTANCE
from compute_operator_kit.core.keys import ObjectKey, Uid
from compute_operator_kit.core.objects import Metadata, OwnerReference

DEPLOYMENT = "web"
UID = Uid("4f1d2c3b-9a8e-4d7c-b6a5-0e1f2a3b4c5d")
OTHER = Uid("00000000-0000-4000-8000-000000000000")
READY = ReportedCondition("Ready", "True", "Available", "")
UNREADY = ReportedCondition("Ready", "False", "Provisioning", "")


def an_owner(uid: Uid = UID) -> OwnerReference:
    return OwnerReference(
        "compute.datumapis.com/v1alpha", "WorkloadDeployment", DEPLOYMENT, uid, controller=True
    )


def a_candidate(
    name: str,
    *,
    ready: bool = True,
    revision: HashVerdict = HashVerdict.CURRENT,
    terminating: bool = False,
    owner: Uid | None = UID,
    label_uid: str = UID,
    uid: str = "",
) -> SlotInstance:
    metadata = Metadata(
        name=name,
        namespace="ns-1",
        uid=Uid(uid or f"uid-of-{name}"),
        resource_version="1",
        deletion_timestamp="2026-06-20T08:00:00Z" if terminating else "",
        labels={labels.WORKLOAD_DEPLOYMENT_UID: label_uid},
        owners=(an_owner(owner),) if owner is not None else (),
    )
    key = ObjectKey(CELL, INSTANCE, metadata.namespace, name)
    return SlotInstance(key, metadata, revision, conditions=(READY if ready else UNREADY,))


def in_slot(state: str, ordinal: int) -> SlotInstance:
    """An Instance of slot `ordinal` in the state that cell.md 5.4 names."""
    name = f"{DEPLOYMENT}-{ordinal}"
    match state:
        case "ok":
            return a_candidate(name)
        case "fresh-unready":
            return a_candidate(name, ready=False)
        case "not-judged-unready":
            return a_candidate(name, ready=False, revision=HashVerdict.NOT_JUDGED)
        case "stale-ready":
            return a_candidate(name, revision=HashVerdict.STALE)
        case "stale-unready":
            return a_candidate(name, ready=False, revision=HashVerdict.STALE)
        case "terminating":
            return a_candidate(name, terminating=True)
        case "foreign":
            return a_candidate(name, owner=OTHER, label_uid=OTHER)
        case _:
            raise AssertionError(f"no such state: {state!r}")


def slots_of(*states: str) -> Slots:
    """`slots_of("ok", "missing", "stale-ready")`: slots 0, 1, 2."""
    present = [in_slot(state, n) for n, state in enumerate(states) if state != "missing"]
    return derive_slots(DEPLOYMENT, UID, present)
