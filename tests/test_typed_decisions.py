"""Decisions read typed values: no `plan` and no `status` module reads JSON.

An import contract names modules, and the readers share theirs with the types of JSON, which a
decision may pass on. JSON is read in `observe`, once per reconcile, where a wrong shape becomes an
empty value; read again in a decision, each place would have its own idea of a wrong shape.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tools.decision_coverage import find_decisions
from tools.workspace import Package

OPERATORS: Final = ("management-operator", "cell-operator")
JSON_MODULE: Final = "compute_operator_kit.core.json"
READERS: Final = ("member_", "decode")


def readers_in(text: str) -> Iterator[str]:
    """Readers of JSON that a module imports, also under another name or with their module."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.ImportFrom(module=str(module)):
                yield from _readers_of(module, node.names)
            case ast.Import(names=names):
                yield from (one.name for one in names if one.name == JSON_MODULE)
            case _:
                pass


def _readers_of(module: str, imported: list[ast.alias]) -> Iterator[str]:
    for one in imported:
        whole = f"{module}.{one.name}"
        if whole == JSON_MODULE or (module == JSON_MODULE and one.name.startswith(READERS)):
            yield whole


def shapes_in(text: str) -> Iterator[int]:
    """Lines that ask whether a value is a JSON object or list: what is typed need not be asked."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, types]):
                named = {one.id for one in ast.walk(types) if isinstance(one, ast.Name)}
                if named & {"dict", "list", "Mapping", "Sequence"}:
                    yield node.lineno
            case _:
                pass


def decisions() -> list[Path]:
    return [
        path for operator in OPERATORS for path in find_decisions(Package(operator).path / "src")
    ]


@pytest.mark.parametrize("path", decisions(), ids=lambda path: "/".join(path.parts[-4:]))
def test_a_decision_reads_no_json(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert list(readers_in(text)) == []
    assert list(shapes_in(text)) == []


def test_both_operators_have_decisions() -> None:
    for operator in OPERATORS:
        names = {path.name for path in find_decisions(Package(operator).path / "src")}
        assert {"plan.py", "status.py"} <= names


@pytest.mark.parametrize(
    "text",
    [
        "from compute_operator_kit.core.json import Json, member_text",
        "from compute_operator_kit.core.json import member_int as number",
        "from compute_operator_kit.core.json import decode_json_object",
        "from compute_operator_kit.core import json",
        "import compute_operator_kit.core.json",
        "def f():\n    from compute_operator_kit.core.json import member_list",
    ],
)
def test_each_form_of_an_import_is_seen(text: str) -> None:
    assert list(readers_in(text)) != []


@pytest.mark.parametrize("types", ["dict", "list", "dict | list", "(str, dict)", "Mapping"])
def test_each_form_of_a_question_about_a_shape_is_seen(types: str) -> None:
    assert list(shapes_in(f"x = isinstance(y, {types})")) == [1]
    assert list(shapes_in("x = isinstance(y, Absent | Unreadable)")) == []


def test_types_of_json_may_be_imported() -> None:
    text = "from compute_operator_kit.core.json import Json, JsonObject, encode"
    assert list(readers_in(text)) == []
