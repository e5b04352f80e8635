"""The address of a request: plane, verb, kind and key.

Histories, fault plans and oracles use it. It is derived from method, path and body only, so it is
the same on a simulated and a real plane; only the name of the kind needs a lookup.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import parse_qs

import orjson

from compute_sim_planes.api_server.http.request_info import derive_verb, parse_path
from compute_sim_planes.json_types import JsonValue, string_at

# Group, version and plural in, the name of the kind out; empty when it is not served.
KindNames: TypeAlias = Callable[[str, str, str], str]

WRITES: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})
# Creating an object of these groups stores nothing.
_QUESTIONS: Final = frozenset({"authentication.k8s.io", "authorization.k8s.io"})


@dataclass(frozen=True, slots=True)
class Address:
    """The target of a request. `name` of a create is the one in its body."""

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
        """`namespace/name`, or the name only."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def is_write(self) -> bool:
        """Whether the request can change stored objects."""
        return self.verb in WRITES and not self.is_dry_run and self.group not in _QUESTIONS


def no_kind_names(group: str, version: str, resource: str) -> str:
    """For callers that do not need kinds."""
    del group, version, resource
    return ""


def parse_address(
    plane: str, method: str, target: str, body: bytes | None, kinds: KindNames = no_kind_names
) -> Address:
    """The address of a request; a non-resource path is kept as `resource`."""
    path, _, query_text = target.partition("?")
    query = parse_qs(query_text, keep_blank_values=True)
    parsed = parse_path(path)
    if parsed is None:
        return Address(plane, method.lower(), resource=path)
    watching = query.get("watch", ["0"])[-1] in {"1", "true", "True", ""}
    verb = derive_verb(method, parsed, watching=watching)
    name = parsed.name
    if verb == "create" and not name:
        name = _name_in(body)
    # A Namespace is addressed by its name only, although it is authorized inside itself.
    namespace = "" if parsed.resource == "namespaces" and not parsed.group else parsed.namespace
    return Address(
        plane=plane,
        verb=verb,
        group=parsed.group,
        resource=parsed.resource,
        kind=kinds(parsed.group, parsed.version, parsed.resource),
        namespace=namespace,
        name=name,
        subresource=parsed.subresource,
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
