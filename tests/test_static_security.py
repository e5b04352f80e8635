"""Static security checks of everything that ships (faults.md S9).

Ruff's `S` rules run with the linter; here are bandit, from medium severity on, and the few calls
that no rule of either forbids outright.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.workspace import PACKAGES, ROOT, Package

SHIPPED = [Package(folder).path / "src" for folder in PACKAGES]
FORBIDDEN_CALLS = {"eval", "exec", "yaml.load", "tempfile.mktemp", "os.system", "os.popen"}
FORBIDDEN_IMPORTS = {"pickle", "marshal", "shelve"}
FORBIDDEN_NAMES = {"CERT_NONE", "_create_unverified_context"}


def findings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=function, keywords=keywords):
                if ast.unparse(function) in FORBIDDEN_CALLS:
                    yield f"line {node.lineno}: {ast.unparse(function)}"
                for keyword in keywords:
                    if ast.unparse(keyword) in {"verify=False", "verify_ssl=False", "shell=True"}:
                        yield f"line {node.lineno}: {ast.unparse(keyword)}"
            case ast.Import(names=names):
                yield from (
                    f"line {node.lineno}: import {name.name}"
                    for name in names
                    if name.name in FORBIDDEN_IMPORTS
                )
            case ast.Attribute(attr=name) if name in FORBIDDEN_NAMES:
                yield f"line {node.lineno}: {name}"
            case _:
                pass


@pytest.mark.fault("S9")
def test_nothing_that_ships_does_what_is_never_needed() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {finding}"
        for folder in SHIPPED
        for path in folder.rglob("*.py")
        for finding in findings(ast.parse(path.read_text("utf-8")))
    ]
    assert not found


@pytest.mark.fault("S9")
def test_bandit_finds_nothing_of_weight_in_what_ships() -> None:
    command = [sys.executable, "-m", "bandit", "--quiet", "-ll", "--recursive", *map(str, SHIPPED)]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout


@pytest.mark.parametrize(
    "bad",
    [
        "httpx.get(url, verify=False)",
        "yaml.load(text)",
        "eval(text)",
        "subprocess.run(words, shell=True)",
        "import pickle",
        "tempfile.mktemp()",
        "context.verify_mode = ssl.CERT_NONE",
    ],
)
def test_each_of_them_would_be_found(bad: str) -> None:
    assert list(findings(ast.parse(bad)))


def test_bandit_would_find_something(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("import yaml\nyaml.load(text)\n")
    command = [sys.executable, "-m", "bandit", "--quiet", "-ll", "--recursive", str(tmp_path)]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 1
