"""Indexes of project deployments by the ConfigMaps and Secrets that their templates name. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from compute_api_types.referenced_data.references import Reference, references
from compute_management_operator.planes import CONFIG_MAP, SECRET
from compute_operator_kit.cache.store import CachedObject
from compute_operator_kit.core.json import JsonObject, member_object
from compute_operator_kit.core.keys import Kind
from compute_operator_kit.core.objects import Metadata

KINDS: Final = (CONFIG_MAP, SECRET)
KIND_BY_NAME: Final = {kind.kind: kind for kind in KINDS}
# With values: for one read and one write; never cached, so that it is no kind of a watch.
VALUES_OF: Final[dict[Kind, Kind]] = {
    kind: Kind(kind.group, kind.version, kind.plural, kind.kind, is_confidential=True)
    for kind in KINDS
}

REFERENCE: Final = "reference"
OPTIONAL: Final = "optional-reference"
IN_NAMESPACE: Final = "companions-in"


def index_by_reference(metadata: Metadata, body: JsonObject) -> Iterable[str]:
    return tuple(join(metadata.namespace, one.token) for one in _read(body))


def index_by_optional(_: Metadata, body: JsonObject) -> Iterable[str]:
    return tuple(one.token for one in _read(body) if one.is_optional)


def _read(body: JsonObject) -> tuple[Reference, ...]:
    return references(member_object(member_object(body, "spec"), "template"))


def join(namespace: str, token: str) -> str:
    return f"{namespace}/{token}"


def read_references(entry: CachedObject) -> tuple[Reference, ...]:
    """What a cached deployment names, in token order."""
    optional = frozenset(entry.index_values.get(OPTIONAL, ()))
    named: list[Reference] = []
    for value in entry.index_values.get(REFERENCE, ()):
        token = value.partition("/")[2]
        kind, _, name = token.partition("/")
        named.append(Reference(kind, name, token in optional))
    return tuple(sorted(named))
