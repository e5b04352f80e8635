"""What a hub Instance must prove before it is projected, check by check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest
from management_builders.projection import (
    IDENTITY,
    LINKS,
    NOW,
    OURS,
    SeenChanges,
    a_hub_namespace,
    a_moment,
    a_project_deployment,
    a_projection,
    a_source,
)
from typing_extensions import Unpack

from compute_api_types import labels, reasons
from compute_api_types.reasons import QuarantineReason
from compute_management_operator.hub.delays import INSTANCE_PATIENCE, LOST_EVENT, UNTIL_RESYNC
from compute_management_operator.hub.identity import read_namespace, read_project
from compute_management_operator.hub.projection.observe import (
    LARGEST,
    HubInstance,
    ObservedInstance,
    ReportingCell,
)
from compute_management_operator.hub.projection.plan.verify import (
    Blocker,
    Retryable,
    Terminal,
    find_blocker,
)
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Uid
from compute_operator_kit.core.objects import Absent, Unreadable


def blocker_of(seen: ObservedInstance) -> Blocker | None:
    assert isinstance(seen.source, HubInstance)
    return find_blocker(seen, seen.source, NOW)


def quarantined(seen: ObservedInstance) -> str:
    blocker = blocker_of(seen)
    assert isinstance(blocker, Terminal), blocker
    assert blocker.message
    return blocker.reason.value


def labelled(with_labels: Mapping[str, str]) -> ObservedInstance:
    """A moment with a source that carries exactly these labels."""
    source = a_source(labels=with_labels)
    seen = a_moment(source=source)
    project = read_project(source.metadata)
    return replace(seen, project=project, namespace=read_namespace(source.metadata))


def without(key: str) -> dict[str, str]:
    return {label: value for label, value in LINKS.items() if label != key}


def test_instance_in_order_has_no_blocker() -> None:
    assert blocker_of(a_moment()) is None
    assert blocker_of(a_moment(projection=a_projection())) is None


@pytest.mark.spec("M-67")
@pytest.mark.parametrize(
    ("with_labels", "reason"),
    [
        (without(labels.UPSTREAM_CLUSTER_NAME), "unidentifiable"),
        ({**LINKS, labels.UPSTREAM_CLUSTER_NAME: "acme"}, "unidentifiable"),
        (without(labels.UPSTREAM_NAMESPACE), "missing_namespace_label"),
        (without(labels.WORKLOAD_DEPLOYMENT_NAME), "missing_deployment_name"),
        ({}, "unidentifiable"),
    ],
)
def test_label_that_is_missing_has_its_own_reason(with_labels: dict[str, str], reason: str) -> None:
    assert quarantined(labelled(with_labels)) == reason


@pytest.mark.spec("M-68")
@pytest.mark.fault("G3")
@pytest.mark.parametrize(
    "seen",
    [
        labelled({**LINKS, labels.UPSTREAM_CLUSTER_NAME: "cluster-other"}),
        labelled({**LINKS, labels.UPSTREAM_NAMESPACE: "other"}),
        a_moment(hub_namespace=a_hub_namespace({**IDENTITY, labels.UPSTREAM_NAMESPACE: "b"})),
        a_moment(namespace_uid=Uid("another")),
    ],
)
def test_identity_that_does_not_agree_is_a_mismatch(seen: ObservedInstance) -> None:
    assert quarantined(seen) == "identity_mismatch"


@pytest.mark.parametrize("hub_namespace", [Absent(), a_hub_namespace({})])
def test_hub_namespace_without_labels_is_waited_for_and_not_for_ever(
    hub_namespace: Absent,
) -> None:
    seen = a_moment(hub_namespace=hub_namespace)
    assert blocker_of(seen) == Retryable(reasons.IDENTITY_INCOMPLETE, INSTANCE_PATIENCE)
    late = {reasons.IDENTITY_INCOMPLETE: NOW - INSTANCE_PATIENCE}
    assert quarantined(replace(seen, since=late)) == "identity_mismatch"


@pytest.mark.spec("M-77")
def test_project_that_is_not_engaged_stays_retryable() -> None:
    long_ago = NOW - 99 * INSTANCE_PATIENCE
    since = dict.fromkeys((reasons.NOT_ENGAGED, reasons.DEPLOYMENT_MISSING), long_ago)
    seen = a_moment(is_engaged=False, since=since)
    assert blocker_of(seen) == Retryable(reasons.NOT_ENGAGED, UNTIL_RESYNC)


def test_what_cannot_be_read_is_retried() -> None:
    assert blocker_of(a_moment(namespace_uid=None)) == Retryable(
        reasons.PLANE_UNREADABLE, LOST_EVENT
    )
    unread = a_moment(deployment=Unreadable("NotSynced"))
    assert blocker_of(unread) == Retryable(reasons.PLANE_UNREADABLE, LOST_EVENT)


@pytest.mark.spec("M-77")
@pytest.mark.parametrize("seen", [a_moment(deployment=Absent()), a_moment(namespace_uid=Absent())])
def test_absent_deployment_counts_from_when_it_was_first_seen_absent(
    seen: ObservedInstance,
) -> None:
    assert blocker_of(seen) == Retryable(reasons.DEPLOYMENT_MISSING, INSTANCE_PATIENCE)
    begun = {reasons.DEPLOYMENT_MISSING: NOW - timedelta(minutes=14)}
    left = timedelta(minutes=1)
    assert blocker_of(replace(seen, since=begun)) == Retryable(reasons.DEPLOYMENT_MISSING, left)
    late = {reasons.DEPLOYMENT_MISSING: NOW - INSTANCE_PATIENCE}
    assert quarantined(replace(seen, since=late)) == "deployment_absent"


@pytest.mark.spec("M-69")
def test_cell_of_another_city_is_a_mismatch() -> None:
    assert quarantined(a_moment(cell=ReportingCell("dfw-1", "LHR"))) == "cell_city_mismatch"
    elsewhere = a_moment(deployment=a_project_deployment("dfw"))
    assert quarantined(elsewhere) == "cell_city_mismatch"


@pytest.mark.spec("FS-05")
def test_cell_of_the_former_city_has_as_long_as_an_absent_deployment() -> None:
    seen = replace(a_moment(cell=ReportingCell("dfw-1", "LHR")), is_of_former_city=True)
    assert blocker_of(seen) == Retryable(reasons.STILL_TERMINATING, INSTANCE_PATIENCE)
    late = {reasons.STILL_TERMINATING: NOW - INSTANCE_PATIENCE}
    assert quarantined(replace(seen, since=late)) == "cell_city_mismatch"


@pytest.mark.spec("M-69")
def test_cell_that_is_not_named_is_unknown_where_it_is_required() -> None:
    unnamed = a_moment(source=a_source(labels=without(labels.CELL)), cell=Absent())
    assert quarantined(unnamed) == "cell_unknown"
    assert blocker_of(replace(unnamed, needs_cell_label=False)) is None


@pytest.mark.spec("M-69")
@pytest.mark.parametrize("cell", [Absent(), ReportingCell("dfw-1", "")])
def test_cell_that_is_not_there_creates_nothing_and_still_updates(
    cell: ReportingCell | Absent,
) -> None:
    assert blocker_of(a_moment(cell=cell)) == Retryable(reasons.CELL_MISSING)
    kept = a_moment(cell=cell, projection=a_projection())
    assert blocker_of(kept) == Retryable(reasons.CELL_MISSING, still_updates=True)
    moved = a_projection(labels={**LINKS, labels.CELL: "lhr-1"})
    assert blocker_of(a_moment(cell=cell, projection=moved)) == Retryable(reasons.CELL_MISSING)


@pytest.mark.spec("M-73")
def test_name_of_a_users_instance_is_taken() -> None:
    owned = a_projection(owners=(replace(OURS, controller=True),))
    assert quarantined(a_moment(projection=owned)) == "name_taken"
    other = replace(OURS, uid=Uid("other-wd"))
    shared = a_moment(projection=a_projection(owners=(other,)), other_owners=(other,))
    assert quarantined(shared) == "name_taken"


@pytest.mark.spec("M-78")
def test_instance_larger_than_256_kib_is_oversized() -> None:
    assert blocker_of(a_moment(source=a_source(size=LARGEST))) is None
    assert quarantined(a_moment(source=a_source(size=LARGEST + 1))) == "oversized"


def test_later_statement_forbids_what_an_earlier_one_still_allows() -> None:
    seen = a_moment(cell=Absent(), projection=a_projection(), source=a_source(size=LARGEST + 1))
    assert quarantined(seen) == QuarantineReason.OVERSIZED


def test_statements_are_judged_in_the_order_of_the_specification() -> None:
    everything_wrong = a_moment(
        project=PlaneName("other"),
        is_engaged=False,
        namespace_uid=Absent(),
        deployment=Absent(),
        cell=Absent(),
        source=a_source(size=LARGEST + 1),
    )
    assert quarantined(everything_wrong) == "identity_mismatch"


# --- names and ordinals ---------------------------------------------------------------------------


def named(name: str, **changed: Unpack[SeenChanges]) -> ObservedInstance:
    """A moment of a hub Instance of another name under the same labels."""
    source = a_source()
    key = ObjectKey(source.key.plane, source.key.kind, source.key.namespace, name)
    metadata = msgspec.structs.replace(source.metadata, name=name)
    renamed = replace(source, key=key, metadata=metadata)
    return replace(a_moment(**changed), key=key, source=renamed)


@pytest.mark.spec("AT-06")
@pytest.mark.parametrize(
    "name",
    [
        "web-us-ord-0",
        "web-us-dfw",
        "web-us-dfw-00",
        "web-us-dfw-x",
        "web-us-dfw-0-0",
        "web-us-0",
        "web-us-dfw-12345678901",
    ],
)
def test_name_of_no_slot_of_its_deployment_is_quarantined(name: str) -> None:
    assert quarantined(named(name)) == "name_mismatch"
    # Neither is a row that is shown already kept up to date.
    assert quarantined(named(name, projection=a_projection())) == "name_mismatch"


@pytest.mark.spec("AT-09")
@pytest.mark.parametrize(
    ("scale", "ordinal", "is_shown"),
    [
        (1, 0, True),
        (1, 10, True),
        (1, 11, False),
        (1, 300, False),
        (0, 10, False),
        (300, 300, True),
    ],
)
def test_ordinals_are_capped_by_the_scale_and_a_margin(
    scale: int, ordinal: int, *, is_shown: bool
) -> None:
    seen = named(f"web-us-dfw-{ordinal}", deployment=a_project_deployment(scale=scale))
    if is_shown:
        assert blocker_of(seen) is None
    else:
        assert quarantined(seen) == "beyond_scale"


@pytest.mark.spec("AT-09")
def test_row_that_a_smaller_scale_leaves_beyond_it_is_kept_up_to_date() -> None:
    # A scale from 100 to 1 deletes one slot after the other: the others still run.
    small = a_project_deployment(scale=1)
    name = "web-us-dfw-50"
    assert blocker_of(named(name, deployment=small, projection=a_projection())) is None
    stranger = a_projection(owners=())
    assert quarantined(named(name, deployment=small, projection=stranger)) == "beyond_scale"
