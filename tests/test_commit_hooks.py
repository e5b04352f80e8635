"""The hooks of `.pre-commit-config.yaml` run a part of `check`, with its programs."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel, ConfigDict

from tools.workspace import ROOT, read_sessions

# Where `./dev check` leaves its programs.
PROGRAMS = ".nox/check/bin/"


class Hook(BaseModel):
    """One hook; a key that is not known here is a typing error or wants a test."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    name: str
    language: str
    entry: str
    types_or: tuple[str, ...] = ()
    files: str = ""
    pass_filenames: bool = True

    @property
    def command(self) -> list[str]:
        """The words of the entry without what sets variables."""
        words = shlex.split(self.entry)
        return [word for word in words if word != "env" and "=" not in word]


class Repository(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    repo: str
    hooks: tuple[Hook, ...]


class Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    repos: tuple[Repository, ...]


SETTINGS = Settings.model_validate(
    yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
)
HOOKS = {hook.id: hook for repository in SETTINGS.repos for hook in repository.hooks}


def test_no_hook_comes_from_elsewhere() -> None:
    assert {repository.repo for repository in SETTINGS.repos} == {"local"}
    assert {hook.language for hook in HOOKS.values()} == {"system"}
    assert set(HOOKS) == {"format", "lint", "import-contracts", "locks", "generated-files"}


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_runs_a_session_or_a_program_that_check_runs(name: str) -> None:
    program, *words = HOOKS[name].command
    if program == "./dev":
        assert words[0] in read_sessions()
        return
    assert program.startswith(PROGRAMS)
    program = program.removeprefix(PROGRAMS)
    assert (Path(sys.executable).parent / program).exists()
    check = read_sessions()["check"]
    if program == "python":
        assert words[0] == "-m"
        module = words[1].removeprefix("tools.")
        assert (ROOT / "tools" / f"{module}.py").exists()
        assert f'tool(session, "{module}", ' in check
    else:
        called = [f'"{word}"' for word in (program, *words[:1])]
        assert f"session.run({', '.join(called)}" in check


def test_generated_files_are_compared_by_the_session_that_makes_them() -> None:
    """Its arguments go to every generator, and each knows `--check`."""
    assert HOOKS["generated-files"].command == ["./dev", "generate", "--check"]
    assert "*session.posargs" in read_sessions()["generate"]


@pytest.mark.parametrize("name", [name for name, hook in HOOKS.items() if hook.files])
def test_each_path_that_starts_a_hook_exists(name: str) -> None:
    folders = [path for path in ROOT.iterdir() if not path.name.startswith(".")]
    files = [file for path in folders for file in (path, *path.rglob("*")) if file.is_file()]
    paths = [file.relative_to(ROOT).as_posix() for file in files]
    for pattern in split_alternatives(HOOKS[name].files):
        assert any(re.search(pattern, path) for path in paths), pattern


def split_alternatives(pattern: str) -> list[str]:
    """Each way to match, so that one that matches nothing is not hidden by the others."""
    found = [""]
    for part in re.split(r"(\([^)]*\))", pattern):
        options = part[1:-1].split("|") if part.startswith("(") else [part]
        found = [before + option for before in found for option in options]
    return [way for one in found for way in one.split("|")]


def test_each_alternative_is_matched_by_itself() -> None:
    assert split_alternatives("^(a|b)/c$|^d$") == ["^a/c$", "^d$", "^b/c$", "^d$"]
