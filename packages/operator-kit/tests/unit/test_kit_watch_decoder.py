from __future__ import annotations

import orjson
import pytest

from compute_operator_kit.client.interface import (
    Bookmark,
    Expired,
    ObjectDeleted,
    ObjectUpserted,
    UndecodableObject,
    WatchEvent,
)
from compute_operator_kit.client.watch_decoder import LineSplitter, parse_event
from compute_operator_kit.core.errors import UnavailableError
from compute_operator_kit.core.json import UndecodableError
from compute_operator_kit.core.keys import PlaneName
from compute_operator_kit.testing.fakes import A_KIND, a_snapshot

HUB = PlaneName("hub")


def parse(line: bytes) -> WatchEvent:
    return parse_event(HUB, A_KIND, line)


def a_line(word: str = "ADDED", **metadata: object) -> bytes:
    body = a_snapshot(spec={"text": "ü"}).decode()
    defaults = body["metadata"]
    assert isinstance(defaults, dict)
    body["metadata"] = {**defaults, **metadata}  # type: ignore[dict-item]  # whatever a server sends
    return b'{"type":"' + word.encode() + b'","object":' + orjson.dumps(body) + b"}"


@pytest.mark.parametrize("word", ["ADDED", "MODIFIED"])
def test_an_added_and_a_modified_object_are_the_same_event(word: str) -> None:
    event = parse(a_line(word))
    assert isinstance(event, ObjectUpserted)
    assert event.received.snapshot.key.name == "web"
    assert event.received.snapshot.key.plane == "hub"
    assert event.received.body["spec"] == {"text": "ü"}


def test_the_bytes_of_the_object_are_those_of_the_line() -> None:
    line = a_line()
    event = parse(line)
    assert isinstance(event, ObjectUpserted)
    assert event.received.snapshot.raw in line
    assert event.received.snapshot.decode() == event.received.body


def test_a_deleted_object_is_removed() -> None:
    assert isinstance(parse(a_line("DELETED")), ObjectDeleted)


def test_managed_fields_are_not_kept() -> None:
    event = parse(a_line(managedFields=[{"manager": "kubectl"}]))
    assert isinstance(event, ObjectUpserted)
    assert b"managedFields" not in event.received.snapshot.raw


@pytest.mark.fault("B3")
def test_a_bookmark_is_no_object() -> None:
    body = {"kind": "Note", "apiVersion": "v1", "metadata": {"resourceVersion": "77"}}
    event = parse(orjson.dumps({"type": "BOOKMARK", "object": body}))
    assert event == Bookmark("77")


@pytest.mark.fault("B6")
def test_an_error_event_of_410_asks_for_a_new_list() -> None:
    line = orjson.dumps({"type": "ERROR", "object": {"kind": "Status", "code": 410}})
    assert parse(line) == Expired()


@pytest.mark.fault("B8")
def test_another_error_event_ends_the_stream() -> None:
    line = orjson.dumps({"type": "ERROR", "object": {"kind": "Status", "code": 500}})
    with pytest.raises(UnavailableError, match="500"):
        parse(line)


@pytest.mark.parametrize(
    "line",
    [
        b'{ "object" : %s, "type" : "ADDED" }',
        b'{"type":"ADDED","object":%s,"extra":{"a":1}}',
        b'{"type":"ADDED", "object":%s}',
    ],
)
def test_another_spelling_of_an_event_is_understood(line: bytes) -> None:
    event = parse(line.replace(b"%s", a_snapshot().raw))
    assert isinstance(event, ObjectUpserted)
    assert event.received.snapshot.key.name == "web"


@pytest.mark.fault("B8")
@pytest.mark.parametrize(
    "line",
    [
        b"garbage",
        b"\xff\xfe\x00",
        b'{"type":"ADDED","object":{"metadata":{"na',
        b'{"type":"ADDED"}',
        b'{"type":"ADDED","object":[]}',
        b'{"type":"NOISE","object":{}}',
        b'{"type":"","object":{}}',
        b"[]",
        b"null",
    ],
)
def test_a_line_that_is_no_event_ends_the_stream(line: bytes) -> None:
    with pytest.raises(UndecodableError):
        parse(line)


@pytest.mark.parametrize(
    "body",
    [
        {"metadata": None},
        {"metadata": {"resourceVersion": "5"}},
        {"metadata": {"name": "web", "resourceVersion": "5"}},
        {"metadata": {"name": 7, "namespace": "default", "resourceVersion": "5"}},
    ],
)
def test_an_object_that_cannot_be_read_does_not_end_the_stream(body: dict[str, object]) -> None:
    event = parse(orjson.dumps({"type": "ADDED", "object": body}))
    assert isinstance(event, UndecodableObject)


def test_the_error_text_quotes_nothing_of_the_line() -> None:
    with pytest.raises(UndecodableError) as raised:
        parse(b'{"type":"ADDED","object":{"token":"s3cret"')
    assert "s3cret" not in str(raised.value)
    assert raised.value.__cause__ is None


def test_lines_are_cut_at_their_ends_and_empty_ones_left_out() -> None:
    splitter = LineSplitter()
    assert list(splitter.feed(b"one\ntw")) == [b"one"]
    assert list(splitter.feed(b"o\n\nthree\n")) == [b"two", b"three"]
    assert list(splitter.feed(b"four")) == []
    assert list(splitter.feed(b"\n")) == [b"four"]


def test_a_line_without_end_is_not_kept_for_ever() -> None:
    splitter = LineSplitter(longest=10)
    list(splitter.feed(b"12345"))
    with pytest.raises(UndecodableError, match="over 10 bytes"):
        splitter.feed(b"678901")
