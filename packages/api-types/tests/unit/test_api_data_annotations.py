"""Annotations of a WorkloadDeployment about its referenced data (referenced-data.md 4, 6)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compute_api_types.referenced_data.annotations import (
    DataError,
    is_at_least,
    parse_error,
    parse_expected,
    parse_versions,
    render_error,
    render_expected,
    render_versions,
)


def test_what_is_rendered_parses_to_the_same() -> None:
    assert render_expected(("ConfigMap/a", "Secret/b")) == '["ConfigMap/a","Secret/b"]'
    assert parse_expected('["ConfigMap/a","Secret/b"]') == ("ConfigMap/a", "Secret/b")
    assert parse_expected(render_expected(())) == ()
    versions = {"Secret/b": "u/1", "ConfigMap/a": "v/2"}
    assert render_versions(versions) == '{"ConfigMap/a":"v/2","Secret/b":"u/1"}'
    assert parse_versions(render_versions(versions)) == versions
    error = DataError("SourceNotFound", 'Secret "é" not found in namespace "ns"')
    assert parse_error(render_error(error)) == error
    assert render_error(DataError("R", "m")) == '{"message":"m","reason":"R"}'


@pytest.mark.spec("RD-22")
@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{}",
        "null",
        "[1]",
        '["Pod/a"]',
        '["Secret/"]',
        '["Secret"]',
        '[["Secret/a"]]',
        "[" * 100_000,
        "[" * 10_000,
        '["Secret/a"',
        f'["Secret/{"a" * 70_000}"]',
        render_expected(["Secret/a"] * 65),
    ],
)
def test_a_list_that_is_none_of_ours_is_no_empty_list(text: str | None) -> None:
    assert parse_expected(text) is None


def test_versions_are_absent_malformed_or_texts() -> None:
    assert parse_versions(None) == {}
    for text in ("", "[]", "1", '{"a": 1}', "{" * 9_000):
        assert parse_versions(text) is None


def test_an_error_has_a_reason_and_a_message() -> None:
    for text in (None, "", "[]", "{}", '{"reason": "R"}', '{"reason": "", "message": "m"}'):
        assert parse_error(text) is None


@pytest.mark.parametrize(
    ("existing", "expected", "result"),
    [
        ("u/12", "u/9", True),
        ("u/9", "u/9", True),
        ("u/9", "u/12", False),
        ("v/12", "u/9", False),  # another object of that name
        ("u/x", "u/x", True),
        ("u/x", "u/9", False),
        ("u/12", "u/x", False),
        ("u/²", "u/1", False),
        ("", "u/1", False),
        (f"u/{'9' * 5_000}", "u/1", False),
    ],
)
def test_a_copy_is_as_new_as_expected_by_its_integer_version(
    existing: str, expected: str, result: bool
) -> None:
    assert is_at_least(existing, expected) is result


@given(st.text(max_size=200))
def test_no_text_makes_a_parser_raise(text: str) -> None:
    parse_expected(text)
    parse_versions(text)
    parse_error(text)
    is_at_least(text, text)
