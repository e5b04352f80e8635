"""The manifests we ship, rendered without kustomize: `render(path)` is `kubectl kustomize path`.

Simulated planes and checks that have Python alone are given what is shipped, not a second copy of
it. A test on real tools compares both renderings object by object for every kustomization under
`deploy/`. Nothing is fetched: resources are files and folders beside the kustomization.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import yaml
from pydantic import ValidationError

from compute_api_types.wire import JsonObject
from e2e.kustomization.documents import parse_objects
from e2e.kustomization.errors import KustomizationError
from e2e.kustomization.generators import absorb, add_hash, generate_config_map
from e2e.kustomization.model import Kustomization
from e2e.kustomization.order import sort_key
from e2e.kustomization.patches import apply_patch
from e2e.kustomization.references import fix_references
from e2e.kustomization.resources import Resource, a_resource
from e2e.kustomization.transformers import transform

DEPLOY: Final = Path(__file__).parents[1] / "deploy"
FILE: Final = "kustomization.yaml"


def render(path: Path | str) -> list[JsonObject]:
    """The objects of a kustomization's folder, in the order in which they can be applied."""
    accumulated = _accumulate(Path(path), [])
    named = fix_references([add_hash(resource) for resource in accumulated])
    return [resource.document for resource in sorted(named, key=sort_key)]


def find_overlays(folder: Path = DEPLOY) -> list[Path]:
    """Every folder that can be rendered by itself; components are parts of others."""
    found = sorted(path.parent for path in folder.rglob(FILE))
    return [path for path in found if read_kustomization(path).kind == "Kustomization"]


def read_kustomization(folder: Path) -> Kustomization:
    source = folder / FILE
    try:
        documents = parse_objects(source.read_text("utf-8"))
        return Kustomization.model_validate(documents[0] if documents else {})
    except (OSError, ValidationError, yaml.YAMLError) as cause:
        raise KustomizationError(f"reading {source}: {cause}") from cause


def _accumulate(folder: Path, given: list[Resource]) -> list[Resource]:
    """What the folder makes of the resources it is given: none, unless it is a component."""
    wanted = read_kustomization(folder)
    resources = list(given)
    for name in wanted.resources:
        resources += _read(folder / name)
    for source in wanted.config_map_generator:
        made = generate_config_map(source, wanted.generator_options, folder)
        resources = absorb(resources, made, source)
    for name in wanted.components:
        resources = _accumulate(folder / name, resources)
    for patch in wanted.patches:
        text = patch.patch or (folder / patch.path).read_text("utf-8")
        try:
            resources = apply_patch(resources, patch, text)
        except KustomizationError as cause:
            raise KustomizationError(f"{folder / FILE}: {cause}") from cause
    transformed = transform(resources, wanted)
    _refuse_twins(transformed, folder)
    return transformed


def _read(path: Path) -> list[Resource]:
    if path.is_dir():
        return _accumulate(path, [])
    try:
        documents = parse_objects(path.read_text("utf-8"))
    except (OSError, yaml.YAMLError) as cause:
        raise KustomizationError(f"reading {path}: {cause}") from cause
    return [a_resource(document, str(path)) for document in documents]


def _refuse_twins(resources: list[Resource], folder: Path) -> None:
    identities = [resource.identity for resource in resources]
    for at, identity in enumerate(identities):
        if any(identity.is_same(other) for other in identities[:at]):
            what = f"{identity.kind} {identity.namespace}/{identity.name}"
            raise KustomizationError(f"{folder / FILE}: {what} comes twice")
