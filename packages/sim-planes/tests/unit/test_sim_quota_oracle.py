"""O5 accepts a safe history and reports each kind of violation."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import orjson
import pytest

from compute_api_types import labels
from compute_sim_planes.history import Caller, Commit, History, HistoryEntry, Request
from compute_sim_planes.json_types import JsonObject
from compute_sim_planes.oracles.quota import QuotaRules, quota_safety
from compute_sim_planes.request_address import Address

START = datetime(2026, 6, 20, 9, 0, 0, tzinfo=UTC)
CELL, PROJECT = "@cell", "acme"
NS = "ns-6a1f1c1e-3f6c-4a44-9a52-0c2f9f3b7a10"
ONE = {labels.INSTANCES_RESOURCE: 1}


class HandClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.moment = START

    def now(self) -> datetime:
        return self.moment


def an_instance(uid: str, *, is_gated: bool = True, is_granted: bool = False) -> JsonObject:
    return {
        "metadata": {"uid": uid},
        "spec": {"controller": {"schedulingGates": [{"name": "Quota"}] if is_gated else []}},
        "status": {
            "conditions": [{"type": "QuotaGranted", "status": "True" if is_granted else "Unknown"}]
        },
    }


def a_claim(
    uid: str,
    *,
    cell: str = "dfw-1",
    amount: int = 1,
    is_granted: bool = True,
    namespace: str = NS,
    claim: str = "c1",
) -> JsonObject:
    status = "Granted" if is_granted else "Denied"
    return {
        "metadata": {
            "uid": claim,
            "labels": {labels.SOURCE_CLUSTER: cell, labels.INSTANCE_NAMESPACE: namespace},
            "annotations": {labels.INSTANCE_UID: uid},
        },
        "spec": {"requests": [{"resourceType": labels.INSTANCES_RESOURCE, "amount": amount}]},
        "status": {
            "conditions": [{"type": "Granted", "status": "True" if is_granted else "False"}],
            "allocations": [
                {
                    "resourceType": labels.INSTANCES_RESOURCE,
                    "status": status,
                    "allocatedAmount": amount,
                }
            ],
        },
    }


def a_grant(amount: int) -> JsonObject:
    """A grant of more or less than before."""
    bucket: JsonObject = {"amount": amount}
    allowance: JsonObject = {"resourceType": labels.INSTANCES_RESOURCE, "buckets": [bucket]}
    return {"spec": {"allowances": [allowance]}}


def a_deployment(replicas: int) -> JsonObject:
    return {"metadata": {"uid": "wd"}, "spec": {"scaleSettings": {"minReplicas": replicas}}}


@dataclass
class HistoryBuilder:
    """A builder of a history, second by second."""

    at: float = 0
    entries: list[HistoryEntry] = field(default_factory=list[HistoryEntry])
    stored: dict[tuple[str, str, str], JsonObject] = field(
        default_factory=dict[tuple[str, str, str], JsonObject]
    )

    def __post_init__(self) -> None:
        identity = {
            labels.UPSTREAM_CLUSTER_NAME: f"cluster-{PROJECT}",
            labels.UPSTREAM_NAMESPACE: "shop",
        }
        self.put(CELL, "Namespace", NS, {"metadata": {"uid": "n", "labels": {**identity}}})
        self.deploy(1)

    def wait(self, seconds: float) -> None:
        self.at += seconds

    def put(self, plane: str, kind: str, key: str, after: JsonObject | None) -> None:
        before = self.stored.pop((plane, kind, key), None)
        if after is not None:
            self.stored[plane, kind, key] = after
        self.entries.append(
            Commit(
                at=START + timedelta(seconds=self.at),
                plane=plane,
                type="DELETED" if after is None else "MODIFIED",
                kind=kind,
                key=key,
                revision=len(self.entries),
                actor="somebody",
                before=b"" if before is None else orjson.dumps(before),
                after=b"" if after is None else orjson.dumps(after),
                request=None,
            )
        )

    def deploy(self, replicas: int) -> None:
        self.put(CELL, "WorkloadDeployment", f"{NS}/web", a_deployment(replicas))

    def instance(self, document: JsonObject | None, name: str = "web-0") -> None:
        self.put(CELL, "Instance", f"{NS}/{name}", document)

    def claim(self, document: JsonObject | None, name: str = "instance-web-0") -> None:
        self.put(PROJECT, "ResourceClaim", f"shop/{name}", document)

    def ask(self, status: int = 200, identity: str = "operator") -> None:
        """Record a request of an operator to the project plane."""
        address = Address(PROJECT, "get", "quota.miloapis.com", "resourceclaims", "", "", "")
        moment = START + timedelta(seconds=self.at)
        caller = Caller(identity)
        self.entries.append(Request(1, moment, moment, caller, address, status, "", ()))

    def start(self, uid: str = "u1", *, claims: bool = True) -> None:
        """Record an Instance that is granted and without its gate."""
        self.instance(an_instance(uid))
        if claims:
            self.claim(a_claim(uid))
            self.ask()
        self.open(uid)

    def open(self, uid: str = "u1") -> None:
        self.instance(an_instance(uid, is_granted=True))
        self.instance(an_instance(uid, is_gated=False, is_granted=True))

    def violations(self, ends: float = 1) -> list[str]:
        clock = HandClock()
        history = History(clock)
        history.entries.extend(self.entries)
        clock.moment = START + timedelta(seconds=self.at + ends)
        rules = QuotaRules(
            cells={CELL: "dfw-1"},
            size_of=lambda _: ONE,
            granted_before={PROJECT: {labels.INSTANCES_RESOURCE: 5}},
            claims_for=lambda identity, cell: (identity, cell) == ("operator", "dfw-1"),
        )
        return [violation.message for violation in quota_safety(history, rules)]


# --- gates ----------------------------------------------------------------------------------------


def test_a_gate_that_opens_on_its_own_grant_is_safe() -> None:
    builder = HistoryBuilder()
    builder.start()
    assert builder.violations(3600) == []


def test_a_gate_that_opens_without_a_claim_is_not() -> None:
    builder = HistoryBuilder()
    builder.start(claims=False)
    assert "there is no claim" in builder.violations()[0]


def test_a_gate_that_opens_on_anything_but_its_own_grant_is_not() -> None:
    wrong = {
        "it is not granted": a_claim("u1", is_granted=False),
        "it is not this cell's": a_claim("u1", cell="ord-1"),
        "it is of another namespace": a_claim("u1", namespace="ns-other"),
        "it is of another size": a_claim("u1", amount=2),
        "it records 'u0'": a_claim("u0"),
    }
    for message, claim in wrong.items():
        builder = HistoryBuilder()
        builder.instance(an_instance("u1"))
        builder.claim(claim)
        builder.ask()
        builder.open()
        assert message in builder.violations()[0]


def test_while_the_plane_is_away_a_gone_predecessors_grant_is_safe() -> None:
    builder = HistoryBuilder()
    builder.start("u1")
    builder.wait(10)
    builder.ask(0)
    builder.instance(None)
    builder.start("u2", claims=False)
    builder.wait(600)
    assert builder.violations() == []


@pytest.mark.spec("FS-07")
def test_a_plane_that_answers_another_cell_is_still_away_for_this_one() -> None:
    builder = HistoryBuilder()
    builder.start("u1")
    builder.wait(10)
    builder.ask(0, identity="operator")
    builder.instance(None)
    builder.ask(200, identity="another-cell")
    builder.start("u2", claims=False)
    assert builder.violations() == []
    builder.wait(600)
    builder.ask(200, identity="another-cell")
    assert builder.violations(61) == []
    builder.ask(200, identity="operator")
    assert "does not record who runs on it" in builder.violations(61)[0]


def test_during_an_outage_the_grant_of_a_live_instance_does_not_cover_another() -> None:
    builder = HistoryBuilder()
    builder.deploy(2)
    builder.instance(an_instance("u0"), "web-1")
    builder.claim(a_claim("u0"))
    builder.ask()
    builder.wait(10)
    builder.ask(503)
    builder.start("u1", claims=False)
    assert "who lives" in builder.violations()[0]


def test_a_claim_that_went_unseen_during_an_outage_still_covers() -> None:
    builder = HistoryBuilder()
    builder.start("u1")
    builder.wait(10)
    builder.ask(0)
    builder.claim(None)
    builder.instance(None)
    builder.start("u2", claims=False)
    assert builder.violations() == []


def test_a_claim_that_went_while_the_plane_answered_does_not() -> None:
    builder = HistoryBuilder()
    builder.instance(an_instance("u1"))
    builder.claim(a_claim("u1"))
    builder.claim(None)
    builder.ask()
    builder.wait(10)
    builder.open()
    assert "there is no claim" in builder.violations()[0]


def test_two_instances_on_one_claim_are_not_safe() -> None:
    builder = HistoryBuilder()
    builder.start("u1")
    other = "ns-7a1f1c1e-3f6c-4a44-9a52-0c2f9f3b7a10"
    identity = {
        labels.UPSTREAM_CLUSTER_NAME: f"cluster-{PROJECT}",
        labels.UPSTREAM_NAMESPACE: "shop",
    }
    builder.put(CELL, "Namespace", other, {"metadata": {"uid": "m", "labels": {**identity}}})
    builder.put(CELL, "Instance", f"{other}/web-0", an_instance("u9"))
    opened = an_instance("u9", is_gated=False, is_granted=True)
    builder.put(CELL, "Instance", f"{other}/web-0", opened)
    assert any("2 Instances run on claim" in message for message in builder.violations())


def test_a_grant_that_is_taken_back_while_the_instance_runs_is_not_safe() -> None:
    builder = HistoryBuilder()
    builder.start()
    builder.instance(an_instance("u1", is_gated=False))
    assert "was taken back" in builder.violations()[0]


# --- claims ---------------------------------------------------------------------------------------


def test_two_claims_of_one_slot_are_not_safe() -> None:
    builder = HistoryBuilder()
    builder.start()
    builder.put(PROJECT, "ResourceClaim", "other/instance-web-0", a_claim("u1", claim="c2"))
    assert any(message.startswith("2 claims instance-web-0") for message in builder.violations())


def test_more_than_the_grants_allow_is_not_safe() -> None:
    builder = HistoryBuilder()
    builder.claim(a_claim("u1", cell="", amount=6), "greedy")
    assert builder.violations() == [f"6 of {labels.INSTANCES_RESOURCE} are granted, 5 allowed"]


def test_a_raised_grant_allows_more() -> None:
    builder = HistoryBuilder()
    builder.put(PROJECT, "ResourceGrant", "milo-system/more", a_grant(1))
    builder.claim(a_claim("u1", cell="", amount=6), "greedy")
    assert builder.violations() == []


@pytest.mark.spec("FS-07")
def test_what_was_granted_before_its_grant_was_lowered_is_safe_and_nothing_more() -> None:
    builder = HistoryBuilder()
    builder.claim(a_claim("u1", cell="", amount=5), "early")
    builder.put(PROJECT, "ResourceGrant", "milo-system/less", a_grant(-2))
    builder.claim(a_claim("u1", cell="", amount=1, is_granted=False), "denied")
    builder.claim(a_claim("u1", cell="", amount=5), "early")
    assert builder.violations() == []
    builder.claim(a_claim("u1", cell="", amount=1), "late")
    assert builder.violations() == [f"6 of {labels.INSTANCES_RESOURCE} are granted, 3 allowed"]


def test_a_claim_without_instance_is_safe_while_its_slot_is_wanted() -> None:
    builder = HistoryBuilder()
    builder.start()
    builder.instance(None)
    assert builder.violations(3600) == []


def test_an_unneeded_claim_may_exist_for_a_minute() -> None:
    builder = HistoryBuilder()
    builder.start()
    builder.deploy(0)
    builder.instance(None)
    assert builder.violations(60) == []
    assert "nobody needs" in builder.violations(61)[0]


def test_an_unneeded_claim_may_exist_during_an_outage_and_a_minute_longer() -> None:
    builder = HistoryBuilder()
    builder.start()
    builder.wait(10)
    builder.ask(0)
    builder.deploy(0)
    builder.instance(None)
    builder.wait(3600)
    assert builder.violations() == []
    builder.ask()
    assert builder.violations(59) == []
    assert len(builder.violations(61)) == 1


def test_a_claim_must_record_the_running_instance_a_minute_after_an_outage() -> None:
    builder = HistoryBuilder()
    builder.start("u1")
    builder.wait(10)
    builder.ask(0)
    builder.instance(None)
    builder.start("u2", claims=False)
    builder.wait(600)
    builder.ask()
    assert builder.violations(59) == []
    assert "does not record who runs on it" in builder.violations(61)[0]
    builder.claim(a_claim("u2"))
    assert builder.violations(3600) == []


def test_foreign_claims_count_only_for_the_sum() -> None:
    builder = HistoryBuilder()
    builder.claim(a_claim("x", cell="ord-1"), "instance-api-0")
    builder.claim(a_claim("x", cell=""), "odd")
    assert builder.violations(3600) == []
