import copy
import json

import pytest

from compute_api_types import template_hash
from compute_api_types.template_hash import (
    HashVerdict,
    derive_template_hash,
    judge_template_hash,
)
from compute_api_types.wire import JsonObject, JsonValue

# The vector of docs/spec/cell.md 5.3.
VECTOR = (
    '{"metadata":{"labels":{"app":"web"}},"spec":{"networkInterfaces":[{"network":{"name":'
    '"default"}}],"runtime":{"resources":{"instanceType":"datumcloud/d1-standard-2"}}}}'
)
HASH = "v1-e62289ef41fe51b0"


def template() -> dict[str, JsonObject]:
    parsed: dict[str, JsonObject] = json.loads(VECTOR)
    return parsed


def changed(section: str, **fields: JsonValue) -> JsonValue:
    document = template()
    return {**document, section: {**document[section], **fields}}


@pytest.mark.spec("C-22")
def test_the_vector_of_the_specification() -> None:
    assert derive_template_hash(json.loads(VECTOR)) == HASH


@pytest.mark.spec("C-22")
@pytest.mark.parametrize(
    "same",
    [
        changed("metadata", annotations={}),
        changed("metadata", annotations=None),
        changed("metadata", name="web", namespace="default", finalizers=["x"]),
        changed("metadata", creationTimestamp=None),
        changed("spec", volumes=[]),
        changed("spec", volumes=None),
        changed("spec", note=""),
        changed("spec", nested={"deep": {"empty": []}}),
        changed("spec", location={"name": "us-dallas-1", "namespace": ""}),
        changed("spec", controller={"templateHash": "x"}),
    ],
)
def test_what_carries_no_meaning_does_not_change_it(same: JsonValue) -> None:
    assert derive_template_hash(same) == HASH


@pytest.mark.spec("C-22")
@pytest.mark.parametrize(
    "other",
    [
        changed("metadata", labels={"app": "web", "tier": "front"}),
        changed("metadata", annotations={"compute.datumapis.com/restartedAt": "now"}),
        changed("spec", count=0),
        changed("spec", flag=False),
        changed("spec", list=["a", "b"]),
        changed("spec", list=["b", "a"]),
        changed("spec", list=[{}]),
        changed("spec", list=[""]),
        {},
        None,
        "template",
        {"metadata": 1, "spec": []},
    ],
)
def test_what_carries_meaning_changes_it(other: JsonValue) -> None:
    assert derive_template_hash(other) != HASH


@pytest.mark.spec("C-22")
def test_the_order_of_keys_does_not_matter_and_nothing_is_changed_on_the_way() -> None:
    document = template()
    before = copy.deepcopy(document)
    swapped: JsonValue = {
        "spec": dict(reversed(document["spec"].items())),
        "metadata": document["metadata"],
    }
    assert derive_template_hash(swapped) == HASH
    assert document == before


def test_text_is_hashed_unescaped_and_lone_surrogates_do_not_end_it() -> None:
    assert derive_template_hash({"spec": {"é": "ü"}}) != derive_template_hash({"spec": {"e": "u"}})
    assert derive_template_hash({"spec": {"a": "\ud800"}}).startswith("v1-")


@pytest.mark.parametrize(
    ("recorded", "verdict"),
    [
        (HASH, HashVerdict.CURRENT),
        ("v1-0000000000000000", HashVerdict.STALE),
        ("0123456789abcdef", HashVerdict.STALE),
        ("v0-e62289ef41fe51b0", HashVerdict.STALE),
        ("", HashVerdict.STALE),
        (None, HashVerdict.STALE),
        ("v2-e62289ef41fe51b0", HashVerdict.NOT_JUDGED),
        ("v12-anything at all", HashVerdict.NOT_JUDGED),
    ],
)
def test_a_found_hash_is_judged_by_value_and_version(
    recorded: str | None, verdict: HashVerdict
) -> None:
    assert judge_template_hash(recorded, json.loads(VECTOR)) is verdict


def _second(template: JsonValue) -> str:
    del template
    return "second"


def _third(template: JsonValue) -> str:
    del template
    return "third"


def test_the_algorithm_before_the_newest_is_read_and_older_ones_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    template = json.loads(VECTOR)
    first = template_hash.ALGORITHMS
    monkeypatch.setattr(template_hash, "ALGORITHMS", (*first, _second))
    assert derive_template_hash(template) == "v2-second"
    assert judge_template_hash(HASH, template) is HashVerdict.CURRENT
    assert judge_template_hash("v1-0000000000000000", template) is HashVerdict.STALE
    assert judge_template_hash("v2-second", template) is HashVerdict.CURRENT
    monkeypatch.setattr(template_hash, "ALGORITHMS", (*first, _second, _third))
    assert judge_template_hash("v2-second", template) is HashVerdict.CURRENT
    assert judge_template_hash(HASH, template) is HashVerdict.STALE
