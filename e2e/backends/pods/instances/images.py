"""The images of Instances in scenarios: one archive for `ctr images import`.

All have the same two layers, the operators' base and `web.py`, and differ in configuration alone,
so that they are written without a build. `image-unavailable` is in no archive: kubelet tries to
pull it.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Final

from compute_api_types.wire import JsonObject, JsonValue
from e2e.harness.node import pause
from e2e.world.documents import IMAGE

WEB: Final = Path(__file__).with_name("web.py")
USER: Final = "65532:65532"
# Tags of scenarios that roll from one working image to the next, and those with a behaviour.
WORKING: Final = ("ok", "1.0", "2.0", "3.0")
BEHAVIOURS: Final = ("crash", "flap", "oom", "slow-3", "slow-10")
ROOT_TAG: Final = "config-error"  # its user is root, which *restricted* refuses


def write_archive(base: Path, archive: Path) -> None:
    """Writes all images; `base` is the root file system of the operators' images, as a tar."""
    web = pause.make_tar({"web.py": (WEB.read_bytes(), 0o644)})
    with base.open("rb") as opened:
        base_digest = hashlib.file_digest(opened, "sha256").hexdigest()
    layers = (base_digest, hashlib.sha256(web).hexdigest())
    parts: dict[str, bytes] = {"web.tar": web}
    listed: list[JsonValue] = []
    for tags, behaviour, user in _images():
        config = json.dumps(_configuration(behaviour, user, layers)).encode()
        name = f"{hashlib.sha256(config).hexdigest()}.json"
        parts[name] = config
        tagged: list[JsonValue] = [f"{IMAGE}:{tag}" for tag in tags]
        listed.append({"Config": name, "RepoTags": tagged, "Layers": ["base.tar", "web.tar"]})
    parts["manifest.json"] = json.dumps(listed).encode()
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, "w", format=tarfile.USTAR_FORMAT) as tar:
        tar.add(base, "base.tar")
        for name, content in parts.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))


def _images() -> list[tuple[tuple[str, ...], str, str]]:
    """Tags, behaviour and user of each image."""
    return [
        (WORKING, "ok", USER),
        *(((one,), one, USER) for one in BEHAVIOURS),
        ((ROOT_TAG,), "ok", "0:0"),
    ]


def _configuration(behaviour: str, user: str, layers: tuple[str, ...]) -> JsonObject:
    return {
        "architecture": pause.derive_architecture(),
        "os": "linux",
        "config": {
            "Entrypoint": ["/usr/bin/python3", "-I", "-S", "/web.py"],
            "Env": [f"BEHAVIOUR={behaviour}"],
            "User": user,
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{one}" for one in layers]},
    }
