"""An answer is the same however the network cuts it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compute_operator_kit.client.transport.response_parser import AnswerReader, GarbledAnswerError

LARGEST = 1 << 20
BODIES = st.binary(max_size=300)


def counted(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX-A: b\r\n\r\n%b" % (len(body), body)


def chunked(pieces: list[bytes]) -> bytes:
    head = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunks = b"".join(b"%x;ext=1\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece)
    return head + chunks + b"0\r\n\r\n"


def read_cut(raw: bytes, cuts: list[int]) -> AnswerReader:
    """Feeds the bytes in pieces that end at these places; stops when the answer is complete."""
    reader = AnswerReader(LARGEST)
    places = sorted({min(cut, len(raw)) for cut in cuts} | {len(raw)})
    begin = 0
    for place in places:
        if place > begin:
            assert not reader.is_complete
            reader.feed(raw[begin:place])
        begin = place
    return reader


@given(BODIES, st.lists(st.integers(0, 400), max_size=12))
def test_an_answer_of_a_known_length_is_read_whole(body: bytes, cuts: list[int]) -> None:
    reader = read_cut(counted(body), cuts)
    assert (reader.status, reader.body, reader.headers["x-a"]) == (200, body, "b")
    assert reader.is_complete
    assert reader.is_reusable


@given(st.lists(BODIES, max_size=4), st.lists(st.integers(0, 1500), max_size=12))
def test_an_answer_in_chunks_is_read_whole(pieces: list[bytes], cuts: list[int]) -> None:
    reader = read_cut(chunked(pieces), cuts)
    assert (reader.status, reader.body) == (201, b"".join(pieces))
    assert reader.is_complete
    assert reader.is_reusable


@given(st.binary(max_size=400))
def test_whatever_arrives_is_an_answer_or_garbled(raw: bytes) -> None:
    reader = AnswerReader(LARGEST)
    try:
        reader.feed(raw)
    except GarbledAnswerError:
        return
    assert reader.status == 0 or reader.status >= 100


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n no name: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabcd",
        b"x" * (1 << 17),
    ],
)
@pytest.mark.fault("D5")
def test_what_is_no_answer_is_not_believed(head: bytes) -> None:
    with pytest.raises(GarbledAnswerError):
        AnswerReader(LARGEST).feed(head)


def test_an_interim_answer_is_ignored() -> None:
    reader = AnswerReader(LARGEST)
    reader.feed(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + counted(b"late"))
    assert (reader.status, reader.body) == (200, b"late")


def test_an_answer_without_a_length_ends_with_the_connection() -> None:
    reader = AnswerReader(LARGEST)
    reader.feed(b"HTTP/1.0 200 OK\r\n\r\nhalf")
    assert not reader.is_complete
    assert reader.end()
    assert reader.body == b"half"
    assert not reader.is_reusable


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nb",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nTrailer: x\r\n\r\n",
    ],
)
def test_a_connection_that_closes_or_says_more_is_not_used_again(head: bytes) -> None:
    reader = AnswerReader(LARGEST)
    reader.feed(head)
    assert reader.is_complete
    assert not reader.is_reusable


@pytest.mark.fault("F4")
def test_a_body_beyond_all_bounds_is_cut() -> None:
    reader = AnswerReader(8)
    reader.feed(counted(b"0123456789abcdef")[:-2])
    assert reader.is_complete
    assert len(reader.body) > 8
    assert not reader.is_reusable


def test_an_answer_that_may_have_no_body_has_none() -> None:
    reader = AnswerReader(LARGEST)
    reader.feed(b"HTTP/1.1 204 No Content\r\n\r\n")
    assert reader.is_complete
    assert reader.body == b""
