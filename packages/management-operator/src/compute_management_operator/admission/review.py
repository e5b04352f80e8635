"""The review of one Workload or deployment: facts from caches or the plane, then the rules.

A fact that cannot be read is passed on as such, so that the rules refuse or allow on purpose; the
answer comes before the API server's timeout, after which the request would fail as a whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
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
    references_to_review,
    review_deployment,
    review_workload,
    warnings,
)
from compute_api_types.validation.facts import Cities, Reviews
from compute_api_types.validation.updates import is_admitted_unread
from compute_management_operator.admission.access import review_networks, review_references
from compute_management_operator.admission.delays import ANSWER_WITHIN
from compute_management_operator.admission.idle_projects import (
    NOTHING_READ,
    IdleProjects,
    NetworkingFacts,
)
from compute_management_operator.admission.observe import (
    are_networks_checked,
    observe_cities,
    observe_plane,
)
from compute_management_operator.admission.request import AdmissionRequest, parse_request
from compute_management_operator.dependencies import Dependencies
from compute_management_operator.planes import DEPLOYMENT
from compute_operator_kit.client.interface import FieldOwner
from compute_operator_kit.controller.context import OperatorContext
from compute_operator_kit.core.errors import PlaneGoneError
from compute_operator_kit.core.json import JsonMapping, JsonObject, member_object, member_text
from compute_operator_kit.core.keys import PlaneName
from compute_operator_kit.core.metrics import MetricsPort
from compute_operator_kit.planes.optional_kinds import OptionalKinds

NAME: Final = "admission"
WRITER: Final = FieldOwner(NAME, "compute-admission")
REQUESTS: Final = "compute_admission_requests_total"


@dataclass(frozen=True, slots=True)
class AdmissionAllowed:
    """May be stored; the user sees the warnings."""

    reason: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AdmissionRefused:
    """Must not be stored: its content breaks a rule."""

    status: JsonMapping
    reason: str = "Invalid"


@dataclass(frozen=True, slots=True)
class AdmissionUndecided:
    """Cannot be decided now, or names no project."""

    status: JsonMapping
    reason: str


AdmissionResult: TypeAlias = AdmissionAllowed | AdmissionRefused | AdmissionUndecided
_RESULTS: Final = {
    AdmissionAllowed: "allowed",
    AdmissionRefused: "denied",
    AdmissionUndecided: "error",
}


class Admission:
    """Reviews Workloads from the caches of this replica; of a project without Workloads, Locations
    and Networks are read from its plane.
    """

    def __init__(self, deps: Dependencies, networking: OptionalKinds) -> None:
        self._context: OperatorContext = deps.context
        self._metrics: MetricsPort = deps.metrics
        self._networking = networking.reader
        self._is_single = deps.settings.is_single
        self._delivers_data = deps.settings.delivers_data
        self.idle_projects = IdleProjects(deps.context, networking, deps.clock, WRITER)

    async def review(self, review: JsonObject) -> AdmissionResult:
        result = await self._review(parse_request(review))
        self._metrics.count(REQUESTS, result=_RESULTS[type(result)], reason=result.reason)
        return result

    async def review_deployment(self, review: JsonObject) -> AdmissionResult:
        """Of a WorkloadDeployment: whether the requester may read what its template names."""
        result = await self._review_deployment(parse_request(review))
        self._metrics.count(REQUESTS, result=_RESULTS[type(result)], reason=result.reason)
        return result

    async def _review_deployment(self, request: AdmissionRequest | None) -> AdmissionResult:
        if request is None or not references_to_review(request.new, request.old):
            return AdmissionAllowed("Unread")
        plane = observe_plane(request, self._context.caches, is_single=self._is_single)
        if isinstance(plane, CannotDecide):
            return _undecided(plane)
        try:
            until = asyncio.get_running_loop().time() + ANSWER_WITHIN.total_seconds()
            reviews = await self._review_references(request, plane, until)
        except PlaneGoneError:
            return _undecided(derive_unavailable(plane))
        return decide_deployment(request, reviews)

    async def _review(self, request: AdmissionRequest | None) -> AdmissionResult:
        if request is None or is_admitted_unread(request.new, request.old):
            # Nothing is read for these, so that a finalizer can always be removed.
            return AdmissionAllowed("Unread")
        plane = observe_plane(request, self._context.caches, is_single=self._is_single)
        if isinstance(plane, CannotDecide):
            return _undecided(plane)
        try:
            facts = await self._read_facts(request, plane)
        except PlaneGoneError:
            return _undecided(derive_unavailable(plane))
        return decide(request, facts)

    async def _review_references(
        self, request: AdmissionRequest, plane: PlaneName, until: float
    ) -> Mapping[str, Review]:
        references = references_to_review(request.new, request.old)
        if not references:
            return {}
        kube = self._context.kube(plane, WRITER)
        namespace = member_text(member_object(request.new, "metadata"), "namespace")
        try:
            async with asyncio.timeout_at(until):
                return await review_references(kube, request.user, namespace, references)
        except TimeoutError:
            return {}  # to the rules, a missing review is a failed one

    async def _read_facts(self, request: AdmissionRequest, plane: PlaneName) -> Facts:
        until = asyncio.get_running_loop().time() + ANSWER_WITHIN.total_seconds()
        cities: Cities | None = UNREAD
        if needs_locations(request.new, request.old):
            cities = observe_cities(self._context.caches, plane, self._networking)
        if cities is None:
            cities = (await self._read_networking(plane, until)).cities
        reviews = await self._reviews(request, plane, until)
        if not self._delivers_data:
            return Facts(plane, cities, reviews)
        return Facts(plane, cities, reviews, await self._review_references(request, plane, until))

    async def _read_networking(self, plane: PlaneName, until: float) -> NetworkingFacts:
        try:
            async with asyncio.timeout_at(until):
                return await self.idle_projects.read(plane)
        except TimeoutError:
            return NOTHING_READ

    async def _reviews(self, request: AdmissionRequest, plane: PlaneName, until: float) -> Reviews:
        is_checked = are_networks_checked(self._context.caches, plane, self._networking)
        if is_checked is False:
            return NETWORKING_OFF
        networks = networks_to_review(request.new, request.old)
        if not networks:
            return {}
        if is_checked is None:
            is_checked = (await self._read_networking(plane, until)).are_networks_checked
        if not is_checked:
            return NETWORKING_OFF
        return await self._review_networks(request, plane, networks, until)

    async def _review_networks(
        self, request: AdmissionRequest, plane: PlaneName, networks: tuple[str, ...], until: float
    ) -> Mapping[str, Review]:
        kube = self._context.kube(plane, WRITER)
        namespace = member_text(member_object(request.new, "metadata"), "namespace")
        try:
            async with asyncio.timeout_at(until):
                return await review_networks(kube, request.user, namespace, networks)
        except TimeoutError:
            return {}  # to the rules, a missing review is a failed one


def decide(request: AdmissionRequest, facts: Facts) -> AdmissionResult:
    """The result of the rules; pure."""
    errors: tuple[FieldError, ...] | CannotDecide = review_workload(request.new, request.old, facts)
    if isinstance(errors, CannotDecide):
        return _undecided(errors)
    if errors:
        return AdmissionRefused(derive_denial(request.new, errors).as_status())
    delivers_data = facts.data_reviews is not None
    return AdmissionAllowed("Valid", warnings(request.new, delivers_data=delivers_data))


def decide_deployment(request: AdmissionRequest, reviews: Mapping[str, Review]) -> AdmissionResult:
    """The result of the one rule for deployments; pure."""
    errors = review_deployment(request.new, request.old, reviews)
    if isinstance(errors, CannotDecide):
        return _undecided(errors)
    if errors:
        denial = derive_denial(request.new, errors, kind=DEPLOYMENT.kind)
        return AdmissionRefused(denial.as_status())
    return AdmissionAllowed("Valid")


def _undecided(why: CannotDecide) -> AdmissionUndecided:
    reason = "InternalError"
    status: JsonMapping = {
        "status": "Failure",
        "message": why.message,
        "reason": reason,
        "code": why.code,
    }
    return AdmissionUndecided(status, reason)
