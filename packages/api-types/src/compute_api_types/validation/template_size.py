"""Rule 66: the size limit of a template.

A template is copied into a deployment per city, to the hub and into every Instance, and cached by
each operator on the way: one of a megabyte costs the platform a hundred. The size is counted
without building the JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from compute_api_types.validation.errors import forbidden

if TYPE_CHECKING:
    from compute_api_types.validation.document import Json, Node
    from compute_api_types.validation.errors import Errors

# Below projection's limit of 256 KiB for spec and status: what is admitted can be shown.
LARGEST_TEMPLATE: Final = 192 * 1024
_DETAIL: Final = (
    "{size} bytes of JSON, at most {limit} are allowed; "
    "move large values into a ConfigMap or a Secret, or into the image"
)


def review_template_size(template: Node, largest: int) -> Errors:
    size = measure_json(template.content)
    if size > largest:
        yield forbidden(template.path, _DETAIL.format(size=size, limit=largest))


def derive_largest(stored: Node | None) -> int:
    """The limit for an update: a template that was stored larger may stay as large, not grow."""
    if stored is None:
        return LARGEST_TEMPLATE
    return max(LARGEST_TEMPLATE, measure_json(stored.content))


def measure_json(value: Json) -> int:
    """The bytes of a value as compact JSON; by a stack of our own, because a document may be
    nested deeper than Python recurses.
    """
    size = 0
    waiting: list[Json] = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, str):
            size += _measure_text(inner)
        elif isinstance(inner, Mapping):
            # Braces, a colon after each name and a comma before each but the first.
            size += 2 + max(0, 2 * len(inner) - 1) + sum(map(_measure_text, inner))
            waiting.extend(inner.values())
        elif isinstance(inner, Sequence):
            size += 2 + max(0, len(inner) - 1)
            waiting.extend(inner)
        else:
            size += _measure_scalar(inner)
    return size


def _measure_scalar(value: float | bool | None) -> int:
    if value is None or value is True:
        return 4
    if value is False:
        return 5
    if isinstance(value, int):
        # Printing a very long integer is slow; its bits give the number of digits closely enough.
        return max(1, value.bit_length() * 3 // 10 + 1)
    return len(repr(value))


def _measure_text(text: str) -> int:
    """With quotes; characters that JSON escapes count as two."""
    escaped = text.count('"') + text.count("\\") + text.count("\n") + text.count("\t")
    return len(text.encode("utf-8", "surrogatepass")) + escaped + 2
