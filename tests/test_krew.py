"""The krew plugin of `kubectl compute`: manifest and archive agree, and the starter runs."""

from __future__ import annotations

import hashlib
import io
import re
import subprocess
import tarfile
from pathlib import Path

import yaml

from tools.krew import MANIFEST, PROGRAM, archive_name, make_archive, write_plugin

VERSION = "0.3.0"


def test_the_manifest_names_the_archive_by_digest_and_the_release_by_tag(tmp_path: Path) -> None:
    archive, manifest = write_plugin(tmp_path, VERSION)
    assert manifest.name == MANIFEST
    document = yaml.safe_load(manifest.read_text("utf-8"))
    assert document["metadata"]["name"] == "compute"  # krew installs it as kubectl-compute
    assert re.fullmatch(r"v\d+\.\d+\.\d+", document["spec"]["version"])
    assert len(document["spec"]["shortDescription"]) <= 50
    (platform,) = document["spec"]["platforms"]
    assert platform["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
    assert platform["uri"].endswith(f"/kubectl-compute%2Fv{VERSION}/{archive_name(VERSION)}")
    with tarfile.open(archive) as opened:
        members = {one.name: one for one in opened.getmembers()}
    assert members[platform["bin"]].mode & 0o111
    assert {one["from"] for one in platform["files"]} == members.keys()


def test_two_builds_have_the_same_bytes() -> None:
    assert make_archive(VERSION) == make_archive(VERSION)
    assert make_archive(VERSION) != make_archive("0.3.1")


def test_the_starter_runs_this_very_version_and_passes_words_on(tmp_path: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(make_archive(VERSION))) as archive:
        archive.extract(PROGRAM, tmp_path, filter="data")
    uv = tmp_path / "bin" / "uv"
    uv.parent.mkdir()
    uv.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\nexit 1\n', "utf-8")
    uv.chmod(0o755)
    starter = str(tmp_path / PROGRAM)
    path = f"{uv.parent}:/usr/bin:/bin"
    ran = subprocess.run(
        [starter, "why", "two words"],
        env={"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    words = ran.stdout.splitlines()
    assert words[-3:] == [PROGRAM, "why", "two words"]
    assert f"datum-compute-kubectl=={VERSION}" in words
    alone = subprocess.run(
        ["/bin/sh", starter],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert alone.returncode == 3
    assert "needs uv" in alone.stderr
