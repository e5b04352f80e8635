"""The recorded output of a run in the README.

The recording is in the block with the command `./dev demo`; `./dev demo --record` writes it, and a
test compares it with a new run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from e2e.demo.backend import DemoError

README: Final = Path(__file__).parents[2] / "README.md"
COMMAND: Final = "$ ./dev demo"
_BLOCK: Final = re.compile(r"^```console\n\$ ./dev demo\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SECONDS: Final = re.compile(r"\d+(\.\d+)? s\b")


def record(transcript: Sequence[str], page: Path = README) -> None:
    """Writes a transcript into the page."""
    text = page.read_text("utf-8")
    lines = "\n".join(transcript).strip("\n")
    block = f"```console\n{COMMAND}\n{lines}\n```"
    written, count = _BLOCK.subn(lambda _: block, text, count=1)
    if not count:
        raise DemoError(f"recording into {page.name}: no block there shows the command `{COMMAND}`")
    page.write_text(written, "utf-8")


def read_recording(page: Path = README) -> list[str]:
    """The lines on the page; empty if it has no recording."""
    block = _BLOCK.search(page.read_text("utf-8"))
    return block.group(1).splitlines() if block else []


def normalise(lines: Sequence[str]) -> str:
    """A run without its times; line breaks depend on them, so words are compared and not lines."""
    words = " ".join(line.strip() for line in lines)
    return re.sub(r"\s+", " ", _SECONDS.sub("N s", words)).strip()
