"""Checks the built documentation site: links lead somewhere, nothing comes from elsewhere.

mkdocs checks links between pages in its strict mode; this reads the HTML that readers get, with
what theme and hooks made of it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urldefrag, urlsplit

from tools.workspace import ROOT

SITE: Final = ROOT / ".site"
# Attributes that a browser loads by itself, by element.
LOADED: Final = {"img": "src", "link": "href", "script": "src", "iframe": "src", "source": "src"}


@dataclass(slots=True)
class PageReader(HTMLParser):
    """Anchors, links and loaded addresses of one page."""

    anchors: set[str] = field(default_factory=set[str])
    links: list[str] = field(default_factory=list[str])
    loaded: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        HTMLParser.__init__(self)

    # `override` is of Python 3.12, and the environment of the site has no typing_extensions.
    def handle_starttag(  # type: ignore[explicit-override]
        self,
        tag: str,
        attrs: list[tuple[str, str | None]],
    ) -> None:  # pyright: ignore[reportImplicitOverride]
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.anchors.add(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if given.get(LOADED.get(tag, "")):
            self.loaded.append(given[LOADED[tag]])


def read_page(path: Path) -> PageReader:
    reader = PageReader()
    reader.feed(path.read_text("utf-8"))
    return reader


def find_problems(site: Path = SITE) -> Iterator[str]:
    """Lines about links that lead nowhere, and about files that come from elsewhere."""
    pages = {path: read_page(path) for path in sorted(site.rglob("*.html"))}
    if not pages:
        yield f"{site.name} has no page; run `./dev site`"
    for path, page in pages.items():
        name = path.relative_to(site)
        if name.name == "404.html":
            continue  # its links are those of the root, wherever it is shown
        for target in page.loaded:
            if is_elsewhere(target):
                yield f"{name}: loads {target} from elsewhere"
        for target in (*page.links, *page.loaded):
            if not is_elsewhere(target) and (reason := _find_fault(path, target, pages)):
                yield f"{name}: {target} {reason}"


def is_elsewhere(target: str) -> bool:
    parts = urlsplit(target)
    return bool(parts.scheme or parts.netloc)


def _find_fault(page: Path, target: str, pages: dict[Path, PageReader]) -> str:
    address, fragment = urldefrag(target)
    path = unquote(address.partition("?")[0])
    found = (page.parent / path).resolve() if path else page.resolve()
    if found.is_dir():
        found /= "index.html"
    if not found.exists():
        return "does not exist"
    if fragment and found in pages and unquote(fragment) not in pages[found].anchors:
        return "names no anchor"
    return ""


def main() -> int:
    problems = list(find_problems())
    for problem in problems:
        print(f"site: {problem}", file=sys.stderr)
    print(f"site: {len(list(SITE.rglob('*.html')))} pages in {SITE.name}, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
