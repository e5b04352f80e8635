"""Admission without a server: what is answered when a plane goes away while it is asked."""

from __future__ import annotations

from management_builders.documents import a_workload_document
from management_builders.world import a_review, settings_of
from typing_extensions import override

from compute_api_types import labels
from compute_management_operator.admission.request import Request, parse_request
from compute_management_operator.admission.review import Admission, Admitted, Undecided
from compute_management_operator.assembly import Tools
from compute_management_operator.kinds import LOCATION, NETWORK
from compute_management_operator.networking import LOCATION_INDEXES, Networking
from compute_management_operator.networking_switch import NetworkingSwitch
from compute_management_operator.plane_names import HOME
from compute_management_operator.wiring import DEPLOYMENTS
from compute_operator_kit.cache import Caches
from compute_operator_kit.errors import PlaneGoneError
from compute_operator_kit.keys import ObjectKey, PlaneName, Role
from compute_operator_kit.kube import Kube, Writer
from compute_operator_kit.reach import Reach
from compute_operator_kit.testing import (
    FakeCaches,
    FakeClock,
    FakeMeasures,
    FixedRandom,
    a_snapshot,
    a_store,
)
from compute_operator_kit.wire import JsonObject

ACME = PlaneName("acme")


class GoingReach(Reach):
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
    def kube(self, plane: PlaneName, writer: Writer) -> Kube:
        raise PlaneGoneError("PlaneGone", f"looking up plane {plane!r} for {writer}: not engaged")


def an_admission() -> Admission:
    clock, reach = FakeClock(), GoingReach()
    tools = Tools(
        settings=settings_of(),
        clock=clock,
        random=FixedRandom(),
        operator=ObjectKey(HOME, DEPLOYMENTS, "compute-system", "x"),
        measures=FakeMeasures(),
        reach=reach,
    )
    return Admission(tools, NetworkingSwitch(Networking.AUTO, reach, clock))


async def test_a_plane_that_goes_while_it_is_asked_is_not_available() -> None:
    extra: JsonObject = {labels.PARENT_NAME_EXTRA: ["acme"]}
    answer = await an_admission().review(a_review(a_workload_document(), extra))
    assert isinstance(answer, Undecided)
    assert answer.status["message"] == (
        'project "acme" is not available for admission yet, try again'
    )


async def test_a_removal_is_nobodys_business_here() -> None:
    request: JsonObject = {"oldObject": a_workload_document(), "userInfo": {}, "object": None}
    review: JsonObject = {"request": request}
    assert parse_request(review) is None
    assert await an_admission().review(review) == Admitted("Unread")


def test_a_request_is_read_whatever_is_missing_in_it() -> None:
    assert parse_request({"request": {"object": {}}}) == Request({}, None, {})
    assert parse_request({}) is None
