from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compute_api_types.depth import MAX_DEPTH, TOO_DEEP, is_too_deep
from compute_api_types.problems import MalformedObjectError
from compute_api_types.v1alpha.workload import Workload
from compute_api_types.wire import JsonValue

TRICKY = st.text(alphabet='{}[]"\\/ax\n\u00e9')
DOCUMENTS: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | TRICKY,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TRICKY, inner, max_size=3),
    max_leaves=20,
)


def measure(document: JsonValue) -> int:
    if isinstance(document, dict):
        return 1 + max(map(measure, document.values()), default=0)
    if isinstance(document, list):
        return 1 + max(map(measure, document), default=0)
    return 0


def wrap(document: JsonValue, levels: int) -> JsonValue:
    for level in range(levels):
        document = [document, "]}"] if level % 2 else {'"{[': document, "x": "{{"}
    return document


@given(DOCUMENTS, st.booleans())
def test_the_limit_is_met_at_its_very_level_whatever_strings_hold(
    document: JsonValue, is_ascii: bool
) -> None:
    room = MAX_DEPTH - measure(document)
    fits = json.dumps(wrap(document, room), ensure_ascii=is_ascii).encode()
    deeper = json.dumps(wrap(document, room + 1), ensure_ascii=is_ascii).encode()

    assert not is_too_deep(fits)
    assert is_too_deep(deeper)


def test_what_is_wide_is_not_deep() -> None:
    assert not is_too_deep(json.dumps([[{"a": [{}, "}]"]}]] * 5000).encode())


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 1000, 100_000])
def test_a_model_refuses_what_is_too_deep_by_the_limit(depth: int) -> None:
    text = '{"a":' + "[" * (depth - 1) + "]" * (depth - 1) + "}"

    with pytest.raises(MalformedObjectError) as refused:
        Workload.read_json(text)

    assert str(refused.value) == f"reading Workload: Invalid value: must not be {TOO_DEEP}"
