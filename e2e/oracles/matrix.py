"""The fault matrix: the rows of `docs/spec/faults.md` 3, parsed from the page.

The page is the only copy, so the tests cannot drift from it; its format is checked while parsing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parents[2] / "docs" / "spec" / "faults.md"
_ROW: Final = re.compile(r"\| (?P<id>[A-G][0-9]{1,2}) \| (?P<rest>.*) \|")


@dataclass(frozen=True, slots=True)
class FaultRow:
    """One fault and the criterion by which a run with it passes."""

    id: str
    fault: str
    criterion: str

    @property
    def group(self) -> str:
        return self.id[0]

    @property
    def is_standard(self) -> bool:
        """Whether the criterion includes `std`, "all oracles hold"."""
        return "std" in re.split(r"[^a-z]+", self.criterion)


def read_matrix(page: Path = PAGE) -> tuple[FaultRow, ...]:
    """All rows in the order of the page; raises ValueError if there are none."""
    text = page.read_text("utf-8")
    section = text.partition("## 3. Fault matrix")[2].partition("\n## ")[0]
    rows = tuple(
        FaultRow(row["id"], cells[0], cells[-1])
        for row in _ROW.finditer(section)
        for cells in ([cell.strip() for cell in row["rest"].split(" | ")],)
    )
    if not rows:
        raise ValueError(f"reading {page}: section 3 has no rows of faults")
    return rows
