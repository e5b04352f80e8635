from __future__ import annotations

from collections.abc import Iterable

import pytest

from compute_operator_kit.cache.indexers import metadata_index, spec_index
from compute_operator_kit.cache.store import Store
from compute_operator_kit.core.json import JsonObject, member_object, member_text
from compute_operator_kit.core.keys import PlaneName
from compute_operator_kit.core.object_decoder import decode_object
from compute_operator_kit.core.objects import Metadata, ReceivedObject
from compute_operator_kit.testing.fakes import A_KIND, a_key, a_snapshot

PLANE = PlaneName("project-a")


def by_namespace(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    return (metadata.namespace,)


def by_members(_: Metadata, body: JsonObject) -> Iterable[str]:
    return body.keys()


def an_object_that_cannot_be_decoded() -> ReceivedObject:
    raw = a_snapshot(a_key()).raw
    return decode_object(PLANE, A_KIND, raw[:-1] + b',"x":1e400}')


def test_a_store_with_metadata_indexes_only_decodes_nothing() -> None:
    store = Store(PLANE, A_KIND, {"namespace": metadata_index(by_namespace)})
    store.put(an_object_that_cannot_be_decoded())
    assert store.index_values("namespace") == ("default",)


def test_an_index_that_reads_bodies_gets_them() -> None:
    store = Store(PLANE, A_KIND, {"namespace": metadata_index(by_namespace), "members": by_members})
    store.put(decode_object(PLANE, A_KIND, a_snapshot(a_key()).raw))
    assert "metadata" in store.index_values("members")
    assert store.index_values("namespace") == ("default",)


# --- by the spec ----------------------------------------------------------------------------------


def by_city(_: Metadata, body: JsonObject) -> Iterable[str]:
    return (member_text(member_object(body, "spec"), "city"),)


def of_city(city: str, *, version: int, generation: int, uid: str = "uid-of-web") -> ReceivedObject:
    header: JsonObject = {"resourceVersion": str(version), "generation": generation, "uid": uid}
    return decode_object(PLANE, A_KIND, a_snapshot(a_key(), header, spec={"city": city}).raw)


@pytest.mark.parametrize(
    ("received", "value"),
    [
        # Servers count each change of a spec; the other text shows which index ran again.
        pytest.param(of_city("ORD", version=6, generation=2), "DFW", id="same spec"),
        pytest.param(of_city("ORD", version=6, generation=3), "ORD", id="another spec"),
        pytest.param(of_city("ORD", version=6, generation=2, uid="other"), "ORD", id="another one"),
        pytest.param(of_city("ORD", version=4, generation=2), "ORD", id="restored from a backup"),
    ],
)
def test_values_of_a_spec_last_as_long_as_its_generation(
    received: ReceivedObject, value: str
) -> None:
    store = Store(PLANE, A_KIND, {"city": spec_index(by_city)})
    store.put(of_city("DFW", version=5, generation=2))
    store.put(received)
    assert store.index_values("city") == (value,)


def test_a_kind_that_counts_no_generations_is_asked_every_time() -> None:
    store = Store(PLANE, A_KIND, {"city": spec_index(by_city)})
    store.put(of_city("DFW", version=5, generation=0))
    store.put(of_city("ORD", version=6, generation=0))
    assert store.index_values("city") == ("ORD",)


def test_one_index_that_reads_more_than_the_spec_has_all_of_them_evaluated() -> None:
    store = Store(PLANE, A_KIND, {"city": spec_index(by_city), "members": by_members})
    store.put(of_city("DFW", version=5, generation=2))
    store.put(of_city("ORD", version=6, generation=2))
    assert store.index_values("city") == ("ORD",)
