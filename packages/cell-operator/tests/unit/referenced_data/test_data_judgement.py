"""The condition `ReferencedDataReady` and completeness, row by row (referenced-data.md 6)."""

from __future__ import annotations

import pytest

from compute_api_types import labels, reasons
from compute_api_types.conditions import rank
from compute_api_types.referenced_data.annotations import (
    DataError,
    render_error,
    render_expected,
    render_versions,
)
from compute_api_types.referenced_data.references import Reference
from compute_cell_operator.referenced_data.judgement import (
    NOTHING_NEEDED,
    RESOLVING,
    SOURCE_REASONS,
    DataVerdict,
    judge_copies,
    judge_sources,
)

NAMED = (Reference("ConfigMap", "a"), Reference("Secret", "b", is_optional=True))


def judge(
    *expected: str,
    named: tuple[Reference, ...] = NAMED,
    copies: dict[str, str] | None = None,
    versions: dict[str, str] | None = None,
    others: dict[str, str] | None = None,
) -> DataVerdict:
    annotations = {labels.EXPECTED_REFERENCED_DATA: render_expected(expected)}
    if versions is not None:
        annotations[labels.EXPECTED_REFERENCED_VERSIONS] = render_versions(versions)
    return judge_copies(named, {**annotations, **(others or {})}, copies or {})


def test_an_error_is_shown_with_its_reason_and_message() -> None:
    message = 'Secret "b" not found in namespace "shop"'
    error = render_error(DataError("SourceNotFound", message))
    verdict = judge("ConfigMap/a", others={labels.REFERENCED_DATA_ERROR: error})
    assert verdict == DataVerdict("False", "SourceNotFound", message)


def test_an_error_of_another_word_or_with_odd_characters_is_not_passed_on_as_it_is() -> None:
    error = render_error(DataError("Whatever", "a\u202eb\n" + "x" * 2_000))
    verdict = judge("ConfigMap/a", others={labels.REFERENCED_DATA_ERROR: error})
    assert verdict.reason == reasons.REFERENCED_DATA_NOT_READY
    assert verdict.message.isprintable()
    assert len(verdict.message) <= 1024


@pytest.mark.spec("RD-22")
@pytest.mark.parametrize("text", [None, "", "{}", "[1]", '["ConfigMap/a"', '["Secret/b"]'])
def test_what_is_not_judged_or_lacks_a_required_object_is_being_resolved(text: str | None) -> None:
    annotations = {} if text is None else {labels.EXPECTED_REFERENCED_DATA: text}
    assert judge_copies(NAMED, annotations, {"ConfigMap/a": "u/1"}) is RESOLVING
    assert not RESOLVING.is_complete


def test_malformed_versions_are_being_resolved() -> None:
    odd = {labels.EXPECTED_REFERENCED_VERSIONS: "[]"}
    assert judge("ConfigMap/a", copies={"ConfigMap/a": "u/1"}, others=odd) is RESOLVING


def test_an_empty_list_needs_nothing() -> None:
    assert judge(named=NAMED[1:]) is NOTHING_NEEDED
    assert NOTHING_NEEDED.is_complete


def test_missing_copies_are_named_and_counted() -> None:
    verdict = judge("Secret/b", "ConfigMap/a")
    assert verdict == DataVerdict(
        "False",
        "AwaitingPropagation",
        "Waiting for 2 companion(s) to arrive on cell: ConfigMap/a, Secret/b",
    )
    crowd = tuple(f"ConfigMap/n{at:02}" for at in range(12))
    verdict = judge(*crowd, named=())
    assert verdict.message.endswith("ConfigMap/n08, ConfigMap/n09 and 2 more")


def test_a_copy_of_an_older_version_is_waited_for() -> None:
    versions = {"ConfigMap/a": "u/12"}
    old = judge("ConfigMap/a", copies={"ConfigMap/a": "u/9"}, versions=versions)
    assert old == DataVerdict(
        "False",
        "AwaitingPropagation",
        "Waiting for 1 companion(s) to be brought up to date on cell: ConfigMap/a",
    )
    assert judge("ConfigMap/a", copies={"ConfigMap/a": "u/12"}, versions=versions).is_complete
    # Of an object without an expected version its presence is enough.
    assert judge("ConfigMap/a", copies={"ConfigMap/a": ""}, versions={}).is_complete


def test_all_that_is_expected_is_there() -> None:
    copies = {"ConfigMap/a": "u/1", "Secret/b": "v/1", "Secret/other": "w/1"}
    assert judge("ConfigMap/a", "Secret/b", copies=copies) == DataVerdict(
        "True", "Ready", "All 2 referenced companion(s) are present on cell"
    )


@pytest.mark.spec("RD-24")
def test_in_a_single_cluster_the_objects_themselves_count() -> None:
    missing = judge_sources(NAMED, "shop", {"Secret/b"})
    assert missing == DataVerdict(
        "False", "SourceNotFound", 'ConfigMap "a" not found in namespace "shop"'
    )
    assert judge_sources(NAMED, "shop", {"ConfigMap/a"}).is_complete
    assert judge_sources(NAMED[1:], "shop", ()) is NOTHING_NEEDED


def test_reasons_that_a_user_can_cure_rank_above_waiting() -> None:
    assert {rank(reason) for reason in SOURCE_REASONS} == {5}
    assert {rank(reason) for reason in (reasons.AWAITING_PROPAGATION, reasons.RESOLVING)} == {4}
