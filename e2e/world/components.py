"""Objects of the components in `deploy/components`, which an administrator adds to an overlay.

A scenario applies them to a plane that runs without the component. They are read from the shipped
files: a copy in a scenario would keep a right that the component no longer gives.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import yaml

from compute_api_types.wire import JsonObject

COMPONENTS: Final = Path(__file__).parents[2] / "deploy" / "components"
# Of kustomize itself: how an overlay is built, and no object of a plane.
KUSTOMIZATION: Final = "kustomization.yaml"


def load_component(component: str) -> list[JsonObject]:
    """The objects that a component adds, without its patches."""
    folder = COMPONENTS / component
    names = yaml.safe_load((folder / KUSTOMIZATION).read_text("utf-8")).get("resources", [])
    return [
        document
        for name in names
        for document in yaml.safe_load_all((folder / name).read_text("utf-8"))
        if isinstance(document, dict)
    ]
