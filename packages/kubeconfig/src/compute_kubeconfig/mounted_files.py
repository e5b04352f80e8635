"""Files of a mounted Secret or ConfigMap, read with a limit and only inside their mount.

Write access to a kubeconfig must not give read access to other files of the pod. The path is
checked at each read: the kubelet swaps the links of a projected volume, and an attacker could.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from compute_kubeconfig.problems import FileError, Problem, UnreadableFileError

MAX_FILE_BYTES: Final = 1 << 20  # a ConfigMap or Secret holds no more


@dataclass(frozen=True, slots=True)
class MountedFile:
    """A file that must be inside a directory after all symlinks are resolved; `field` is the key of
    the kubeconfig that names it.
    """

    mount: Path
    path: Path
    field: str = ""

    def read(self) -> bytes:
        """The content; `FileError` where the file is outside, absent or too large."""
        try:
            real = self.path.resolve(strict=True)
            is_inside = real.is_relative_to(self.mount.resolve(strict=True))
        except RuntimeError:  # before Python 3.13 the error of a loop of links
            raise FileError(
                self.path, [Problem("", "is a loop of links")], field=self.field
            ) from None
        except OSError as cause:
            raise UnreadableFileError(self.path, cause, field=self.field) from None
        if not is_inside:
            raise FileError(self.path, [Problem("", outside(self.mount))], field=self.field)
        return read_bounded(real, shown=self.path, field=self.field)


# Bytes of the kubeconfig itself, a file beside it, or neither.
Source: TypeAlias = bytes | MountedFile | None


def read_source(source: Source) -> bytes | None:
    """The bytes of a source now."""
    return source.read() if isinstance(source, MountedFile) else source


def read_bounded(path: Path, *, shown: Path | None = None, field: str = "") -> bytes:
    """The content of a file of at most 1 MiB; errors have the path `shown`."""
    try:
        with path.open("rb") as opened:
            raw = opened.read(MAX_FILE_BYTES + 1)
    except OSError as cause:
        raise UnreadableFileError(shown or path, cause, field=field) from None
    if len(raw) > MAX_FILE_BYTES:
        raise FileError(shown or path, [Problem("", "is larger than 1 MiB")], field=field)
    return raw


def why_not_inside(mount: Path, value: str) -> str | None:
    """Why a kubeconfig in `mount` may not name this path; None where it may."""
    try:
        # `Path("/mount") / "/elsewhere"` is "/elsewhere": an absolute path replaces the mount.
        is_inside = (mount / value).resolve().is_relative_to(mount.resolve())
    except (OSError, RuntimeError, ValueError):  # a NUL character, a name too long, a loop of links
        return "must be a path"
    return None if is_inside else outside(mount)


def outside(mount: Path) -> str:
    return f"is outside {mount}, the mount of its kubeconfig"
