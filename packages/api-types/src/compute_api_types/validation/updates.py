"""Which errors an update brings in (`docs/spec/api.md` 12.2).

A stored object may have errors from before a rule existed, or lose a city later. Its owner must
still be able to edit its other fields, so an update is refused only for errors that the stored
object does not have.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

from compute_api_types.validation.document import Amount, root
from compute_api_types.validation.equality import is_same_spec
from compute_api_types.validation.rendering import render

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from compute_api_types.validation.document import Document, Json
    from compute_api_types.validation.errors import Errors, FieldError

    Identity: TypeAlias = tuple[Hashable, ...]


def is_admitted_unread(wanted: Document, found: Document | None) -> bool:
    """Whether nothing needs to be read or checked (12.2, 1): finalizers can always be removed."""
    if found is None:
        return False
    deleting = root(wanted).section("metadata").has("deletionTimestamp")
    return deleting or is_same_spec(wanted.get("spec"), found.get("spec"))


def new_errors(wanted: Iterable[FieldError], found: Iterable[FieldError]) -> Errors:
    """The multiset difference in the order of `wanted`, earlier ones cancelled first (12.2, 2).

    Two placements named `a` are one error, three are two: the second, which was there before, is
    cancelled and the third is reported.
    """
    known = Counter(_identity(error) for error in found)
    for error in wanted:
        identity = _identity(error)
        if known[identity]:
            known[identity] -= 1
        else:
            yield error


def _identity(error: FieldError) -> Identity:
    return (error.kind, error.path.identity, *_value_identity(error.value))


def _value_identity(value: Json | Amount) -> Identity:
    if isinstance(value, Amount):
        return ("amount", value.exact)
    if isinstance(value, str | int | float | None):
        # 1 equals True to Python, and is another value on the wire.
        return (type(value).__name__, value)
    # Lists and objects occur only where another type was expected: their rendered text is identity
    # enough.
    return ("nested", render(value))
