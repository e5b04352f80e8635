"""Builds the planes' programs from the Go module proxy, once per key.

What is there already is not built again and not even looked into, so a second run answers at once.
A program is built under a temporary name and renamed when it is whole; whatever ends a build early,
nothing half-made counts. Everything a build needs from the network comes through the Go command and
its `go.sum`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from e2e.planes.binaries import MODULES, Binary, parse_go_directive
from e2e.planes.errors import PlanesError
from e2e.planes.store import PART_PREFIX, ModuleFiles, Say, Store
from e2e.planes.tether import tethered
from e2e.planes.toolchain import Toolchain, find_toolchain

# The largest program has 130 MB and the linker writes it once more; caches come on top.
FREE_PER_BINARY: Final = 300 * 1024 * 1024
# Words of the Go command and of the network below it, for what only the user can repair.
REGISTRY_WORDS: Final = (
    "proxyconnect",
    "dial tcp",
    "no such host",
    "connection refused",
    "i/o timeout",
    "TLS handshake",
    "403 Forbidden",
    "404 Not Found",
    "410 Gone",
    "407 Proxy Authentication",
    "module lookup disabled",
    "verifying module",
    "reading https://",
)
DISK_WORDS: Final = ("no space left on device", "disk quota exceeded")


@dataclass(frozen=True, slots=True)
class Programs:
    """Built programs by name."""

    paths: Mapping[str, Path]

    def __getitem__(self, name: str) -> Path:
        return self.paths[name]


def build(wanted: Iterable[Binary], store: Store, say: Say) -> Programs:
    """Builds what is missing and answers where everything lies."""
    wanted = tuple(wanted)
    if store.missing(wanted):
        store.prepare()
        with store.locked(say):
            # Asked again: whoever held the lock before us may have built it all.
            _build_missing(store.missing(wanted), store, say)
    return Programs({binary.name: store.path_of(binary) for binary in wanted})


def find_programs(wanted: Iterable[Binary], store: Store) -> Programs:
    """What was built before; raises when something is missing, since building takes minutes."""
    wanted = tuple(wanted)
    if missing := store.missing(wanted):
        raise PlanesError(
            f"looking for the planes' programs: {', '.join(b.name for b in missing)} not built",
            remedy="run `nox -s planes` first",
        )
    return Programs({binary.name: store.path_of(binary) for binary in wanted})


def oldest_go(store: Store) -> tuple[int, ...]:
    return max(parse_go_directive(ModuleFiles.read(m, store.tree).go_mod) for m in MODULES)


def _build_missing(missing: list[Binary], store: Store, say: Say) -> None:
    if not missing:
        return
    store.remove_parts()
    refuse_a_full_disk(len(missing), shutil.disk_usage(store.folder).free, store.folder)
    toolchain = find_toolchain(store, oldest_go(store), say)
    for position, binary in enumerate(missing, start=1):
        say(f"[{position}/{len(missing)}] building {binary.name} ...")
        began = time.monotonic()
        _build_one(binary, store, toolchain)
        took = time.monotonic() - began
        size = store.path_of(binary).stat().st_size // (1024 * 1024)
        say(f"[{position}/{len(missing)}] built {binary.name} in {took:.0f} s, {size} MB")


def refuse_a_full_disk(count: int, free: int, folder: Path) -> None:
    """Better now than after minutes of compiling."""
    if free < count * FREE_PER_BINARY:
        raise PlanesError(
            f"preparing to build {count} programs: {free // 1024**2} MB free in {str(folder)!r}",
            remedy="free 7 GB for a first build (programs, module cache and build cache)",
        )


def _build_one(binary: Binary, store: Store, toolchain: Toolchain) -> None:
    files = ModuleFiles.read(binary.module, store.tree)
    target = store.path_of(binary)
    part = target.with_name(f"{PART_PREFIX}{binary.name}")
    try:
        target.parent.mkdir(exist_ok=True)
        command = [str(toolchain.go), "build", *files.flags, "-o", str(part), binary.package]
        _run_go(binary.name, command, files.folder, toolchain)
        _sync(part)
        part.replace(target)
    except OSError as cause:
        raise PlanesError(
            f"building {binary.name}: writing {str(target)!r}: {cause.strerror}",
            remedy="free disk space and make the cache folder writable, then run again",
        ) from cause
    finally:
        part.unlink(missing_ok=True)


def _run_go(name: str, command: list[str], folder: Path, toolchain: Toolchain) -> None:
    # In a group of its own: an interrupt is ours to pass on, to compilers and linker too.
    process = subprocess.Popen(
        tethered(command),
        cwd=folder,
        env=toolchain.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    try:
        said = process.communicate()[1]
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    if process.returncode != 0:
        raise explain_failure(name, said)


def explain_failure(name: str, said: str) -> PlanesError:
    """The Go command's last words as one line with a remedy."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if found := _line_with(DISK_WORDS, lines):
        return PlanesError(
            f"building {name}: {found[-200:]}",
            remedy="free 7 GB for a first build (programs, module cache and build cache)",
        )
    if found := _line_with(REGISTRY_WORDS, lines):
        return PlanesError(
            f"building {name}: the Go module proxy did not serve it: {found[-300:]}",
            remedy="check the network, or set GOPROXY to a proxy you can reach, and run again",
        )
    return PlanesError(
        f"building {name}: the Go command failed",
        remedy="see its words below; `go clean -cache` helps against a damaged build cache",
        detail="\n".join(lines[-20:]),
    )


def _line_with(words: tuple[str, ...], lines: list[str]) -> str:
    # Progress lines ("go: downloading …") name hosts too; only the later, complaining ones count.
    complaints = [line for line in lines if not line.startswith("go: downloading")]
    return next((line for line in reversed(complaints) if any(w in line for w in words)), "")


def _sync(path: Path) -> None:
    # Before the rename: after a power cut a name must not point at bytes never written.
    with path.open("rb") as handle:
        os.fsync(handle.fileno())
