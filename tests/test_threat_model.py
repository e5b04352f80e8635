"""The threat model names, in every row, checks that the specification knows and tests carry."""

from __future__ import annotations

import re

import pytest

from tools.spec_table import claims, statements
from tools.workspace import ROOT

PAGE = ROOT / "docs" / "explanation" / "threat-model.md"
ID = re.compile(r"\b(?:[A-GSO]\d+|(?:AT|FS)-\d{2})\b")
# Oracles are judged after every run; no test carries their ids.
ORACLE = "O"


def rows() -> list[list[str]]:
    text = PAGE.read_text("utf-8")
    table = text[text.index("## Attackers and assets") : text.index("## What is not")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return [row for row in cells if len(row) == 5][2:]


@pytest.mark.fault("S20")
def test_every_row_names_a_check_that_a_test_carries() -> None:
    carried = {claim.shown_id for claim in claims(ROOT)}
    assert len(rows()) >= 15
    for *_, attack, _, shown_by in rows():
        named = ID.findall(shown_by)
        assert named, f"{attack}: no check"
        missing = [one for one in named if one[0] != ORACLE and one not in carried]
        assert not missing, f"{attack}: no test carries {missing}"


@pytest.mark.fault("S20")
def test_every_hostile_case_of_the_page_is_in_the_model() -> None:
    hostile = {one for one in statements(ROOT / "docs" / "spec") if re.fullmatch(r"G\d+", one)}
    assert hostile
    assert hostile <= set(ID.findall(PAGE.read_text("utf-8")))
