from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from compute_operator_kit.client.watch_decoder import LineSplitter

LINES = st.lists(st.binary(min_size=1, max_size=20).filter(lambda line: b"\n" not in line))


@given(lines=LINES, cuts=st.lists(st.integers(0, 400)))
def test_lines_are_the_same_however_the_stream_is_cut(lines: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    chunks = [stream[begin:end] for begin, end in itertools.pairwise(edges)]
    splitter = LineSplitter()
    assert [line for chunk in chunks for line in splitter.feed(chunk)] == lines
