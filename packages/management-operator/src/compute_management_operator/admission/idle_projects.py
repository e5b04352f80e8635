"""Networking facts of projects whose Locations and Networks are not watched, read when needed.

A project without Workloads has no such watch, and its first Workload is reviewed before one is
opened: without these reads it would be refused. They are kept for a moment, shared by concurrent
reviews, and bounded in pages, projects and time; what cannot be read is never taken for empty.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeAlias

from compute_api_types.validation import NETWORKING_OFF, UNREAD
from compute_api_types.validation.facts import Cities
from compute_management_operator.admission.delays import ANSWER_WITHIN, KEPT_FOR
from compute_management_operator.networking import city_code_of
from compute_management_operator.planes import LOCATION, NETWORK
from compute_operator_kit.cache.optional_kinds import OptionalKindsMode
from compute_operator_kit.client.interface import FieldOwner, KubeClient, NotServed, Page
from compute_operator_kit.controller.context import OperatorContext
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.errors import ReconcileError, UnavailableError
from compute_operator_kit.core.json import UndecodableError
from compute_operator_kit.core.keys import Kind, PlaneName
from compute_operator_kit.planes.optional_kinds import KindState, OptionalKinds

MOST_PROJECTS: Final = 256
MOST_PAGES: Final = 20  # of 500 Locations: far more than there are cities

# A project that is deleted and created again is another one.
_Project: TypeAlias = tuple[PlaneName, str]


@dataclass(frozen=True, slots=True)
class NetworkingFacts:
    """What one read of a project shows."""

    cities: Cities
    are_networks_checked: bool


NOTHING_READ: Final = NetworkingFacts(UNREAD, are_networks_checked=True)


@dataclass(frozen=True, slots=True)
class _Kept:
    facts: NetworkingFacts
    at: timedelta


class IdleProjects:
    """Reads of Locations and Networks for admission, by project."""

    def __init__(
        self, context: OperatorContext, networking: OptionalKinds, clock: Clock, owner: FieldOwner
    ) -> None:
        self._context = context
        self._networking = networking
        self._clock = clock
        self._owner = owner
        self._kept: dict[_Project, _Kept] = {}  # oldest first
        self._reading: dict[_Project, asyncio.Event] = {}

    def __len__(self) -> int:
        return len(self._kept)

    async def read(self, plane: PlaneName) -> NetworkingFacts:
        """Facts that are at most `KEPT_FOR` old; `NOTHING_READ` where the plane does not answer.
        Raises `PlaneGoneError` when the plane is not engaged.
        """
        project = (plane, self._context.planes.get(plane).plane.uid)
        kept = self._find_kept(project)
        if kept is None:
            await self._begin(project).wait()
            kept = self._find_kept(project)
        return NOTHING_READ if kept is None else kept

    def _find_kept(self, project: _Project) -> NetworkingFacts | None:
        kept = self._kept.get(project)
        if kept is None or self._clock.monotonic() - kept.at >= KEPT_FOR:
            return None
        return kept.facts

    def _begin(self, project: _Project) -> asyncio.Event:
        """Starts a read, unless one is under way: reviews of one project share it."""
        ended = self._reading.get(project)
        if ended is None:
            ended = self._reading[project] = asyncio.Event()
            self._context.start(self._read(project, ended), f"networking of {project[0]}")
        return ended

    async def _read(self, project: _Project, ended: asyncio.Event) -> None:
        try:
            async with asyncio.timeout(ANSWER_WITHIN.total_seconds()):
                kube = self._context.kube(project[0], self._owner)
                cities, is_checked = await asyncio.gather(
                    self._read_cities(kube, project[0]), self._is_checked(kube, project[0])
                )
        except (TimeoutError, ReconcileError, UndecodableError):
            return  # not kept: the next review asks again
        else:
            self.keep(project, NetworkingFacts(cities, is_checked))
        finally:
            del self._reading[project]
            ended.set()

    def keep(self, project: _Project, facts: NetworkingFacts) -> None:
        """Keeps the facts for `KEPT_FOR`, of the latest `MOST_PROJECTS`."""
        self._kept.pop(project, None)
        self._kept[project] = _Kept(facts, self._clock.monotonic())
        while len(self._kept) > MOST_PROJECTS:
            del self._kept[next(iter(self._kept))]

    async def _read_cities(self, kube: KubeClient, plane: PlaneName) -> Cities:
        codes: set[str] = set()
        token = ""
        for _ in range(MOST_PAGES):
            page = await kube.list(LOCATION, continue_token=token)
            if isinstance(page, NotServed):
                return NETWORKING_OFF if self._counts_as_off(plane, LOCATION) else UNREAD
            if not isinstance(page, Page):
                break  # expired
            codes.update(city_code_of(item.snapshot.decode()) for item in page.items)
            token = page.continue_token
            if not token:
                return frozenset(codes - {""})
        raise UnavailableError(
            "ListIncomplete", f"listing locations on {plane!r}: no complete answer", plane=plane
        )

    async def _is_checked(self, kube: KubeClient, plane: PlaneName) -> bool:
        page = await kube.list(NETWORK, limit=1)
        return not (isinstance(page, NotServed) and self._counts_as_off(plane, NETWORK))

    def _counts_as_off(self, plane: PlaneName, kind: Kind) -> bool:
        """Whether "not served" is believed at once: not where the kind was served before, which may
        be a partial discovery (operations.md 1.4), nor in mode `on`.
        """
        is_new = self._networking.state(plane, kind) in {KindState.UNKNOWN, KindState.OFF}
        return is_new and self._networking.mode is OptionalKindsMode.AUTO
