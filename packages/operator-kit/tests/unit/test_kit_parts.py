"""How folders come together: caches are merged, and what is used too early is a bug."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from compute_operator_kit.errors import InvariantError
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.kube import Selector
from compute_operator_kit.objects import Metadata
from compute_operator_kit.outline import Outline
from compute_operator_kit.parts import Part, controllers_of, merge_watched
from compute_operator_kit.planes import Watched
from compute_operator_kit.reach import Reach
from compute_operator_kit.wire import JsonObject

WORKLOAD = Kind("example.datumapis.com", "v1", "workloads", "Workload")
DEPLOYMENT = Kind("example.datumapis.com", "v1", "deployments", "Deployment")
LOCATION = Kind("example.datumapis.com", "v1", "locations", "Location")


def by_name(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    return (metadata.name,)


def by_uid(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    return (metadata.uid,)


def merged(*watched: Watched) -> tuple[Watched, ...]:
    return merge_watched([Part(watched=(one,)) for one in watched])


def test_a_kind_that_two_folders_read_is_cached_once_with_the_indexes_of_both() -> None:
    (found,) = merged(
        Watched(Role.PROJECT, DEPLOYMENT, {"name": by_name}),
        Watched(Role.PROJECT, DEPLOYMENT, {"uid": by_uid, "name": by_name}),
    )
    assert found.indexes == {"name": by_name, "uid": by_uid}


def test_the_same_kind_on_planes_of_another_role_is_another_cache() -> None:
    found = merged(
        Watched(Role.PROJECT, DEPLOYMENT),
        Watched(Role.HUB, DEPLOYMENT),
        Watched(Role.HUB, WORKLOAD),
    )
    assert [(one.role, one.kind) for one in found] == [
        (Role.PROJECT, DEPLOYMENT),
        (Role.HUB, DEPLOYMENT),
        (Role.HUB, WORKLOAD),
    ]


def test_a_kind_is_optional_only_where_everybody_can_do_without() -> None:
    optional = Watched(Role.PROJECT, LOCATION, is_optional=True)
    assert merged(optional, optional)[0].is_optional
    assert not merged(optional, Watched(Role.PROJECT, LOCATION))[0].is_optional


def test_two_indexes_of_one_name_are_refused() -> None:
    with pytest.raises(InvariantError, match="two indexes"):
        merged(
            Watched(Role.PROJECT, DEPLOYMENT, {"x": by_name}),
            Watched(Role.PROJECT, DEPLOYMENT, {"x": by_uid}),
        )


def test_readers_of_a_kind_have_one_outline() -> None:
    outline, other = Outline(dict), Outline(dict)
    (found,) = merged(
        Watched(Role.PROJECT, DEPLOYMENT, outline=outline),
        Watched(Role.PROJECT, DEPLOYMENT, outline=outline),
    )
    assert found.outline is outline
    with pytest.raises(InvariantError, match="different outlines"):
        merged(
            Watched(Role.PROJECT, DEPLOYMENT, outline=outline),
            Watched(Role.PROJECT, DEPLOYMENT, outline=other),
        )


def test_a_reader_that_selects_does_not_share_its_cache() -> None:
    selecting = Watched(Role.PROJECT, DEPLOYMENT, selector=Selector(labels="a=b"))
    with pytest.raises(InvariantError, match="one selects"):
        merged(selecting, Watched(Role.PROJECT, DEPLOYMENT))


def test_a_folder_without_a_queue_brings_no_controller() -> None:
    assert controllers_of([Part()]) == ()


def test_what_is_used_before_the_operator_is_wired_is_a_bug() -> None:
    reach = Reach()
    with pytest.raises(InvariantError):
        _ = reach.caches
    with pytest.raises(InvariantError):
        reach.wake("workload", ObjectKey(PlaneName("acme"), WORKLOAD, "default", "web"))
