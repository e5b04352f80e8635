"""Routes a request by its path to the root or to a project. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

GROUP: Final = "resourcemanager.miloapis.com"
_PROJECT: Final = re.compile(
    rf"/apis/{re.escape(GROUP)}/v1alpha1/projects/(?P<id>[^/?]+)/control-plane(?P<rest>[/?].*)?"
)


@dataclass(frozen=True, slots=True)
class RouteTarget:
    """A plane and the request for it; `project` is None for the root."""

    project: str | None
    path: str
    query: str = ""

    @property
    def url(self) -> str:
        return f"{self.path}?{self.query}" if self.query else self.path


def parse_target(raw: str) -> RouteTarget:
    """Parses the raw path; decoding escapes would change the request."""
    match = _PROJECT.fullmatch(raw)
    project, rest = (match["id"], match["rest"] or "/") if match else (None, raw)
    path, _, query = rest.partition("?")
    return RouteTarget(project, path or "/", query)
