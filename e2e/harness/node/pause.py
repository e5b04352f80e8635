"""The image of a pod's sandbox container: one program that waits.

It only holds the pod's namespaces. It is assembled byte by byte, because a machine with nodes need
not have a compiler: an ELF header, one segment and one loop.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import struct
import tarfile
from pathlib import Path
from typing import Final

from compute_sim_planes.json_types import JsonObject
from e2e.harness.errors import PlanesError

NAME: Final = "localhost/compute-pause:1"
BASE: Final = 0x400000
HEADERS: Final = 64 + 56
# Waits for signals forever: pause() on x86-64; ppoll() without descriptors on arm64.
LOOPS: Final = {
    "x86_64": (62, "amd64", bytes.fromhex("b8220000000f05ebf7")),
    "aarch64": (
        183,
        "arm64",
        bytes.fromhex("000080d2010080d2020080d2030080d2280980d2010000d4faffff17"),
    ),
}


def program(machine: str) -> bytes:
    """The executable for a machine, by its name in `platform.machine`."""
    number, _, code = _loop(machine)
    size = HEADERS + len(code)
    magic = b"\x7fELF\x02\x01\x01" + bytes(9)
    rest = struct.pack(
        "<HHIQQQIHHHHHH", 2, number, 1, BASE + HEADERS, 64, 0, 0, 64, 56, 1, 64, 0, 0
    )
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, BASE, BASE, size, size, 0x1000)
    return magic + rest + segment + code


def write_image(archive: Path, machine: str = platform.machine()) -> None:
    """Writes an archive for `ctr images import`."""
    layer = make_tar({"pause": (program(machine), 0o755)})
    described: JsonObject = {
        "architecture": _loop(machine)[1],
        "os": "linux",
        "config": {"Entrypoint": ["/pause"], "User": "65535:65535"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    config = json.dumps(described).encode()
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    listed = [{"Config": name, "RepoTags": [NAME], "Layers": ["layer.tar"]}]
    parts = {name: config, "layer.tar": layer, "manifest.json": json.dumps(listed).encode()}
    archive.write_bytes(make_tar({part: (content, 0o644) for part, content in parts.items()}))


def derive_architecture(machine: str = platform.machine()) -> str:
    """The name of this machine in image configurations."""
    return _loop(machine)[1]


def _loop(machine: str) -> tuple[int, str, bytes]:
    if machine not in LOOPS:
        raise PlanesError(
            f"making the pause image: no program for {machine!r}",
            remedy=f"use one of {', '.join(LOOPS)}, or add the loop to e2e/harness/node/pause.py",
        )
    return LOOPS[machine]


def make_tar(files: dict[str, tuple[bytes, int]]) -> bytes:
    """Files with their content and mode."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, (content, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))
    return written.getvalue()
