"""Makes `install-*.yaml` of `deploy/rendered`: one file per plane, images by digest.

```
deploy/rendered/<overlay>.yaml      what kubectl renders, images by their short names
deploy/components/images            registry name and digest of each image
dist/install-<overlay>.yaml         both together, the CRDs first where the plane needs them
```

Python alone: the release workflow has no kubectl, and a test compares with what kubectl renders of
the overlay with the component.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from tools.release_artifacts import SUMS, checksums
from tools.workspace import ROOT

DEPLOY_TAG: Final = "deploy/v"
DEPLOY: Final = ROOT / "deploy"
COMPONENT: Final = "components/images/kustomization.yaml"
# Each with the overlays that one `kubectl apply` brings to its plane, in that order.
INSTALLED: Final[Mapping[str, tuple[str, ...]]] = {
    "single-cluster": ("single-cluster",),
    "hub": ("crds", "hub"),
    "milo": ("crds", "milo"),
    "management": ("management",),
    "cell": ("crds", "cell"),
    "pod-provider": ("pod-provider",),
}
_IMAGE_LINE: Final = re.compile(
    r"^(?P<before> *(?:- )?image: )(?P<name>[\w./-]+)(?::\S+)?$", re.MULTILINE
)
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


class InstallError(Exception):
    """No file is to be published, with the reason in the message."""


@dataclass(frozen=True, slots=True)
class Image:
    """One entry of the component; the digest is empty before the first release."""

    name: str
    registry_name: str
    digest: str = ""

    @property
    def reference(self) -> str:
        if not self.digest:
            raise InstallError(
                f"deploy/{COMPONENT} has no digest of {self.name}; "
                f"run `./dev release --image {self.name}=sha256:…`"
            )
        return f"{self.registry_name}@{self.digest}"


def read_images(deploy: Path = DEPLOY) -> dict[str, Image]:
    """The images of the component by their short names."""
    document = yaml.safe_load((deploy / COMPONENT).read_text("utf-8"))
    listed = (
        Image(entry["name"], entry["newName"], entry.get("digest", ""))
        for entry in document["images"]
    )
    return {image.name: image for image in listed}


def write_digest(assignment: str, deploy: Path = DEPLOY) -> str:
    """Puts `NAME=sha256:…` into the component; returns a line about it."""
    name, _, digest = assignment.partition("=")
    images = read_images(deploy)
    if name not in images:
        raise InstallError(f"{name!r} is no image; one of {', '.join(images)}")
    if not _DIGEST.fullmatch(digest):
        raise InstallError(f"{digest!r} is no digest; write sha256: and 64 hexadecimal digits")
    path = deploy / COMPONENT
    entry = rf"(- name: {name}\n  newName: \S+\n)(?:  digest: \S+\n)?"
    text = re.sub(entry, rf"\g<1>  digest: {digest}\n", path.read_text("utf-8"), count=1)
    path.write_text(text, "utf-8", newline="\n")
    return f"deploy/{COMPONENT}: {images[name].registry_name}@{digest}"


def derive_install_file(name: str, deploy: Path = DEPLOY) -> str:
    """The text of one `install-<name>.yaml`."""
    images = read_images(deploy)

    def replace(line: re.Match[str]) -> str:
        image = images.get(line["name"])
        if image is None:
            raise InstallError(f"install-{name}.yaml: deploy/{COMPONENT} lacks {line['name']}")
        return line["before"] + image.reference

    texts = ((deploy / "rendered" / f"{part}.yaml").read_text("utf-8") for part in INSTALLED[name])
    return "---\n".join(_IMAGE_LINE.sub(replace, text) for text in texts)


def make_install_files(into: Path, deploy: Path = DEPLOY) -> list[Path]:
    """All of them with their checksums, in an empty folder; none where one cannot be made."""
    texts = {f"install-{name}.yaml": derive_install_file(name, deploy) for name in INSTALLED}
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    for file_name, text in texts.items():
        (into / file_name).write_text(text, "utf-8", newline="\n")
    (into / SUMS).write_text(checksums(into), "utf-8")
    return sorted(into.iterdir())
