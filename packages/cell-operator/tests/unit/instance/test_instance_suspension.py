"""`Available`, `Ready` and the gate of a suspended Instance (suspension.md 4)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cell_builders.instances import (
    AVAILABLE,
    PROGRAMMED,
    QUOTA,
    a_condition,
    an_instance_seen,
)

from compute_api_types import conditions
from compute_cell_operator.conditions import read_conditions
from compute_cell_operator.instance.observe import ObservedInstance
from compute_cell_operator.instance.plan import plan
from compute_cell_operator.instance.suspension import (
    NOT_SERVING,
    RESUMED,
    SuspensionWrites,
    remember,
    report_refused,
    state_available,
)
from compute_operator_kit.core.errors import ConflictError, InvalidSpecError, ServerAnswer
from compute_operator_kit.core.json import JsonObject, decode_json_object, encode
from compute_operator_kit.core.keys import Uid
from compute_operator_kit.intents.intents import (
    RecordEvent,
    RemoveGate,
    RequeueAfter,
    SetStatus,
)
from compute_operator_kit.intents.outcomes import Applied, Effect, Outcome

NOW = datetime(2026, 6, 20, 9, 0, 10, tzinfo=UTC)
BEFORE = (PROGRAMMED, AVAILABLE, QUOTA)
SHOWN = a_condition("Available", "False", "Suspended", NOT_SERVING)
FLAG: JsonObject = {"suspended": True}
ONCE = SuspensionWrites(Uid("i-1"), writes=1, since=NOW)
TWICE = replace(ONCE, writes=2)


def suspended(*entries: JsonObject, **changed: object) -> ObservedInstance:
    return replace(an_instance_seen(*entries, **changed), is_suspended=True)  # type: ignore[arg-type]


def written(seen: ObservedInstance, memory: SuspensionWrites | None = None) -> SetStatus:
    (status,) = [one for one in plan(seen, NOW, memory) if isinstance(one, SetStatus)]
    return status


def words(status: SetStatus, kind: str) -> tuple[str, str, str]:
    document = decode_json_object(encode(status.status))
    condition = conditions.find(read_conditions(document), kind)
    assert condition is not None
    return condition.status, condition.reason, condition.message


@pytest.mark.spec("SU-07")
def test_the_first_write_of_a_suspension_is_whole_and_not_deferred() -> None:
    status = written(suspended(*BEFORE))
    assert status.status["suspended"] is True
    ready = "Instance is suspended due to project suspension."
    assert words(status, "Ready") == ("False", "Suspended", ready)
    assert words(status, "Available") == ("False", "Suspended", NOT_SERVING)
    assert words(status, "Programmed")[0] == "True"
    assert words(status, "QuotaGranted")[0] == "True"
    assert status.may_defer is False


@pytest.mark.spec("SU-12")
def test_terminating_outranks_the_suspension() -> None:
    status = written(suspended(*BEFORE, terminating=True))
    assert words(status, "Ready")[1] == "Terminating"
    assert words(status, "Available")[1] == "Available"
    assert "suspended" not in status.status


@pytest.mark.spec("SU-09")
def test_no_gate_opens_on_a_grant_while_suspended() -> None:
    seen = suspended(PROGRAMMED, QUOTA, gates=("Quota",))
    assert [one for one in plan(seen, NOW) if isinstance(one, RemoveGate)] == []
    resumed = replace(seen, is_suspended=False)
    assert [one for one in plan(resumed, NOW) if isinstance(one, RemoveGate)]


@pytest.mark.spec("SU-06")
def test_the_resume_takes_the_flag_away_and_says_that_it_starts() -> None:
    seen = an_instance_seen(PROGRAMMED, SHOWN, QUOTA, status={**FLAG})
    status = written(seen)
    assert "suspended" not in status.status
    assert words(status, "Available") == ("False", "Starting", RESUMED)
    assert words(status, "Ready") == ("False", "Starting", RESUMED)
    assert status.may_defer is False, "a provider waits for it"


def test_the_resume_leaves_what_a_provider_reports() -> None:
    seen = an_instance_seen(PROGRAMMED, AVAILABLE, QUOTA, status={**FLAG})
    assert words(written(seen), "Available")[1] == "Available"


@pytest.mark.spec("SU-11")
@pytest.mark.parametrize(
    ("memory", "after", "is_stated"),
    [
        (None, 0, False),  # another process wrote it: no second attempt
        (ONCE, 9, False),
        (ONCE, 10, True),
        (TWICE, 3600, False),
    ],
)
def test_available_is_written_once_more_and_not_again(
    memory: SuspensionWrites | None, after: int, is_stated: bool
) -> None:
    seen = suspended(*BEFORE, status={**FLAG})
    stated = state_available(seen, memory, NOW + timedelta(seconds=after))
    assert (stated is not None) is is_stated


@pytest.mark.spec("SU-11")
def test_a_server_that_prunes_the_flag_causes_no_further_writes() -> None:
    assert state_available(suspended(*BEFORE), TWICE, NOW) is None
    assert state_available(suspended(*BEFORE), ONCE, NOW) is None


def test_the_second_write_is_waited_for_only_where_another_text_is_stored() -> None:
    seen = suspended(*BEFORE, status={**FLAG})
    waits = [one.retry_after for one in plan(seen, NOW, ONCE) if isinstance(one, RequeueAfter)]
    assert waits == [timedelta(seconds=10)]
    settled = suspended(PROGRAMMED, SHOWN, QUOTA, status={**FLAG})
    assert [one for one in plan(settled, NOW, ONCE) if isinstance(one, RequeueAfter)] == []


@pytest.mark.spec("SU-11")
def test_a_third_text_of_the_provider_is_reported_once() -> None:
    seen = suspended(*BEFORE, status={**FLAG})

    def reported(memory: SuspensionWrites) -> list[str]:
        return [one.reason for one in plan(seen, NOW, memory) if isinstance(one, RecordEvent)]

    assert reported(TWICE) == ["PauseFailed"]
    assert reported(ONCE) == []
    assert reported(replace(TWICE, is_reported=True)) == []


def test_a_write_is_remembered_until_the_resume_and_not_for_a_successor() -> None:
    seen = suspended(*BEFORE)
    done = Applied((Outcome(written(seen), Effect.WRITTEN),))
    first = remember(seen, None, done, NOW)
    assert first == ONCE
    assert remember(seen, first, Applied(), NOW) == ONCE
    assert remember(replace(seen, is_suspended=False), first, Applied(), NOW) is None
    assert remember(seen, SuspensionWrites(Uid("i-0"), 2, NOW), done, NOW) == ONCE
    shown = suspended(PROGRAMMED, SHOWN, QUOTA, status={**FLAG})
    assert remember(shown, first, done, NOW) == ONCE, "the text was there before"


def test_a_refused_status_is_reported_without_the_servers_text() -> None:
    seen = suspended(*BEFORE)
    answer = ServerAnswer(422, "Invalid", "spec.secret: hunter2")
    refused = InvalidSpecError("Invalid", "refused", answer=answer)

    def reported(error: InvalidSpecError | ConflictError, at: ObservedInstance) -> list[str]:
        outcome = Outcome(written(seen), Effect.FAILED, error=error)
        return [one.message for one in report_refused(at, Applied((outcome,)))]

    cause = "the API server answered 422 Invalid"
    text = f'status of Instance "web-0" could not be written: {cause}'
    assert reported(refused, seen) == [text]
    assert reported(ConflictError("Conflict", "late"), seen) == []
    assert reported(refused, suspended(*BEFORE, status={**FLAG})) == []
    unanswered = InvalidSpecError("Invalid", "it has no body")
    assert "it has no body" in reported(unanswered, seen)[0]
