"""buildah with a store of its own, so that no image of the machine is seen or changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pydantic import BaseModel, Field

from tools.images.commands import run

# With a fixed time of every layer two builds of the same files have the same id.
TIMESTAMP: Final = "1"
BUILD_OPTIONS: Final = (
    *("--isolation", "chroot", "--pull-never", "--no-cache"),
    *("--timestamp", TIMESTAMP),
)


class Configuration(BaseModel):
    """How a container of an image starts."""

    user: str = Field("", alias="User")
    entry: tuple[str, ...] = Field((), alias="Entrypoint")
    labels: frozenset[str] = frozenset()


class _Layer(BaseModel):
    size: int  # bytes, compressed


class _Manifest(BaseModel):
    layers: list[_Layer]


class _Named(BaseModel):
    digest: str


class _Index(BaseModel):
    manifests: list[_Named]


class Buildah:
    """Images in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._options = (
            *("--root", str(folder / "store"), "--runroot", str(folder / "run")),
            *("--storage-driver", "overlay"),
        )

    def _run(self, verb: str, *arguments: str | Path) -> str:
        return run(["buildah", *self._options, verb, *arguments]).strip()

    def import_root(self, archive: Path, name: str) -> str:
        container = self._run("from", "scratch")
        try:
            self._run("add", container, archive, "/")
            return self._run("commit", "--quiet", "--timestamp", TIMESTAMP, container, name)
        finally:
            self._run("rm", container)

    def build(
        self, containerfile: Path, name: str, arguments: Mapping[str, str], context: Path
    ) -> str:
        """Builds from the root of a tree; without cache, so that twice means twice."""
        words: list[str | Path] = [*BUILD_OPTIONS, "--file", containerfile, "--tag", name]
        for given in arguments.items():
            words += ["--build-arg", "=".join(given)]
        self._run("build", *words, context)
        return self.find_id(name)

    def has(self, name: str) -> bool:
        return name in self._run("images", "--format", "{{.Name}}:{{.Tag}}").split()

    def find_id(self, name: str) -> str:
        return self._run("inspect", "--type", "image", "--format", "{{.FromImageID}}", name)

    def configuration(self, name: str) -> Configuration:
        """User, entry point and the names of labels, as a container would get them."""
        config = json.loads(self._run("inspect", "--type", "image", name))["OCIv1"]["config"]
        return Configuration.model_validate({**config, "labels": list(config.get("Labels") or {})})

    def export(self, name: str, archive: Path) -> None:
        """As a file that `ctr images import` takes; the same bytes for the same image."""
        archive.unlink(missing_ok=True)
        self._run("push", "--quiet", name, f"docker-archive:{archive}:{name}")

    def measure_last_layer(self, name: str) -> int:
        """Bytes of the layer on top, compressed as a registry would hold it."""
        folder = self._folder / "pushed"
        shutil.rmtree(folder, ignore_errors=True)
        self._run("push", "--quiet", name, f"oci:{folder}:image")
        index = _Index.model_validate_json((folder / "index.json").read_bytes())
        digest = index.manifests[-1].digest.removeprefix("sha256:")
        manifest = (folder / "blobs" / "sha256" / digest).read_bytes()
        return _Manifest.model_validate_json(manifest).layers[-1].size

    @contextmanager
    def mounted(self, name: str) -> Generator[Path]:
        """The files of an image, to look at."""
        container = self._run("from", "--pull-never", name)
        try:
            yield Path(self._run("mount", container))
        finally:
            self._run("umount", container)
            self._run("rm", container)
