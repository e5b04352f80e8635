"""Problems of a configuration, each with the path of its field, and the errors that carry them.

An operator reads all problems of a file at once instead of one per start. No message has a value of
the file, because it may be a password in the wrong field.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from typing_extensions import override

_LONGEST_PATH: Final = 256
_LONGEST_MESSAGE: Final = 1024


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One problem of a document: its path, and what to change."""

    path: str
    message: str

    @override
    def __str__(self) -> str:
        where = _printable(self.path, _LONGEST_PATH)
        what = _printable(self.message, _LONGEST_MESSAGE)
        return f"{where}: {what}" if where else what


class ConfigurationError(Exception):
    """A refused configuration; `str` has one line for each of its `problems`."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class FileError(ConfigurationError):
    """A file is refused; every line has its path, the field in it and the reason.

    `field` is the key of the kubeconfig that has to change, such as `tokenFile`; empty where the
    whole document is refused.
    """

    def __init__(self, path: Path, problems: Iterable[Problem], *, field: str = "") -> None:
        known = tuple(problems)
        self.path = path
        self.field = field or known[0].path.rpartition(".")[2]
        super().__init__(
            Problem(f"{path}: {problem.path}" if problem.path else str(path), problem.message)
            for problem in known
        )


class UnreadableFileError(FileError):
    """A file is absent or cannot be read."""

    def __init__(self, path: Path, cause: OSError, *, field: str = "") -> None:
        why = cause.strerror or type(cause).__name__
        super().__init__(path, [Problem("", f"cannot be read: {why}")], field=field)


def format_path(path: Iterable[str | int]) -> str:
    """`("clusters", 0, "cluster")` as `clusters[0].cluster`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _printable(text: str, longest: int) -> str:
    """The text with characters escaped that would control a terminal or forge a line of a log."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    return text[:longest]
