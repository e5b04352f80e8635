"""The cache of built programs: one folder per tool module and key, in the user's cache folder.

A program gets its final name only when it is complete. The store knows nothing of Go; `build.py`
fills it.
"""

from __future__ import annotations

import fcntl
import os
import platform
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from e2e.harness.errors import PlanesError
from e2e.harness.programs.binaries import (
    Binary,
    ToolModule,
    derive_flags,
    derive_key,
    parse_required_version,
)

TOOL_MODULES: Final = Path(__file__).parent
PART_PREFIX: Final = ".part-"
Say: TypeAlias = Callable[[str], None]


def derive_cache_folder(environment: Mapping[str, str], home: Path) -> Path:
    """The user's cache folder by XDG; a relative path there is ignored, as XDG requires."""
    chosen = Path(environment.get("XDG_CACHE_HOME", ""))
    return (chosen if chosen.is_absolute() else home / ".cache") / "datum-compute" / "planes"


@dataclass(frozen=True, slots=True)
class ModuleFiles:
    """A tool module in the tree, and values derived from its files."""

    module: ToolModule
    folder: Path
    go_mod: str
    go_sum: str

    @classmethod
    def read(cls, module: ToolModule, tree: Path = TOOL_MODULES) -> ModuleFiles:
        folder = tree / module.name
        go_mod, go_sum = ((folder / name).read_text("utf-8") for name in ("go.mod", "go.sum"))
        return cls(module, folder, go_mod, go_sum)

    @property
    def version(self) -> str:
        return parse_required_version(self.go_mod, self.module.requires)

    @property
    def flags(self) -> tuple[str, ...]:
        return derive_flags(self.module, self.version)

    @property
    def key(self) -> str:
        files = (self.go_mod.encode(), self.go_sum.encode())
        # A home folder may be shared by machines of different platforms.
        return derive_key(files, self.flags, f"{platform.system()}-{platform.machine()}")


@dataclass(frozen=True, slots=True)
class Store:
    """The folder of built programs."""

    folder: Path
    tree: Path = TOOL_MODULES

    @classmethod
    def of_user(cls) -> Store:
        return cls(derive_cache_folder(os.environ, Path.home()))

    def path_of(self, binary: Binary) -> Path:
        files = ModuleFiles.read(binary.module, self.tree)
        return self.folder / f"{binary.module.name}-{files.key}" / binary.name

    def missing(self, wanted: Iterable[Binary]) -> list[Binary]:
        return [binary for binary in wanted if not self.path_of(binary).exists()]

    def prepare(self) -> None:
        """Creates the folder and checks that it is writable, before minutes are spent."""
        probe = self.folder / f".probe-{os.getpid()}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            probe.write_bytes(b"x")
            probe.unlink()
        except OSError as cause:
            raise PlanesError(
                f"preparing the cache folder {str(self.folder)!r}: {cause.strerror}",
                remedy="make it writable, or point XDG_CACHE_HOME at a folder that is",
            ) from cause

    def remove_parts(self) -> None:
        """Removes parts of interrupted builds; only under the lock, else they may be in use."""
        for part in self.folder.glob(f"*/{PART_PREFIX}*"):
            part.unlink()

    @contextmanager
    def locked(self, say: Say) -> Generator[None]:
        """One build at a time: two would compete for memory and CPU."""
        with (self.folder / "build.lock").open("ab") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("another build is under way; waiting for it to end")
                fcntl.flock(handle, fcntl.LOCK_EX)
            # The kernel releases the lock with the file handle, also after kill -9.
            yield
