"""`install-*.yaml`: what is rendered, with images of a registry by digest."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from compute_api_types.wire import JsonObject
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.plane import Plane
from compute_sim_planes.crds import load_crds
from e2e.harness.deploy.manifests import load_overlay
from e2e.harness.stack.kubectl import find_kubectl, kustomize
from e2e.world.components import parse_manifests
from e2e.world.objects import objects_at, text_at
from tools.install_files import (
    INSTALLED,
    InstallError,
    derive_install_file,
    make_install_files,
    read_images,
    write_digest,
)
from tools.workspace import OPERATORS, ROOT

DIGEST = "sha256:" + "a1" * 32
NO_KUBECTL = pytest.mark.skipif(find_kubectl() is None, reason="no kubectl is to be had")


@pytest.fixture
def deploy(tmp_path: Path) -> Path:
    """A copy of `deploy/` after every image was pushed."""
    copy = tmp_path / "deploy"
    shutil.copytree(ROOT / "deploy", copy)
    for name in read_images(copy):
        write_digest(f"{name}={DIGEST}", copy)
    return copy


def images_in(documents: list[JsonObject]) -> set[str]:
    deployments = [one for one in documents if text_at(one, "kind") == "Deployment"]
    containers = [
        container
        for one in deployments
        for container in objects_at(one, "spec", "template", "spec", "containers")
    ]
    return {text_at(container, "image") for container in containers}


def test_every_operator_has_its_image_in_the_one_place() -> None:
    images = read_images()
    assert set(images) == {f"compute-{folder}" for folder in OPERATORS}
    assert {image.registry_name for image in images.values()} == {
        f"ghcr.io/datum-cloud/{name}" for name in images
    }


def test_a_digest_is_written_and_replaced(deploy: Path) -> None:
    other = "sha256:" + "b2" * 32
    write_digest(f"compute-cell-operator={other}", deploy)
    found = {name: image.digest for name, image in read_images(deploy).items()}
    assert found.pop("compute-cell-operator") == other
    assert set(found.values()) == {DIGEST}


@pytest.mark.parametrize(
    ("assignment", "cause"),
    [
        ("compute-cell-operator=latest", "'latest' is no digest"),
        ("compute-cell-operator", "'' is no digest"),
        (f"cell={DIGEST}", "'cell' is no image; one of compute-cell-operator,"),
    ],
)
def test_what_is_no_digest_of_an_image_is_refused(
    deploy: Path, assignment: str, cause: str
) -> None:
    before = (deploy / "components/images/kustomization.yaml").read_bytes()
    with pytest.raises(InstallError, match=cause):
        write_digest(assignment, deploy)
    assert (deploy / "components/images/kustomization.yaml").read_bytes() == before


def test_files_have_every_object_and_images_by_digest(deploy: Path) -> None:
    for name, overlays in INSTALLED.items():
        documents = parse_manifests(derive_install_file(name, deploy))
        assert len(documents) == sum(len(load_overlay(overlay)) for overlay in overlays)
        for image in images_in(documents):
            assert image.startswith("ghcr.io/datum-cloud/compute-")
            assert image.endswith(f"@{DIGEST}")
    assert len(images_in(parse_manifests(derive_install_file("single-cluster", deploy)))) >= 2


@NO_KUBECTL
@pytest.mark.parametrize("name", ["single-cluster", "management", "cell"])
def test_a_file_is_what_kubectl_renders_with_the_component(deploy: Path, name: str) -> None:
    overlay = deploy.parent / "overlay"
    overlay.mkdir()
    kustomization = {
        "resources": [f"../deploy/{name}"],
        "components": ["../deploy/components/images"],
    }
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(kustomization), "utf-8")
    rendered = parse_manifests(kustomize(overlay))
    installed = parse_manifests(derive_install_file(name, deploy))
    assert installed[-len(rendered) :] == rendered


@NO_KUBECTL
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not on the PATH")
def test_a_tag_is_a_remote_base(deploy: Path) -> None:
    """As `docs/howto/install.md` has it, with a repository on this machine for the remote one."""

    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=A", "-c", "user.email=a@example.com")
        subprocess.run(["git", *identity, *arguments], cwd=deploy.parent, check=True)

    git("init", "--quiet")
    git("add", "deploy")
    git("commit", "--quiet", "--message", "All")
    git("tag", "deploy/v0.1.0")
    overlay = deploy.parent / "mine"
    overlay.mkdir()
    base = f"file://{deploy.parent}//deploy"
    kustomization = {
        "resources": [f"{base}/cell?ref=deploy/v0.1.0"],
        "components": [f"{base}/components/images?ref=deploy/v0.1.0"],
    }
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(kustomization), "utf-8")
    rendered = parse_manifests(kustomize(overlay))
    assert images_in(rendered) == {f"ghcr.io/datum-cloud/compute-cell-operator@{DIGEST}"}


@pytest.mark.parametrize(
    ("name", "neighbour"),
    [
        ("single-cluster", ""),
        ("hub", "karmada"),
        ("milo", "milo"),
        ("management", ""),
        ("cell", ""),
    ],
)
async def test_one_file_is_all_that_its_plane_needs(
    deploy: Path, name: str, neighbour: str
) -> None:
    plane = Plane("plane")
    admin = plane.connect()
    try:
        if neighbour:
            await apply_manifests(admin, load_crds("milo" if neighbour == "milo" else "karmada"))
        if neighbour == "milo":
            system: JsonObject = {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": "milo-system"},
            }
            await apply_manifests(admin, [system])
        await apply_manifests(admin, parse_manifests(derive_install_file(name, deploy)))
    finally:
        await plane.close()


def test_without_a_digest_no_file_is_made(tmp_path: Path) -> None:
    deploy = tmp_path / "deploy"
    shutil.copytree(ROOT / "deploy", deploy)
    path = deploy / "components/images/kustomization.yaml"
    text = path.read_text("utf-8")
    path.write_text("".join(f"{row}\n" for row in text.splitlines() if "digest:" not in row))
    into = tmp_path / "dist"
    with pytest.raises(InstallError, match=r"has no digest of compute-.*; run `\./dev release --"):
        make_install_files(into, deploy)
    assert not into.exists()


def test_files_come_with_checksums(deploy: Path, tmp_path: Path) -> None:
    made = make_install_files(tmp_path / "dist", deploy)
    names = {path.name for path in made}
    assert names == {*(f"install-{name}.yaml" for name in INSTALLED), "SHA256SUMS"}
    check = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
    assert subprocess.run(check, cwd=tmp_path / "dist", check=False).returncode == 0
