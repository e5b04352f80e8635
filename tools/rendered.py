"""Writes `deploy/rendered`: what `kubectl kustomize` makes of each overlay that users apply.

Users and tests read these files, so one that is older than its inputs would ship what was not
meant. `deploy/rendered/digests` has the SHA-256 of every input and of every rendered file, in the
format of `sha256sum`. `--digests` compares it with Python alone; `--check` renders again with
kubectl and compares bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from e2e.harness.deploy.kustomization_inputs import files_of
from e2e.harness.deploy.manifests import DEPLOY
from e2e.harness.deploy.overlay_targets import OVERLAYS
from e2e.harness.errors import PlanesError
from e2e.harness.stack.kubectl import kustomize

FOLDER: Final = "rendered"
DIGESTS: Final = f"{FOLDER}/digests"
REMEDY: Final = "run `./dev render`"


def wanted_files(
    deploy: Path = DEPLOY, render: Callable[[Path], str] = kustomize
) -> dict[str, bytes]:
    """Every file of `deploy/rendered` by its path below `deploy/`, rendered now."""
    files = {
        rendered_path(overlay): render(deploy / overlay).encode("utf-8") for overlay in OVERLAYS
    }
    digests = {**_digests_of_inputs(deploy), **{path: _sha256(raw) for path, raw in files.items()}}
    lines = "".join(f"{digests[path]}  {path}\n" for path in sorted(digests))
    return {**files, DIGESTS: lines.encode("utf-8")}


def rendered_path(overlay: str) -> str:
    return f"{FOLDER}/{overlay}.yaml"


def write(wanted: Mapping[str, bytes], deploy: Path = DEPLOY) -> None:
    """Puts the files in place and removes those of overlays that are gone."""
    for path, raw in wanted.items():
        (deploy / path).parent.mkdir(parents=True, exist_ok=True)
        (deploy / path).write_bytes(raw)
    for path in _existing_files(deploy) - wanted.keys():
        (deploy / path).unlink()


def find_differences(wanted: Mapping[str, bytes], deploy: Path = DEPLOY) -> list[str]:
    """Lines about files that differ from what kubectl renders; empty when every byte is equal."""
    existing = {path: (deploy / path).read_bytes() for path in _existing_files(deploy)}
    return [
        f"rendered: deploy/{path} is not what kubectl renders; {REMEDY}"
        for path in sorted(wanted.keys() | existing.keys())
        if wanted.get(path) != existing.get(path)
    ]


def find_stale_digests(deploy: Path = DEPLOY) -> list[str]:
    """Lines about inputs that changed since the last rendering, and about rendered files that
    differ from it; no kubectl is needed.
    """
    recorded = _read_digests(deploy)
    outputs = _existing_files(deploy) - {DIGESTS} | {*map(rendered_path, OVERLAYS)}
    existing = {
        **_digests_of_inputs(deploy),
        **{path: _digest_of(deploy / path) for path in outputs},
    }
    return [
        f"rendered: deploy/{path} changed since deploy/{FOLDER} was rendered; {REMEDY}"
        for path in sorted(recorded.keys() | existing.keys())
        if recorded.get(path) != existing.get(path)
    ]


def _digests_of_inputs(deploy: Path) -> dict[str, str]:
    root = deploy.resolve()
    inputs = {path.resolve() for overlay in OVERLAYS for path in files_of(root / overlay)}
    return {path.relative_to(root).as_posix(): _digest_of(path) for path in inputs}


def _existing_files(deploy: Path) -> set[str]:
    files = (path for path in (deploy / FOLDER).rglob("*") if path.is_file())
    return {path.relative_to(deploy).as_posix() for path in files}


def _read_digests(deploy: Path) -> dict[str, str]:
    if not (deploy / DIGESTS).exists():
        return {}
    lines = (deploy / DIGESTS).read_text("utf-8").splitlines()
    return {path: digest for digest, _, path in (line.partition("  ") for line in lines)}


def _digest_of(path: Path) -> str:
    """A digest that no file has where there is none."""
    return _sha256(path.read_bytes()) if path.is_file() else "missing"


def _sha256(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description="Render every overlay with kubectl.")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--check", action="store_true", help="render, and only print what differs")
    only.add_argument(
        "--digests", action="store_true", help="only print which inputs changed; without kubectl"
    )
    chosen = parser.parse_args()
    lines: list[str] = []
    try:
        if chosen.digests:
            lines = find_stale_digests()
        elif chosen.check:
            lines = find_differences(wanted_files())
        else:
            write(wanted_files())
    except PlanesError as failure:
        lines = [str(failure)]
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
