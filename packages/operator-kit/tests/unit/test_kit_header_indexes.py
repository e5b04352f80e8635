from __future__ import annotations

from collections.abc import Iterable

import pytest

from compute_operator_kit.cache import Store
from compute_operator_kit.indexing import of_header, of_spec
from compute_operator_kit.keys import PlaneName
from compute_operator_kit.objects import Delivered, Metadata
from compute_operator_kit.served import parse_served
from compute_operator_kit.testing import A_KIND, a_key, a_snapshot
from compute_operator_kit.wire import JsonObject, member_object, member_text

PLANE = PlaneName("project-a")


def by_namespace(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    return (metadata.namespace,)


def by_members(_: Metadata, body: JsonObject) -> Iterable[str]:
    return body.keys()


def an_object_that_cannot_be_decoded() -> Delivered:
    raw = a_snapshot(a_key()).raw
    return parse_served(PLANE, A_KIND, raw[:-1] + b',"x":1e400}')


def test_a_store_whose_indexes_look_at_headers_only_decodes_nothing() -> None:
    store = Store(PLANE, A_KIND, {"namespace": of_header(by_namespace)})
    store.put(an_object_that_cannot_be_decoded())
    assert store.index_values("namespace") == ("default",)
    assert store.index_failures == 0


def test_one_index_that_looks_at_bodies_gets_them() -> None:
    store = Store(PLANE, A_KIND, {"namespace": of_header(by_namespace), "members": by_members})
    store.put(parse_served(PLANE, A_KIND, a_snapshot(a_key()).raw))
    assert "metadata" in store.index_values("members")
    assert store.index_values("namespace") == ("default",)


# --- by the spec ----------------------------------------------------------------------------------


def by_city(_: Metadata, body: JsonObject) -> Iterable[str]:
    return (member_text(member_object(body, "spec"), "city"),)


def of_city(city: str, *, version: int, generation: int, uid: str = "uid-of-web") -> Delivered:
    header: JsonObject = {"resourceVersion": str(version), "generation": generation, "uid": uid}
    return parse_served(PLANE, A_KIND, a_snapshot(a_key(), header, spec={"city": city}).raw)


@pytest.mark.parametrize(
    ("arrived", "found"),
    [
        # No server changes a spec without counting; the other text shows who was asked again.
        pytest.param(of_city("ORD", version=6, generation=2), "DFW", id="same spec"),
        pytest.param(of_city("ORD", version=6, generation=3), "ORD", id="another spec"),
        pytest.param(of_city("ORD", version=6, generation=2, uid="other"), "ORD", id="another one"),
        pytest.param(of_city("ORD", version=4, generation=2), "ORD", id="restored from a backup"),
    ],
)
def test_values_of_a_spec_last_as_long_as_its_generation(arrived: Delivered, found: str) -> None:
    store = Store(PLANE, A_KIND, {"city": of_spec(by_city)})
    store.put(of_city("DFW", version=5, generation=2))
    store.put(arrived)
    assert store.index_values("city") == (found,)


def test_a_kind_that_counts_no_generations_is_asked_every_time() -> None:
    store = Store(PLANE, A_KIND, {"city": of_spec(by_city)})
    store.put(of_city("DFW", version=5, generation=0))
    store.put(of_city("ORD", version=6, generation=0))
    assert store.index_values("city") == ("ORD",)


def test_one_index_that_looks_at_more_than_the_spec_has_all_of_them_asked() -> None:
    store = Store(PLANE, A_KIND, {"city": of_spec(by_city), "members": by_members})
    store.put(of_city("DFW", version=5, generation=2))
    store.put(of_city("ORD", version=6, generation=2))
    assert store.index_values("city") == ("ORD",)
