"""The files of `deploy/components` that a scenario applies to switch something on."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from compute_api_types.wire import JsonObject
from compute_kubeconfig.strict_yaml import parse_document

COMPONENTS: Final = Path(__file__).parents[2] / "deploy" / "components"
SEPARATOR: Final = "\n---\n"


def component_objects(file: str) -> list[JsonObject]:
    """The objects of a file such as `autoscaling/cell/role.yaml`."""
    text = (COMPONENTS / file).read_text("utf-8")
    return [parse_document(part) for part in text.removeprefix("---\n").split(SEPARATOR)]
