from __future__ import annotations

import pytest
from provider_builders.documents import TYPE

from compute_api_types.sizes import CATALOGUE, Size
from compute_api_types.v1alpha.runtime import Container, ContainerResources, InstanceResources
from compute_pod_provider.render.limits import divide_size

SIZE = CATALOGUE[TYPE]


def a_container(name: str, **limits: str) -> Container:
    resources = ContainerResources(limits=limits) if limits else None
    return Container(name=name, image="i", resources=resources)


def divide(
    *containers: Container, size: Size = SIZE, **requests: str
) -> tuple[dict[str, str], ...] | None:
    resources = InstanceResources(instance_type=TYPE, requests=requests or None)
    return divide_size(size, resources, containers)


@pytest.mark.spec("PP-14")
def test_one_container_gets_the_whole_type() -> None:
    assert divide(a_container("a")) == ({"cpu": "1000m", "memory": "2048Mi"},)


@pytest.mark.spec("PP-14")
def test_three_containers_share_it_and_the_remainder_goes_to_the_first() -> None:
    assert divide(a_container("a"), a_container("b"), a_container("c")) == (
        {"cpu": "334m", "memory": "684Mi"},
        {"cpu": "333m", "memory": "682Mi"},
        {"cpu": "333m", "memory": "682Mi"},
    )


@pytest.mark.spec("PP-14")
def test_stated_limits_are_taken_off_first_in_their_own_spelling() -> None:
    stated = a_container("a", cpu="0.4", memory="1Gi")
    assert divide(stated, a_container("b"), a_container("c", cpu="0")) == (
        {"cpu": "0.4", "memory": "1Gi"},
        {"cpu": "300m", "memory": "512Mi"},
        {"cpu": "300m", "memory": "512Mi"},
    )


@pytest.mark.spec("PP-14")
def test_containers_that_all_state_limits_get_these_and_no_more() -> None:
    assert divide(a_container("a", cpu="100m", memory="64Mi")) == (
        {"cpu": "100m", "memory": "64Mi"},
    )


def test_a_limit_that_is_no_quantity_is_not_stated() -> None:
    illegible = ContainerResources.model_construct(limits={"cpu": "1e0.5", "memory": "lots"})
    container = Container.model_construct(name="a", image="i", resources=illegible)
    assert divide(container) == ({"cpu": "1000m", "memory": "2048Mi"},)


def test_a_request_of_the_instance_is_its_size_up_to_that_of_the_type() -> None:
    assert divide(a_container("a"), cpu="500m", memory="1Gi") == (
        {"cpu": "500m", "memory": "1024Mi"},
    )
    assert divide(a_container("a"), cpu="1500m") is None


def test_more_than_the_type_has_is_not_given() -> None:
    assert divide(a_container("a", cpu="2"), a_container("b")) is None
    assert divide(a_container("a", memory="2Gi"), a_container("b")) is None
    tiny = Size(2, 2)
    assert divide(a_container("a"), a_container("b"), a_container("c"), size=tiny) is None
