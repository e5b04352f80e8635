"""How folders come together: caches are merged, and what is used too early is a bug."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from compute_operator_kit.client.interface import FieldOwner, Selector
from compute_operator_kit.controller.context import OperatorContext
from compute_operator_kit.controller.reconcile import ReconcileContext, Result
from compute_operator_kit.controller.registration import (
    ControllerSetup,
    controllers_of,
    merge_cached_kinds,
)
from compute_operator_kit.controller.spec import Controller, Watch
from compute_operator_kit.core.errors import InvariantError
from compute_operator_kit.core.json import JsonObject
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.core.objects import Metadata
from compute_operator_kit.core.partial_decoder import PartialDecoder
from compute_operator_kit.planes.engaged_plane import CachedKind, OnDemand

WORKLOAD = Kind("example.datumapis.com", "v1", "workloads", "Workload")
DEPLOYMENT = Kind("example.datumapis.com", "v1", "deployments", "Deployment")
LOCATION = Kind("example.datumapis.com", "v1", "locations", "Location")


def by_name(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    return (metadata.name,)


def by_uid(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    return (metadata.uid,)


def merged(*watched: CachedKind) -> tuple[CachedKind, ...]:
    return merge_cached_kinds([ControllerSetup(cached_kinds=(one,)) for one in watched])


def test_a_kind_that_two_folders_read_is_cached_once_with_the_indexes_of_both() -> None:
    (kind,) = merged(
        CachedKind(Role.PROJECT, DEPLOYMENT, {"name": by_name}),
        CachedKind(Role.PROJECT, DEPLOYMENT, {"uid": by_uid, "name": by_name}),
    )
    assert kind.indexes == {"name": by_name, "uid": by_uid}


def test_a_kind_that_is_only_watched_is_cached_without_being_declared_again() -> None:
    async def reconcile(key: ObjectKey, work: ReconcileContext) -> Result:  # noqa: ARG001
        return Result()

    watches = (Watch(Role.PROJECT, WORKLOAD), Watch(Role.PROJECT, DEPLOYMENT))
    controller = Controller("example", FieldOwner("example", "example"), watches, reconcile)
    declared = CachedKind(Role.PROJECT, DEPLOYMENT, {"name": by_name}, is_optional=True)
    kinds = merge_cached_kinds([ControllerSetup(controller, (declared,))])
    assert kinds == (declared, CachedKind(Role.PROJECT, WORKLOAD))


def test_the_same_kind_on_planes_of_another_role_is_another_cache() -> None:
    kinds = merged(
        CachedKind(Role.PROJECT, DEPLOYMENT),
        CachedKind(Role.HUB, DEPLOYMENT),
        CachedKind(Role.HUB, WORKLOAD),
    )
    assert [(one.role, one.kind) for one in kinds] == [
        (Role.PROJECT, DEPLOYMENT),
        (Role.HUB, DEPLOYMENT),
        (Role.HUB, WORKLOAD),
    ]


def test_a_kind_is_optional_only_where_everybody_can_do_without() -> None:
    optional = CachedKind(Role.PROJECT, LOCATION, is_optional=True)
    assert merged(optional, optional)[0].is_optional
    assert not merged(optional, CachedKind(Role.PROJECT, LOCATION))[0].is_optional


def test_a_kind_is_on_demand_only_where_every_reader_can_wait_for_the_same_triggers() -> None:
    in_use = OnDemand((WORKLOAD,))
    always = CachedKind(Role.PROJECT, LOCATION)
    on_demand = CachedKind(Role.PROJECT, LOCATION, on_demand=in_use)
    assert merged(on_demand, on_demand)[0].on_demand == in_use
    assert merged(always, on_demand)[0].on_demand is None
    assert merged(on_demand, always)[0].on_demand is None
    with pytest.raises(InvariantError, match="different triggers"):
        merged(on_demand, CachedKind(Role.PROJECT, LOCATION, on_demand=OnDemand((DEPLOYMENT,))))


def test_two_indexes_of_one_name_are_refused() -> None:
    with pytest.raises(InvariantError, match="two indexes"):
        merged(
            CachedKind(Role.PROJECT, DEPLOYMENT, {"x": by_name}),
            CachedKind(Role.PROJECT, DEPLOYMENT, {"x": by_uid}),
        )


def test_readers_of_a_kind_have_one_outline() -> None:
    outline, other = PartialDecoder(dict), PartialDecoder(dict)
    (kind,) = merged(
        CachedKind(Role.PROJECT, DEPLOYMENT, decoder=outline),
        CachedKind(Role.PROJECT, DEPLOYMENT, decoder=outline),
    )
    assert kind.decoder is outline
    with pytest.raises(InvariantError, match="different outlines"):
        merged(
            CachedKind(Role.PROJECT, DEPLOYMENT, decoder=outline),
            CachedKind(Role.PROJECT, DEPLOYMENT, decoder=other),
        )


def test_a_reader_that_selects_does_not_share_its_cache() -> None:
    selecting = CachedKind(Role.PROJECT, DEPLOYMENT, selector=Selector(labels="a=b"))
    with pytest.raises(InvariantError, match="one selects"):
        merged(selecting, CachedKind(Role.PROJECT, DEPLOYMENT))


def test_a_folder_without_a_queue_brings_no_controller() -> None:
    assert controllers_of([ControllerSetup()]) == ()


def test_what_is_used_before_the_operator_is_wired_is_a_bug() -> None:
    reach = OperatorContext()
    with pytest.raises(InvariantError):
        _ = reach.caches
    with pytest.raises(InvariantError):
        reach.enqueue("workload", ObjectKey(PlaneName("acme"), WORKLOAD, "default", "web"))
