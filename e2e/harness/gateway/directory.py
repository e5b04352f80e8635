"""Addresses of projects' API servers, in a file written by Milo's controllers.

The gateway checks the file's time with every request, so a project is routed as soon as it is
written. The file is replaced atomically, so that it is never read half written.
"""

from __future__ import annotations

import json
from pathlib import Path

from compute_sim_planes.json_types import JsonValue, string_map_at


class ProjectDirectory:
    """Origins of the projects' API servers."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_at = -1
        self._origins: dict[str, str] = {}

    def read(self) -> dict[str, str]:
        """The current origins by project; empty before the first is written."""
        try:
            changed = self._path.stat().st_mtime_ns
        except FileNotFoundError:
            return {}
        if changed != self._read_at:
            parsed: JsonValue = json.loads(self._path.read_text("utf-8"))
            self._origins, self._read_at = string_map_at(parsed), changed
        return self._origins

    def write(self, origins: dict[str, str]) -> None:
        beside = self._path.with_suffix(".new")
        beside.write_text(json.dumps(origins), "utf-8")
        beside.replace(self._path)
