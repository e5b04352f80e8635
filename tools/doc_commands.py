"""Runs the commands that the documents show, and follows their links.

Blocks of `console` are run by the shell in the root of this tree, as written; those of how-tos in
a world that the how-tos are about: simulated planes behind HTTPS, both operators, and a stock
`kubectl`. All must succeed. What is not run is listed with the reason, and where no kubectl is to
be had, so are the how-tos. A command that prints nothing has failed too: it shows a reader nothing.
Sessions that `.ci/run` has are not run a second time, unless `--all` asks for it: they take longer
than everything else here.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.doc_blocks import Kind, Shown, find_shown
from tools.workspace import ROOT

CODE: Final = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK: Final = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
HEADING: Final = re.compile(r"^#+ (.*)$", re.MULTILINE)
# Pages whose commands are run on planes of their own.
HOW_TOS: Final = ("docs/howto/", "docs/tutorial/")
# Shown commands that every change runs, and where.
RUN_BY_CI: Final = {"./dev test": "`.ci/run` runs it", "./dev check": "`./dev test` runs it"}
# The demo takes one minute; a command that hangs must not hold the run.
AT_MOST_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True)
class Command:
    """One shown command."""

    page: str
    line: str


def pages(root: Path) -> list[Path]:
    listed = [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("packages/*/*.md")]
    listed += root.glob("examples/**/*.md")
    return sorted(path for path in listed if path.name != "template.md")


def shown(root: Path) -> list[Shown]:
    """Everything that is shown, page by page; the specification and the style show no commands."""
    found: list[Shown] = []
    for page in pages(root):
        name = page.relative_to(root).as_posix()
        if not name.startswith(("docs/spec/", "docs/style/", "docs/adr/")):
            text = page.read_text("utf-8")
            found += find_shown(name, text, has_inline=name.startswith(HOW_TOS))
    return found


def commands(root: Path) -> list[Command]:
    return [Command(one.page, one.text) for one in shown(root) if one.kind is Kind.CONSOLE]


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


def run_here(found: Sequence[Shown], *, is_all: bool = False) -> Iterator[str]:
    """Runs the commands of all pages but how-tos in this tree, each once; what failed."""
    here = [one for one in found if not one.page.startswith(HOW_TOS)]
    runnable = {one.text: one for one in here if one.kind in {Kind.CONSOLE, Kind.SCRIPT}}
    for one in runnable.values():
        if one.text in RUN_BY_CI and not is_all:
            say(f"{one.place}: not run here, {RUN_BY_CI[one.text]}: {one.text}")
            continue
        say(f"{one.place}: $ {one.text}")
        code, printed = run_aloud(one.text)
        if code:
            yield f"{one.place}: `{one.text}` exited {code}"
        elif not printed:
            yield f"{one.place}: `{one.text}` printed nothing"


def run_aloud(script: str) -> tuple[int, int]:
    """Runs a script and shows its output; gives the exit code and how many bytes it printed."""
    # The point is to run what a reader would type, so a shell it is; the text is our own.
    with subprocess.Popen(
        ["bash", "-c", script], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as running:
        printed = 0
        deadline = threading.Timer(AT_MOST_SECONDS, running.kill)
        deadline.start()
        for line in running.stdout or ():
            printed += len(line)
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
        deadline.cancel()
        deadline.join()
    return running.returncode, printed


def say(text: str) -> None:
    print(f"docs: {text}", flush=True)


def run_all(found: Sequence[Shown], *, is_all: bool) -> Iterator[str]:
    yield from run_here(found, is_all=is_all)
    # Only here: links are checked where nothing of the demo is installed.
    from e2e.demo.howtos import run_how_tos

    yield from run_how_tos([one for one in found if one.page.startswith(HOW_TOS)], say)
    left_out = [one for one in found if one.kind is Kind.NOT_RUN]
    for one in left_out:
        say(f"{one.place}: not run, {one.note}: {one.text.strip().splitlines()[0]}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the documents' commands, check their links.")
    parser.add_argument("--links-only", action="store_true", help="run nothing")
    parser.add_argument("--all", action="store_true", help="also the sessions that CI runs")
    parser.add_argument("pages", nargs="*", help="only pages whose path begins so")
    chosen = parser.parse_args()
    found = [one for one in shown(ROOT) if one.page.startswith(tuple(chosen.pages) or "")]
    failures = list(broken_links(ROOT))
    failures += [
        f"{one.place}: a command that no run covers; fence it as `sh`, or give the reason above it"
        for one in found
        if one.kind is Kind.UNMARKED
    ]
    if not chosen.links_only:
        failures += run_all(found, is_all=chosen.all)
    for failure in failures:
        print(f"docs: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
