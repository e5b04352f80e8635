"""What a request is addressed to: plane, verb, kind and key, read from the request itself.

Histories record it, fault plans name it, oracles judge by it. It is told from method, path and body
alone, so that it is the same on a simulated and on a real plane; only the name of the kind needs
somebody who knows which kinds are served.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import parse_qs

import orjson

from compute_sim_planes.api_server.request_info import derive_verb, parse_path
from compute_sim_planes.json_types import JsonValue, string_at

# Group, version and plural to the kind's name; empty when it is not served.
KindNames: TypeAlias = Callable[[str, str, str], str]

WRITES: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})
# Creating one of these asks a question and stores nothing.
_QUESTIONS: Final = frozenset({"authentication.k8s.io", "authorization.k8s.io"})


@dataclass(frozen=True, slots=True)
class Address:
    """Where a request goes. `name` of a create is the one in its body."""

    plane: str
    verb: str
    group: str = ""
    resource: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    is_dry_run: bool = False

    @property
    def key(self) -> str:
        """`namespace/name`, or what there is of it."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def is_write(self) -> bool:
        """Can this request change what is stored?"""
        return self.verb in WRITES and not self.is_dry_run and self.group not in _QUESTIONS


def no_kind_names(group: str, version: str, resource: str) -> str:
    """For whoever does not need kinds."""
    del group, version, resource
    return ""


def parse_address(
    plane: str, method: str, target: str, body: bytes | None, kinds: KindNames = no_kind_names
) -> Address:
    """The address of a request; one that is about no resource keeps its path as `resource`."""
    path, _, query_text = target.partition("?")
    query = parse_qs(query_text, keep_blank_values=True)
    found = parse_path(path)
    if found is None:
        return Address(plane, method.lower(), resource=path)
    watching = query.get("watch", ["0"])[-1] in {"1", "true", "True", ""}
    verb = derive_verb(method, found, watching=watching)
    name = found.name
    if verb == "create" and not name:
        name = _name_in(body)
    # A namespace is addressed by its name alone, although its rights are looked up inside it.
    namespace = "" if found.resource == "namespaces" and not found.group else found.namespace
    return Address(
        plane=plane,
        verb=verb,
        group=found.group,
        resource=found.resource,
        kind=kinds(found.group, found.version, found.resource),
        namespace=namespace,
        name=name,
        subresource=found.subresource,
        is_dry_run=query.get("dryRun", [""])[-1] == "All",
    )


def _name_in(body: bytes | None) -> str:
    try:
        document: JsonValue = orjson.loads(body or b"null")
    except orjson.JSONDecodeError:
        return ""
    return string_at(document, "metadata", "name") or string_at(
        document, "metadata", "generateName"
    )
