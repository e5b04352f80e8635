"""The objects that a list, a watch or a deletecollection selects.

Selectors are parsed once per request and matched against every object. Labels and names are kept
decoded beside an object's bytes, so only a selector on another field costs a decode.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from compute_sim_planes.api_server import api_errors
from compute_sim_planes.api_server.http.request import ApiRequest
from compute_sim_planes.api_server.selectors import (
    FieldRequirement,
    FieldSelectorError,
    LabelSelector,
    LabelSelectorError,
    parse_field_selector,
    parse_label_selector,
)
from compute_sim_planes.api_server.storage.records import StoredObject

_ALWAYS: Final = frozenset({"metadata.name", "metadata.namespace"})


@dataclass(frozen=True, slots=True)
class Selection:
    """Objects of one namespace (empty: all) that match both selectors."""

    namespace: str
    labels: LabelSelector
    fields: tuple[FieldRequirement, ...]

    @property
    def prefix(self) -> str:
        """The beginning of every selected key."""
        return f"{self.namespace}/" if self.namespace else ""

    @property
    def is_everything(self) -> bool:
        """Whether there is no selector, only a namespace."""
        return not self.labels.requirements and not self.fields

    def covers(self, stored: StoredObject) -> bool:
        """Whether an object of any namespace is selected."""
        if self.namespace and stored.namespace != self.namespace:
            return False
        return self.matches(stored)

    def matches(self, stored: StoredObject) -> bool:
        """Whether an object of the selected namespace matches the selectors."""
        if self.labels.requirements and not self.labels.matches(stored.labels):
            return False
        return all(_field_matches(requirement, stored) for requirement in self.fields)


def _field_matches(requirement: FieldRequirement, stored: StoredObject) -> bool:
    match requirement.path:
        case "metadata.name" | "name":
            return (stored.name == requirement.value) is requirement.is_equal
        case "metadata.namespace":
            return (stored.namespace == requirement.value) is requirement.is_equal
        case _:
            return requirement.matches(stored.decode())


def select(call: ApiRequest) -> Selection:
    """The selection of a request."""
    labels = call.query.get("labelSelector", "")
    fields = call.query.get("fieldSelector", "")
    try:
        return Selection(
            call.namespace,
            _parse_labels(labels),
            _parse_fields(fields, call.kind.selectable_fields),
        )
    except LabelSelectorError as error:
        raise api_errors.bad_request(str(error)) from error
    except FieldSelectorError as error:
        raise api_errors.bad_request(str(error)) from error


@lru_cache(maxsize=1024)
def _parse_labels(text: str) -> LabelSelector:
    return parse_label_selector(text)


@lru_cache(maxsize=1024)
def _parse_fields(text: str, selectable: tuple[str, ...]) -> tuple[FieldRequirement, ...]:
    if not text:
        return ()
    return parse_field_selector(text, _ALWAYS.union(selectable)).requirements
