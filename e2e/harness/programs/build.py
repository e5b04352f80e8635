"""Builds the planes' programs from the Go module proxy, once per key.

Existing programs are not built again, so a second run returns at once. A program is built under a
temporary name and renamed when complete, so that an interrupted build leaves no broken one. All
downloads go through the Go command and `go.sum`.
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

from e2e.harness.errors import PlanesError
from e2e.harness.processes.die_with_parent import with_parent_death_signal
from e2e.harness.programs.binaries import MODULES, Binary, parse_go_directive
from e2e.harness.programs.store import PART_PREFIX, ModuleFiles, Say, Store
from e2e.harness.programs.toolchain import Toolchain, find_toolchain

# The largest program has 130 MB and the linker writes it twice; caches come on top.
FREE_PER_BINARY: Final = 300 * 1024 * 1024
# Messages of the Go command and the network about problems that only the user can solve.
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
    """Builds the missing programs and returns the paths of all."""
    wanted = tuple(wanted)
    if store.missing(wanted):
        store.prepare()
        with store.locked(say):
            # Again under the lock: its previous holder may have built everything.
            _build_missing(store.missing(wanted), store, say)
    return Programs({binary.name: store.path_of(binary) for binary in wanted})


def find_programs(wanted: Iterable[Binary], store: Store) -> Programs:
    """The built programs; raises if one is missing, since building takes minutes."""
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
    """Fails before minutes of compiling."""
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
    # In its own process group, so that an interrupt also reaches compilers and linker.
    process = subprocess.Popen(
        with_parent_death_signal(command),
        cwd=folder,
        env=toolchain.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    try:
        output = process.communicate()[1]
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    if process.returncode != 0:
        raise explain_failure(name, output)


def explain_failure(name: str, output: str) -> PlanesError:
    """The Go command's last lines as one line with a remedy."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if cause := _line_with(DISK_WORDS, lines):
        return PlanesError(
            f"building {name}: {cause[-200:]}",
            remedy="free 7 GB for a first build (programs, module cache and build cache)",
        )
    if cause := _line_with(REGISTRY_WORDS, lines):
        return PlanesError(
            f"building {name}: the Go module proxy did not serve it: {cause[-300:]}",
            remedy="check the network, or set GOPROXY to a proxy you can reach, and run again",
        )
    return PlanesError(
        f"building {name}: the Go command failed",
        remedy="see its words below; `go clean -cache` helps against a damaged build cache",
        detail="\n".join(lines[-20:]),
    )


def _line_with(words: tuple[str, ...], lines: list[str]) -> str:
    # Progress lines ("go: downloading …") also name hosts; only the errors after them count.
    complaints = [line for line in lines if not line.startswith("go: downloading")]
    return next((line for line in reversed(complaints) if any(w in line for w in words)), "")


def _sync(path: Path) -> None:
    # fsync before the rename: after a power failure the name must not refer to missing data.
    with path.open("rb") as handle:
        os.fsync(handle.fileno())
