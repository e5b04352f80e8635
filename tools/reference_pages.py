"""What the writers of reference pages share: tables, and a page that is written or checked."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from tools.workspace import ROOT

REFERENCE: Final = ROOT / "docs" / "reference"


def draw_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def keep_page(page: Path, render: Callable[[], str]) -> int:
    """Writes the page, or with `--check` only reports whether it is out of date."""
    parser = argparse.ArgumentParser(description=f"Write {page.name}.")
    parser.add_argument("--check", action="store_true", help="only say whether it is out of date")
    check: bool = parser.parse_args().check
    wanted = render()
    is_stale = not page.exists() or page.read_text("utf-8") != wanted
    if is_stale and check:
        print(f"{page.relative_to(ROOT)} is out of date; run `./dev generate`")
    elif is_stale:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(wanted, "utf-8", newline="\n")
    return 1 if check and is_stale else 0
