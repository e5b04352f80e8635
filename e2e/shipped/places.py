"""Which plane each overlay is applied to, and which files it is made of.

A file that two planes share would be changed for one and break the other, and a file no overlay
reaches is applied by nobody; both are found by following the kustomizations as kustomize does.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final

from e2e.manifests import DEPLOY, FILE, read_kustomization


class Place(StrEnum):
    """Whose API server an overlay is for."""

    EVERY = "every plane"
    HUB = "hub"
    MILO = "milo"
    HOME = "home"
    # Root, project, cell and home at once: it takes parts of the others.
    SINGLE = "single cluster"


OVERLAYS: Final = {
    "crds": Place.EVERY,
    "hub": Place.HUB,
    "hub/cells/example": Place.HUB,
    "milo": Place.MILO,
    "milo/cells/example": Place.MILO,
    "management": Place.HOME,
    "cell": Place.HOME,
    "single-cluster": Place.SINGLE,
}
# What a team adds to an overlay of its own. Owner-refs is for every plane whose API server has that
# plugin, so it belongs to none alone.
COMPONENTS: Final = {
    "components/home": Place.HOME,
    "components/high-availability": Place.HOME,
    "components/monitoring": Place.HOME,
    "components/network-policy": Place.HOME,
    "components/owner-refs": Place.EVERY,
    "components/webhook-certs": Place.HOME,
}


def files_of(folder: Path) -> Iterator[Path]:
    """Every file a kustomization is made of, its own included."""
    wanted = read_kustomization(folder)
    yield folder / FILE
    for name in (*wanted.resources, *wanted.components):
        path = (folder / name).resolve()
        yield from files_of(path) if path.is_dir() else (path,)
    yield from (folder / patch.path for patch in wanted.patches if patch.path)
    for source in wanted.config_map_generator:
        yield from (folder / name.rpartition("=")[2] for name in source.files)


def places_of_files(deploy: Path = DEPLOY) -> dict[Path, set[Place]]:
    """Where each file is used; relative to `deploy/`."""
    found: dict[Path, set[Place]] = {}
    for name, place in (OVERLAYS | COMPONENTS).items():
        for path in files_of((deploy / name).resolve()):
            found.setdefault(path.relative_to(deploy.resolve()), set()).add(place)
    return found
