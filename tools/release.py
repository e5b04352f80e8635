"""Releases one package: changelog from its fragments, version, commit, tag, wheel. Releases the
installation too, `deploy`: a tag and the files `install-*.yaml`.

Nothing is published from here: the tag is what the release workflow acts on. Everything that could
refuse is asked before anything is written, so a refused release leaves the tree as it was.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

from packaging.version import InvalidVersion, Version

from tools.audit import audit
from tools.install_files import DEPLOY_TAG, InstallError, make_install_files, write_digest
from tools.release_artifacts import ArtifactsError, make_artifacts, parse_tag
from tools.workspace import PACKAGES, ROOT, Package

VERSION_LINE = re.compile(r'^version = "([^"]+)"$', re.MULTILINE)


class RefusedError(Exception):
    """A release that must not happen, with the remedy in its message."""


def run(*command: str) -> str:
    ended = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if ended.returncode:
        raise RefusedError(f"`{' '.join(command)}` failed: {ended.stderr.strip() or ended.stdout}")
    return ended.stdout


def parse_version(text: str) -> Version:
    try:
        return Version(text)
    except InvalidVersion:
        raise RefusedError(f"{text!r} is no version; write one such as 0.3.0") from None


def current_version(package: Package) -> Version:
    found = VERSION_LINE.search((package.path / "pyproject.toml").read_text("utf-8"))
    if found is None:
        raise RefusedError(f"{package.folder}: pyproject.toml has no static version")
    return Version(found.group(1))


def fragments(package: Package) -> list[Path]:
    return sorted((package.path / "changes.d").glob("*.md"))


def refuse_unclean_tree_and_old_tag(tag: str) -> None:
    if run("git", "status", "--porcelain"):
        raise RefusedError("the tree has changes that are not committed; commit or remove them")
    if run("git", "tag", "--list", tag).strip():
        raise RefusedError(f"tag {tag} is there already")


def refuse_what_must_not_be_released(package: Package, wanted: Version, tag: str) -> None:
    refuse_unclean_tree_and_old_tag(tag)
    if wanted <= current_version(package):
        raise RefusedError(f"{wanted} is not above {current_version(package)}")
    if not fragments(package):
        raise RefusedError(f"packages/{package.folder}/changes.d has no fragment: nothing to tell")


def release(package: Package, wanted: Version) -> None:
    tag = f"{package.folder}/v{wanted}"
    refuse_what_must_not_be_released(package, wanted, tag)
    folder = str(package.path)
    config = str(ROOT / "pyproject.toml")
    told = ("--name", package.distribution, "--version", str(wanted), "--yes")
    run(sys.executable, "-m", "towncrier", "build", "--config", config, "--dir", folder, *told)
    metadata = package.path / "pyproject.toml"
    text = metadata.read_text("utf-8")
    metadata.write_text(VERSION_LINE.sub(f'version = "{wanted}"', text, count=1), "utf-8")
    run("git", "add", "--all", folder)
    run("git", "commit", "--quiet", "--message", f"Release {package.folder} {wanted}")
    run("git", "tag", "--annotate", tag, "--message", f"{package.distribution} {wanted}")
    run("uv", "build", "--quiet", "--package", package.distribution, "--out-dir", "dist")
    print(f"released {package.distribution} {wanted}: tag {tag}, wheel in dist/")


def release_deploy(wanted: Version) -> None:
    """Tags the installation; its files name the images by digest, or there is no release."""
    tag = f"{DEPLOY_TAG}{wanted}"
    refuse_unclean_tree_and_old_tag(tag)
    made = make_install_files(ROOT / "dist")
    run("git", "tag", "--annotate", tag, "--message", f"Installation {wanted}")
    print(f"released the installation {wanted}: tag {tag}, {len(made)} files in dist/")


def main() -> int:
    parser = argparse.ArgumentParser(description="Release one package, or help the workflow to.")
    parser.add_argument("package", choices=(*PACKAGES, "deploy"), nargs="?")
    parser.add_argument("version", help="the version to release, such as 0.3.0", nargs="?")
    helping = parser.add_mutually_exclusive_group()
    helping.add_argument("--from-tag", help="build what is published of this tag, into dist/")
    helping.add_argument("--audit", action="store_true", help="ask what is known against our locks")
    helping.add_argument("--image", help="write the digest of a pushed image: NAME=sha256:…")
    asked = parser.parse_args()
    is_helping = bool(asked.from_tag) or bool(asked.image) or asked.audit
    if is_helping == bool(asked.version):
        parser.error("name a package and a version, or one of --from-tag, --image and --audit")
    try:
        return _carry_out(asked)
    except (RefusedError, ArtifactsError, InstallError) as refused:
        print(f"release: {refused}", file=sys.stderr)
        return 1


def _carry_out(asked: argparse.Namespace) -> int:
    if asked.audit:
        lines, has_findings = audit(ROOT / "locks")
        print("\n".join(lines))
        return 1 if has_findings else 0
    if asked.image:
        print(write_digest(asked.image))
        return 0
    if asked.from_tag:
        for path in _make_published(asked.from_tag, ROOT / "dist"):
            print(path.relative_to(ROOT))
        return 0
    if asked.package == "deploy":
        release_deploy(parse_version(asked.version))
        return 0
    release(Package(asked.package), parse_version(asked.version))
    return 0


def _make_published(tag: str, into: Path) -> list[Path]:
    if tag.startswith(DEPLOY_TAG):
        return make_install_files(into)
    return make_artifacts(parse_tag(tag), into)


if __name__ == "__main__":
    sys.exit(main())
