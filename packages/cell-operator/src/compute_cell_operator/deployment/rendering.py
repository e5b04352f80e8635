"""What a template gives to each of its Instances: labels, annotations and spec. Pure (cell.md 5.1).

One place for it, so that an Instance that is judged by its content is compared with exactly what a
new one would get.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from compute_api_types import labels
from compute_operator_kit.wire import JsonObject, member_object

# Set by the cell; a template that carries them means nothing by it.
_NOT_TEMPLATE: Final = frozenset({"location", "controller"})


@dataclass(frozen=True, slots=True)
class Rendered:
    """The part of an Instance that comes from the template; the cell adds the rest."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: JsonObject


def render(template: JsonObject) -> Rendered:
    """Fresh maps with every call; values inside `spec` are shared with the template."""
    metadata = member_object(template, "metadata")
    return Rendered(
        labels=_passed_on(metadata, "labels"),
        annotations=_passed_on(metadata, "annotations"),
        spec=without_cell_parts(member_object(template, "spec")),
    )


def without_cell_parts(spec: JsonObject) -> JsonObject:
    """A spec without what the cell sets in it."""
    return {key: value for key, value in spec.items() if key not in _NOT_TEMPLATE}


def _passed_on(metadata: JsonObject, name: str) -> Mapping[str, str]:
    """Keys of the template that reach an Instance: none of ours, but the two meant for it."""
    passing = labels.USER_ANNOTATIONS if name == "annotations" else ()
    return {
        key: text
        for key, text in member_object(metadata, name).items()
        if isinstance(text, str) and (not labels.is_reserved(key) or key in passing)
    }
