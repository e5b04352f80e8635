"""Rights as a set: those that manifests grant, and those that the table of operations.md 5 names.

A right is a verb on a resource, whichever rule it stands in, so that two ways of writing the same
role are equal. Pure; the page and the documents are handed in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from compute_api_types.wire import JsonObject
from e2e.objects import objects_at, text_at, texts_at

READING: Final = ("get", "list", "watch")
_NOTE: Final = re.compile(r"\([^()]*\)")
_RESOURCE: Final = re.compile(r"[a-z]+(?:/[a-z]+)?")
_QUOTED: Final = re.compile(r"`([^`]*)`")


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """A verb on a resource of a group; `names` narrows it to objects."""

    group: str
    resource: str
    verb: str
    names: tuple[str, ...] = ()


def granted_by(role: JsonObject) -> set[Right]:
    """What a Role or ClusterRole grants, as far as resources go."""
    return {
        Right(group, resource, verb, tuple(sorted(texts_at(rule, "resourceNames"))))
        for rule in objects_at(role, "rules")
        for group in texts_at(rule, "apiGroups")
        for resource in texts_at(rule, "resources")
        for verb in texts_at(rule, "verbs")
    }


def roles_in(documents: Iterable[JsonObject]) -> dict[tuple[str, str], JsonObject]:
    """RBAC's roles by kind and name; Milo has a kind `Role` of its own, which is none."""
    return {
        (text_at(document, "kind"), text_at(document, "metadata", "name")): document
        for document in documents
        if text_at(document, "apiVersion").startswith("rbac.authorization.k8s.io/")
        and text_at(document, "kind") in {"Role", "ClusterRole"}
    }


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: an identity with its role's name, and rights."""

    identity: str
    role: str
    rights: frozenset[Right]


def parse_table(page: str) -> list[Line]:
    """The table under the page's heading `## 5. RBAC`, line by line, empty cells filled in."""
    section = page.partition("\n## 5. RBAC\n")[2].partition("\n## ")[0]
    identity = role = group = ""
    lines: list[Line] = []
    for row in section.splitlines():
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if not row.startswith("|") or len(cells) != 4 or set(cells[1]) == {"-"}:
            continue
        if found := re.match(r"\*\*([A-Z])\*\*", cells[0]):
            identity, role = found[1], (_QUOTED.findall(cells[0].rpartition(";")[2]) or [""])[-1]
        if not identity:
            continue  # the heading of the table
        group = cells[1] or group
        lines.append(Line(identity, role, frozenset(_parse_rights(group, cells[2], cells[3]))))
    return lines


def _parse_rights(group: str, resources: str, verbs: str) -> Iterator[Right]:
    """Several groups in one cell go with the resources between semicolons, one by one."""
    groups = [word for word in _split(_NOTE.sub("", group)) if word]
    parts = _NOTE.sub("", resources).split(";")
    for one, part in zip(groups, parts, strict=True):
        for resource in _split(part):
            if not _RESOURCE.fullmatch(resource):
                continue  # prose such as "own namespace"
            for verb in _split(_NOTE.sub("", verbs)):
                for each in READING if verb == "s" else (verb,):
                    yield Right(one.strip('`"'), resource, each)


def _split(cell: str) -> list[str]:
    return [word.strip() for word in cell.split(",")]
