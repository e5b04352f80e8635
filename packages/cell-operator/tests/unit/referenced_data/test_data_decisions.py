"""What a verdict about referenced data changes: gates, rolls, conditions, events
(referenced-data.md 6).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from cell_builders.deployments import a_seen, an_instance
from cell_builders.instances import PROGRAMMED, QUOTA, a_condition, an_instance_seen

from compute_api_types import conditions, labels
from compute_api_types.template_hash import HashVerdict
from compute_cell_operator.conditions import read_conditions
from compute_cell_operator.deployment.observe import ObservedDeployment
from compute_cell_operator.deployment.plan import decide
from compute_cell_operator.deployment.status import report
from compute_cell_operator.instance.observe import ObservedInstance
from compute_cell_operator.instance.plan import plan
from compute_cell_operator.instance_facts import read_gates
from compute_cell_operator.quota.result import NoResult
from compute_cell_operator.referenced_data.judgement import RESOLVING, UNREAD, DataVerdict
from compute_operator_kit.core.json import (
    JsonObject,
    decode_json_object,
    encode,
    member_list,
    member_object,
)
from compute_operator_kit.intents.intents import (
    Delete,
    Ensure,
    Plan,
    RecordEvent,
    RemoveGate,
    RequeueAfter,
    SetStatus,
)
from compute_operator_kit.intents.outcomes import Applied

NOW = datetime(2026, 6, 20, 9, 0, 10, tzinfo=UTC)
COMPLETE = DataVerdict("True", "Ready", "All 1 referenced companion(s) are present on cell")
MISSING = DataVerdict("False", "SourceNotFound", 'Secret "db" not found in namespace "shop"')
AWAITING = DataVerdict("False", "AwaitingPropagation", "Waiting for 1 companion(s) to arrive")
STATED = a_condition("ReferencedDataReady", "True", "Ready", COMPLETE.message)
GATES = (labels.REFERENCED_DATA_GATE,)


# --- Instance -------------------------------------------------------------------------------------


def waiting(
    data: DataVerdict | None,
    *entries: JsonObject,
    gates: tuple[str, ...] = GATES,
    is_awaited: bool = True,
    is_suspended: bool = False,
    terminating: bool = False,
    generation: int = 1,
) -> ObservedInstance:
    seen = an_instance_seen(
        QUOTA, *entries, gates=gates, terminating=terminating, generation=generation
    )
    return replace(seen, data=data, is_data_awaited=is_awaited, is_suspended=is_suspended)


def gates_of(seen: ObservedInstance) -> list[RemoveGate]:
    return [intent for intent in plan(seen, NOW) if isinstance(intent, RemoveGate)]


def status_of(seen: ObservedInstance) -> SetStatus:
    (written,) = [intent for intent in plan(seen, NOW) if isinstance(intent, SetStatus)]
    return written


def entry_of(seen: ObservedInstance, kind: str) -> tuple[str, str, str] | None:
    document = decode_json_object(encode(status_of(seen).status))
    for entry in member_list(document, "conditions"):
        if isinstance(entry, dict) and entry["type"] == kind:
            return str(entry["status"]), str(entry["reason"]), str(entry["message"])
    return None


def events_of(seen: ObservedInstance) -> list[tuple[str, str]]:
    return [(one.type, one.reason) for one in plan(seen, NOW) if isinstance(one, RecordEvent)]


def test_the_gate_goes_with_the_condition_that_allows_it() -> None:
    seen = waiting(COMPLETE)
    (gate,) = gates_of(seen)
    assert (gate.gate, gate.generation, gate.after) == ("ReferencedData", 1, status_of(seen))
    assert not status_of(seen).may_defer
    assert ("Normal", "ReferencedDataReady") in events_of(seen)


def test_a_condition_that_is_stored_is_not_waited_for() -> None:
    (gate,) = gates_of(waiting(COMPLETE, STATED))
    assert gate.after is None


def test_a_condition_of_an_earlier_generation_is_stated_again_first() -> None:
    seen = waiting(COMPLETE, STATED, generation=2)
    (gate,) = gates_of(seen)
    assert (gate.generation, gate.after) == (2, status_of(seen))


@pytest.mark.parametrize("data", [None, RESOLVING, MISSING, AWAITING])
def test_the_gate_stays_without_its_data(data: DataVerdict | None) -> None:
    assert gates_of(waiting(data)) == []


def test_the_gate_of_a_suspended_or_deleted_instance_stays() -> None:
    assert gates_of(waiting(COMPLETE, is_suspended=True)) == []
    deleted = waiting(COMPLETE, terminating=True)
    assert gates_of(deleted) == []
    assert entry_of(deleted, "ReferencedDataReady") is None


def test_one_gate_is_removed_at_a_time() -> None:
    both = waiting(COMPLETE, gates=(labels.QUOTA_GATE, *GATES))
    assert [gate.gate for gate in gates_of(both)] == ["Quota"]


def test_the_gate_does_not_wait_for_quota() -> None:
    seen = an_instance_seen(gates=(labels.QUOTA_GATE, *GATES), state=NoResult())
    assert [gate.gate for gate in gates_of(replace(seen, data=COMPLETE, is_data_awaited=True))] == [
        "ReferencedData"
    ]


def test_switched_off_a_gate_is_removed_without_a_condition_or_an_event() -> None:
    seen = waiting(None, is_awaited=False)
    (gate,) = gates_of(seen)
    assert (gate.gate, gate.reason, gate.after) == ("ReferencedData", "ReferencedDataOff", None)
    assert entry_of(seen, "ReferencedDataReady") is None
    assert events_of(seen) == []


def test_ready_shows_why_an_instance_waits_for_its_data() -> None:
    assert entry_of(waiting(MISSING), "Ready") == ("False", MISSING.reason, MISSING.message)
    assert entry_of(waiting(RESOLVING), "Ready") == ("Unknown", "Resolving", RESOLVING.message)
    assert entry_of(waiting(AWAITING), "ReferencedDataReady") == (
        "False",
        AWAITING.reason,
        AWAITING.message,
    )


def test_waiting_may_be_shown_later_and_what_a_user_can_cure_at_once() -> None:
    assert status_of(waiting(AWAITING)).may_defer
    assert status_of(waiting(RESOLVING)).may_defer
    assert not status_of(waiting(MISSING)).may_defer


def test_a_reason_that_a_user_can_cure_is_an_event_once() -> None:
    assert events_of(waiting(MISSING)) == [("Warning", "SourceNotFound")]
    stored = a_condition("ReferencedDataReady", "False", "SourceNotFound", MISSING.message)
    assert events_of(waiting(MISSING, stored)) == []
    assert events_of(waiting(AWAITING)) == []


def test_the_condition_of_a_started_instance_stays_as_it_is() -> None:
    started = waiting(None, STATED, PROGRAMMED, gates=())
    assert entry_of(started, "ReferencedDataReady") == ("True", "Ready", COMPLETE.message)


def waits_of(intents: Plan) -> list[str]:
    return [one.reason for one in intents if isinstance(one, RequeueAfter)]


def test_a_cache_that_is_incomplete_is_looked_at_again() -> None:
    assert waits_of(plan(waiting(UNREAD), NOW)) == ["CacheNotSynced"]
    assert waits_of(plan(waiting(RESOLVING), NOW)) == []
    assert waits_of(decide(replace(a_seen(), data=UNREAD)).plan) == ["CacheNotSynced"]
    assert waits_of(decide(replace(a_seen(), data=RESOLVING)).plan) == []


# --- deployment -----------------------------------------------------------------------------------


def holding(data: DataVerdict | None, *, is_ready: bool = True) -> ObservedDeployment:
    old = HashVerdict.STALE
    instance = an_instance(0, revision=old, reported=old, ready=is_ready)
    return replace(a_seen(instance), data=data)


def ready_of(seen: ObservedDeployment) -> tuple[str, str, str]:
    (written,) = [
        one for one in report(seen, decide(seen), Applied(), NOW) if isinstance(one, SetStatus)
    ]
    stated = read_conditions(decode_json_object(encode(written.status)))
    ready = conditions.find(stated, conditions.READY)
    assert ready is not None
    return ready.status, ready.reason, ready.message


def deleted_of(seen: ObservedDeployment) -> list[str]:
    return [one.key.name for one in decide(seen).plan if isinstance(one, Delete)]


@pytest.mark.spec("RD-06")
@pytest.mark.parametrize("data", [RESOLVING, MISSING, AWAITING])
def test_a_healthy_instance_is_not_given_up_before_its_successor_could_start(
    data: DataVerdict,
) -> None:
    assert deleted_of(holding(data)) == []
    assert deleted_of(holding(COMPLETE)) == ["web-0"]
    assert deleted_of(holding(None)) == ["web-0"]


def test_a_broken_instance_is_replaced_at_once() -> None:
    assert deleted_of(holding(MISSING, is_ready=False)) == ["web-0"]


def test_a_roll_that_waits_names_what_it_waits_for() -> None:
    kept = 'Instance "web-0" keeps running the former template'
    assert ready_of(holding(MISSING)) == ("False", "SourceNotFound", f"{kept}: {MISSING.message}")
    assert ready_of(holding(AWAITING)) == (
        "False",
        "ReferencedDataNotReady",
        f"{kept}: {AWAITING.message}",
    )


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (MISSING, "SourceNotFound"),
        (AWAITING, "ReferencedDataNotReady"),
        (RESOLVING, "ReferencedDataNotReady"),
    ],
)
def test_a_deployment_names_the_instance_that_waits(data: DataVerdict, reason: str) -> None:
    instance = an_instance(0, ready=False, reason=data.reason, message=data.message, gates=GATES)
    seen = replace(a_seen(instance), data=data)
    assert ready_of(seen) == ("False", reason, f'Instance "web-0": {data.message}')


@pytest.mark.spec("RD-04")
@pytest.mark.parametrize("data", [RESOLVING, COMPLETE])
def test_an_instance_is_created_behind_the_gate_whether_or_not_its_data_is_there(
    data: DataVerdict,
) -> None:
    def gates(seen: ObservedDeployment) -> list[str]:
        (created,) = [one for one in decide(seen).plan if isinstance(one, Ensure)]
        spec = member_object(decode_json_object(encode(created.initial)), "spec")
        return [*read_gates(spec)]

    assert gates(replace(a_seen(), data=data)) == ["Quota", "ReferencedData"]
    assert gates(a_seen()) == ["Quota"]
