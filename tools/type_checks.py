"""Both type checkers, side by side: each has a core to itself where there are two.

mypy sees one folder at a time, because packages may have test files of the same name, and one after
another, because its runs share a cache.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Final

from tools.workspace import PACKAGES

FOLDERS: Final = (*(f"packages/{folder}" for folder in PACKAGES), "tests", "e2e", "bench", "tools")
FILES: Final = ("noxfile.py", "conftest.py")
Command = tuple[str, ...]
MYPY: Final[tuple[Command, ...]] = tuple(
    (sys.executable, "-m", "mypy", "--no-error-summary", *paths)
    for paths in (*((folder,) for folder in FOLDERS), FILES)
)
PYRIGHT: Final[tuple[Command, ...]] = ((sys.executable, "-m", "basedpyright"),)


async def run_in_turn(commands: Sequence[Command]) -> bool:
    """All of them, also after one that found something; whether none did."""
    return all([await _is_clean(command) for command in commands])


async def _is_clean(command: Command) -> bool:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said, _ = await process.communicate()
    print("$", *command[2:])
    print(said.decode(errors="replace"), end="", flush=True)
    return process.returncode == 0


async def check() -> bool:
    return all(await asyncio.gather(run_in_turn(PYRIGHT), run_in_turn(MYPY)))


if __name__ == "__main__":
    sys.exit(not asyncio.run(check()))
