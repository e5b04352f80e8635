"""What mkdocs calls while it builds the documentation site.

```
links to files outside `docs/`    lead to the repository, where those files are
`howto/runbooks/*` in the nav     every page of the folder, README first
headings                          the anchors that GitHub gives them, so that one link fits both
```

No import of mkdocs: the other environments, which check and test this module, do without it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import MutableMapping
from pathlib import Path
from typing import Final, Protocol, cast

from tools.doc_commands import CODE, LINK, anchor_of
from tools.workspace import ROOT

DOCS: Final = "docs"
REPOSITORY: Final = "https://github.com/datum-cloud/compute-federation"
README: Final = "README.md"
EXCLUDED: Final = "adr/template.md"
_PERSON: Final = re.compile(r"^[a-z]+:")


class SourceFile(Protocol):
    """`mkdocs.structure.files.File`, as far as it is used."""

    @property
    def src_uri(self) -> str: ...


class SitePage(Protocol):
    """`mkdocs.structure.pages.Page`, as far as it is used."""

    @property
    def file(self) -> SourceFile: ...


def slugify(heading: str, separator: str) -> str:
    """The fragment of a heading; the separator is always a dash, as on GitHub."""
    return anchor_of(heading).replace("-", separator)


def on_config(config: MutableMapping[str, object]) -> MutableMapping[str, object]:
    """Writes the pages of folders into the navigation."""
    config["nav"] = expand(config["nav"], ROOT / DOCS)
    return config


def expand(nav: object, docs: Path) -> object:
    """The navigation with the pages of `folder/*` in its place."""
    match nav:
        case list():
            return [expand(entry, docs) for entry in cast("list[object]", nav)]
        case dict():
            entries = cast("dict[str, object]", nav)
            return {title: expand(entry, docs) for title, entry in entries.items()}
        case str() if nav.endswith("/*"):
            pages = (
                path for path in (docs / nav).parent.glob("*.md") if path.name != "template.md"
            )
            ordered = sorted(pages, key=lambda path: (path.name != README, path.name))
            return [path.relative_to(docs).as_posix() for path in ordered]
        case _:
            return nav


def on_page_markdown(markdown: str, *, page: SitePage, **_: object) -> str:
    return point_to_repository(markdown, page.file.src_uri)


def point_to_repository(markdown: str, page: str) -> str:
    """The text with links to files outside `docs/` as addresses in the repository."""

    def point(link: re.Match[str]) -> str:
        target = link[1]
        return link[0].replace(f"({target})", f"({address_of(target, page)})")

    parts: list[str] = []
    done = 0
    for code in CODE.finditer(markdown):
        parts += [LINK.sub(point, markdown[done : code.start()]), code[0]]
        done = code.end()
    return "".join((*parts, LINK.sub(point, markdown[done:])))


def address_of(target: str, page: str) -> str:
    """The target itself, or where the repository shows it."""
    path, hash_mark, fragment = target.partition("#")
    if not path or _PERSON.match(path):
        return target
    found = posixpath.normpath(posixpath.join(DOCS, posixpath.dirname(page), path))
    if found == DOCS or not found.startswith(f"{DOCS}/") or found.endswith(EXCLUDED):
        is_folder = (ROOT / found).is_dir()
        return f"{REPOSITORY}/{'tree' if is_folder else 'blob'}/main/{found}{hash_mark}{fragment}"
    if (ROOT / found).is_dir():
        index = f"{path.rstrip('/')}/{README}"
        return f"{index}{hash_mark}{fragment}"
    return target
