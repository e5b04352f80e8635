"""Paths of Milo: the plane of a request, which is the root or the project in its path. Pure."""

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
class PlanePath:
    """A plane and the path on it; `project` is None for the root."""

    project: str | None
    path: str


def parse_target(target: str) -> PlanePath:
    """Splits a raw request target; the part after the project is not decoded here."""
    match = _PROJECT.fullmatch(target)
    if match is None:
        return PlanePath(None, target)
    rest = match["rest"] or "/"
    return PlanePath(unquote(match["id"]), f"/{rest}" if rest.startswith("?") else rest)


def project_path(project: str) -> str:
    """The path of a project's control plane, a prefix for paths of its API."""
    return f"{PROJECTS.path()}/{quote(project, safe='')}/control-plane"
