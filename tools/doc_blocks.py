"""The commands that a page shows, found in its text.

```
fenced `console`     lines after `$ ` are commands, the others their output
fenced `sh`          the whole block is one script
`kubectl …` in text  a command of its own, in how-tos
fenced `text`        not run; a comment before it has the reason: <!-- not run: … -->
fenced `yaml`        that begins with `# path`: a file that the commands of the page use
```

A command in any other kind of block is a fault of the page: it could stop working without a failing
run. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

# A block, with how far it is set in, and the comment above it.
_BLOCK: Final = re.compile(
    r"^(?P<why><!-- not run: (?P<reason>.+?) -->\n+)?(?P<indent> *)```(?P<language>\w*)\n"
    r"(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_WHY: Final = re.compile(r"<!-- not run: (.+?) -->\s*$")
_INLINE: Final = re.compile(r"(?<!`)`(kubectl [^`\n]+)`(?!`)")
_COMMAND: Final = re.compile(
    r"^(?:\$ )?(?:kubectl|compute-[a-z]+-operator|\./dev|nox|pytest|python3?|openssl|cp|sed) ",
    re.MULTILINE,
)
_FILE: Final = re.compile(r"^# ([\w./-]+\.yaml)\n")
# Blanks for the reader: `<name>`, or an ellipsis.
_BLANK: Final = re.compile(r"<[a-z-]+>|…")
BLANK: Final = "has a blank that only the reader can fill"


class Kind(StrEnum):
    CONSOLE = "console"
    SCRIPT = "script"
    INLINE = "inline"
    FILE = "file"
    NOT_RUN = "not run"
    UNMARKED = "unmarked"


@dataclass(frozen=True, slots=True)
class Shown:
    """One thing that a page shows: a command, a file, or what is not run, and why."""

    page: str
    line: int
    kind: Kind
    text: str
    note: str = ""  # the path of a file, or the reason

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def find_shown(page: str, text: str, *, has_inline: bool) -> list[Shown]:
    """Everything on a page, in its order."""
    found = [*_find_blocks(page, text)]
    if has_inline:
        plain = _BLOCK.sub(lambda block: re.sub(r"[^\n]", " ", block.group(0)), text)
        for inline in _INLINE.finditer(plain):
            line = plain.count("\n", 0, inline.start()) + 1
            found.append(_command(Shown(page, line, Kind.INLINE, inline.group(1))))
    return sorted(found, key=lambda one: one.line)


def _find_blocks(page: str, text: str) -> Iterator[Shown]:
    for block in _BLOCK.finditer(text):
        line = text.count("\n", 0, block.start("text"))
        indent = block["indent"]
        body = "".join(row.removeprefix(indent) for row in block["text"].splitlines(keepends=True))
        yield from _read_block(Shown(page, line, Kind.UNMARKED, body), block, text)


def _read_block(shown: Shown, block: re.Match[str], text: str) -> Iterator[Shown]:
    match block["language"]:
        case "console":
            for row in shown.text.splitlines():
                if row.startswith("$ "):
                    yield _changed(shown, Kind.CONSOLE, row.removeprefix("$ "))
        case "sh":
            yield _command(_changed(shown, Kind.SCRIPT, shown.text))
        case "yaml" if named := _FILE.match(shown.text):
            yield _changed(shown, Kind.FILE, shown.text, named[1])
        case "text" if why := _reason_above(block, text):
            yield _changed(shown, Kind.NOT_RUN, shown.text, why)
        case _ if _COMMAND.search(shown.text):
            yield shown
        case _:
            pass


def _reason_above(block: re.Match[str], text: str) -> str:
    if block["reason"]:
        return block["reason"]
    # A block that is set in has its comment set in too.
    above = _WHY.search(text, 0, block.start())
    return above[1] if above else ""


def _changed(shown: Shown, kind: Kind, text: str, note: str = "") -> Shown:
    return Shown(shown.page, shown.line, kind, text, note)


def _command(shown: Shown) -> Shown:
    """Itself, or not run where the reader must fill something in."""
    if _BLANK.search(shown.text):
        return _changed(shown, Kind.NOT_RUN, shown.text, BLANK)
    return shown
