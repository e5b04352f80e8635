"""Builds what the release workflow publishes of a tagged library: wheel, SBOM, checksums, and the
krew plugin of `kubectl compute`.

The tag names package and version, and the tree must agree with it. Everything is built twice, from
the time of the tagged commit, and published only when both builds have the same bytes (S7): another
build of the tag gives the wheel with the attested provenance. Signs and uploads nothing;
that is the workflow's, which has the identity for it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools import krew
from tools.workspace import OPERATORS, PACKAGES, ROOT, Package

SUMS: Final = "SHA256SUMS"


class ArtifactsError(Exception):
    """Nothing is to be published, with the reason in the message."""


@dataclass(frozen=True, slots=True)
class Tag:
    """`<folder>/v<version>`, as `tools.release` makes it."""

    package: Package
    version: str


def parse_tag(text: str) -> Tag:
    folder, separator, version = text.partition("/v")
    if not separator or folder not in PACKAGES:
        raise ArtifactsError(f"{text!r} is no tag of a release; they look like quota-client/v0.3.0")
    found = Package(folder).version
    if version != found:
        raise ArtifactsError(f"the tag says {version} and packages/{folder} says {found}")
    if folder in OPERATORS:
        raise ArtifactsError(f"{folder} is published as an image: nox -s images")
    return Tag(Package(folder), version)


def make_artifacts(tag: Tag, into: Path) -> list[Path]:
    """Wheel, source archive, SBOM, checksums, perhaps a krew plugin, in an empty folder."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        first, second = (_build(tag, Path(scratch) / turn) for turn in ("first", "second"))
        differing = find_differences(first, second)
        if differing:
            raise ArtifactsError(f"two builds differ in {', '.join(differing)}")
        for path in sorted(first.iterdir()):
            shutil.copy2(path, into)
    if tag.package.folder == krew.PACKAGE.folder:
        krew.write_plugin(into, tag.version)
    _write_sbom(tag, into / f"{tag.package.distribution}-{tag.version}.cdx.json")
    (into / SUMS).write_text(checksums(into), "utf-8")
    return sorted(into.iterdir())


def find_differences(first: Path, second: Path) -> list[str]:
    """Names that one of two folders lacks, or that differ in bytes."""
    names = {path.name for folder in (first, second) for path in folder.iterdir()}
    return sorted(name for name in names if _digest(first / name) != _digest(second / name))


def checksums(folder: Path) -> str:
    """As `sha256sum --check` reads them."""
    found = sorted(path for path in folder.iterdir() if path.name != SUMS)
    return "".join(f"{_digest(path)}  {path.name}\n" for path in found)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


def _build(tag: Tag, into: Path) -> Path:
    moment = _run("git", "log", "-1", "--format=%ct").strip()
    into.mkdir()
    options = ("--quiet", "--package", tag.package.distribution, "--out-dir", str(into))
    _run("uv", "build", *options, SOURCE_DATE_EPOCH=moment)
    ignored = into / ".gitignore"  # uv's, for folders inside a tree
    ignored.unlink(missing_ok=True)
    return into


def _write_sbom(tag: Tag, into: Path) -> None:
    """The dependencies that the wheel declares: a library pins nothing for its users."""
    with tempfile.TemporaryDirectory() as scratch:
        declared = Path(scratch) / "requirements.txt"
        declared.write_text("".join(f"{one}\n" for one in tag.package.requirements()), "utf-8")
        options = ("--output-reproducible", "--spec-version", "1.6", "--output-format", "JSON")
        command = (sys.executable, "-m", "cyclonedx_py", "requirements", *options)
        _run(*command, "--output-file", str(into), str(declared))


def _run(*command: str, **environment: str) -> str:
    ended = subprocess.run(
        command,
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    if ended.returncode:
        raise ArtifactsError(f"`{' '.join(command)}`: {ended.stderr.strip() or ended.stdout}")
    return ended.stdout
