"""A release is tried on a throw-away clone: tag, changelog, version and wheel come out together."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.workspace import ROOT

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
