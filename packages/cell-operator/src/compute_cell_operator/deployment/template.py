"""What a template gives to its Instances, and whether an existing Instance has it. Pure (cell.md
5.1, 5.3).

A template hash of another operator cannot be compared with ours. If it counted as stale, a cell
that changes its operator would restart all its Instances, although each runs its template.

```
 recorded hash ─► of our form                        compared as a hash
               ─► of another, ours in an annotation  compared by ours: an adopted Instance
               ─► of another                         content compared with the rendered template
```
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from compute_api_types import labels
from compute_api_types.quantity import QuantityError, parse_quantity
from compute_api_types.template_hash import HashVerdict, is_template_hash, without_empty
from compute_operator_kit.core.json import Json, JsonObject, member_object, member_text
from compute_operator_kit.core.objects import Metadata

# Set by the cell on Instances; in a template they have no meaning.
_CELL_FIELDS: Final = frozenset({"location", "controller"})

SCHEMA_DEFAULTS: Final[Mapping[tuple[str, ...], Mapping[str, str]]] = MappingProxyType(
    {("volumes", "[]", "disk", "template", "spec"): MappingProxyType({"type": "pd-standard"})}
)
"""Defaults of our CRDs in the spec of a template, by path; empty ones are no content anyway."""

_AMOUNTS: Final = frozenset({("resources", "limits"), ("resources", "requests")})


@dataclass(frozen=True, slots=True)
class RenderedTemplate:
    """The part of an Instance that comes from the template; the cell adds the rest."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: JsonObject


def render(template: JsonObject) -> RenderedTemplate:
    """New maps with every call; values inside `spec` are shared with the template."""
    metadata = member_object(template, "metadata")
    return RenderedTemplate(
        labels=_inherited(metadata, "labels"),
        annotations=_inherited(metadata, "annotations"),
        spec=_without_cell_fields(member_object(template, "spec")),
    )


def _without_cell_fields(spec: JsonObject) -> JsonObject:
    return {key: value for key, value in spec.items() if key not in _CELL_FIELDS}


def _inherited(metadata: JsonObject, name: str) -> Mapping[str, str]:
    """Keys of the template that reach an Instance: no reserved one, except those for users."""
    allowed = labels.USER_ANNOTATIONS if name == "annotations" else ()
    return {
        key: text
        for key, text in member_object(metadata, name).items()
        if isinstance(text, str) and (not labels.is_reserved(key) or key in allowed)
    }


# --- comparing ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InstanceRevision:
    """What an Instance is to the current template."""

    verdict: HashVerdict
    is_unmarked: bool = False  # current by its content alone: it does not carry our hash yet


def derive_revision(
    metadata: Metadata,
    spec: JsonObject,
    rendered: RenderedTemplate,
    compare: Callable[[str], HashVerdict],
) -> InstanceRevision:
    """The revision of an Instance; `compare` compares a recorded hash with the template."""
    recorded = member_text(member_object(spec, "controller"), "templateHash")
    if not recorded or is_template_hash(recorded):
        return InstanceRevision(compare(recorded))
    adopted = metadata.annotations.get(labels.ADOPTED_TEMPLATE_HASH, "")
    if is_template_hash(adopted):
        return InstanceRevision(compare(adopted))
    if has_content_of(rendered, metadata, spec):
        return InstanceRevision(HashVerdict.CURRENT, is_unmarked=True)
    return InstanceRevision(HashVerdict.STALE)


def has_content_of(rendered: RenderedTemplate, metadata: Metadata, spec: JsonObject) -> bool:
    """Whether an Instance has the rendered content; labels and annotations of others aside."""
    return (
        _has_all(metadata.labels, rendered.labels)
        and _has_all(metadata.annotations, rendered.annotations)
        and _has_no_more(metadata.annotations, rendered.annotations)
        and normalise(spec) == normalise(rendered.spec)
    )


def _has_all(existing: Mapping[str, str], desired: Mapping[str, str]) -> bool:
    return all(existing.get(key) == text for key, text in desired.items())


def _has_no_more(existing: Mapping[str, str], desired: Mapping[str, str]) -> bool:
    """Of the keys that only a template gives: no other owner can have set them."""
    return all(existing.get(key) == desired.get(key) for key in labels.USER_ANNOTATIONS)


def normalise(spec: JsonObject) -> Json:
    """The content of a spec: schema defaults filled in, amounts by their value, nothing empty.

    Example: limits of `1000m` and of `1` are the same content.
    """
    return without_empty(_spell_out(_without_cell_fields(spec), ()))


def _spell_out(value: Json, path: tuple[str, ...]) -> Json:
    if isinstance(value, list):
        return [_spell_out(element, (*path, "[]")) for element in value]
    if not isinstance(value, dict):
        return _read_amount(value) if path[-3:-1] in _AMOUNTS else value
    stated = {key: inner for key, inner in value.items() if inner is not None}
    filled: JsonObject = {**SCHEMA_DEFAULTS.get(path, {}), **stated}
    return {key: _spell_out(inner, (*path, key)) for key, inner in filled.items()}


def _read_amount(value: Json) -> Json:
    """An amount in one spelling; any other value is compared as it is written."""
    try:
        return str(parse_quantity(value))
    except QuantityError:
        return value
