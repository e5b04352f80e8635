from __future__ import annotations

import orjson
import pytest

from compute_api_types.depth import MAX_DEPTH, TOO_DEEP
from compute_operator_kit.core.json import (
    JsonObject,
    JsonValue,
    UndecodableError,
    decode_json_object,
    encode,
)
from compute_operator_kit.core.keys import Kind, PlaneName
from compute_operator_kit.core.object_decoder import (
    MOST_WRITTEN,
    awaiting_response,
    decode_event,
    decode_object,
    decode_written,
    peek_status,
    split_page,
)
from compute_operator_kit.core.objects import ReceivedObject, parse_object
from compute_operator_kit.testing.fakes import A_KIND, a_snapshot

HUB = PlaneName("hub")
OTHER_KIND = Kind("example.datumapis.com", "v1", "letters", "Letter")
MANAGED: list[JsonValue] = [{"manager": "kubectl", "fieldsV1": {"f:spec": {"f:text": {}}}}]
WHOLE: dict[str, JsonValue] = {
    "name": "web",
    "namespace": "default",
    "uid": "u1",
    "resourceVersion": "7",
    "generation": 2,
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "deletionTimestamp": "2026-01-01T00:00:01Z",
    "labels": {"a": "b"},
    "annotations": {"c": "ü"},
    "finalizers": ["x/y"],
    "ownerReferences": [
        {"apiVersion": "v1", "kind": "Note", "name": "root", "uid": "u0", "controller": True},
        {"apiVersion": "v1", "kind": "Note", "name": "aunt", "uid": "u2"},
    ],
}


def a_body(metadata: dict[str, JsonValue] | None = None, **members: JsonValue) -> JsonObject:
    body: dict[str, JsonValue] = {
        "apiVersion": A_KIND.api_version,
        "kind": A_KIND.kind,
        "metadata": {**WHOLE, **(metadata or {})},
        "spec": {"text": "ü", "list": [1, 2.5, None, True]},
        **members,
    }
    return decode_json_object(encode(body))


def slowly(raw: bytes) -> ReceivedObject:
    return parse_object(HUB, A_KIND, decode_json_object(raw), raw)


def is_equal(decoded: ReceivedObject, wanted: ReceivedObject) -> bool:
    same_header = decoded.snapshot.metadata == wanted.snapshot.metadata
    return (
        same_header and decoded.body == wanted.body and decoded.snapshot.key == wanted.snapshot.key
    )


def test_an_object_at_the_limit_of_depth_is_read_and_a_deeper_one_refused() -> None:
    inner = MAX_DEPTH - 2  # the object itself and its spec are levels, too
    raw = encode(a_body(spec={"deep": "?"}))
    fits, deeper = (raw.replace(b'"?"', b"[" * n + b"]" * n) for n in (inner, inner + 1))

    snapshot = decode_object(HUB, A_KIND, fits).snapshot
    assert encode(snapshot.decode())  # what is read can be written
    with pytest.raises(UndecodableError, match=f"decoding JSON: {TOO_DEEP}"):
        decode_object(HUB, A_KIND, deeper)
    (piece,) = split_page(b'{"metadata":{},"items":[%b]}' % deeper).items
    with pytest.raises(UndecodableError, match=TOO_DEEP):
        decode_object(HUB, A_KIND, piece)


@pytest.mark.parametrize("managed", [None, MANAGED])
def test_the_header_and_the_rest_are_those_of_a_full_decode(managed: JsonValue) -> None:
    raw = encode(a_body({"managedFields": managed} if managed else {}))
    quick = decode_object(HUB, A_KIND, raw)
    assert quick.decoded is None  # nothing but the header was built
    assert is_equal(quick, slowly(raw))


@pytest.mark.parametrize(
    "metadata",
    [
        {"managedFields": MANAGED, **WHOLE},  # the first member
        {**WHOLE, "managedFields": MANAGED},  # the last one
        {"name": "web", "managedFields": MANAGED, "namespace": "default"},
    ],
)
def test_managed_fields_are_cut_out_wherever_they_stand(metadata: dict[str, JsonValue]) -> None:
    raw = encode({"apiVersion": "v1", "kind": "Note", "metadata": metadata, "spec": {}})
    kept = decode_object(HUB, A_KIND, raw).snapshot
    wanted = {key: value for key, value in metadata.items() if key != "managedFields"}
    assert kept.decode()["metadata"] == wanted
    assert len(kept.raw) == len(raw) - len(b'"managedFields":,') - len(encode(MANAGED))


@pytest.mark.parametrize(
    "body",
    [
        a_body({"managedFields": MANAGED}, spec={"managedFields": MANAGED}),
        a_body({"managedFields": MANAGED}, alpha={"managedFields": MANAGED}),
        a_body({"managedFields": MANAGED}, spec={'a"managedFields': MANAGED}),
        a_body({"managedFields": MANAGED, "annotations": {"managedFields": "x"}}),
        a_body({"managedFields": MANAGED, "annotations": {"x": '"managedFields":[]'}}),
        a_body({"managedFields": []}),
        a_body({"managedFields": None}),
    ],
)
def test_only_the_managed_fields_of_the_header_are_cut(body: JsonObject) -> None:
    raw = encode(body)
    assert is_equal(decode_object(HUB, A_KIND, raw), slowly(raw))


def test_an_item_of_a_list_gets_the_kind_it_does_not_carry() -> None:
    body = a_body({"managedFields": MANAGED})
    del body["apiVersion"], body["kind"]
    quick = decode_object(HUB, A_KIND, encode(body))
    assert quick.decoded is None
    assert quick.body["kind"] == A_KIND.kind
    assert quick.body["apiVersion"] == A_KIND.api_version


@pytest.mark.parametrize("missing", ["kind", "apiVersion"])
def test_half_a_kind_is_completed_the_slow_way(missing: str) -> None:
    body = a_body()
    del body[missing]
    assert decode_object(HUB, A_KIND, encode(body)).body == a_body()


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": ["a"]},
        {"labels": {"a": 7, "b": "c"}},
        {"generation": True},
        {"deletionTimestamp": None},
        {"ownerReferences": [7, {"uid": 5}]},
        {"finalizers": {"a": "b"}},
    ],
)
def test_wrong_types_in_a_header_count_as_not_there(metadata: dict[str, JsonValue]) -> None:
    raw = encode(a_body(metadata))
    assert is_equal(decode_object(HUB, A_KIND, raw), slowly(raw))


def test_another_spelling_is_understood() -> None:
    raw = orjson.dumps(a_body({"managedFields": MANAGED}), option=orjson.OPT_INDENT_2)
    assert decode_object(HUB, A_KIND, raw).body == a_body()


@pytest.mark.fault("B8")
@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"7",
        b'{"metadata":{"name":"web","namespace":"default"}',
        encode(a_body())[:-1] + b',"x":"\xff"}',
        encode(a_body())[:-1] + b',"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        encode(a_body({"name": ""})),
        encode(a_body({"namespace": ""})),
        encode({"metadata": None}),
    ],
)
def test_bytes_without_a_readable_object_are_refused(raw: bytes) -> None:
    with pytest.raises(UndecodableError):
        decode_object(HUB, A_KIND, raw)


def test_a_namespace_where_there_can_be_none_is_refused() -> None:
    with pytest.raises(UndecodableError):
        decode_object(HUB, Kind("", "v1", "nodes", "Node", namespaced=False), encode(a_body()))


def test_a_page_is_cut_into_its_items() -> None:
    first, second = a_snapshot().raw, encode(a_body())
    page = split_page(
        b'{"metadata":{"resourceVersion":"9","continue":"t"},"items":[%b,%b]}' % (first, second)
    )
    assert (page.resource_version, page.continue_token) == ("9", "t")
    assert list(page.items) == [first, second]


@pytest.mark.parametrize("body", [{}, {"metadata": {}, "items": None}, {"metadata": 7, "items": 7}])
def test_an_odd_page_has_no_items(body: JsonObject) -> None:
    page = split_page(encode(body))
    assert (page.resource_version, list(page.items)) == ("", [])


def test_an_odd_header_of_a_page_does_not_lose_its_items() -> None:
    page = split_page(encode({"metadata": {"resourceVersion": 9}, "items": [a_body(), 7]}))
    assert [orjson.loads(item) for item in page.items] == [a_body(), 7]


def test_no_page_is_refused() -> None:
    with pytest.raises(UndecodableError):
        split_page(b"[]")


def test_a_status_is_read_without_the_rest_of_the_object() -> None:
    status: dict[str, JsonValue] = {"conditions": [{"type": "Ready", "message": "ü"}], "n": 1}
    assert peek_status(encode(a_body(status=status))) == status


@pytest.mark.parametrize(
    "raw",
    [encode(a_body()), encode(a_body(status=None)), encode(a_body(status=[1])), b"[]", b"{", b""],
)
def test_what_has_no_status_gives_an_empty_one(raw: bytes) -> None:
    assert peek_status(raw) == {}


def an_echo(version: int, **members: JsonValue) -> bytes:
    return encode(a_body({"resourceVersion": str(version), "managedFields": MANAGED}, **members))


def test_the_event_of_an_answered_write_is_not_decoded_again() -> None:
    answer = decode_written(HUB, A_KIND, an_echo(1) + b"\n")  # as a server ends an answer
    event = decode_event(HUB, A_KIND, an_echo(1))
    assert event is answer
    assert is_equal(event, slowly(an_echo(1)))


def test_the_answer_after_its_event_is_not_decoded_again() -> None:
    with awaiting_response(slowly(an_echo(1)).snapshot.key):
        event = decode_event(HUB, A_KIND, an_echo(1))
    assert decode_written(HUB, A_KIND, an_echo(1) + b"\n") is event


def test_an_event_is_kept_until_the_last_of_two_writes_is_answered() -> None:
    key = slowly(an_echo(1)).snapshot.key
    with awaiting_response(key):
        with awaiting_response(key):
            pass
        event = decode_event(HUB, A_KIND, an_echo(1))
    assert decode_written(HUB, A_KIND, an_echo(1)) is event


def test_an_event_without_a_write_is_not_kept() -> None:
    with awaiting_response(slowly(an_echo(1)).snapshot.key):
        pass
    event = decode_event(HUB, A_KIND, an_echo(1))
    assert decode_event(HUB, A_KIND, an_echo(1)) is not event


def test_the_same_bytes_on_another_plane_or_of_another_kind_are_another_object() -> None:
    for plane, kind in ((PlaneName("other"), A_KIND), (HUB, OTHER_KIND)):
        decode_written(HUB, A_KIND, an_echo(2))
        key = decode_written(plane, kind, an_echo(2)).snapshot.key
        assert (key.plane, key.kind) == (plane, kind)


def test_what_never_comes_back_is_forgotten() -> None:
    first = decode_written(HUB, A_KIND, an_echo(3))
    for version in range(4, 4 + MOST_WRITTEN):
        decode_written(HUB, A_KIND, an_echo(version))
    assert decode_written(HUB, A_KIND, an_echo(3)) is not first


@pytest.mark.parametrize("body", [a_body(data="x" * 20_000), a_body({"labels": 7})])
def test_what_is_large_or_odd_is_read_each_time(body: JsonObject) -> None:
    raw = encode(body)
    assert decode_written(HUB, A_KIND, raw) is not decode_written(HUB, A_KIND, raw)


def test_what_is_no_object_is_refused_each_time() -> None:
    for _ in range(2):
        with pytest.raises(UndecodableError):
            decode_written(HUB, A_KIND, b"[]")
