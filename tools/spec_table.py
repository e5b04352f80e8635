"""Table of acceptance statements and fault rows → tests → last outcome per backend.

Statements come from `docs/spec`, tests from literal marker arguments in the source
(`@pytest.mark.spec("M-01")`), outcomes from what pytest runs left in `.spec/`. A mention in a
comment or a name is not a marker and counts nothing.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from typing_extensions import override

from tools.workspace import ROOT

# `M-01`, `OU-01`, and scenarios of one capability such as `E-P1`.
STATEMENT: Final = re.compile(
    r"^\W*\**((?:[MCQE]|[A-Z]{2})-\d{2,3}|E-[A-Z]\d{1,2})\b", re.MULTILINE
)
# Rows of the fault matrix and of the security checks, and the two-letter ids of attacks and sweeps.
FAULT_ROW: Final = re.compile(r"^\| ([A-GS]\d{1,2}|[A-Z]{2}-\d{2}) \|", re.MULTILINE)
MARKERS: Final = frozenset({"spec", "fault"})
TEST_ROOTS: Final = ("packages", "tests", "e2e")
# Folders of records, by the choices of `--planes`.
BACKENDS: Final = ("sim", "real")


@dataclass(frozen=True, slots=True, order=True)
class Claimed:
    """A test that carries an id."""

    shown_id: str
    test_file: str
    test: str


def statements(spec: Path) -> dict[str, str]:
    """Every id that the pages define, with its page."""
    found: dict[str, str] = {}
    for page in sorted(spec.glob("*.md")):
        text = page.read_text("utf-8")
        pattern = FAULT_ROW if page.name == "faults.md" else STATEMENT
        for shown_id in pattern.findall(text):
            found.setdefault(shown_id, page.name)
    return found


def claims(root: Path) -> list[Claimed]:
    """Every literal marker id in the test files below `root`."""
    return sorted(
        claimed
        for folder in TEST_ROOTS
        for path in (root / folder).rglob("test_*.py")
        for claimed in _claims_of(path, path.relative_to(root).as_posix())
    )


def _claims_of(path: Path, test_file: str) -> Iterator[Claimed]:
    finder = MarkerFinder()
    finder.visit(ast.parse(path.read_text("utf-8"), filename=test_file))
    return (Claimed(shown_id, test_file, test) for shown_id, test in finder.found)


class MarkerFinder(ast.NodeVisitor):
    """Gathers (id, name of the function or class it stands on) from marker calls."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []
        self._within = "(module)"

    @override
    def visit(self, node: ast.AST) -> None:
        outer = self._within
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self._within = node.name
        elif isinstance(node, ast.Call) and _is_marker(node.func):
            self.found += [(shown_id, self._within) for shown_id in _literals(node.args)]
        self.generic_visit(node)
        self._within = outer


def _literals(arguments: list[ast.expr]) -> Iterator[str]:
    for argument in arguments:
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            yield argument.value


def _is_marker(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and function.attr in MARKERS
        and isinstance(function.value, ast.Attribute)
        and function.value.attr == "mark"
    )


def outcomes(records: Path) -> dict[tuple[str, str], dict[str, str]]:
    """(id, test file) → backend → worst last outcome of the tests there that carry the id."""
    order = ("passed", "skipped", "failed")
    found: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    every = [(name, one) for name in BACKENDS for one in sorted((records / name).glob("*.json"))]
    for backend, record in every:
        for nodeid, shown in json.loads(record.read_text("utf-8")).items():
            for shown_id in shown["ids"]:
                by_backend = found[shown_id, nodeid.partition("::")[0]]
                before = by_backend.get(backend, "passed")
                by_backend[backend] = max(before, shown["outcome"], key=order.index)
    return found


def lines(
    known: Mapping[str, str],
    claimed: list[Claimed],
    seen: Mapping[tuple[str, str], Mapping[str, str]],
) -> Iterator[str]:
    """The table, one line per id and test."""
    by_id: dict[str, list[Claimed]] = defaultdict(list)
    for claim in claimed:
        by_id[claim.shown_id].append(claim)
    for shown_id in sorted(by_id, key=_in_page_order):
        for claim in by_id[shown_id]:
            ended = seen.get((shown_id, claim.test_file), {})
            told = (
                ", ".join(f"{backend} {ended[backend]}" for backend in sorted(ended)) or "not run"
            )
            yield f"{shown_id:6} {told:24} {claim.test_file}::{claim.test}"
    shown = len(by_id.keys() & known.keys())
    yield f"\n{shown} of {len(known)} statements and rows have a test."
    for page in sorted(set(known.values())):
        missing = [i for i in known if known[i] == page and i not in by_id]
        if missing:
            yield f"without a test, {page}: {' '.join(missing)}"


def _in_page_order(shown_id: str) -> tuple[str, int]:
    return shown_id.rstrip("0123456789"), int(re.sub(r"\D", "", shown_id) or 0)


def main() -> int:
    parser = argparse.ArgumentParser(description="Print who shows what of the specification.")
    parser.add_argument("--root", type=Path, default=ROOT, help="another tree than this one")
    root: Path = parser.parse_args().root
    known = statements(root / "docs" / "spec")
    claimed = claims(root)
    for line in lines(known, claimed, outcomes(root / ".spec")):
        print(line)
    unknown = [claim for claim in claimed if claim.shown_id not in known]
    for claim in unknown:
        print(
            f"spec: {claim.test_file}::{claim.test} carries {claim.shown_id!r}, which no page has",
            file=sys.stderr,
        )
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
