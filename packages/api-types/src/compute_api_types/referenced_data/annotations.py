"""Annotations of a hub WorkloadDeployment about its referenced data (`docs/spec/referenced-data.md`
4), as typed values.

The management operator renders them, a cell parses them. Between the two anything may write to the
copy, so that a text which is not one of ours parses to None and never raises: a cell must not take
a broken list for an empty one and start an Instance without its data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from compute_api_types.referenced_data.references import CONFIG_MAP, MOST_REFERENCES, SECRET

if TYPE_CHECKING:
    from collections.abc import Iterable

_KINDS: Final = frozenset({CONFIG_MAP, SECRET})
# 64 names of 253 characters with a UID each take less than a third of it.
LONGEST_TEXT: Final = 65_536


@dataclass(frozen=True, slots=True)
class DataError:
    """Why referenced data cannot be delivered."""

    reason: str
    message: str


def parse_expected(text: str | None) -> tuple[str, ...] | None:
    """The tokens of `expected-referenced-data`; None where it is absent or malformed."""
    value = _decode(text)
    if not isinstance(value, list):
        return None
    tokens = cast("list[object]", value)
    if len(tokens) > MOST_REFERENCES:
        return None
    parsed = tuple(token for token in tokens if isinstance(token, str) and _is_token(token))
    return parsed if len(parsed) == len(tokens) else None


def parse_versions(text: str | None) -> Mapping[str, str] | None:
    """`expected-referenced-versions`: source version by token; None where it is malformed.

    Absent means that no version is expected.
    """
    if text is None:
        return {}
    value = _decode(text)
    if not isinstance(value, dict):
        return None
    entries = cast("dict[str, object]", value)
    return None if not _are_texts(entries.values()) else cast("dict[str, str]", entries)


def parse_error(text: str | None) -> DataError | None:
    """`referenced-data-error`; None where it is absent or malformed."""
    value = _decode(text)
    if not isinstance(value, dict):
        return None
    members = cast("dict[str, object]", value)
    reason, message = members.get("reason"), members.get("message")
    if not isinstance(reason, str) or not isinstance(message, str) or not reason:
        return None
    return DataError(reason, message)


def render_expected(tokens: Iterable[str]) -> str:
    return _encode(list(tokens))


def render_versions(versions: Mapping[str, str]) -> str:
    return _encode(dict(versions))


def render_error(error: DataError) -> str:
    return _encode({"message": error.message, "reason": error.reason})


def is_at_least(existing: str, expected: str) -> bool:
    """Whether a copy with one source version is as new as expected.

    Resource versions of one object grow (ADR `compare-resource-versions-as-integers`); a version
    of another form, or of another object, must be equal.

    Example: `u/12` is at least `u/9`, and neither `v/12` nor `u/x` is.
    """
    uid, version = _split(existing)
    expected_uid, expected_version = _split(expected)
    if version is None or expected_version is None or uid != expected_uid:
        return existing == expected
    return version >= expected_version


def _split(version: str) -> tuple[str, int | None]:
    uid, _, number = version.rpartition("/")
    is_number = number.isascii() and number.isdigit() and len(number) <= 20
    return uid, int(number) if is_number else None


def _is_token(text: str) -> bool:
    kind, _, name = text.partition("/")
    return kind in _KINDS and bool(name)


def _are_texts(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def _decode(text: str | None) -> object:
    if text is None or len(text) > LONGEST_TEXT:
        return None
    try:
        return cast("object", json.loads(text))
    except (ValueError, RecursionError):
        return None


def _encode(value: Mapping[str, str] | Sequence[str]) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
