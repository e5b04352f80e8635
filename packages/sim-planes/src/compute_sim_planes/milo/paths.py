"""Where a request goes: to the root, or to the project its path names. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from compute_sim_planes.milo.kinds import PROJECTS

_PROJECT: Final = re.compile(
    rf"{re.escape(PROJECTS.path())}/(?P<id>[^/?]+)/control-plane(?P<rest>[/?].*)?"
)


@dataclass(frozen=True, slots=True)
class Target:
    """A plane and what is asked of it; `project` is None for the root."""

    project: str | None
    path: str


def parse_target(target: str) -> Target:
    """Reads the path as it came: what lies below a project is the project's to decode."""
    found = _PROJECT.fullmatch(target)
    if found is None:
        return Target(None, target)
    rest = found["rest"] or "/"
    return Target(unquote(found["id"]), f"/{rest}" if rest.startswith("?") else rest)


def project_path(project: str) -> str:
    """What leads to a project's control plane, to be put before any path of its API."""
    return f"{PROJECTS.path()}/{quote(project, safe='')}/control-plane"
