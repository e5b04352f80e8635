"""What a deployment states about its data, from the verdicts about what it names."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from management_builders.federation import PROJECT

from compute_api_types import labels
from compute_api_types.referenced_data.references import Reference
from compute_management_operator.hub.referenced_data import verdicts
from compute_management_operator.hub.referenced_data.expectation import (
    NO_DATA,
    UNSTATED,
    DataExpectation,
    DeploymentData,
    derive_expectation,
)
from compute_management_operator.hub.referenced_data.verdicts import SourceVerdict
from compute_management_operator.planes import SECRET
from compute_operator_kit.core.keys import ObjectKey

KEY = ObjectKey(PROJECT, SECRET, "default", "db")
APP = Reference("ConfigMap", "app")
DB = Reference("Secret", "db")
TOKENS = ("ConfigMap/app", "Secret/db")
THERE = SourceVerdict(version="u/7", size=10, is_materialised=True)
BOTH = DeploymentData((APP, DB), dict.fromkeys(TOKENS, THERE), fresh={TOKENS[0]: "u/7"})


def stated(expectation: DataExpectation) -> dict[str, object]:
    return {
        name.rpartition("/")[2]: None if text is None else json.loads(text)
        for name, text in expectation.annotations.items()
    }


def with_verdict(verdict: SourceVerdict, data: DeploymentData = BOTH) -> DeploymentData:
    return replace(data, verdicts={**data.verdicts, "Secret/db": verdict})


def test_a_template_without_references_states_nothing() -> None:
    assert derive_expectation(DeploymentData((), {})) is NO_DATA


def test_all_that_can_be_delivered_is_expected_in_its_version() -> None:
    found = derive_expectation(BOTH)
    assert stated(found) == {
        "expected-referenced-data": [*TOKENS],
        "expected-referenced-versions": dict.fromkeys(TOKENS, "u/7"),
        "referenced-data-error": None,
    }
    assert found.condition is not None
    assert found.condition.message == "All 2 referenced companion(s) are materialised"


def test_nothing_is_said_before_the_companions_are_written() -> None:
    found = derive_expectation(with_verdict(replace(THERE, is_materialised=False)))
    assert found.is_kept
    assert found.condition is None
    assert stated(found)["expected-referenced-data"] == [*TOKENS]


def test_a_version_read_for_the_generation_is_newer_than_the_verdict() -> None:
    found = derive_expectation(replace(BOTH, fresh=dict.fromkeys(TOKENS, "u/9")))
    assert stated(found)["expected-referenced-versions"] == dict.fromkeys(TOKENS, "u/9")


RECORDED = {
    labels.EXPECTED_REFERENCED_DATA: '["ConfigMap/app","Secret/db"]',
    labels.EXPECTED_REFERENCED_VERSIONS: '{"ConfigMap/app":"u/5","Secret/db":"u/5"}',
}


@pytest.mark.spec("RD-08")
def test_an_edit_of_the_same_generation_keeps_the_recorded_versions() -> None:
    found = derive_expectation(replace(BOTH, recorded=RECORDED, fresh={}))
    assert stated(found)["expected-referenced-versions"] == dict.fromkeys(TOKENS, "u/5")


@pytest.mark.parametrize("existing", ["u/4", "v/1"])
def test_a_restored_or_recreated_source_is_expected_as_it_is_now(existing: str) -> None:
    data = replace(BOTH, recorded=RECORDED, fresh={})
    found = derive_expectation(with_verdict(replace(THERE, version=existing), data))
    versions = {"ConfigMap/app": "u/5", "Secret/db": existing}
    assert stated(found)["expected-referenced-versions"] == versions


def test_a_source_that_appears_gets_a_version() -> None:
    text = '{"ConfigMap/app":"u/5"}'
    recorded = {**RECORDED, labels.EXPECTED_REFERENCED_VERSIONS: text}
    found = derive_expectation(replace(BOTH, recorded=recorded))
    versions = {"ConfigMap/app": "u/5", "Secret/db": "u/7"}
    assert stated(found)["expected-referenced-versions"] == versions


@pytest.mark.parametrize(
    "verdict",
    [
        verdicts.not_found(KEY),
        verdicts.unauthorized(KEY),
        verdicts.too_large(KEY, 262_145, "u/1"),
        verdicts.too_long(KEY),
        verdicts.name_taken(KEY),
        verdicts.unsupported(KEY, "a/b", "u/1"),
        verdicts.reserved(KEY),
    ],
)
def test_the_first_required_token_that_cannot_be_delivered_is_the_error(
    verdict: SourceVerdict,
) -> None:
    found = derive_expectation(with_verdict(verdict))
    assert stated(found)["referenced-data-error"] == {
        "message": verdict.message,
        "reason": verdict.reason,
    }
    assert stated(found)["expected-referenced-data"] == [*TOKENS]
    assert found.error is not None
    assert found.error.reason == verdict.reason


@pytest.mark.spec("RD-13")
@pytest.mark.parametrize(
    ("verdict", "reason"),
    [
        (verdicts.not_found(KEY), ""),
        (verdicts.unauthorized(KEY), ""),
        (verdicts.too_large(KEY, 262_145, "u/1"), ""),
        (verdicts.too_long(KEY), "SourceNameTooLong"),
        (verdicts.name_taken(KEY), "SourceNameTaken"),
    ],
)
def test_optional_ones_are_skipped_but_never_a_name(verdict: SourceVerdict, reason: str) -> None:
    data = replace(BOTH, references=(APP, replace(DB, is_optional=True)))
    found = derive_expectation(with_verdict(verdict, data))
    assert stated(found)["expected-referenced-data"] == ["ConfigMap/app"]
    assert (found.error.reason if found.error else "") == reason


@pytest.mark.spec("RD-13")
@pytest.mark.parametrize(("size", "is_error"), [(524_288, False), (524_289, True)])
def test_one_mib_in_all_passes_and_more_does_not(size: int, is_error: bool) -> None:
    first = {"ConfigMap/app": replace(THERE, size=524_288), "Secret/db": replace(THERE, size=size)}
    found = derive_expectation(replace(BOTH, verdicts=first))
    assert (found.error is not None) is is_error
    if found.error is not None:
        assert found.error.message == (
            "aggregate referenced data for WorkloadDeployment exceeds limit "
            "(1048577 bytes > 1048576 bytes)"
        )


def test_a_missing_verdict_is_waited_for() -> None:
    left = timedelta(seconds=1)
    data = DeploymentData((APP, DB), {"ConfigMap/app": THERE}, left=left)
    found = derive_expectation(data)
    assert found == DataExpectation(UNSTATED, is_kept=True, awaited=left)


@pytest.mark.spec("RD-23")
def test_without_verdicts_what_is_recorded_stays() -> None:
    found = derive_expectation(DeploymentData((APP, DB), {}, RECORDED))
    assert found.annotations == {**UNSTATED, **RECORDED}
    assert found.is_kept


def test_a_source_that_cannot_be_read_is_stated() -> None:
    found = derive_expectation(with_verdict(verdicts.unread(KEY)))
    assert found.condition is not None
    assert (found.condition.status, found.condition.reason) == ("Unknown", "Resolving")
    assert found.condition.message == 'failed to read Secret "db"'
    kept = derive_expectation(with_verdict(verdicts.unread(KEY), replace(BOTH, recorded=RECORDED)))
    assert kept.is_kept
