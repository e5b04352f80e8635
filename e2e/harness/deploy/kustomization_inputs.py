"""The files that a kustomization is rendered from, found by following its references.

`tools/rendered.py` stores the digest of each. A missing file could change without `deploy/rendered`
being rendered again, so an unknown field is refused. Interpreting the fields is left to `kubectl
kustomize`.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final

from compute_api_types.wire import JsonObject
from compute_kubeconfig.strict_yaml import parse_document
from e2e.world.objects import objects_at, text_at, texts_at

FILE: Final = "kustomization.yaml"
KNOWN: Final = frozenset(
    {
        *("apiVersion", "kind", "labels", "generatorOptions", "images"),  # fields without files
        *("resources", "components", "patches", "configMapGenerator"),
    }
)
KNOWN_OF_PATCHES: Final = frozenset({"path", "patch", "target"})
KNOWN_OF_CONFIG_MAPS: Final = frozenset({"name", "namespace", "behavior", "literals", "files"})


class UnknownFieldError(ValueError):
    """An unknown field of a kustomization, which may refer to files."""


def is_component(folder: Path) -> bool:
    return text_at(_read(folder), "kind") == "Component"


def files_of(folder: Path) -> Iterator[Path]:
    """Every file that the folder is rendered from, its kustomization first."""
    kustomization = _read(folder)
    yield folder / FILE
    for name in (*texts_at(kustomization, "resources"), *texts_at(kustomization, "components")):
        path = (folder / name).resolve()
        yield from files_of(path) if path.is_dir() else (path,)
    patches = objects_at(kustomization, "patches")
    yield from (folder / text_at(patch, "path") for patch in patches if "path" in patch)
    for source in objects_at(kustomization, "configMapGenerator"):
        # `key=path`, or a path with its last part as the key.
        yield from (folder / name.rpartition("=")[2] for name in texts_at(source, "files"))


def _read(folder: Path) -> JsonObject:
    source = folder / FILE
    kustomization = parse_document(source.read_text("utf-8"))
    _refuse_unknown(source, kustomization, KNOWN)
    for patch in objects_at(kustomization, "patches"):
        _refuse_unknown(source, patch, KNOWN_OF_PATCHES)
    for config_map in objects_at(kustomization, "configMapGenerator"):
        _refuse_unknown(source, config_map, KNOWN_OF_CONFIG_MAPS)
    return kustomization


def _refuse_unknown(source: Path, section: JsonObject, known: AbstractSet[str]) -> None:
    if unknown := sorted(section.keys() - known):
        raise UnknownFieldError(
            f"reading {source}: unknown field {unknown[0]!r}; "
            f"list the files it names in {Path(__file__).name}"
        )
