from __future__ import annotations

from collections.abc import Iterable

from compute_operator_kit.cache import OfHeader, Store
from compute_operator_kit.keys import PlaneName
from compute_operator_kit.objects import Delivered, Metadata
from compute_operator_kit.served import parse_served
from compute_operator_kit.testing import A_KIND, a_key, a_snapshot
from compute_operator_kit.wire import JsonObject

PLANE = PlaneName("project-a")


def by_namespace(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    return (metadata.namespace,)


def by_members(_: Metadata, body: JsonObject) -> Iterable[str]:
    return body.keys()


def an_object_that_cannot_be_decoded() -> Delivered:
    raw = a_snapshot(a_key()).raw
    return parse_served(PLANE, A_KIND, raw[:-1] + b',"x":1e400}')


def test_a_store_whose_indexes_look_at_headers_only_decodes_nothing() -> None:
    store = Store(PLANE, A_KIND, {"namespace": OfHeader(by_namespace)})
    store.put(an_object_that_cannot_be_decoded())
    assert store.index_values("namespace") == ("default",)
    assert store.index_failures == 0


def test_one_index_that_looks_at_bodies_gets_them() -> None:
    store = Store(PLANE, A_KIND, {"namespace": OfHeader(by_namespace), "members": by_members})
    store.put(parse_served(PLANE, A_KIND, a_snapshot(a_key()).raw))
    assert "metadata" in store.index_values("members")
    assert store.index_values("namespace") == ("default",)
