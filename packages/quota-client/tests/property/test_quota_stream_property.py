"""A stream cut into any pieces gives the same events, and no input ends the process."""

import json
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compute_quota_client._stream import (
    MAX_LINE,
    Bookmark,
    GarbageLineError,
    LineSplitter,
    StreamError,
    parse_line,
)

LINES = st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line), max_size=8)


@given(LINES, st.lists(st.integers(min_value=0, max_value=200)))
def test_lines_do_not_depend_on_where_the_stream_is_cut(
    lines: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    places = sorted({min(cut, len(stream)) for cut in cuts} | {0, len(stream)})
    splitter, split = LineSplitter(), list[bytes]()
    for start, end in pairwise(places):
        split += splitter.feed(stream[start:end])
    assert split == [line for line in lines if line.strip()]


@given(st.binary(max_size=200))
def test_no_line_raises_anything_but_that_it_is_garbage(line: bytes) -> None:
    with suppress(GarbageLineError):
        parse_line(line)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["type", "object", "kind", "metadata", "spec", "code"]), inner
            )
        ),
        max_leaves=12,
    ),
    st.sampled_from(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "NEW"]),
)
def test_no_event_raises_anything_but_that_it_is_garbage(body: object, kind: str) -> None:
    try:
        event = parse_line(json.dumps({"type": kind, "object": body}).encode())
    except GarbageLineError:
        return
    assert isinstance(event, Bookmark | StreamError)


def test_characters_that_end_lines_elsewhere_do_not_end_one_here() -> None:
    text = json.dumps({"x": "a\u2028b\u0085c"}, ensure_ascii=False).encode()
    assert list(LineSplitter().feed(text + b"\n")) == [text]


def test_a_line_without_end_is_garbage() -> None:
    with pytest.raises(GarbageLineError):
        LineSplitter().feed(b"x" * (MAX_LINE + 1))
