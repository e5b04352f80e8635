from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import tarfile
import time
from pathlib import Path
from typing import IO

import pytest

from e2e.harness.errors import PlanesError
from e2e.harness.node import pause


@pytest.mark.skipif(platform.system() != "Linux", reason="an executable of Linux")
def test_the_program_waits_until_it_is_ended(tmp_path: Path) -> None:
    program = tmp_path / "pause"
    program.write_bytes(pause.program(platform.machine()))
    program.chmod(0o755)
    running = subprocess.Popen([program])
    time.sleep(0.1)
    assert running.poll() is None
    assert Path(f"/proc/{running.pid}/stat").read_text("ascii").split()[2] == "S"
    running.kill()
    assert running.wait() == -9


@pytest.mark.parametrize("machine", pause.LOOPS)
def test_the_image_holds_the_program_and_nothing_else(tmp_path: Path, machine: str) -> None:
    archive = tmp_path / "pause.tar"
    pause.write_image(archive, machine)
    with tarfile.open(archive) as tar:
        (listed,) = json.load(_opened(tar, "manifest.json"))
        config = json.load(_opened(tar, listed["Config"]))
        layer = _opened(tar, listed["Layers"][0]).read()
    assert listed["RepoTags"] == [pause.NAME]
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
    assert config["architecture"] == {"x86_64": "amd64", "aarch64": "arm64"}[machine]
    (tmp_path / "layer.tar").write_bytes(layer)
    with tarfile.open(tmp_path / "layer.tar") as tar:
        assert [(entry.name, entry.mode) for entry in tar] == [("pause", 0o755)]


def test_a_machine_without_a_program_is_named() -> None:
    with pytest.raises(PlanesError, match=r"'riscv64'.*add the loop"):
        pause.program("riscv64")


def _opened(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    member = tar.extractfile(name)
    assert member is not None
    return member
