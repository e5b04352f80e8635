"""Trees drawn in the documents are those of the folders: each path exists, no room is left out.

A drawing that lags behind sends a reader to a module that is not there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

import pytest

from tools.workspace import PACKAGES, ROOT

PAGES: Final = ("docs/style/house-style.md", "docs/architecture.md")
# A block of a drawn tree begins with its folder on a line of its own: `packages/…/` or `e2e/`.
ROOM_LINE: Final = re.compile(r"^(?P<indent> +)(?P<paths>(?:[\w./{},-]+/ *)+)(?: .*)?$")
FENCE: Final = re.compile(r"```tree\n(.*?)```", re.DOTALL)


def drawn_rooms(block: str) -> Iterator[PurePosixPath]:
    """Every folder a block names, with the folders above it."""
    lines = [line for line in block.splitlines() if line.strip()]
    parents: list[tuple[int, PurePosixPath]] = [(-1, PurePosixPath(lines[0].strip().split(" ")[0]))]
    yield parents[0][1]
    for line in lines[1:]:
        room = ROOM_LINE.match(line)
        if room is None:
            continue
        indent = len(room["indent"])
        while parents[-1][0] >= indent:
            parents.pop()
        above = parents[-1][1]
        for path in (above / name for word in room["paths"].split() for name in expand(word)):
            yield path
            parents.append((indent, path))


def expand(path: str) -> Iterator[str]:
    """`a/{b,c}` as `a/b` and `a/c`."""
    braces = re.search(r"\{([^}]*)\}", path.rstrip("/"))
    if braces is None:
        yield path
        return
    for name in braces[1].split(","):
        yield from expand(path[: braces.start()] + name + path[braces.end() :])


def blocks() -> dict[str, list[str]]:
    return {page: FENCE.findall((ROOT / page).read_text(encoding="utf-8")) for page in PAGES}


def rooms_of(folder: Path) -> set[PurePosixPath]:
    """Folders with modules below `folder`, and itself; tests and data aside."""
    rooms = {path.parent for path in folder.rglob("*.py")}
    relative = {room.relative_to(ROOT) for room in rooms}
    return {PurePosixPath(room) for room in relative if "tests" not in room.parts}


@pytest.mark.parametrize("page", PAGES)
def test_every_drawn_folder_is_there(page: str) -> None:
    drawn = {room for block in blocks()[page] for room in drawn_rooms(block)}
    assert drawn, f"{page} has no block marked `tree`"
    assert sorted(str(room) for room in drawn if not (ROOT / room).is_dir()) == []


def test_every_room_of_the_code_is_drawn_in_the_house_style() -> None:
    drawn = {room for block in blocks()["docs/style/house-style.md"] for room in drawn_rooms(block)}
    there = rooms_of(ROOT / "e2e")
    for folder in PACKAGES:
        there |= rooms_of(ROOT / "packages" / folder / "src")
    assert sorted(str(room) for room in there - drawn) == []


def test_a_drawn_folder_has_those_above_it() -> None:
    block = "packages/x/src/\n  core/  values\n  client/\n    transport/\n  a/{b,c}/  d/"
    assert [str(room) for room in drawn_rooms(block)] == [
        "packages/x/src",
        *("packages/x/src/core", "packages/x/src/client", "packages/x/src/client/transport"),
        *("packages/x/src/a/b", "packages/x/src/a/c", "packages/x/src/d"),
    ]
