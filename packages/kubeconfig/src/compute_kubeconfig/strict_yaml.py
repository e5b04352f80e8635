"""A strict YAML parser: duplicate keys, aliases, tags and unknown types are errors with their path.

Configuration and kubeconfig files decide which servers are trusted, so that a file with two
possible readings is refused. Types are those of the YAML 1.2 core schema: `on` and `yes` are text,
`010` is ten; by PyYAML's YAML 1.1 rules `networking: on` would be a boolean.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import yaml

from compute_kubeconfig.mounted_files import read_bounded
from compute_kubeconfig.problems import (
    ConfigurationError,
    FileError,
    Problem,
    format_path,
)

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = dict[str, Json]
_FieldPath: TypeAlias = tuple[str | int, ...]

TAG: Final = "tag:yaml.org,2002:"
# The deepest schema in use has 60 levels. A limit of our own, because the parser's depends on the
# Python release.
MAX_DEPTH: Final = 128


class DocumentError(ConfigurationError):
    """A refused document, with all its problems."""


class _CoreLoader(yaml.SafeLoader):
    """PyYAML's safe parser with the scalar rules of YAML 1.2, used only for its nodes."""


def _resolve(
    scalars: Mapping[str, tuple[str, str]],
) -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """PyYAML's table of tags of plain scalars, by the first character."""
    table: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for name, (beginnings, pattern) in scalars.items():
        for beginning in [*beginnings, ""] if name == "null" else beginnings:
            table.setdefault(beginning, []).append((TAG + name, re.compile(pattern)))
    return table


_CoreLoader.yaml_implicit_resolvers = _resolve(
    {
        "null": ("~nN", r"(?:~|null|Null|NULL|)$"),
        "bool": ("tTfF", r"(?:true|True|TRUE|false|False|FALSE)$"),
        "int": ("-+0123456789", r"[-+]?[0-9]+$"),
        "float": (
            "-+.0123456789",
            r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$",
        ),
    }
)


def read_document(path: Path) -> JsonObject:
    """The mapping in a file; `FileError` with all problems if it holds none."""
    try:
        return parse_document(read_text(path))
    except DocumentError as refused:
        raise FileError(path, refused.problems) from None


def read_text(path: Path) -> str:
    """The text of a file of at most 1 MiB; `FileError` with path and reason if it has none."""
    try:
        return read_bounded(path).decode("utf-8")
    except UnicodeDecodeError:
        raise FileError(path, [Problem("", "is not UTF-8 text")]) from None


def parse_document(text: str) -> JsonObject:
    """The mapping of a document; `DocumentError` with all problems if it is anything else."""
    reader = _Reader()
    document = reader.read(_compose(text))
    if not reader.problems and not isinstance(document, dict):
        reader.note((), "expected a mapping of keys to values")
    if reader.problems or not isinstance(document, dict):
        raise DocumentError(reader.problems)
    return document


def _compose(text: str) -> yaml.Node:
    try:
        nodes = list(_iterate_nodes(text))
    except yaml.MarkedYAMLError as cause:
        line = cause.problem_mark.line + 1 if cause.problem_mark else 0
        # The parser's message may quote the document, which may contain a secret.
        raise DocumentError([Problem("", f"line {line}: is not valid YAML")]) from None
    except (yaml.YAMLError, RecursionError):
        raise DocumentError([Problem("", "is not valid YAML")]) from None
    if not nodes:
        raise DocumentError([Problem("", "is empty")])
    if len(nodes) > 1:
        raise DocumentError([Problem("", f"holds {len(nodes)} documents, expected one")])
    return nodes[0]


def _iterate_nodes(text: str) -> Iterator[yaml.Node]:
    loader = _CoreLoader(text)
    try:
        while loader.check_node():
            if (node := loader.get_node()) is not None:
                yield node
    finally:
        loader.dispose()


class _Reader:
    """Reads the nodes of one document and goes on after a problem, to report all at once."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._seen: set[int] = set()

    def note(self, path: _FieldPath, message: str) -> None:
        self.problems.append(Problem(format_path(path), message))

    def read(self, node: yaml.Node, path: _FieldPath = ()) -> Json:
        # An alias is the same node as its anchor; by aliases a small file can expand to a huge one.
        if id(node) in self._seen:
            self.note(path, "aliases are refused: write the value out")
            return None
        self._seen.add(id(node))
        if len(path) >= MAX_DEPTH:
            self.note(path[:1], f"is nested deeper than {MAX_DEPTH} levels")
            return None
        match node:
            case yaml.MappingNode(tag=tag) if tag == f"{TAG}map":
                return self._read_mapping(node, path)
            case yaml.SequenceNode(tag=tag) if tag == f"{TAG}seq":
                return [self.read(item, (*path, place)) for place, item in enumerate(node.value)]
            case yaml.ScalarNode():
                return self._read_scalar(node, path)
            case _:
                self.note(path, "tags are refused")
                return None

    def _read_mapping(self, node: yaml.MappingNode, path: _FieldPath) -> JsonObject:
        mapping: JsonObject = {}
        for key_node, value_node in node.value:
            key = self._read_key(key_node, path)
            if key is None:
                continue
            if key in mapping:
                self.note((*path, key), f"line {key_node.start_mark.line + 1}: key is given twice")
                continue
            mapping[key] = self.read(value_node, (*path, key))
        return mapping

    def _read_key(self, node: yaml.Node, path: _FieldPath) -> str | None:
        if isinstance(node, yaml.ScalarNode) and node.tag == f"{TAG}str":
            return str(node.value)
        self.note(path, f"line {node.start_mark.line + 1}: keys are text")
        return None

    def _read_scalar(self, node: yaml.ScalarNode, path: _FieldPath) -> Json:
        value = str(node.value)
        match node.tag.removeprefix(TAG):
            case "str":
                return value
            case "null":
                return None
            case "bool":
                return value.lower() == "true"
            case "int" if len(value) <= 19:  # int() of millions of digits is slow
                return int(value)
            case "float" if len(value) <= 32:
                return float(value)
            case _:
                self.note(path, "is neither text, number, boolean nor null")
                return None
