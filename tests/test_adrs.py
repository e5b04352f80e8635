"""Architecture decisions and the performance table: indexed, complete, linked, measurable.

A page that the index does not list is not found by its readers, and an optimisation without a
benchmark cannot be removed when its gain is gone.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.bench import names
from tools.doc_commands import anchor_of
from tools.workspace import ROOT

ADRS = ROOT / "docs" / "adr"
INDEX = ADRS / "README.md"
PERFORMANCE = ROOT / "docs" / "performance.md"
PAGES = sorted(ADRS.glob("2*.md"))
LINKED = [*sorted(ADRS.glob("*.md")), PERFORMANCE]

SECTIONS = ["Status", "Context", "Decision", "Consequences", "Alternatives"]
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
COMMAND = re.compile(r"`\./dev bench ([a-z]+)`")
COLUMNS = ["trick", "where", "gain", "cost", "command"]


def title_of(page: Path) -> str:
    return page.read_text("utf-8").splitlines()[0].removeprefix("# ")


def rows_of(page: Path) -> list[list[str]]:
    """The cells of every table line of a page, header included, rules left out."""
    lines = [line for line in page.read_text("utf-8").splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in rows if not all(set(cell) <= {"-"} for cell in row)]


def unresolved(page: Path) -> list[str]:
    """Relative links of a page without a file, or with a fragment that is no heading of it."""
    missing: list[str] = []
    for _, target in LINK.findall(page.read_text("utf-8")):
        if "://" in target:
            continue
        path, _, fragment = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            missing.append(target)
        elif fragment:
            headings = HEADING.findall(file.read_text("utf-8"))
            if fragment not in {anchor_of(heading) for heading in headings}:
                missing.append(target)
    return missing


def test_the_index_lists_each_decision_once_with_its_own_title() -> None:
    listed = [LINK.findall(row[0])[0] for row in rows_of(INDEX)[1:]]
    assert sorted(listed) == sorted((title_of(page), page.name) for page in PAGES)


def test_the_index_states_the_status_of_each_page() -> None:
    stated = {LINK.findall(row[0])[0][1]: row[2] for row in rows_of(INDEX)[1:]}
    for page in PAGES:
        status = page.read_text("utf-8").split("## Status\n\n")[1]
        assert status.lower().startswith(stated[page.name]), page.name


@pytest.mark.parametrize("page", [*PAGES, ADRS / "template.md"], ids=lambda page: page.name)
def test_a_decision_has_the_five_sections_in_order(page: Path) -> None:
    text = page.read_text("utf-8")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == SECTIONS
    bodies = re.split(r"^## .*$", text, flags=re.MULTILINE)[1:]
    assert all(body.strip() for body in bodies)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_decision_is_dated_in_its_name(page: Path) -> None:
    assert re.fullmatch(r"20\d{6}-[a-z0-9-]+\.md", page.name)


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.name)
def test_every_relative_link_resolves(page: Path) -> None:
    expected = ["20YYMMDD-title.md"] if page.name == "template.md" else []
    assert unresolved(page) == expected


def test_the_performance_page_has_one_table() -> None:
    header, *rows = rows_of(PERFORMANCE)
    assert header == COLUMNS
    assert rows
    assert COLUMNS not in rows
    assert all(len(row) == len(COLUMNS) and all(row) for row in rows)


def test_every_optimisation_names_a_benchmark_that_exists() -> None:
    for trick, *_, command in rows_of(PERFORMANCE)[1:]:
        match = COMMAND.fullmatch(command)
        assert match, trick
        assert match[1] in names(), trick


def test_no_page_names_a_decision_that_does_not_exist() -> None:
    named = [
        (path.relative_to(ROOT).as_posix(), name)
        for pattern in ("*.md", "docs/**/*.md", "packages/*/*.md", "packages/*/src/**/*.py")
        for path in ROOT.glob(pattern)
        for name in re.findall(r"adr/(20\d{6}-[a-z0-9-]+\.md)", path.read_text("utf-8"))
    ]
    assert named
    assert [one for one in named if not (ADRS / one[1]).exists()] == []
