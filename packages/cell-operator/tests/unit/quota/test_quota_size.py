"""How much quota an Instance takes (quota.md B2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compute_api_types.sizes import Size
from compute_cell_operator.quota.size import UnknownSize, derive_size
from compute_operator_kit.core.json import Json, JsonObject

KNOWN = "datumcloud/d1-standard-2"
SMALL: JsonObject = {"cpu": "500m", "memory": "256Mi"}


def a_spec(
    *limits: JsonObject | None,
    instance_type: str | None = KNOWN,
    requests: JsonObject | None = None,
) -> JsonObject:
    """One container for each of `limits`; None is a container without resources."""
    containers: list[Json] = [
        {"name": "app"} if limit is None else {"name": "app", "resources": {"limits": limit}}
        for limit in limits
    ]
    resources: JsonObject = {} if instance_type is None else {"instanceType": instance_type}
    if requests is not None:
        resources["requests"] = requests
    return {"runtime": {"resources": resources, "sandbox": {"containers": containers}}}


@pytest.mark.spec("Q-21")
@pytest.mark.parametrize(
    ("spec", "size"),
    [
        pytest.param(a_spec(), Size(1000, 2048), id="type only"),
        pytest.param(a_spec(SMALL, SMALL), Size(1000, 512), id="two containers"),
        pytest.param(
            a_spec({"cpu": "2", "memory": "1Gi"}, instance_type=None),
            Size(2000, 1024),
            id="one container with limits, no type",
        ),
        pytest.param(
            a_spec(None, requests={"cpu": "3", "memory": "3Gi"}, instance_type="x"),
            Size(3000, 3072),
            id="instance requests",
        ),
        pytest.param(a_spec(instance_type="x/y"), UnknownSize("x/y"), id="unknown type"),
        pytest.param(a_spec(instance_type=""), UnknownSize(""), id="empty type"),
        pytest.param(a_spec(instance_type=None), UnknownSize(""), id="no type"),
        pytest.param(a_spec(None, None), Size(1000, 2048), id="containers without limits"),
    ],
)
def test_a_size_is_stated_by_limits_then_requests_then_the_catalogue(
    spec: JsonObject, size: Size | UnknownSize
) -> None:
    assert derive_size(spec) == size


@pytest.mark.spec("Q-22")
@pytest.mark.parametrize(
    ("spec", "size"),
    [
        pytest.param(a_spec({"memory": "8Gi"}), Size(1000, 8192), id="only memory"),
        pytest.param(a_spec({"memory": "4Gi"}, None), Size(1000, 4096), id="one of two"),
        pytest.param(a_spec({"cpu": "1.5m", "memory": "1Mi"}), Size(2, 1), id="rounded up"),
        pytest.param(a_spec({"cpu": "1", "memory": "100M"}), Size(1000, 96), id="decimal"),
        pytest.param(a_spec({"cpu": "0", "memory": 0}), Size(1000, 2048), id="zero"),
        pytest.param(a_spec(requests={"cpu": "-1"}), Size(1000, 2048), id="negative"),
    ],
)
def test_each_dimension_stands_alone_exact_and_rounded_up(spec: JsonObject, size: Size) -> None:
    assert derive_size(spec) == size


def test_thirds_of_a_unit_are_summed_before_they_are_rounded() -> None:
    third: JsonObject = {"cpu": "0.4m", "memory": "0.4Mi"}
    assert derive_size(a_spec(third, third)) == Size(1, 1)


def test_stated_limits_are_a_floor_under_the_requests_of_the_instance() -> None:
    spec = a_spec({"cpu": "4"}, None, requests={"cpu": "1", "memory": "1Gi"})
    assert derive_size(spec) == Size(4000, 1024)


@pytest.mark.parametrize("junk", [None, [], "x", True, {"cpu": []}, {"cpu": "much"}, 1.5])
def test_what_cannot_be_read_is_not_stated(junk: Json) -> None:
    odd: JsonObject = {
        "runtime": {
            "resources": {"instanceType": KNOWN, "requests": junk},
            "sandbox": {"containers": [junk, {"resources": {"limits": junk}}]},
        }
    }
    assert derive_size(odd) == Size(1000, 2048)


def test_a_spec_without_anything_has_no_size() -> None:
    assert derive_size({}) == UnknownSize("")


def test_a_size_that_no_claim_can_carry_is_none() -> None:
    assert derive_size(a_spec({"cpu": "1", "memory": "1e40"})) == UnknownSize(KNOWN)


def test_a_claim_asks_for_the_instance_its_millicores_and_its_mebibytes() -> None:
    assert dict(Size(1000, 2048).requests) == {
        "compute.datumapis.com/instances": 1,
        "compute.datumapis.com/vcpus": 1000,
        "compute.datumapis.com/memory": 2048,
    }


@given(st.lists(st.integers(min_value=1, max_value=10**9), min_size=1, max_size=5))
def test_a_claim_never_covers_less_than_the_limits(micro: list[int]) -> None:
    limits: list[JsonObject] = [{"cpu": f"{amount}u", "memory": amount} for amount in micro]
    size = derive_size(a_spec(*limits))
    assert isinstance(size, Size)
    total = sum(micro)
    assert size.millicores * 1000 >= total > (size.millicores - 1) * 1000
    assert size.mebibytes * 2**20 >= total > (size.mebibytes - 1) * 2**20
