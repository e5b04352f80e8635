"""Draws the exports of a library as Markdown, from their signatures and docstrings.

Nothing that it draws depends on the machine: a default that is more than a literal is shown as `…`,
so that a page made elsewhere has the same bytes.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import typing
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Final, TypeGuard

from pydantic import BaseModel

# How the docstring of a method begins that is public only because two modules need it.
INTERNAL: Final = "For `"


def find_export(module: ModuleType, name: str) -> object:
    """What a module has under a name."""
    value: object = getattr(module, name)
    # A cached function is shown as the function it calls.
    return inspect.unwrap(value) if callable(value) and not inspect.isclass(value) else value


def draw_entry(name: str, value: object, *, is_built_by_callers: bool = False) -> str:
    """One export under its heading: signature, docstring, members."""
    if inspect.isclass(value):
        return "\n".join(_class(name, value, is_built_by_callers=is_built_by_callers))
    if _is_function(value):
        return f"### `{name}{draw_signature(value)}`\n\n{draw_prose(inspect.getdoc(value) or '')}"
    members = typing.get_args(value)
    if members:
        listed = ", ".join(f"`{getattr(member, '__name__', repr(member))}`" for member in members)
        return f"### `{name}`\n\nOne of {listed}.\n"
    return f"### `{name}`\n\n`{value!r}`\n"


def _class(name: str, value: type[object], *, is_built_by_callers: bool) -> Iterator[str]:
    own: object = vars(value).get("__init__")
    arguments = ""
    if _is_function(own) and is_built_by_callers:
        arguments = draw_signature(own).partition(" -> ")[0]
    yield f"### `{name}{arguments}`\n"
    yield draw_prose(inspect.getdoc(value) or "")
    if issubclass(value, Exception):
        yield f"Base: {', '.join(f'`{base.__name__}`' for base in value.__bases__)}.\n"
    if issubclass(value, enum.Enum):
        yield "".join(f"- `{member.name}` = `{member.value!r}`\n" for member in value)
        return
    fields = list(_fields(value))
    if fields:
        yield "".join(fields)
    for member in sorted(vars(value)):
        if not member.startswith("_"):
            found: object = vars(value)[member]
            bound: object = getattr(value, member, None)
            yield from _member(member, bound if inspect.ismethod(bound) else found)


def _member(name: str, found: object) -> Iterator[str]:
    if isinstance(found, property):
        shown = inspect.signature(found.fget).return_annotation if found.fget else ""
        yield f"#### `{name}: {shown}`\n\n{draw_prose(inspect.getdoc(found) or '')}"
    elif inspect.ismethod(found):
        # A class method, bound to its class.
        yield f"#### `{name}{draw_signature(found)}`\n\n{draw_prose(inspect.getdoc(found) or '')}"
    elif _is_function(found) and not (inspect.getdoc(found) or "").startswith(INTERNAL):
        word = "async " if inspect.iscoroutinefunction(found) else ""
        described = draw_prose(inspect.getdoc(found) or "")
        yield f"#### `{word}{name}{draw_signature(found)}`\n\n{described}"


def _is_function(value: object) -> TypeGuard[Callable[..., object]]:
    return inspect.isfunction(value)


def _fields(value: type[object]) -> Iterator[str]:
    """Fields of a dataclass or of settings, with the docstring below each, if there is one."""
    names = _field_names(value)
    annotations: dict[str, object] = inspect.get_annotations(value)
    documented = _attribute_docstrings(value) if names else {}
    for name in names:
        annotation = annotations.get(name, "")
        told = f": {documented[name]}" if name in documented else ""
        yield f"- `{name}: {_plain(str(annotation))}`{told}\n"


def _field_names(value: type[object]) -> list[str]:
    if issubclass(value, BaseModel):
        return list(value.model_fields)
    if dataclasses.is_dataclass(value):
        return [found.name for found in dataclasses.fields(value)]
    return []


def _plain(annotation: str) -> str:
    """An annotation without the validators that stand beside the type."""
    if annotation.startswith("Annotated["):
        return annotation.removeprefix("Annotated[").partition(",")[0]
    return annotation


def _attribute_docstrings(value: type[object]) -> dict[str, str]:
    source = Path(inspect.getsourcefile(value) or "").read_text("utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and node.name == value.__name__:
            return dict(_docstrings_below(node.body))
    return {}


def _docstrings_below(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for statement, below in pairwise(body):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
            and isinstance(below.value.value, str)
        ):
            yield statement.target.id, " ".join(below.value.value.split())


def draw_signature(function: Callable[..., object]) -> str:
    signature = inspect.signature(function)
    shown: list[str] = []
    keyword_only = False
    for parameter in signature.parameters.values():
        if parameter.name in {"self", "cls"}:
            continue
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            shown.append("*")
        star = "*" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else ""
        default = "" if parameter.default is inspect.Parameter.empty else _default(parameter)
        shown.append(f"{star}{parameter.name}: {parameter.annotation}{default}")
    return f"({', '.join(shown)}) -> {signature.return_annotation}"


def _default(parameter: inspect.Parameter) -> str:
    value: object = parameter.default
    if isinstance(value, timedelta):
        return f" = {value.total_seconds():g} s"
    literal = value is None or isinstance(value, bool | int | float | str)
    return f" = {value!r}" if literal else " = …"


def draw_prose(text: str) -> str:
    """A docstring as Markdown: drawings are blocks already, `Raises:` becomes a list."""
    lines: list[str] = []
    raising = False
    for line in text.splitlines():
        if line.strip() == "Raises:":
            raising = True
            lines.append("Raises:\n")
        elif raising and line.startswith("    ") and not line.startswith("        "):
            error, _, why = line.strip().partition(": ")
            lines.append(f"- `{error}`: {why}")
        elif raising and line.strip():
            lines.append(f"  {line.strip()}")
        else:
            raising = False
            lines.append(line)
    return "\n".join(lines) + "\n"
