"""Judges Instances that another operator made, by what they contain. Pure (cell.md 5.3).

A hash of an algorithm that is not ours cannot be compared with the template. Were it stale, a cell
that changes its operator would restart every Instance in it, although each runs as asked.

```
 recorded hash ─► ours by its form             judged as a hash
               ─► another's, ours beside it    judged by ours, the annotation of an adopted Instance
               ─► another's                    compared with what the template renders
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
from compute_cell_operator.deployment.rendering import Rendered, render, without_cell_parts
from compute_operator_kit.objects import Metadata
from compute_operator_kit.wire import Json, JsonObject, member_object, member_text

SCHEMA_DEFAULTS: Final[Mapping[tuple[str, ...], Mapping[str, str]]] = MappingProxyType(
    {("volumes", "[]", "disk", "template", "spec"): MappingProxyType({"type": "pd-standard"})}
)
"""Defaults of our CRDs in the spec of a template, by path; empty ones are no content anyway."""

_AMOUNTS: Final = frozenset({("resources", "limits"), ("resources", "requests")})


@dataclass(frozen=True, slots=True)
class Judged:
    """What an Instance is to the current template."""

    verdict: HashVerdict
    is_unmarked: bool = False  # current by its content alone: our hash is not beside it yet


def judge_instance(
    metadata: Metadata,
    spec: JsonObject,
    template: JsonObject,
    judge: Callable[[str], HashVerdict],
) -> Judged:
    """The verdict on an Instance; `judge` is that of the template on a recorded hash."""
    recorded = member_text(member_object(spec, "controller"), "templateHash")
    if not recorded or is_template_hash(recorded):
        return Judged(judge(recorded))
    adopted = metadata.annotations.get(labels.ADOPTED_TEMPLATE_HASH, "")
    if is_template_hash(adopted):
        return Judged(judge(adopted))
    if is_made_as(render(template), metadata, spec):
        return Judged(HashVerdict.CURRENT, is_unmarked=True)
    return Judged(HashVerdict.STALE)


def is_made_as(rendered: Rendered, metadata: Metadata, spec: JsonObject) -> bool:
    """Whether an Instance has what would be rendered; labels and annotations of others aside."""
    return (
        _has_all(metadata.labels, rendered.labels)
        and _has_all(metadata.annotations, rendered.annotations)
        and _has_no_more(metadata.annotations, rendered.annotations)
        and normalise(spec) == normalise(rendered.spec)
    )


def _has_all(found: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return all(found.get(key) == text for key, text in wanted.items())


def _has_no_more(found: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Of the keys that only a template gives: another owner cannot have set them."""
    return all(found.get(key) == wanted.get(key) for key in labels.USER_ANNOTATIONS)


def normalise(spec: JsonObject) -> Json:
    """The content of a spec: schema defaults filled in, amounts by their value, nothing empty.

    Example: limits of `1000m` and of `1` are the same content.
    """
    return without_empty(_spell_out(without_cell_parts(spec), ()))


def _spell_out(value: Json, path: tuple[str, ...]) -> Json:
    if isinstance(value, list):
        return [_spell_out(element, (*path, "[]")) for element in value]
    if not isinstance(value, dict):
        return _read_amount(value) if path[-3:-1] in _AMOUNTS else value
    stated = {key: inner for key, inner in value.items() if inner is not None}
    filled: JsonObject = {**SCHEMA_DEFAULTS.get(path, {}), **stated}
    return {key: _spell_out(inner, (*path, key)) for key, inner in filled.items()}


def _read_amount(value: Json) -> Json:
    """An amount in one spelling; what is none is compared as it is written."""
    try:
        return str(parse_quantity(value))
    except QuantityError:
        return value
