"""The fault matrix as data: the rows of `docs/spec/faults.md` 3, read from the page itself.

A second copy would drift; so the page is the table, and its form is checked while it is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parents[2] / "docs" / "spec" / "faults.md"
_ROW: Final = re.compile(r"\| (?P<id>[A-G][0-9]{1,2}) \| (?P<rest>.*) \|")


@dataclass(frozen=True, slots=True)
class Row:
    """One fault, and when a run with it has passed."""

    id: str
    fault: str
    passes: str

    @property
    def group(self) -> str:
        return self.id[0]

    @property
    def is_standard(self) -> bool:
        """Whether "all oracles hold" is what it asks for, perhaps among more."""
        return "std" in re.split(r"[^a-z]+", self.passes)


def read_matrix(page: Path = PAGE) -> tuple[Row, ...]:
    """Every row, in the order of the page; raises ValueError where the page has none."""
    text = page.read_text("utf-8")
    section = text.partition("## 3. Fault matrix")[2].partition("\n## ")[0]
    rows = tuple(
        Row(found["id"], cells[0], cells[-1])
        for found in _ROW.finditer(section)
        for cells in ([cell.strip() for cell in found["rest"].split(" | ")],)
    )
    if not rows:
        raise ValueError(f"reading {page}: section 3 has no rows of faults")
    return rows
