"""When an empty hub namespace is deleted: only after two reads some time apart."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from compute_api_types import reasons
from compute_management_operator.hub.delays import BETWEEN_TWO_READS, NAMESPACE_TERMINATING
from compute_management_operator.hub.namespaces.observe import (
    EmptyHubNamespace,
    ObservedNamespace,
    SourceState,
    read_state,
)
from compute_management_operator.hub.namespaces.plan import plan
from compute_management_operator.planes import HUB, NAMESPACE, PROJECT, ROOT
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Uid
from compute_operator_kit.core.objects import Absent, Metadata, Snapshot
from compute_operator_kit.intents.intents import Delete, Plan, RequeueAfter, RequireGone

UID = Uid("7f0c6a52-4f5b-4f0a-9a86-0f4d6c1f9a01")
KEY = ObjectKey(HUB, NAMESPACE, "", f"ns-{UID}")
SOURCE = ObjectKey(PlaneName("acme"), NAMESPACE, "", "default")
EMPTY = EmptyHubNamespace(KEY, Uid("hub-uid"), SOURCE, UID)
OF_A_GONE_PROJECT = EmptyHubNamespace(
    KEY, Uid("hub-uid"), ObjectKey(ROOT, PROJECT, "", "acme"), None
)
MINUTE = timedelta(seconds=60)


def existing(uid: str, *, is_deleting: bool = False) -> Snapshot:
    deleting = "2026-11-16T12:00:00Z" if is_deleting else ""
    metadata = Metadata("default", "", Uid(uid), "7", deletion_timestamp=deleting)
    return Snapshot(SOURCE, metadata, b"{}")


@pytest.mark.spec("AT-12")
@pytest.mark.parametrize(
    ("namespace", "read", "state"),
    [
        (EMPTY, Absent(), SourceState.GONE),
        (EMPTY, existing("another"), SourceState.GONE),
        (EMPTY, existing(UID), SourceState.LIVE),
        (EMPTY, existing(UID, is_deleting=True), SourceState.TERMINATING),
        (OF_A_GONE_PROJECT, Absent(), SourceState.GONE),
        (OF_A_GONE_PROJECT, existing("of-the-project"), SourceState.UNKNOWN),
    ],
)
def test_a_source_is_gone_by_a_404_or_another_uid_alone(
    namespace: EmptyHubNamespace, read: Snapshot | Absent, state: SourceState
) -> None:
    assert read_state(namespace, read) is state


@pytest.mark.spec("AT-12")
@pytest.mark.parametrize("state", [SourceState.LIVE, SourceState.UNKNOWN])
def test_a_namespace_of_a_live_or_unknown_source_stays(state: SourceState) -> None:
    assert plan(ObservedNamespace(EMPTY, state)) == Plan()


def test_a_source_that_terminates_is_read_again() -> None:
    waits = RequeueAfter(KEY, reasons.STILL_TERMINATING, NAMESPACE_TERMINATING)
    assert plan(ObservedNamespace(EMPTY, SourceState.TERMINATING)) == Plan.of(waits)


@pytest.mark.spec("AT-12")
@pytest.mark.parametrize(("are_many", "apart"), [(False, BETWEEN_TWO_READS), (True, MINUTE)])
def test_one_read_removes_nothing_and_a_second_some_time_later_does(
    *, are_many: bool, apart: timedelta
) -> None:
    first = ObservedNamespace(EMPTY, SourceState.GONE, timedelta(0), are_many=are_many)
    assert plan(first) == Plan.of(RequeueAfter(KEY, reasons.ORPHANED, apart))
    early = replace(first, gone_for=apart - timedelta(seconds=1))
    assert plan(early) == Plan.of(RequeueAfter(KEY, reasons.ORPHANED, timedelta(seconds=1)))
    gone = Delete(KEY, EMPTY.uid, reasons.ORPHANED, require_gone=RequireGone(SOURCE, UID))
    assert plan(replace(first, gone_for=apart)) == Plan.of(gone)


def test_the_delete_reads_the_project_once_more_where_all_of_it_is_gone() -> None:
    (intent,) = plan(ObservedNamespace(OF_A_GONE_PROJECT, SourceState.GONE, MINUTE))
    assert isinstance(intent, Delete)
    assert intent.require_gone == RequireGone(ObjectKey(ROOT, PROJECT, "", "acme"), None)
