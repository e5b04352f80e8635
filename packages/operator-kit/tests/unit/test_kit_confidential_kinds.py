"""Values of a confidential kind: in no memory of the process after the write they were read for."""

from __future__ import annotations

from compute_operator_kit.core.json import Encoded, JsonObject, encode
from compute_operator_kit.core.keys import Kind, PlaneName
from compute_operator_kit.core.object_decoder import decode_written
from compute_operator_kit.core.objects import Snapshot, parse_object
from compute_operator_kit.intents.intents import Ensure, OwnedFields

SECRET = Kind("", "v1", "secrets", "Secret", is_confidential=True)
PLAIN = Kind("", "v1", "secrets", "Secret")


def a_snapshot(kind: Kind, uid: str) -> Snapshot:
    metadata: JsonObject = {
        "name": "db",
        "namespace": "shop",
        "uid": uid,
        "resourceVersion": "5",
    }
    body: JsonObject = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "data": {"k": "dmFsdWU="},
    }
    return parse_object(PlaneName("acme"), kind, body, encode(body)).snapshot


def test_a_decoded_form_is_shared_by_readers_unless_the_kind_is_confidential() -> None:
    plain = a_snapshot(PLAIN, "first")
    assert plain.read() is plain.read()
    assert plain.members() is plain.members()
    secret = a_snapshot(SECRET, "second")
    assert secret.read() == secret.read()
    assert secret.read() is not secret.read()
    assert secret.members() is not secret.members()


def test_an_answer_with_confidential_values_is_not_kept_for_its_event() -> None:
    raw = a_snapshot(SECRET, "fourth").raw
    first = decode_written(PlaneName("acme"), SECRET, raw)
    assert decode_written(PlaneName("acme"), SECRET, raw) is not first


def test_a_repr_of_an_intent_has_the_size_of_encoded_values() -> None:
    secret = a_snapshot(SECRET, "third")
    desired = OwnedFields(replace={"data": Encoded(b'{"k":"dmFsdWU="}')})
    shown = repr(Ensure(secret.key, desired, "Absent"))
    assert "dmFsdWU" not in shown
    assert "<16 bytes>" in shown
