"""Reads the manifests that kubectl rendered, from `deploy/rendered`.

Simulated planes and checks read the files that users apply; a second rendering could differ. `./dev
render` writes them, and `check` fails if an input changed since (`tools/rendered`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from compute_api_types.wire import JsonObject
from compute_kubeconfig.strict_yaml import parse_document
from e2e.harness.deploy.kustomization_inputs import resource_files_of

DEPLOY: Final = Path(__file__).parents[3] / "deploy"
RENDERED: Final = DEPLOY / "rendered"
SEPARATOR: Final = "\n---\n"


def rendered_file(overlay: str) -> Path:
    return RENDERED / f"{overlay}.yaml"


def load_overlay(overlay: str) -> list[JsonObject]:
    """The objects of an overlay, in the order in which they can be applied."""
    return parse_manifests(rendered_file(overlay).read_text("utf-8"))


def load_component(component: str) -> list[JsonObject]:
    """The objects that a component adds; its patches need an overlay and kubectl."""
    return [
        document
        for path in resource_files_of(DEPLOY / "components" / component)
        for document in parse_manifests(path.read_text("utf-8"))
    ]


def parse_manifests(text: str) -> list[JsonObject]:
    """The documents of a YAML text; duplicate keys, aliases and tags are refused."""
    return [parse_document(part) for part in text.removeprefix("---\n").split(SEPARATOR)]
