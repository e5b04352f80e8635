from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

import pytest

from compute_operator_kit.cache.store import Store
from compute_operator_kit.core.json import JsonObject, JsonValue, encode, member_object, member_text
from compute_operator_kit.core.keys import PlaneName
from compute_operator_kit.core.object_decoder import decode_object
from compute_operator_kit.core.objects import Metadata
from compute_operator_kit.core.partial_decoder import PartialDecoder
from compute_operator_kit.testing.fakes import A_KIND, a_key, a_snapshot

PLANE = PlaneName("project-a")


class _Spec(TypedDict, total=False):
    city: object


class _Shape(TypedDict, total=False):
    spec: _Spec
    status: object


OUTLINE = PartialDecoder(_Shape)


def by_city(_: Metadata, body: JsonObject) -> Iterable[str]:
    return (member_text(member_object(body, "spec"), "city"),)


def by_members(_: Metadata, body: JsonObject) -> Iterable[str]:
    return body.keys()


def test_an_outline_has_the_members_it_names_and_no_others() -> None:
    whole = a_snapshot(spec={"city": "DFW", "template": {"a": [1]}}, status={"n": 1}, data={})
    assert OUTLINE.read(whole) == {"spec": {"city": "DFW"}, "status": {"n": 1}}


def test_an_outline_of_what_rests_is_the_same() -> None:
    whole = a_snapshot(spec={"city": "DFW", "template": "x" * 4096})
    assert whole.packed().kept != whole.kept
    assert OUTLINE.read(whole.packed()) == {"spec": {"city": "DFW"}}


def test_members_below_those_it_names_may_be_anything() -> None:
    assert OUTLINE.read(a_snapshot(spec={"city": [None, {}]})) == {"spec": {"city": [None, {}]}}


@pytest.mark.parametrize("spec", [None, 7, ["DFW"], "DFW"])
def test_an_object_of_another_shape_is_decoded_as_a_whole(spec: JsonValue) -> None:
    raw = a_snapshot(a_key()).raw[:-1] + b',"spec":' + encode(spec) + b"}"
    odd = decode_object(PLANE, A_KIND, raw).snapshot
    assert OUTLINE.read(odd) == odd.decode()


def test_index_functions_see_the_outline_of_their_kind() -> None:
    store = Store(PLANE, A_KIND, {"city": by_city, "members": by_members}, OUTLINE)
    raw = a_snapshot(a_key(), spec={"city": "DFW", "template": {}}, data={}).raw
    store.put(decode_object(PLANE, A_KIND, raw))
    assert store.index_values("city") == ("DFW",)
    assert store.index_values("members") == ("spec",)
