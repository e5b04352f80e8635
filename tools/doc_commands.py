"""Runs the commands that the documents show, and follows their links.

A command block is fenced as `console`; lines that begin with `$ ` are run by the shell in the
root of this tree, as written, and must succeed. Other lines of a block show output.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.workspace import ROOT

BLOCK: Final = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
CODE: Final = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK: Final = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
HEADING: Final = re.compile(r"^#+ (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Command:
    """One shown command."""

    page: str
    line: str


def pages(root: Path) -> list[Path]:
    listed = [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("packages/*/*.md")]
    return sorted(path for path in listed if path.name != "template.md")


def commands(root: Path) -> list[Command]:
    return [
        Command(page.relative_to(root).as_posix(), line.removeprefix("$ "))
        for page in pages(root)
        for block in BLOCK.findall(page.read_text("utf-8"))
        for line in block.splitlines()
        if line.startswith("$ ")
    ]


def anchor_of(heading: str) -> str:
    """The fragment a browser gets for a heading: letters and digits, words joined by dashes."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def broken_links(root: Path) -> Iterator[str]:
    """Links to files and headings of this tree that lead nowhere; other sites are not asked."""
    for page in pages(root):
        text = CODE.sub("", page.read_text("utf-8"))
        for target in LINK.findall(text):
            if "://" in target or target.startswith("mailto:"):
                continue
            path, _, fragment = target.partition("#")
            found = (page.parent / path).resolve() if path else page
            if not found.exists():
                yield f"{page.relative_to(root)}: {target} does not exist"
            elif fragment and fragment not in _anchors(found):
                yield f"{page.relative_to(root)}: {target} names no heading"


def _anchors(page: Path) -> set[str]:
    return {anchor_of(heading) for heading in HEADING.findall(page.read_text("utf-8"))}


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the documents' commands, check their links.")
    parser.add_argument("--links-only", action="store_true", help="run nothing")
    links_only: bool = parser.parse_args().links_only
    failures = list(broken_links(ROOT))
    shown: list[Command] = [] if links_only else commands(ROOT)
    for command in dict.fromkeys(shown):
        print(f"docs: {command.page}: $ {command.line}", flush=True)
        # The point is to run what a reader would type, so a shell it is; the text is our own.
        ended = subprocess.run(["bash", "-c", command.line], cwd=ROOT, check=False)
        if ended.returncode:
            failures.append(f"{command.page}: `{command.line}` exited {ended.returncode}")
    for failure in failures:
        print(f"docs: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
