"""Rights as a set: those granted by manifests, and those in the table of operations.md 5.

A right is a verb on a resource, independent of the rule it is in, so that two notations of the same
role are equal. Pure; page and documents are arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from compute_api_types.wire import JsonObject
from e2e.world.objects import objects_at, text_at, texts_at

READING: Final = ("get", "list", "watch")
_NOTE: Final = re.compile(r"\([^()]*\)")
_RESOURCE: Final = re.compile(r"[a-z]+(?:/[a-z]+)?")
_QUOTED: Final = re.compile(r"`([^`]*)`")


@dataclass(frozen=True, slots=True, order=True)
class RbacRight:
    """A verb on a resource of a group; `names` restricts it to objects."""

    group: str
    resource: str
    verb: str
    names: tuple[str, ...] = ()


def granted_by(role: JsonObject) -> set[RbacRight]:
    """The resource rights of a Role or ClusterRole."""
    return {
        RbacRight(group, resource, verb, tuple(sorted(texts_at(rule, "resourceNames"))))
        for rule in objects_at(role, "rules")
        for group in texts_at(rule, "apiGroups")
        for resource in texts_at(rule, "resources")
        for verb in texts_at(rule, "verbs")
    }


def roles_in(documents: Iterable[JsonObject]) -> dict[tuple[str, str], JsonObject]:
    """RBAC roles by kind and name; Milo's own kind `Role` is not one."""
    return {
        (text_at(document, "kind"), text_at(document, "metadata", "name")): document
        for document in documents
        if text_at(document, "apiVersion").startswith("rbac.authorization.k8s.io/")
        and text_at(document, "kind") in {"Role", "ClusterRole"}
    }


@dataclass(frozen=True, slots=True)
class RbacTableRow:
    """One line of the table: an identity with its role's name, and rights."""

    identity: str
    role: str
    rights: frozenset[RbacRight]


def parse_table(page: str) -> list[RbacTableRow]:
    """The lines of the table under `## 5. RBAC`, with empty cells filled in."""
    section = page.partition("\n## 5. RBAC\n")[2].partition("\n## ")[0]
    identity = role = group = ""
    lines: list[RbacTableRow] = []
    for row in section.splitlines():
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if not row.startswith("|") or len(cells) != 4 or set(cells[1]) == {"-"}:
            continue
        if match := re.match(r"\*\*([A-Z])\*\*", cells[0]):
            identity, role = match[1], (_QUOTED.findall(cells[0].rpartition(";")[2]) or [""])[-1]
        if not identity:
            continue  # the table header
        group = cells[1] or group
        lines.append(
            RbacTableRow(identity, role, frozenset(_parse_rights(group, cells[2], cells[3])))
        )
    return lines


def _parse_rights(group: str, resources: str, verbs: str) -> Iterator[RbacRight]:
    """Several groups in one cell correspond to the resource lists between semicolons."""
    groups = [word for word in _split(_NOTE.sub("", group)) if word]
    parts = _NOTE.sub("", resources).split(";")
    for one, part in zip(groups, parts, strict=True):
        for resource in _split(part):
            if not _RESOURCE.fullmatch(resource):
                continue  # prose such as "own namespace"
            for verb in _split(_NOTE.sub("", verbs)):
                for each in READING if verb == "s" else (verb,):
                    yield RbacRight(one.strip('`"'), resource, each)


def _split(cell: str) -> list[str]:
    return [word.strip() for word in cell.split(",")]
