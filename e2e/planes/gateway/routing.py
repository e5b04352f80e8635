"""Where a request goes: to the root, or to the project its path names. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

GROUP: Final = "resourcemanager.miloapis.com"
_PROJECT: Final = re.compile(
    rf"/apis/{re.escape(GROUP)}/v1alpha1/projects/(?P<id>[^/?]+)/control-plane(?P<rest>[/?].*)?"
)


@dataclass(frozen=True, slots=True)
class Target:
    """A plane and what is asked of it; `project` is None for the root."""

    project: str | None
    path: str
    query: str = ""

    @property
    def url(self) -> str:
        return f"{self.path}?{self.query}" if self.query else self.path


def parse_target(raw: str) -> Target:
    """Reads the path as it came, escapes and all: decoding it here would change what is asked."""
    found = _PROJECT.fullmatch(raw)
    project, rest = (found["id"], found["rest"] or "/") if found else (None, raw)
    path, _, query = rest.partition("?")
    return Target(project, path or "/", query)
