from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Final

import pytest

from e2e.kustomization.documents import parse_objects
from e2e.manifests import DEPLOY, find_overlays, read_kustomization, render
from e2e.planes.binaries import PLANES
from e2e.planes.build import find_programs
from e2e.planes.stack import RealPlanes
from e2e.planes.store import Store

TREE: Final = DEPLOY.parent
SAMPLE: Final = TREE / "tests" / "kustomize_sample"
OVERLAYS: Final = (*find_overlays(), *find_overlays(SAMPLE))
COMPONENTS: Final = sorted(
    path.parent
    for path in DEPLOY.rglob("kustomization.yaml")
    if read_kustomization(path.parent).kind == "Component"
)


def told(path: object) -> str:
    return str(Path(str(path)).relative_to(TREE))


@pytest.fixture(scope="session")
def kubectl() -> Path:
    return find_programs(PLANES, Store.of_user())["kubectl"]


def compare(overlay: Path, kubectl: Path) -> None:
    rendered = subprocess.run(
        [str(kubectl), "kustomize", str(overlay)], capture_output=True, text=True, check=False
    )
    assert (rendered.returncode, rendered.stderr) == (0, "")
    wanted, found = parse_objects(rendered.stdout), render(overlay)
    for one, other in zip(found, wanted, strict=True):
        assert one == other


@pytest.mark.parametrize("overlay", OVERLAYS, ids=told)
def test_our_rendering_is_that_of_kubectl(overlay: Path, kubectl: Path) -> None:
    compare(overlay, kubectl)


@pytest.mark.parametrize("component", COMPONENTS, ids=told)
def test_our_rendering_with_a_component_is_that_of_kubectl(
    component: Path, kubectl: Path, tmp_path: Path
) -> None:
    base = component.name if component.name in {"cell", "management"} else "single-cluster"
    # The home is part of every overlay already.
    resources = [] if component.name == "home" else [os.path.relpath(DEPLOY / base, tmp_path)]
    wanted = {
        "resources": resources,
        "components": [os.path.relpath(component, tmp_path)],
    }
    (tmp_path / "kustomization.yaml").write_text(json.dumps(wanted), "utf-8")
    compare(tmp_path, kubectl)


@pytest.mark.parametrize(
    ("overlay", "plane"),
    [("hub", "hub"), ("hub/cells/example", "hub"), ("milo", "root"), ("crds", "dfw-1")],
)
async def test_a_real_server_takes_what_is_meant_for_it(
    real_planes: RealPlanes, overlay: str, plane: str
) -> None:
    """Rehearsed: on planes that others share, webhooks and roles would change their tests."""
    documents = json.dumps({"apiVersion": "v1", "kind": "List", "items": render(DEPLOY / overlay)})
    rehearsal = ("apply", "--server-side", "--dry-run=server", "--force-conflicts", "-f", "-")
    said = await real_planes.kubectl(f"--context={plane}", *rehearsal, stdin=documents)
    assert len(said.splitlines()) == len(render(DEPLOY / overlay))


@pytest.mark.parametrize("overlay", ["management", "cell", "single-cluster"])
async def test_a_home_takes_the_operators(real_planes: RealPlanes, overlay: str) -> None:
    """On a cell's plane, which has all kinds that Kubernetes brings."""
    namespaces = [one for one in render(DEPLOY / overlay) if one["kind"] == "Namespace"]
    assert namespaces
    context = "--context=dfw-1"
    await real_planes.kubectl(
        context, "apply", "--server-side", "-f", "-", stdin=json.dumps(namespaces[0])
    )
    documents = json.dumps({"apiVersion": "v1", "kind": "List", "items": render(DEPLOY / overlay)})
    rehearsal = ("apply", "--server-side", "--dry-run=server", "--force-conflicts", "-f", "-")
    await real_planes.kubectl(context, *rehearsal, stdin=documents)
