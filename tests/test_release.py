"""A release is tried on a throw-away clone: tag, changelog, version and wheel come out together."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.rehearsal import read_section, rehearse
from tools.release_artifacts import find_differences
from tools.workspace import OPERATORS, PACKAGES, ROOT, Package

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not on the PATH"),
    pytest.mark.skipif(shutil.which("uv") is None, reason="uv is not on the PATH"),
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this tree is not a clone"),
]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    tree = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(tree)], check=True)
    git(tree, "config", "user.name", "A releaser")
    git(tree, "config", "user.email", "releaser@example.com")
    return tree


def git(tree: Path, *arguments: str) -> str:
    ended = subprocess.run(
        ["git", *arguments], cwd=tree, check=True, capture_output=True, text=True
    )
    return ended.stdout


def release(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tools.release", *arguments],
        cwd=tree,
        check=False,
        capture_output=True,
        text=True,
    )


def test_a_release_leaves_tag_changelog_version_and_wheel(clone: Path) -> None:
    ended = release(clone, "quota-client", "0.1.0")

    assert ended.returncode == 0, ended.stderr
    assert git(clone, "tag", "--list") == "quota-client/v0.1.0\n"
    assert git(clone, "log", "-1", "--format=%s") == "Release quota-client 0.1.0\n"
    assert git(clone, "status", "--porcelain") == ""
    package = clone / "packages/quota-client"
    assert 'version = "0.1.0"' in (package / "pyproject.toml").read_text("utf-8")
    changelog = (package / "CHANGELOG.md").read_text("utf-8")
    assert "## 0.1.0 (" in changelog
    assert "### Added" in changelog
    assert not list((package / "changes.d").glob("*.md"))
    assert (clone / "dist/datum_compute_quota_client-0.1.0-py3-none-any.whl").is_file()


def test_a_refused_release_leaves_the_tree_as_it_was(clone: Path) -> None:
    before = git(clone, "rev-parse", "HEAD")
    for version, cause in {"0.0.1": "is not above", "x": "is no version"}.items():
        ended = release(clone, "quota-client", version)
        assert ended.returncode == 1
        assert cause in ended.stderr
    assert git(clone, "rev-parse", "HEAD") == before
    assert git(clone, "status", "--porcelain") == ""


def test_an_unclean_tree_is_not_released(clone: Path) -> None:
    (clone / "README.md").write_text("changed", "utf-8")
    ended = release(clone, "quota-client", "0.1.0")
    assert ended.returncode == 1
    assert "not committed" in ended.stderr


@pytest.mark.fault("S7")
def test_what_a_tag_publishes_has_a_bill_of_materials_and_checksums(clone: Path) -> None:
    ended = release(clone, "--from-tag", f"quota-client/v{Package('quota-client').version}")

    assert ended.returncode == 0, ended.stderr
    made = {path.name for path in (clone / "dist").iterdir()}
    assert {name.rpartition(".")[2] for name in made} == {"whl", "gz", "json", "SHA256SUMS"}
    sums = (clone / "dist/SHA256SUMS").read_text("utf-8")
    assert {line.split()[1] for line in sums.splitlines()} == made - {"SHA256SUMS"}
    check = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    assert subprocess.run(check, cwd=clone / "dist", check=False).returncode == 0


@pytest.mark.fault("S7")
def test_a_tag_that_says_another_version_than_the_tree_publishes_nothing(clone: Path) -> None:
    for tag, why in {
        "quota-client/v9.9.9": "the tag says 9.9.9",
        "quota-client-9": "is no tag of a release",
        "nobody/v1.0.0": "is no tag of a release",
        f"cell-operator/v{Package('cell-operator').version}": "published as an image",
    }.items():
        ended = release(clone, "--from-tag", tag)
        assert ended.returncode == 1
        assert why in ended.stderr
    assert not (clone / "dist").exists()


@pytest.mark.fault("S7")
def test_builds_that_differ_are_found(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        (folder / "same.whl").write_bytes(b"1")
    assert find_differences(first, second) == []
    (second / "same.whl").write_bytes(b"2")
    (second / "more.whl").write_bytes(b"3")
    assert find_differences(first, second) == ["more.whl", "same.whl"]


@pytest.mark.slow
def test_everything_can_be_released(tmp_path: Path) -> None:
    lines = list(rehearse(ROOT, "0.1.0", tmp_path))
    assert lines[-1].startswith(f"{len(PACKAGES) + 1} tags")


def test_a_rehearsal_reads_of_a_changelog_what_one_release_tells() -> None:
    changelog = (
        "# Changelog\n\n## 0.2.0 (2026-11-20)\n\n- Two.\n\n## 0.1.0 (2026-11-19)\n\n- One.\n"
    )
    assert "- Two." in read_section(changelog, "0.2.0")
    assert "- One." not in read_section(changelog, "0.2.0")
    assert read_section(changelog, "0.3.0") == []


DIGEST = "sha256:" + "a1" * 32


def test_the_installation_is_tagged_once_its_images_have_digests(clone: Path) -> None:
    refused = release(clone, "deploy", "0.1.0")
    assert refused.returncode == 1
    assert "has no digest of compute-" in refused.stderr
    assert git(clone, "tag", "--list") == ""

    for folder in OPERATORS:
        written = release(clone, "--image", f"compute-{folder}={DIGEST}")
        assert written.returncode == 0, written.stderr
    git(clone, "commit", "--all", "--message", "Name the images of 0.1.0")
    ended = release(clone, "deploy", "0.1.0")

    assert ended.returncode == 0, ended.stderr
    assert git(clone, "tag", "--list") == "deploy/v0.1.0\n"
    first = (clone / "dist/install-cell.yaml").read_bytes()
    assert f"image: ghcr.io/datum-cloud/compute-cell-operator@{DIGEST}\n".encode() in first
    again = release(clone, "--from-tag", "deploy/v0.1.0")
    assert again.returncode == 0, again.stderr
    assert (clone / "dist/install-cell.yaml").read_bytes() == first
    assert "is there already" in release(clone, "deploy", "0.1.0").stderr
