"""`python -m tools.images`: builds both images and prints what they are."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Final

from e2e.backends.pods.instances.images import write_archive
from e2e.harness.deploy.manifests import load_overlay
from tools.images import base, checklist
from tools.images.buildah import Buildah
from tools.images.checklist import Check
from tools.images.commands import ImagesError, check_tools
from tools.images.previous import check_out
from tools.images.sbom import write_sbom
from tools.images.wheelhouse import make_wheelhouse
from tools.workspace import OPERATORS, ROOT, Package

FOLDER: Final = ROOT / ".images"
INSTANCES: Final = FOLDER / "instances" / "image.tar"
PREVIOUS: Final = FOLDER / "previous"


def main() -> int:
    parser = argparse.ArgumentParser(description="Build both images and check them.")
    parser.add_argument("--base-image", default="", help="use this base instead of Debian's")
    parser.add_argument(
        "--unchecked", action="store_true", help="only build and export, for a run on nodes"
    )
    parser.add_argument(
        "--previous", default="", metavar="REVISION", help="also build the images of that commit"
    )
    asked = parser.parse_args()
    chosen: str = asked.base_image
    make = _make_unchecked if asked.unchecked else _make
    try:
        check_tools(is_root=os.geteuid() == 0)
        buildah = Buildah(FOLDER / "buildah")
        name = chosen or base.NAME
        if not chosen and not (asked.unchecked and buildah.has(base.NAME)):
            print("base: from Debian's packages", flush=True)
            base.make_base(buildah, FOLDER / "base")
        if not chosen:
            write_archive(FOLDER / "base" / "base.tar", INSTANCES)
        problems = [problem for folder in OPERATORS for problem in make(buildah, folder, name)]
        if asked.previous:
            _make_previous(buildah, asked.previous, name)
    except ImagesError as failed:
        print(failed, file=sys.stderr)
        return 1
    print(f"{len(OPERATORS)} images, {len(problems)} problems")
    return 1 if problems else 0


def _build(buildah: Buildah, package: Package, base_image: str, tag: str = "dev") -> str:
    given = {"BASE_IMAGE": base_image, "VERSION": package.version}
    name = _image_of(package.folder, tag)
    return buildah.build(package.path / "Containerfile", name, given, package.root)


def _image_of(folder: str, tag: str = "dev") -> str:
    return f"localhost/compute-{folder}:{tag}"


def _make_unchecked(buildah: Buildah, folder: str, base_image: str) -> list[str]:
    make_wheelhouse(Package(folder), _wheels_of(Package(folder)))
    print(f"compute-{folder}: {_build(buildah, Package(folder), base_image)[:12]}", flush=True)
    buildah.export(_image_of(folder), FOLDER / folder / "image.tar")
    return []


def _make_previous(buildah: Buildah, revision: str, base_image: str) -> None:
    """The images of a previous version under the tag `previous`, of the operators that it has."""
    tree = PREVIOUS / "tree"
    check_out(revision, tree)
    for package in (Package(folder, tree) for folder in OPERATORS):
        archive = PREVIOUS / f"{package.folder}.tar"
        archive.unlink(missing_ok=True)
        if not package.path.exists():
            print(f"compute-{package.folder}: not in {revision}", flush=True)
            continue
        make_wheelhouse(package, _wheels_of(package))
        built = _build(buildah, package, base_image, PREVIOUS.name)
        print(f"compute-{package.folder} of {revision}: {built[:12]}", flush=True)
        buildah.export(_image_of(package.folder, PREVIOUS.name), archive)


def _wheels_of(package: Package) -> Path:
    """Where its Containerfile finds them."""
    return package.root / FOLDER.name / package.folder / "wheels"


def _make(buildah: Buildah, folder: str, base_image: str) -> list[str]:
    binary, image = f"compute-{folder}", _image_of(folder)
    print(f"{binary}: wheels", flush=True)
    make_wheelhouse(Package(folder), _wheels_of(Package(folder)))
    print(f"{binary}: building twice", flush=True)
    first, second = (_build(buildah, Package(folder), base_image) for _ in range(2))
    checks = [
        Check("built twice, equal ids", "" if first == second else f"{first} and {second}"),
        *checklist.check_configuration(buildah.configuration(image), binary),
    ]
    with buildah.mounted(image) as root:
        checks += checklist.check_files(root)
        checks += checklist.check_start(root, binary, _shipped_configuration(folder))
        unpacked = checklist.measure(root / "app")
    checks += checklist.check_size(unpacked, buildah.measure_last_layer(image))
    write_sbom(folder, FOLDER / folder / "sbom.cdx.json")
    buildah.export(image, FOLDER / folder / "image.tar")
    return _print(binary, first, checks)


def _shipped_configuration(folder: str) -> str:
    """The one that the overlay brings."""
    overlay = folder.removesuffix("-operator")
    wanted = f"compute-{overlay}-config"
    for document in load_overlay(overlay):
        match document:
            case {
                "kind": "ConfigMap",
                "metadata": {"name": str(name)},
                "data": {"config.yaml": str(text)},
            } if name == wanted:
                return text
            case _:
                pass
    raise ImagesError(f"images: deploy/{overlay} has no ConfigMap {wanted}")


def _print(binary: str, image_id: str, checks: list[Check]) -> list[str]:
    print(f"{binary}: {image_id[:12]}")
    for check in checks:
        print(f"  {'FAILED' if check.problem else 'ok':6}  {check.name}  {check.problem}".rstrip())
    return [check.name for check in checks if check.problem]


if __name__ == "__main__":
    sys.exit(main())
