"""What must be true of a built image (operations.md 4.4, faults.md S6)."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from e2e.deploy_checks.containerfile import REQUIRED_LABELS, USER
from tools.images.buildah import Configuration
from tools.images.commands import ImagesError, run

MIB: Final = 1024 * 1024
UNPACKED_LIMIT: Final = 200 * MIB
PACKED_LIMIT: Final = 45 * MIB
SHELLS_AND_TOOLS: Final = frozenset(
    {"sh", "bash", "dash", "busybox", "pip", "pip3", "apt", "apt-get", "dpkg", "gcc", "cc", "ld"}
)


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the list; `problem` is empty where it holds."""

    name: str
    problem: str = ""


def check_configuration(configuration: Configuration, binary: str) -> Iterator[Check]:
    user = configuration.user
    yield Check(f"runs as {USER}", "" if user == USER else f"runs as {user or 'root'}")
    entry = list(configuration.entry)
    yield Check(f"starts {binary}", "" if entry == [f"/app/bin/{binary}"] else f"starts {entry}")
    missing = sorted(REQUIRED_LABELS - configuration.labels)
    yield Check("OCI labels", f"missing: {', '.join(missing)}" if missing else "")


def check_files(root: Path) -> Iterator[Check]:
    """By the files themselves: nothing an intruder could use, nothing that gives rights."""
    files = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    tools = sorted(
        str(path.relative_to(root))
        for path in files
        if path.name in SHELLS_AND_TOOLS and path.stat().st_mode & stat.S_IXUSR
    )
    yield Check("no shell, pip or compiler", ", ".join(tools))
    packages = [path.name for path in root.glob("app/lib/python3*/site-packages/pip*")]
    yield Check("no pip as a package", ", ".join(packages))
    raised = [
        str(path.relative_to(root))
        for path in files
        if path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID)
    ]
    yield Check("no setuid file", ", ".join(raised))


def check_start(root: Path, binary: str, configuration: str) -> Iterator[Check]:
    """As in a cluster: another user, every file read-only, its configuration beside it."""
    yield _started("starts read-only: --version", root, [f"/app/bin/{binary}", "--version"])
    target = root / "tmp" / "check-config.yaml"
    target.write_text(configuration, "utf-8")
    target.chmod(0o644)
    words = [f"/app/bin/{binary}", "check-config", "--server-config", "/tmp/check-config.yaml"]  # noqa: S108
    try:
        yield _started("starts read-only: check-config", root, words)
    finally:
        target.unlink()


def _started(name: str, root: Path, words: list[str]) -> Check:
    # A mount namespace of its own: the read-only mount is gone with the process.
    script = (
        'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && '
        'root="$1" && shift && exec chroot --userspec=65532:65532 "$root" "$@"'
    )
    try:
        run(["unshare", "--mount", "sh", "-c", script, "sh", root, *words])
    except ImagesError as failed:
        return Check(name, str(failed).splitlines()[-1])
    return Check(name)


def check_size(unpacked: int, packed: int) -> Iterator[Check]:
    """Both without the base."""
    for word, size, limit in (
        ("unpacked", unpacked, UNPACKED_LIMIT),
        ("compressed", packed, PACKED_LIMIT),
    ):
        shown = f"{size / MIB:.0f} MiB {word} (limit {limit // MIB})"
        yield Check(shown, "" if size <= limit else "too large")


def measure(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*"))
