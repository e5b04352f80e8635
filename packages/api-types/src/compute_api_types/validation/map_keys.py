"""Rule 69: the keys of maps in a template are qualified names, as those of labels are.

Karmada splits what an interpreter returns at some characters, so that one key such as `a|b` would
break the copy of the whole deployment in its cell (`docs/spec/autoscaling.md` 1).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from compute_api_types.validation.errors import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compute_api_types.validation.document import Node
    from compute_api_types.validation.errors import Errors

_LONGEST_PREFIX: Final = 253
_PREFIX: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_DETAIL: Final = (
    "must be a qualified name: at most 63 letters, digits, '-', '_' and '.', which may follow a "
    "DNS subdomain and '/'"
)


def review_map_keys(template: Node) -> Errors:
    for holder, name in _maps(template):
        for key in sorted(holder.members(name)):
            if not is_qualified(key):
                yield invalid(holder.path.field(name).key(key), key, _DETAIL)


def is_qualified(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > _LONGEST_PREFIX or _PREFIX.fullmatch(prefix) is None):
        return False
    return _NAME.fullmatch(name) is not None


def _maps(template: Node) -> Iterator[tuple[Node, str]]:
    spec = template.section("spec")
    yield from _metadata_maps(template)
    for volume in spec.elements("volumes"):
        disk = volume.section("disk").section("template")
        yield from _metadata_maps(disk)
        yield disk.section("spec").section("resources"), "requests"
    runtime = spec.section("runtime")
    yield runtime.section("resources"), "requests"
    for container in runtime.section("sandbox").elements("containers"):
        yield container.section("resources"), "requests"
        yield container.section("resources"), "limits"


def _metadata_maps(holder: Node) -> Iterator[tuple[Node, str]]:
    metadata = holder.section("metadata")
    yield metadata, "labels"
    yield metadata, "annotations"
