"""The companion of one ConfigMap or Secret: what is written, and what is left alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from management_builders.federation import HUB_NAMESPACE, OPERATOR, PROJECT

from compute_api_types import labels, reasons
from compute_management_operator.hub.referenced_data import verdicts
from compute_management_operator.hub.referenced_data.observe import (
    DataLiveFacts,
    ObservedReference,
)
from compute_management_operator.hub.referenced_data.plan import plan
from compute_management_operator.hub.referenced_data.references import VALUES_OF
from compute_management_operator.hub.referenced_data.values import read_values
from compute_management_operator.hub.referenced_data.verdicts import SourceVerdict
from compute_management_operator.planes import CONFIG_MAP, DEPLOYMENT, HUB, SECRET
from compute_operator_kit.controller.mass_delete import RemovalAllowed, RemovalHeld
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Uid
from compute_operator_kit.core.objects import Absent, Metadata, OwnerReference
from compute_operator_kit.intents.intents import Delete, Ensure, RecordEvent, RequeueAfter

KEY = ObjectKey(PROJECT, SECRET, "default", "db")
AT_HUB = ObjectKey(HUB, SECRET, HUB_NAMESPACE, "db")
OWNER = OwnerReference(DEPLOYMENT.api_version, DEPLOYMENT.kind, "web", Uid("copy"))
COMPANION = Metadata(
    name="db",
    namespace=HUB_NAMESPACE,
    uid=Uid("companion"),
    resource_version="9",
    labels={labels.REFERENCED_DATA: "true"},
)
VALUES = read_values(SECRET, {"type": "a.example/x", "data": {"k": "aGFsbG8="}}, "u/5")
GOOD = SourceVerdict(version="u/5", size=5)
LIVE = DataLiveFacts(HUB_NAMESPACE, verdict=GOOD)
NEEDED = ObservedReference(KEY, ("web",), (OWNER,), Absent(), is_hub_ours=True, live=LIVE)


def writes(seen: ObservedReference) -> list[object]:
    return list(plan(seen).writes)


def test_companion_is_created_with_the_values_and_only_our_metadata() -> None:
    (made,) = writes(replace(NEEDED, live=replace(LIVE, values=VALUES)))
    assert isinstance(made, Ensure)
    assert made.key == ObjectKey(HUB, VALUES_OF[SECRET], HUB_NAMESPACE, "db")
    assert made.uid is None
    assert made.initial == {"type": "a.example/x"}
    assert made.desired.labels == {labels.REFERENCED_DATA: "true"}
    assert made.desired.annotations == {
        labels.SOURCE_VERSION: "u/5",
        labels.SOURCE_BYTES: "5",
        labels.REFERENCED_BY: '["default/web"]',
    }
    assert made.desired.owners == (OWNER,)
    assert "aGFsbG8" not in repr(made)


@pytest.mark.parametrize(("refused", "seconds"), [(0, 5), (1, 5), (10, 5), (40, 20)])
def test_a_refused_read_is_repeated_at_two_a_second_for_each_project(
    refused: int, seconds: int
) -> None:
    live = DataLiveFacts(HUB_NAMESPACE, verdict=verdicts.unauthorized(KEY), refused=refused)
    (wait,) = plan(replace(NEEDED, live=live)).intents
    assert isinstance(wait, RequeueAfter)
    assert (wait.reason, wait.retry_after) == (
        reasons.SOURCE_UNAUTHORIZED,
        timedelta(seconds=seconds),
    )


def test_refused_objects_are_counted_by_project() -> None:
    known = verdicts.Verdicts()
    other = ObjectKey(PROJECT, SECRET, "default", "other")
    third = ObjectKey(PROJECT, SECRET, "default", "third")
    for key in (KEY, other, third):
        known.record(key, verdicts.unauthorized(key))
    assert known.count_refused(PROJECT) == 3
    assert known.count_refused(PlaneName("elsewhere")) == 0
    known.record(KEY, GOOD)
    known.drop(other)
    assert known.count_refused(PROJECT) == 1
    known.forget(lambda key: key == third)
    assert known.count_refused(PROJECT) == 0


def test_without_values_nothing_is_created() -> None:
    assert writes(NEEDED) == []


@pytest.mark.parametrize("seen", [replace(NEEDED, owners=()), replace(NEEDED, is_hub_ours=False)])
def test_what_is_not_needed_or_not_ours_is_judged_alone(seen: ObservedReference) -> None:
    assert writes(replace(seen, live=replace(LIVE, values=VALUES))) == []


def test_an_older_companion_is_replaced_whole_at_its_version() -> None:
    live = replace(LIVE, values=read_values(CONFIG_MAP, {"data": {"k": "v"}}, "u/6"))
    (made,) = writes(replace(NEEDED, companion=COMPANION, live=live))
    assert isinstance(made, Ensure)
    assert (made.uid, made.resource_version) == ("companion", "9")
    assert made.desired.labels == {}
    assert made.desired.merge == {"binaryData": None}


def test_a_current_companion_keeps_its_bytes_and_is_owned_by_who_needs_it() -> None:
    (made,) = writes(replace(NEEDED, companion=COMPANION))
    assert isinstance(made, Ensure)
    assert made.key == AT_HUB
    assert made.desired.replace == {}
    assert made.desired.has_only_these_owners


def test_another_type_is_deleted_first() -> None:
    live = replace(LIVE, values=VALUES, has_other_type=True)
    first, second = plan(replace(NEEDED, companion=COMPANION, live=live))
    assert isinstance(first, Delete)
    assert first.uid == "companion"
    assert isinstance(second, RequeueAfter)


def test_a_companion_that_is_going_is_waited_for() -> None:
    going = Metadata(
        name="db",
        namespace=HUB_NAMESPACE,
        uid=Uid("companion"),
        resource_version="9",
        deletion_timestamp="2026-06-20T08:00:00Z",
    )
    (waits,) = plan(replace(NEEDED, companion=going))
    assert isinstance(waits, RequeueAfter)
    unnamed = replace(NEEDED, named_by=(), companion=going)
    assert writes(unnamed) == []


ALLOWED = replace(LIVE, verdict=None, is_proven=True, ruling=RemovalAllowed())
UNNAMED = replace(NEEDED, named_by=(), owners=(), companion=COMPANION, live=ALLOWED)


def test_a_companion_that_nothing_names_is_deleted() -> None:
    (gone,) = writes(UNNAMED)
    assert gone == Delete(AT_HUB, Uid("companion"), reasons.NOT_WANTED)


def test_a_companion_without_a_source_is_withdrawn() -> None:
    live = replace(ALLOWED, verdict=verdicts.not_found(KEY))
    (gone,) = writes(replace(NEEDED, companion=COMPANION, live=live))
    assert isinstance(gone, Delete)


@pytest.mark.spec("RD-15")
@pytest.mark.parametrize(
    "seen",
    [
        replace(UNNAMED, live=replace(ALLOWED, is_proven=False)),
        replace(UNNAMED, is_hub_ours=False),
        replace(UNNAMED, companion=Absent()),
    ],
)
def test_nothing_is_withdrawn_where_the_namespace_is_not_proven(seen: ObservedReference) -> None:
    assert list(plan(seen)) == []


@pytest.mark.spec("RD-15")
def test_many_at_once_are_held_and_reported() -> None:
    held = RemovalHeld(40, 50, timedelta(seconds=60), is_news=True)
    live = replace(ALLOWED, ruling=held)
    event, waits = plan(replace(UNNAMED, live=live, operator=OPERATOR))
    assert isinstance(event, RecordEvent)
    assert event.reason == reasons.MASS_DELETE_REFUSED
    assert isinstance(waits, RequeueAfter)


@pytest.mark.parametrize("verdict", [verdicts.name_taken(KEY), verdicts.unread(KEY)])
def test_what_may_get_better_by_itself_is_looked_at_again(verdict: SourceVerdict) -> None:
    (waits,) = plan(replace(NEEDED, live=replace(LIVE, verdict=verdict)))
    assert isinstance(waits, RequeueAfter)
    assert waits.reason == verdict.reason


def test_a_source_that_grew_too_large_leaves_the_companion_as_it_is() -> None:
    live = replace(LIVE, verdict=verdicts.too_large(KEY, 262_145, "u/6"))
    assert list(plan(replace(NEEDED, companion=COMPANION, live=live))) == []
