"""Where the projects are: written by Milo's controllers, read by the gateway, a file between them.

The gateway looks at the file's time with every request, so a project is routed from the moment it
is written; it is replaced as a whole, so nobody reads half of it.
"""

from __future__ import annotations

import json
from pathlib import Path

from compute_sim_planes.json_types import JsonValue, string_map_at


class ProjectDirectory:
    """The origins of projects' API servers."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_at = -1
        self._origins: dict[str, str] = {}

    def read(self) -> dict[str, str]:
        """By name, as of now; none before the first is written."""
        try:
            changed = self._path.stat().st_mtime_ns
        except FileNotFoundError:
            return {}
        if changed != self._read_at:
            found: JsonValue = json.loads(self._path.read_text("utf-8"))
            self._origins, self._read_at = string_map_at(found), changed
        return self._origins

    def write(self, origins: dict[str, str]) -> None:
        beside = self._path.with_suffix(".new")
        beside.write_text(json.dumps(origins), "utf-8")
        beside.replace(self._path)
