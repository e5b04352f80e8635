from __future__ import annotations

import pytest

from compute_kubeconfig.problems import Problem, format_path
from compute_kubeconfig.strict_yaml import DocumentError, parse_document


def test_types_are_those_a_reader_expects() -> None:
    text = """
    switch: on
    legacy: yes
    port: 010
    ratio: 0.05
    whole: 1e3
    nothing: ~
    empty:
    text: "5"
    truth: true
    time: 12:30:45
    list: [1, two, false]
    """

    assert parse_document(text) == {
        "switch": "on",
        "legacy": "yes",
        "port": 10,
        "ratio": 0.05,
        "whole": 1000.0,
        "nothing": None,
        "empty": None,
        "text": "5",
        "truth": True,
        "time": "12:30:45",
        "list": [1, "two", False],
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", Problem("", "is empty")),
        ("# only a comment\n", Problem("", "is empty")),
        ("a: 1\n---\nb: 2\n", Problem("", "holds 2 documents, expected one")),
        ("- a\n", Problem("", "expected a mapping of keys to values")),
        ("a: 1\na: 2\n", Problem("a", "line 2: key is given twice")),
        ("a:\n  b: 1\n  b: 2\n", Problem("a.b", "line 3: key is given twice")),
        ("a: [{b: 1, b: 2}]\n", Problem("a[0].b", "line 1: key is given twice")),
        ("a: &x 1\nb: *x\n", Problem("b", "aliases are refused: write the value out")),
        (
            "a: !!python/object:os.system 1\n",
            Problem("a", "is neither text, number, boolean nor null"),
        ),
        ("a: !custom {}\n", Problem("a", "tags are refused")),
        ("1: a\n", Problem("", "line 1: keys are text")),
        ("a: b: c\n", Problem("", "line 1: is not valid YAML")),
        ("a: \x00\n", Problem("", "is not valid YAML")),
        ("[" * 5000, Problem("", "is not valid YAML")),
    ],
)
def test_what_two_readers_could_understand_differently_is_refused(
    text: str, problem: Problem
) -> None:
    with pytest.raises(DocumentError) as refused:
        parse_document(text)

    assert refused.value.problems == (problem,)


def test_all_problems_of_a_document_are_told_at_once() -> None:
    with pytest.raises(DocumentError) as refused:
        parse_document("a: 1\na: 2\nb: &x {c: 1, c: 2}\nd: *x\n")

    assert [problem.path for problem in refused.value.problems] == ["a", "b.c", "d"]


def test_an_error_repeats_nothing_of_the_document() -> None:
    with pytest.raises(DocumentError) as refused:
        parse_document("token: 'hunter2\n  - x: [")

    assert "hunter2" not in str(refused.value)


def test_a_billion_laughs_are_not_laughed() -> None:
    bomb = "a: &a [x, x]\n" + "".join(
        f"{new}: &{new} [*{old}, *{old}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )

    with pytest.raises(DocumentError):
        parse_document(bomb)


def test_a_path_is_written_as_people_write_it() -> None:
    assert format_path(("clusters", 0, "cluster", "server")) == "clusters[0].cluster.server"


def test_a_problem_is_one_printable_line() -> None:
    assert str(Problem("a\nb", "c\x1b[2Jd")) == r"a\nb: c\x1b[2Jd"


@pytest.mark.parametrize("text", ["[" * 200 + "]" * 200, "{a: " * 200 + "1" + "}" * 200])
def test_a_document_that_is_too_deep_is_refused(text: str) -> None:
    with pytest.raises(DocumentError) as refused:
        parse_document(f"deep: {text}")

    assert refused.value.problems == (Problem("deep", "is nested deeper than 128 levels"),)


def test_a_problem_of_a_hostile_key_is_cut() -> None:
    assert len(str(Problem("k" * 5000, "m" * 5000))) < 1400
