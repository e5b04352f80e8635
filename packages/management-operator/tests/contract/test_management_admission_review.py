"""Admission without a server: what is answered when a plane goes away while it is asked."""

from __future__ import annotations

from management_builders.documents import a_workload_document
from management_builders.world import a_review, settings_of
from typing_extensions import override

from compute_api_types import labels
from compute_management_operator.admission.request import AdmissionRequest, parse_request
from compute_management_operator.admission.review import (
    Admission,
    AdmissionAllowed,
    AdmissionUndecided,
)
from compute_management_operator.dependencies import Dependencies
from compute_management_operator.networking import LOCATION_INDEXES
from compute_management_operator.planes import HOME, LOCATION, NETWORK
from compute_management_operator.wiring import COMPONENT, NETWORKING
from compute_operator_kit.cache.optional_kinds import OptionalKindsMode
from compute_operator_kit.cache.store import Caches
from compute_operator_kit.client.interface import FieldOwner, KubeClient
from compute_operator_kit.controller.context import OperatorContext
from compute_operator_kit.core.errors import PlaneGoneError
from compute_operator_kit.core.json import JsonObject
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Role
from compute_operator_kit.planes.optional_kinds import OptionalKinds
from compute_operator_kit.process.operator import own_deployment
from compute_operator_kit.testing.fakes import (
    FakeCaches,
    FakeClock,
    FakeMetrics,
    FixedRandom,
    a_snapshot,
    a_store,
)

ACME = PlaneName("acme")


class GoingReach(OperatorContext):
    """The plane is there when it is looked for, and gone when it is asked."""

    @property
    @override
    def caches(self) -> Caches:
        location = a_snapshot(
            ObjectKey(ACME, LOCATION, "", "one"),
            spec={"topology": {labels.TOPOLOGY_CITY_CODE: "DFW"}},
        )
        stores = [
            a_store(ACME, LOCATION, [location], indexes=LOCATION_INDEXES),
            a_store(ACME, NETWORK),
        ]
        return FakeCaches(stores, {"acme": Role.PROJECT})

    @override
    def kube(self, plane: PlaneName, writer: FieldOwner) -> KubeClient:
        raise PlaneGoneError("PlaneGone", f"looking up plane {plane!r} for {writer}: not engaged")


def an_admission() -> Admission:
    clock, reach = FakeClock(), GoingReach()
    tools = Dependencies(
        settings=settings_of(),
        clock=clock,
        random=FixedRandom(),
        operator=own_deployment(HOME, "compute-system", COMPONENT),
        metrics=FakeMetrics(),
        context=reach,
    )
    return Admission(tools, OptionalKinds(OptionalKindsMode.AUTO, NETWORKING, reach, clock))


async def test_a_plane_that_goes_while_it_is_asked_is_not_available() -> None:
    extra: JsonObject = {labels.PARENT_NAME_EXTRA: ["acme"]}
    answer = await an_admission().review(a_review(a_workload_document(), extra))
    assert isinstance(answer, AdmissionUndecided)
    assert answer.status["message"] == (
        'project "acme" is not available for admission yet, try again'
    )


async def test_a_removal_is_admitted_unread() -> None:
    request: JsonObject = {"oldObject": a_workload_document(), "userInfo": {}, "object": None}
    review: JsonObject = {"request": request}
    assert parse_request(review) is None
    assert await an_admission().review(review) == AdmissionAllowed("Unread")


def test_a_request_is_read_whatever_is_missing_in_it() -> None:
    assert parse_request({"request": {"object": {}}}) == AdmissionRequest({}, None, {})
    assert parse_request({}) is None
