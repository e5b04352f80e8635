"""Which claim is removed, which is only reported, and which is left alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

import pytest
from management_builders.federation import OPERATOR
from management_builders.filled_caches import ACME, H

from compute_api_types import labels, reasons
from compute_management_operator.claims.delays import FIRST_READ, LAST_READ
from compute_management_operator.claims.events import describe
from compute_management_operator.claims.findings import MOST_NAMES, ProjectFindings
from compute_management_operator.claims.observe import (
    Backing,
    ObservedClaim,
    PlacedSlot,
    ProjectClaim,
    SlotHolder,
    derive_backing,
    is_held_back,
    read_claim,
)
from compute_management_operator.claims.plan import delay_of, plan
from compute_management_operator.planes import CLAIM, CLUSTER, HUB, INSTANCE
from compute_management_operator.stored_status import StoredCondition
from compute_operator_kit.core.json import JsonObject
from compute_operator_kit.core.keys import ObjectKey, Uid
from compute_operator_kit.core.objects import Absent
from compute_operator_kit.intents.intents import Delete, RecordEvent, RequeueAfter
from compute_operator_kit.testing.fakes import a_snapshot

SOURCE: Final = ObjectKey(HUB, INSTANCE, H, "web-ord-0")
SQUAT: Final = ProjectClaim(
    key=ObjectKey(ACME, CLAIM, "default", "instance-web-ord-0"),
    uid=Uid("squat"),
    resource_version="7",
    cell="dfw-1",
    slot=("web-ord", 0),
    is_compute=True,
)
IN_ORD: Final = PlacedSlot("ORD", 2)
DFW: Final = SlotHolder(ObjectKey(HUB, CLUSTER, "", "dfw-1"), Uid("cluster"), "DFW")
ORD: Final = SlotHolder(ObjectKey(HUB, CLUSTER, "", "ord-1"), Uid("cluster"), "ORD")
SEEN: Final = ObservedClaim(
    key=SOURCE,
    project=ACME,
    claim=SQUAT,
    placed=IN_ORD,
    holder=DFW,
    is_served=True,
    operator=OPERATOR,
)


@pytest.mark.spec("AT-04")
def test_claim_of_a_cell_of_another_city_goes_with_its_uid_and_version() -> None:
    removal, event, again = plan(SEEN).intents
    expected = Delete(SQUAT.key, SQUAT.uid, reasons.MISPLACED_CLAIM_REMOVED, resource_version="7")
    assert removal == expected
    assert isinstance(event, RecordEvent)
    assert (event.key, event.after, event.type) == (DFW.key, expected, "Warning")
    assert '"dfw-1"' in event.message
    assert '"ORD"' in event.message
    assert again == RequeueAfter(SOURCE, reasons.MISPLACED_CLAIM_REMOVED, FIRST_READ)


@pytest.mark.spec("AT-04")
def test_claim_that_names_no_known_cell_goes_and_the_operator_reports_it() -> None:
    removal, event, _ = plan(replace(SEEN, holder=Absent())).intents
    assert isinstance(removal, Delete)
    assert isinstance(event, RecordEvent)
    assert event.key == OPERATOR


@pytest.mark.spec("AT-04")
@pytest.mark.parametrize(
    "changed",
    [
        replace(SEEN, claim=Absent()),
        replace(SEEN, claim=replace(SQUAT, cell="")),
        replace(SEEN, claim=replace(SQUAT, cell="ord-1"), holder=ORD),
        replace(SEEN, claim=replace(SQUAT, slot=None)),
        replace(SEEN, claim=replace(SQUAT, is_compute=False)),
        replace(SEEN, is_served=False),
    ],
    ids=["absent", "no cell", "right city", "other name", "other service", "city without a cell"],
)
def test_any_other_claim_is_left_alone_and_looked_at_less_and_less_often(
    changed: ObservedClaim,
) -> None:
    (again,) = plan(replace(changed, idle_reads=2)).intents
    assert again == RequeueAfter(SOURCE, reasons.QUOTA_MISCONFIGURED, FIRST_READ * 4)


def test_looks_that_find_nothing_end_at_every_five_minutes() -> None:
    assert [delay_of(looks) for looks in (0, 1, 6, 1000)] == [
        FIRST_READ,
        timedelta(seconds=10),
        LAST_READ,
        LAST_READ,
    ]


@pytest.mark.spec("AT-07")
@pytest.mark.parametrize(
    ("claim", "placed", "holder", "backing"),
    [
        (SQUAT, IN_ORD, ORD, Backing.BACKED),
        (SQUAT, IN_ORD, DFW, Backing.MISPLACED),
        (SQUAT, IN_ORD, Absent(), Backing.MISPLACED),
        (SQUAT, IN_ORD, replace(ORD, city_code=""), Backing.MISPLACED),
        (SQUAT, Absent(), ORD, Backing.UNBACKED),
        (replace(SQUAT, slot=None), Absent(), ORD, Backing.UNBACKED),
        (replace(SQUAT, slot=("web-ord", 1)), IN_ORD, ORD, Backing.BACKED),
        (replace(SQUAT, slot=("web-ord", 2)), IN_ORD, ORD, Backing.UNBACKED),
    ],
)
def test_a_claim_is_backed_by_a_replica_of_a_deployment_in_the_city_of_its_cell(
    claim: ProjectClaim, placed: PlacedSlot | Absent, holder: SlotHolder | Absent, backing: Backing
) -> None:
    assert derive_backing(claim, placed, holder) is backing


@pytest.mark.spec("AT-07")
def test_a_finding_keeps_numbers_and_the_first_names() -> None:
    findings = ProjectFindings()
    for ordinal in range(MOST_NAMES + 5):
        key = replace(SQUAT, key=ObjectKey(ACME, CLAIM, "default", f"instance-x-{ordinal}"))
        findings.add("dfw-1", key)
    finding = findings.by_cell["dfw-1"]
    assert findings.counts() == {"dfw-1": MOST_NAMES + 5}
    assert len(finding.names) == MOST_NAMES
    assert describe(ACME, finding).endswith("and 5 more")


def test_a_claim_is_read_by_its_name_label_and_requests() -> None:
    requests: JsonObject = {
        "requests": [{"resourceType": labels.INSTANCES_RESOURCE, "amount": 1}, "garbage"]
    }
    metadata: JsonObject = {"labels": {labels.SOURCE_CLUSTER: "dfw-1"}}
    claim = read_claim(a_snapshot(SQUAT.key, metadata, spec=requests))
    assert (claim.cell, claim.slot, claim.is_compute) == ("dfw-1", ("web-ord", 0), True)
    nothing = read_claim(a_snapshot(ObjectKey(ACME, CLAIM, "default", "bucket"), {}, spec={}))
    assert (nothing.cell, nothing.slot, nothing.is_compute) == ("", None, False)


@pytest.mark.parametrize(
    ("reason", "is_held"), [("QuotaMisconfigured", True), ("QuotaExceeded", False)]
)
def test_an_instance_is_held_back_by_the_reason_of_its_quota_condition(
    reason: str, *, is_held: bool
) -> None:
    ready = StoredCondition("Ready", "False", "")
    quota = StoredCondition("QuotaGranted", "False", reason)
    assert is_held_back((ready, quota)) is is_held
    assert not is_held_back(())
