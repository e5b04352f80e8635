"""Judges one admission request: gathers what the rules need, asks them, and says it on the wire."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeAlias

from compute_api_types.validation import (
    NETWORKING_OFF,
    UNREAD,
    CannotDecide,
    Facts,
    FieldError,
    Review,
    derive_denial,
    derive_unavailable,
    needs_locations,
    networks_to_review,
    review_workload,
    warnings,
)
from compute_api_types.validation.facts import Cities, Reviews
from compute_api_types.validation.updates import is_admitted_unread
from compute_management_operator.admission.access import review_networks
from compute_management_operator.admission.observe import (
    are_networks_checked,
    observe_cities,
    observe_plane,
)
from compute_management_operator.admission.request import Request, parse_request
from compute_management_operator.assembly import Tools
from compute_management_operator.networking_switch import NetworkingSwitch
from compute_operator_kit.errors import PlaneGoneError
from compute_operator_kit.keys import PlaneName
from compute_operator_kit.kube import Writer
from compute_operator_kit.measures import Measures
from compute_operator_kit.reach import Reach
from compute_operator_kit.wire import JsonMapping, JsonObject, member_object, member_text

NAME: Final = "admission"
WRITER: Final = Writer(NAME, "compute-admission")
REQUESTS: Final = "compute_admission_requests_total"
# The API server waits 5 s (api.md 12.1); an answer that comes later helps nobody.
ANSWER_WITHIN: Final = timedelta(seconds=4)


@dataclass(frozen=True, slots=True)
class Admitted:
    """May be stored; the warnings are shown to whoever sent it."""

    reason: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """Must not be stored, for what it says."""

    status: JsonMapping
    reason: str = "Invalid"


@dataclass(frozen=True, slots=True)
class Undecided:
    """Must be tried again, or names no project."""

    status: JsonMapping
    reason: str


Answer: TypeAlias = Admitted | Refused | Undecided
_RESULTS: Final = {Admitted: "allowed", Refused: "denied", Undecided: "error"}


class Admission:
    """Answers AdmissionReviews for Workloads, from this replica's caches."""

    def __init__(self, tools: Tools, networking: NetworkingSwitch) -> None:
        self._reach: Reach = tools.reach
        self._measures: Measures = tools.measures
        self._consulting = networking.consulting
        self._is_single = tools.settings.is_single

    async def review(self, review: JsonObject) -> Answer:
        answer = await self._judge(parse_request(review))
        self._measures.count(REQUESTS, result=_RESULTS[type(answer)], reason=answer.reason)
        return answer

    async def _judge(self, request: Request | None) -> Answer:
        if request is None or is_admitted_unread(request.wanted, request.found):
            # Finalizers always come off: nothing is read, so nothing can stand in the way.
            return Admitted("Unread")
        plane = observe_plane(request, self._reach.caches, is_single=self._is_single)
        if isinstance(plane, CannotDecide):
            return _undecided(plane)
        try:
            facts = await self._gather(request, plane)
        except PlaneGoneError:
            return _undecided(derive_unavailable(plane))
        return judge(request, facts)

    async def _gather(self, request: Request, plane: PlaneName) -> Facts:
        cities: Cities = UNREAD
        if needs_locations(request.wanted, request.found):
            cities = observe_cities(self._reach.caches, plane, self._consulting)
        return Facts(plane, cities, await self._reviews(request, plane))

    async def _reviews(self, request: Request, plane: PlaneName) -> Reviews:
        if not are_networks_checked(self._reach.caches, plane, self._consulting):
            return NETWORKING_OFF
        networks = networks_to_review(request.wanted, request.found)
        return await self._ask(request, plane, networks) if networks else {}

    async def _ask(
        self, request: Request, plane: PlaneName, networks: tuple[str, ...]
    ) -> Mapping[str, Review]:
        kube = self._reach.kube(plane, WRITER)
        namespace = member_text(member_object(request.wanted, "metadata"), "namespace")
        try:
            async with asyncio.timeout(ANSWER_WITHIN.total_seconds()):
                return await review_networks(kube, request.user, namespace, networks)
        except TimeoutError:
            return {}  # an answer that is missing is one that could not be had


def judge(request: Request, facts: Facts) -> Answer:
    """The verdict of the rules; pure."""
    found: tuple[FieldError, ...] | CannotDecide = review_workload(
        request.wanted, request.found, facts
    )
    if isinstance(found, CannotDecide):
        return _undecided(found)
    if found:
        return Refused(derive_denial(request.wanted, found).as_status())
    return Admitted("Valid", warnings(request.wanted))


def _undecided(why: CannotDecide) -> Undecided:
    reason = "InternalError"
    status: JsonMapping = {
        "status": "Failure",
        "message": why.message,
        "reason": reason,
        "code": why.code,
    }
    return Undecided(status, reason)
