"""Scenarios import only the scenario API, and every acceptance statement has a scenario."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]
SCENARIOS = sorted((REPOSITORY / "e2e" / "scenarios").glob("test_*.py"))
# What a scenario may import beside the standard library and pytest.
OURS = ("compute_api_types", "e2e.world.scenario")


def _imports(text: str) -> set[str]:
    modules: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module or "")
    return modules


def _strangers(text: str) -> list[str]:
    return [
        name
        for name in sorted(_imports(text))
        if name.partition(".")[0] not in {*sys.stdlib_module_names, "pytest"}
        and name not in OURS
        and not name.startswith("compute_api_types.")
    ]


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario_imports_the_api_types_and_the_world_alone(path: Path) -> None:
    assert _strangers(path.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "line",
    ["import compute_sim_planes.time.clock", "from e2e.world.port import Needs", "import orjson"],
)
def test_what_a_scenario_must_not_know_is_found(line: str) -> None:
    assert len(_strangers(f"import pytest\n{line}\n")) == 1


def test_every_statement_of_the_page_has_a_scenario() -> None:
    page = (REPOSITORY / "docs" / "spec" / "operations.md").read_text("utf-8")
    stated = set(re.findall(r"^- (E-\d\d) ", page, re.MULTILINE))
    shown = {
        statement
        for path in SCENARIOS
        for marked in re.findall(r"mark\.spec\(([^)]*)\)", path.read_text("utf-8"))
        for statement in re.findall(r'"(E-\d\d)"', marked)
    }
    assert len(stated) == 53
    assert shown == stated
