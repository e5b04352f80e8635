"""The project of an admission request, from the extra of its user (`docs/spec/api.md` 12.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from compute_api_types.labels import PARENT_NAME_EXTRA, PARENT_TYPE_EXTRA
from compute_api_types.names import is_dns_label
from compute_api_types.validation.document import as_list, as_text
from compute_api_types.validation.facts import CannotDecide

if TYPE_CHECKING:
    from compute_api_types.validation.document import Document

_PROJECT: Final = "Project"
NO_PROJECT: Final = CannotDecide(
    f"the request names no project: user extra {PARENT_NAME_EXTRA} is required"
)


def parse_project(extra: Document) -> str | CannotDecide:
    """The one project that user extra names; an ambiguous extra names none."""
    names = as_list(extra.get(PARENT_NAME_EXTRA))
    types = as_list(extra.get(PARENT_TYPE_EXTRA))
    if extra.get(PARENT_TYPE_EXTRA) is not None and list(types) != [_PROJECT]:
        return NO_PROJECT
    if len(names) != 1 or not is_dns_label(as_text(names[0])):
        return NO_PROJECT
    return as_text(names[0])
