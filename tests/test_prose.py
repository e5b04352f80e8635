"""Word rates of comments and docstrings: plain technical English has few words about persons.

The limits are those of the projects we compare ourselves with (0.0 to 0.5 per 1,000 words). Above
them a comment describes code as if it were people, and a reader has to translate it back.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tools.workspace import PACKAGES, ROOT

PERSONS: Final = re.compile(
    r"\b(nobody|somebody|everybody|whoever|whom|who|whose|anybody)\b", re.IGNORECASE
)
SPEECH: Final = re.compile(r"\b(told|tells?|telling|said|says|saying)\b", re.IGNORECASE)
AT_MOST: Final = 0.5  # per 1,000 words
SOURCES: Final = (*(f"packages/{folder}/src" for folder in PACKAGES), "e2e", "bench", "tools")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def prose_of(text: str) -> Iterator[str]:
    """Docstrings and comments of a module, without what stands between fences."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and (docstring := ast.get_docstring(node)):
            yield re.sub(r"```.*?```", " ", docstring, flags=re.DOTALL)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def rate_of(pattern: re.Pattern[str], prose: str) -> float:
    words = len(re.findall(r"[A-Za-z']+", prose))
    return 1000 * len(pattern.findall(prose)) / max(words, 1)


def modules_below(folder: str) -> Iterator[Path]:
    for path in sorted((ROOT / folder).rglob("*.py")):
        if "tests" not in path.relative_to(ROOT).parts:
            yield path


@pytest.mark.parametrize("folder", SOURCES)
def test_comments_are_about_things(folder: str) -> None:
    texts = [path.read_text(encoding="utf-8") for path in modules_below(folder)]
    prose = "\n".join(part for text in texts for part in prose_of(text))
    assert rate_of(PERSONS, prose) <= AT_MOST
    assert rate_of(SPEECH, prose) <= AT_MOST


def test_each_kind_of_prose_is_counted() -> None:
    text = (
        '"""Whoever reads."""\n\n\ndef f():\n    """It says so."""\n    # told\n    return "who"\n'
    )
    prose = "\n".join(prose_of(text))
    assert len(PERSONS.findall(prose)) == 1
    assert len(SPEECH.findall(prose)) == 2
