"""The output of a run in the README, and what may differ between two runs.

The recording stands in the block whose command is `./dev demo`; it is written by
`./dev demo --record` and compared by a test with a run of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from e2e.demo.scene import DemoError

README: Final = Path(__file__).parents[2] / "README.md"
COMMAND: Final = "$ ./dev demo"
_BLOCK: Final = re.compile(r"^```console\n\$ ./dev demo\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SECONDS: Final = re.compile(r"\d+(\.\d+)? s\b")


def record(transcript: Sequence[str], page: Path = README) -> None:
    """Puts a transcript into the page."""
    text = page.read_text("utf-8")
    lines = "\n".join(transcript).strip("\n")
    block = f"```console\n{COMMAND}\n{lines}\n```"
    written, count = _BLOCK.subn(lambda _: block, text, count=1)
    if not count:
        raise DemoError(f"recording into {page.name}: no block there shows the command `{COMMAND}`")
    page.write_text(written, "utf-8")


def read_recording(page: Path = README) -> list[str]:
    """What the page shows; nothing when it shows no run."""
    found = _BLOCK.search(page.read_text("utf-8"))
    return found.group(1).splitlines() if found else []


def normalise(lines: Sequence[str]) -> str:
    """A run without its times: wrapping moves with them, so words are compared, not lines."""
    words = " ".join(line.strip() for line in lines)
    return re.sub(r"\s+", " ", _SECONDS.sub("N s", words)).strip()
