"""The template hash, which distinguishes a current Instance from a stale one (`docs/spec/cell.md`
5.3).

It is taken over the template as served, without empty values, so that a field or default added to
the API replaces no Instance. Pure; the cell decides whether an Instance is replaced.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from enum import Enum
from hashlib import sha256
from typing import Final

from compute_api_types.wire import JsonObject, JsonValue

# Of a newer version only the number is known; any text may follow it.
_VERSIONED: Final = re.compile(r"v([1-9][0-9]{0,8})-.+")

# Set by the cell on its Instances; without meaning in a template.
_NOT_TEMPLATE: Final = frozenset({"location", "controller"})


class HashVerdict(Enum):
    """What the hash of an Instance means for it."""

    CURRENT = "current"
    STALE = "stale"
    NOT_JUDGED = "not judged"
    """Made by a newer release than this one: neither rolled nor counted as updated."""


def is_template_hash(text: str) -> bool:
    """Whether a hash has our form, of a version that is known or not; another operator's has not.

    Example: `v1-e62289ef41fe51b0` has, `55fdb58d85` has not.
    """
    return _VERSIONED.fullmatch(text) is not None


def derive_template_hash(template: JsonValue) -> str:
    """The hash of `spec.template` as the API server served it.

    Example: specs `{"a": 0, "b": ""}` and `{"a": 0}` have the same hash, `{}` has another.
    """
    return _stamp(len(ALGORITHMS), template)


def judge_template_hash(found: str | None, template: JsonValue) -> HashVerdict:
    """Whether an instance with this hash was made from this template.

    The algorithm before the newest is read too, so that an upgrade of the operator rolls nothing.
    """
    parts = _VERSIONED.fullmatch(found or "")
    version, newest = int(parts[1]) if parts else 0, len(ALGORITHMS)
    if version > newest:
        return HashVerdict.NOT_JUDGED
    is_read = version in {newest, newest - 1} and version > 0
    is_current = is_read and found == _stamp(version, template)
    return HashVerdict.CURRENT if is_current else HashVerdict.STALE


def _stamp(version: int, template: JsonValue) -> str:
    return f"v{version}-{ALGORITHMS[version - 1](template)}"


def _digest_v1(template: JsonValue) -> str:
    kept = without_empty(_meaningful(template))
    # Unescaped and sorted by code point, which is Python's order of strings.
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    # A lone surrogate can be parsed from JSON and has no UTF-8 form: no reason for a traceback.
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _meaningful(template: JsonValue) -> JsonObject:
    document = _mapping(template)
    metadata, spec = _mapping(document.get("metadata")), _mapping(document.get("spec"))
    return {
        "metadata": {key: metadata.get(key) for key in ("labels", "annotations")},
        "spec": {key: value for key, value in spec.items() if key not in _NOT_TEMPLATE},
    }


def _mapping(value: JsonValue) -> Mapping[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def without_empty(document: JsonValue) -> JsonValue:
    """The document without empty map entries, bottom-up; list elements, 0 and false stay."""
    if isinstance(document, list):
        return [without_empty(element) for element in document]
    if not isinstance(document, dict):
        return document
    kept = {key: without_empty(value) for key, value in document.items()}
    return {key: value for key, value in kept.items() if not _is_empty(value)}


def _is_empty(value: JsonValue) -> bool:
    return value is None or value in ("", {}, [])


# Version n is the n-th; the last one is written. A change to the result of one of them replaces
# every Instance: a new rule is a new entry.
ALGORITHMS: tuple[Callable[[JsonValue], str], ...] = (_digest_v1,)
