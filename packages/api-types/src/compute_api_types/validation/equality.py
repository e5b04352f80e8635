"""Whether two specs mean the same, so that an update passes unread (`docs/spec/api.md` 12.2).

Equal are absent and null (trap 7), two spellings of one quantity (trap 4), embedded metadata that
is absent or empty (trap 6), and a reference with an absent name or "" (trap 8). All else must be
the same, types included: a change that counts as none would skip every rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from compute_api_types.validation.document import as_amount, as_object

if TYPE_CHECKING:
    from compute_api_types.validation.document import Document, Json

# The way to a value: field names, and `*` for any element of a list or entry of a map.
Trail: TypeAlias = tuple[str, ...]

_TEMPLATE_SPEC: Final = ("template", "spec")
_VOLUME: Final = (*_TEMPLATE_SPEC, "volumes", "*")
_DISK_TEMPLATE: Final = (*_VOLUME, "disk", "template")
_CONTAINER: Final = (*_TEMPLATE_SPEC, "runtime", "sandbox", "containers", "*")
_VALUE_FROM: Final = (*_CONTAINER, "env", "*", "valueFrom")
_TARGET: Final = ("placements", "*", "scaleSettings", "metrics", "*", "resource", "target")

_EMBEDDED_METADATA: Final = frozenset({("template", "metadata"), (*_DISK_TEMPLATE, "metadata")})
_METADATA_FIELDS: Final = frozenset({"name", "namespace", "labels", "annotations", "finalizers"})
_NAMED_REFERENCES: Final = frozenset(
    {
        (*_VALUE_FROM, "configMapKeyRef"),
        (*_VALUE_FROM, "secretKeyRef"),
        (*_VOLUME, "configMap"),
    }
)
_QUANTITIES: Final = frozenset(
    {
        (*_VALUE_FROM, "resourceFieldRef", "divisor"),
        (*_TARGET, "value"),
        (*_TARGET, "averageValue"),
    }
)
_QUANTITY_MAPS: Final = frozenset(
    {
        (*_TEMPLATE_SPEC, "runtime", "resources", "requests"),
        (*_CONTAINER, "resources", "requests"),
        (*_CONTAINER, "resources", "limits"),
        (*_DISK_TEMPLATE, "spec", "resources", "requests"),
    }
)
# No table above reaches deeper, so a trail need not grow beyond what they could match.
_LONGEST_TRAIL: Final = 2 + max(
    map(len, _EMBEDDED_METADATA | _NAMED_REFERENCES | _QUANTITIES | _QUANTITY_MAPS)
)


def is_same_spec(one: Json, other: Json) -> bool:
    # A stack of our own: a document nested deeper than Python's must not end in an exception.
    pairs: list[tuple[Json, Json, Trail]] = [(one, other, ())]
    while pairs:
        left, right, trail = pairs.pop()
        inner = _compare(left, right, trail)
        if inner is None:
            return False
        pairs.extend(inner)
    return True


def _compare(one: Json, other: Json, trail: Trail) -> list[tuple[Json, Json, Trail]] | None:
    """None when the two differ, otherwise the pairs that are still to be compared."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        left, right = _members(one, trail), _members(other, trail)
        if left.keys() != right.keys():
            return None
        return [(value, right[name], _below(trail, name)) for name, value in left.items()]
    if isinstance(one, str) or isinstance(other, str) or not isinstance(one, Sequence):
        return [] if _is_same_scalar(one, other, trail) else None
    if not isinstance(other, Sequence) or len(one) != len(other):
        return None
    below = _below(trail, "*")
    return [(left, right, below) for left, right in zip(one, other, strict=True)]


def _below(trail: Trail, step: str) -> Trail:
    return (*trail, step) if len(trail) < _LONGEST_TRAIL else trail


def _members(value: Document, trail: Trail) -> dict[str, Json]:
    """The members that mean something here."""
    if trail in _EMBEDDED_METADATA:
        return {name: value[name] for name in _METADATA_FIELDS if value.get(name)}
    members: dict[str, Json] = {
        name: member for name, member in value.items() if member is not None
    }
    if trail in _NAMED_REFERENCES and members.get("name") == "":
        del members["name"]
    metadata = as_object(members.get("metadata"))
    path = (*trail, "metadata")
    if metadata is not None and path in _EMBEDDED_METADATA and not _members(metadata, path):
        del members["metadata"]
    return members


def _is_same_scalar(one: Json, other: Json, trail: Trail) -> bool:
    if trail in _QUANTITIES or trail[:-1] in _QUANTITY_MAPS:
        left, right = as_amount(one), as_amount(other)
        if left is not None and right is not None:
            return left == right
    # 1 equals True and 1.0 to Python, and is another value on the wire.
    return type(one) is type(other) and one == other
