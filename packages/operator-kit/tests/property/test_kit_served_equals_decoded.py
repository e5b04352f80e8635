from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compute_operator_kit.core.json import JsonObject, UndecodableError, decode_json_object, encode
from compute_operator_kit.core.keys import PlaneName
from compute_operator_kit.core.object_decoder import decode_object
from compute_operator_kit.core.objects import ReceivedObject, parse_object
from compute_operator_kit.testing.fakes import A_KIND

HUB = PlaneName("hub")
# Words that mean something here, so that they also turn up where they mean nothing.
WORDS = st.sampled_from(["managedFields", "metadata", "name", "kind", 'x"managedFields', "ü", ""])
TEXTS = WORDS | st.text(st.characters(codec="utf-8"), max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
METADATA = st.fixed_dictionaries(
    {"name": st.just("web"), "namespace": st.just("default")},
    optional={
        "managedFields": VALUES,
        "labels": st.dictionaries(TEXTS, TEXTS, max_size=2) | VALUES,
        "finalizers": st.lists(TEXTS, max_size=2) | VALUES,
        "generation": st.integers(0, 9) | VALUES,
        "resourceVersion": st.just("7") | VALUES,
        "ownerReferences": VALUES,
    },
)
BODIES = st.fixed_dictionaries(
    {"metadata": METADATA | VALUES},
    optional={
        "apiVersion": st.just("v1") | VALUES,
        "kind": st.just("Note") | VALUES,
        "spec": VALUES,
        "managedFields": VALUES,
    },
)


def outcome(received: ReceivedObject) -> object:
    return received.snapshot.key, received.snapshot.metadata, received.body


def slowly(raw: bytes) -> object:
    try:
        return outcome(parse_object(HUB, A_KIND, decode_json_object(raw), raw))
    except UndecodableError:
        return None


def quickly(raw: bytes) -> object:
    try:
        return outcome(decode_object(HUB, A_KIND, raw))
    except UndecodableError:
        return None


@given(body=BODIES)
def test_an_object_is_the_same_whichever_way_it_is_read(body: JsonObject) -> None:
    raw = encode(body)
    wanted = slowly(raw)
    assert quickly(raw) == wanted


@given(body=BODIES, cut=st.integers(0, 400), put=st.binary(max_size=3))
def test_damaged_bytes_are_the_same_whichever_way_they_are_read(
    body: JsonObject, cut: int, put: bytes
) -> None:
    raw = encode(body)
    place = cut % len(raw)
    damaged = raw[:place] + put + raw[place + 1 :]
    assert quickly(damaged) == slowly(damaged)
