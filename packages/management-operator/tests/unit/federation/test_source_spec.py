"""The spec that a hub copy gets, and why one is refused (autoscaling.md 2)."""

from __future__ import annotations

import pytest

from compute_management_operator.hub.federation.source_spec import read_source_spec
from compute_operator_kit.core.json import Encoded, JsonObject, encode

SCALED: JsonObject = {
    "minReplicas": 1,
    "maxReplicas": 5,
    "metrics": [{"resource": {"name": "cpu", "target": {"averageUtilization": 60}}}],
}


def a_spec(settings: JsonObject, **labels: str) -> JsonObject:
    return {
        "cityCode": "DFW",
        "scaleSettings": settings,
        "template": {"metadata": {"labels": {**labels}}, "spec": {"volumes": [{"name": "a"}]}},
    }


def test_a_plain_spec_is_copied_as_it_was_served() -> None:
    raw = encode(a_spec({"minReplicas": 1}, **{"a|b": "x"}))
    assert read_source_spec(raw).document == Encoded(raw)
    assert read_source_spec(raw).refusal == ""
    assert read_source_spec(b"").document == Encoded(b"{}")


@pytest.mark.spec("AS-02", "AS-06")
@pytest.mark.parametrize("settings", [{"minReplicas": 1}, SCALED])
def test_a_number_never_reaches_the_hub(settings: JsonObject) -> None:
    wanted = a_spec(settings)
    spec = read_source_spec(encode({**wanted, "replicas": 9}))
    assert spec.document == wanted
    assert spec.refusal == ""


@pytest.mark.spec("AS-17")
@pytest.mark.parametrize("key", ["a|b", "a#b", "a@b", "a*b", "a?b"])
def test_a_map_key_that_karmada_cannot_convert_refuses_an_autoscaled_one(key: str) -> None:
    refusal = f'autoscaling cannot be used with the map key "{key}" at spec.template'
    labelled = read_source_spec(encode(a_spec(SCALED, **{key: "x"})))
    assert labelled.refusal == f"{refusal}.metadata.labels"
    spec = a_spec(SCALED)
    spec["template"] = {"spec": {"volumes": [{"requests": {key: "1"}}]}}
    assert read_source_spec(encode(spec)).refusal == f"{refusal}.spec.volumes[0].requests"
    unscaled = a_spec({"minReplicas": 1, "maxReplicas": 5}, **{key: "x"})
    assert read_source_spec(encode(unscaled)).refusal == ""


def test_an_odd_spec_is_passed_on() -> None:
    odd = b'["maxReplicas", "replicas"'
    assert read_source_spec(odd).document == Encoded(odd)
