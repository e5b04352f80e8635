"""The plane that each overlay is applied to, and the files it consists of.

A file shared by overlays of two planes could be changed for one and break the other, and a file in
no overlay is never applied; tests find both by this mapping.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Final

from e2e.harness.deploy.kustomization_inputs import files_of
from e2e.harness.deploy.manifests import DEPLOY


class OverlayTarget(StrEnum):
    """The API server that an overlay is for."""

    EVERY = "every plane"
    HUB = "hub"
    MILO = "milo"
    HOME = "home"
    # Root, project, cell and home in one; it uses parts of the others.
    SINGLE = "single cluster"


OVERLAYS: Final = {
    "crds": OverlayTarget.EVERY,
    "hub": OverlayTarget.HUB,
    "hub/cells/example": OverlayTarget.HUB,
    "milo": OverlayTarget.MILO,
    "milo/cells/example": OverlayTarget.MILO,
    "management": OverlayTarget.HOME,
    "cell": OverlayTarget.HOME,
    "pod-provider": OverlayTarget.HOME,
    "single-cluster": OverlayTarget.SINGLE,
}
# What each overlay of a home runs: its Deployment, and with it ServiceAccount, Lease and image.
OPERATORS: Final = {
    "management": "compute-management-operator",
    "cell": "compute-cell-operator",
    "pod-provider": "compute-pod-provider",
}
# Components that a team adds to its own overlay. Owner-refs is for every plane with that admission
# plugin, so it belongs to none of them.
COMPONENTS: Final = {
    "autoscaling/cell": OverlayTarget.HOME,
    "home": OverlayTarget.HOME,
    "high-availability": OverlayTarget.HOME,
    "images": OverlayTarget.HOME,
    "diagnostics/cell": OverlayTarget.HOME,
    "diagnostics/hub": OverlayTarget.HUB,
    "diagnostics/project": OverlayTarget.MILO,
    "instance-network-policies": OverlayTarget.HOME,
    "monitoring": OverlayTarget.HOME,
    "network-policy": OverlayTarget.HOME,
    "owner-refs": OverlayTarget.EVERY,
    "pod-provider": OverlayTarget.HOME,
    "referenced-data/cell": OverlayTarget.HOME,
    "referenced-data/hub": OverlayTarget.HUB,
    "referenced-data/project": OverlayTarget.MILO,
    "referenced-data/webhook": OverlayTarget.MILO,
    "suspension": OverlayTarget.MILO,
    "webhook-certs": OverlayTarget.HOME,
}


def targets_of_files(deploy: Path = DEPLOY) -> dict[Path, set[OverlayTarget]]:
    """The targets of each file, relative to `deploy/`."""
    components = {f"components/{name}": place for name, place in COMPONENTS.items()}
    places: dict[Path, set[OverlayTarget]] = {}
    for folder, place in (OVERLAYS | components).items():
        for path in files_of((deploy / folder).resolve()):
            places.setdefault(path.relative_to(deploy.resolve()), set()).add(place)
    return places
