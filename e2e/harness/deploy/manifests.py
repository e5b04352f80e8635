"""Reads the manifests that kubectl rendered, from `deploy/rendered`.

Simulated planes and checks read the files that users apply; a second rendering could differ. `./dev
render` writes them, and `check` fails if an input changed since (`tools/rendered`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from compute_api_types.wire import JsonObject
from e2e.world.components import parse_manifests

DEPLOY: Final = Path(__file__).parents[3] / "deploy"
RENDERED: Final = DEPLOY / "rendered"


def rendered_file(overlay: str) -> Path:
    return RENDERED / f"{overlay}.yaml"


def load_overlay(overlay: str) -> list[JsonObject]:
    """The objects of an overlay, in the order in which they can be applied."""
    return parse_manifests(rendered_file(overlay).read_text("utf-8"))
