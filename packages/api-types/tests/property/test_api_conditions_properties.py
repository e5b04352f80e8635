from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from compute_api_types.conditions import (
    RANKS,
    Condition,
    ConditionStatus,
    Statement,
    derive_message,
    find,
    merge,
    merge_documents,
    rank,
    summarise,
)
from compute_api_types.meta import format_timestamp
from compute_api_types.testing import a_condition

# A busy machine makes an example slow, not wrong.
UNHURRIED = settings(deadline=None)

TYPES = st.sampled_from(["Ready", "Available", "Programmed", "QuotaGranted", "Foreign"])
WORDS: tuple[ConditionStatus, ...] = ("True", "False", "Unknown")
STATUSES = st.sampled_from(WORDS)
REASONS = st.sampled_from([*RANKS, "Pending", "PendingProgramming", "SomethingNew"])
GENERATIONS = st.integers(min_value=0, max_value=2**63 - 1) | st.none()
MOMENTS = st.integers(min_value=0, max_value=2**32).map(
    lambda seconds: datetime.fromtimestamp(seconds, UTC)
)
STATEMENTS = st.builds(Statement, TYPES, STATUSES, REASONS, st.text(max_size=50), GENERATIONS)
STATEMENT_LISTS = st.lists(STATEMENTS, unique_by=lambda statement: statement.type, max_size=4)
FOUND = st.lists(
    st.builds(
        a_condition,
        TYPES,
        STATUSES,
        REASONS,
        st.text(max_size=50),
        since=MOMENTS.map(format_timestamp),
        observed_generation=GENERATIONS,
    ),
    max_size=6,
).map(tuple)


@given(FOUND, STATEMENT_LISTS, MOMENTS)
@UNHURRIED
def test_the_time_moves_exactly_when_the_status_does(
    existing: tuple[Condition, ...], statements: list[Statement], now: datetime
) -> None:
    merged = merge(existing, statements, now)
    for statement in statements:
        before, after = find(existing, statement.type), find(merged, statement.type)
        assert after is not None
        kept = before is not None and before.status == statement.status
        expected = before.last_transition_time if before and kept else format_timestamp(now)
        assert after.last_transition_time == expected


@given(FOUND, STATEMENT_LISTS, MOMENTS)
@UNHURRIED
def test_each_of_our_types_is_there_once_and_as_stated(
    existing: tuple[Condition, ...], statements: list[Statement], now: datetime
) -> None:
    merged = merge(existing, statements, now)
    for statement in statements:
        (ours,) = [each for each in merged if each.type == statement.type]
        assert (ours.status, ours.reason, ours.observed_generation) == (
            statement.status,
            statement.reason,
            statement.observed_generation,
        )
        assert ours.message == derive_message(statement.message)


@given(FOUND, STATEMENT_LISTS, MOMENTS)
@UNHURRIED
def test_what_is_not_ours_stays_in_text_and_order(
    existing: tuple[Condition, ...], statements: list[Statement], now: datetime
) -> None:
    ours = {statement.type for statement in statements}
    merged = merge(existing, statements, now)
    assert [each for each in merged if each.type not in ours] == [
        each for each in existing if each.type not in ours
    ]


@given(FOUND, STATEMENT_LISTS, MOMENTS, MOMENTS)
@UNHURRIED
def test_the_same_statements_later_change_nothing(
    existing: tuple[Condition, ...], statements: list[Statement], now: datetime, later: datetime
) -> None:
    once = merge(existing, statements, now)
    assert merge(once, statements, later) == once


@given(FOUND, STATEMENT_LISTS, MOMENTS)
@UNHURRIED
def test_raw_and_typed_merge_agree(
    existing: tuple[Condition, ...], statements: list[Statement], now: datetime
) -> None:
    typed = [each.to_document() for each in merge(existing, statements, now)]
    assert merge_documents([each.to_document() for each in existing], statements, now) == typed


@given(st.text(alphabet=st.characters(codec=None), max_size=2000))
@UNHURRIED
def test_any_message_becomes_one_that_can_be_shown(text: str) -> None:
    message = derive_message(text)
    assert len(message) <= 1024
    assert message.encode("utf-8").decode("utf-8") == message
    assert not any(ord(char) < 0x20 or 0x7F <= ord(char) <= 0x9F for char in message)
    assert derive_message(message) == message


@given(st.lists(STATEMENTS, max_size=8))
@UNHURRIED
def test_the_summary_is_the_first_of_the_highest_rank(statements: list[Statement]) -> None:
    chosen = summarise(statements)
    if not statements:
        assert chosen is None
        return
    highest = max(rank(each.reason) for each in statements)
    assert chosen is next(each for each in statements if rank(each.reason) == highest)
