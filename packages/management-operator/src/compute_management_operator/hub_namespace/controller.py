"""The hub-namespace controller: watches, one live read of the source, the delete.

Without it every namespace that a tenant creates and deletes stays on the hub and in every cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from compute_api_types import labels, names
from compute_management_operator import hub_indexes, hub_measures
from compute_management_operator.assembly import RESYNC, RETRY, Tools
from compute_management_operator.fresh_reads import FreshReads
from compute_management_operator.hub_caches import HUB_CACHES
from compute_management_operator.hub_namespace.observe import (
    CONTENTS,
    EmptyHubNamespace,
    Observed,
    SourceState,
    find_empty,
    read_state,
)
from compute_management_operator.hub_namespace.plan import plan
from compute_management_operator.identities import read_project
from compute_management_operator.kinds import NAMESPACE
from compute_management_operator.plane_names import HUB, ROOT
from compute_management_operator.policy.mapping import NOBODYS
from compute_management_operator.project_namespaces import ProjectNamespaces
from compute_operator_kit.cache import Caches, Change
from compute_operator_kit.controller import Controller, Watch
from compute_operator_kit.errors import PlaneGoneError
from compute_operator_kit.intents import Plan
from compute_operator_kit.keys import ObjectKey, PlaneName, Role
from compute_operator_kit.kube import Writer
from compute_operator_kit.mass_delete import FEWEST, LARGEST_SHARE
from compute_operator_kit.outcomes import Applied
from compute_operator_kit.parts import Part
from compute_operator_kit.reconcile import Pass, Result, run_steps

NAME: Final = "hub-namespace"
WRITER: Final = Writer(NAME, labels.FEDERATION_MANAGER)


@dataclass(frozen=True, slots=True)
class GoneSource:
    """A source that a live read showed as gone: of which plane, and when first."""

    plane: PlaneName
    since: timedelta


class HubNamespaces:
    """Reclaims hub namespaces; remembers those with a source that was read as gone."""

    def __init__(self, tools: Tools, namespaces: ProjectNamespaces) -> None:
        self._tools = tools
        self._namespaces = namespaces
        self._reads = FreshReads(tools.reach, WRITER)
        self._gone: dict[ObjectKey, GoneSource] = {}

    async def reconcile(self, key: ObjectKey, work: Pass) -> Result:
        known = self._namespaces.find_place(names.parse_hub_namespace(key.name) or "")
        empty = find_empty(key, work.caches, known)
        if empty is None:
            self._gone.pop(key, None)
            return Result()
        observed = self._note(empty, await self._read_state(empty), work.caches)
        result = await run_steps(ReclaimSteps(observed), key, work)
        hub_measures.count_writes(work.session.so_far, self._tools.measures)
        hub_measures.count_hub_errors(work.session.so_far, NAME, self._tools.measures)
        return result

    async def _read_state(self, empty: EmptyHubNamespace) -> SourceState:
        try:
            return read_state(empty, await self._reads.get(empty.source))
        except PlaneGoneError:
            return SourceState.UNKNOWN

    def _note(self, empty: EmptyHubNamespace, state: SourceState, caches: Caches) -> Observed:
        if state is not SourceState.GONE:
            self._gone.pop(empty.key, None)
            return Observed(empty, state)
        view = caches.view(HUB, NAMESPACE)
        self._gone = {key: gone for key, gone in self._gone.items() if view.entry("", key.name)}
        now, plane = self._tools.clock.monotonic(), empty.source.plane
        since = self._gone.setdefault(empty.key, GoneSource(plane, now)).since
        missing = sum(gone.plane == plane for gone in self._gone.values())
        are_many = missing >= FEWEST and missing > LARGEST_SHARE * _count(plane, caches)
        return Observed(empty, state, now - since, are_many)


def _count(plane: PlaneName, caches: Caches) -> int:
    """Hub namespaces of one project; all of them where the plane is the root."""
    view = caches.view(HUB, NAMESPACE)
    if plane == ROOT:
        projects = view.index_values(hub_indexes.PROJECT)
        return sum(len(view.entries_by_index(hub_indexes.PROJECT, name)) for name in projects)
    return len(view.entries_by_index(hub_indexes.PROJECT, plane))


@dataclass(frozen=True, slots=True)
class ReclaimSteps:
    """One reconcile; a hub namespace has no status of ours."""

    observed: Observed

    def observe(self, key: ObjectKey, caches: Caches) -> Observed:  # noqa: ARG002
        return self.observed

    def plan(self, seen: Observed, now: datetime) -> Plan:  # noqa: ARG002
        return plan(seen)

    def report(self, seen: Observed, applied: Applied, now: datetime) -> Plan:  # noqa: ARG002
        return Plan()


def map_namespace(change: Change, _: Caches) -> Iterator[ObjectKey]:
    """A hub namespace that came; what else changes of it is federation's to repair."""
    if change.before is None and names.parse_hub_namespace(change.key.name) is not None:
        yield change.key


def map_contents(change: Change, _: Caches) -> Iterator[ObjectKey]:
    """An object that left its hub namespace, which may be empty now."""
    namespace = change.key.namespace
    if change.after is None and names.parse_hub_namespace(namespace) is not None:
        yield ObjectKey(HUB, NAMESPACE, "", namespace)


def build(tools: Tools, namespaces: ProjectNamespaces) -> Part:
    controller = Controller(
        name=NAME,
        writer=WRITER,
        watches=(
            Watch(Role.HUB, NAMESPACE, map_namespace),
            *(Watch(Role.HUB, kind, map_contents) for kind in CONTENTS),
        ),
        reconcile=HubNamespaces(tools, namespaces).reconcile,
        share=share_by_source,
        retry=RETRY,
        resync=RESYNC,
        deadline=tools.settings.clients.reconcile_timeout,
        dropped_metric=hub_measures.DROPPED,
    )
    return Part(controller=controller, watched=HUB_CACHES)


def share_by_source(key: ObjectKey, caches: Caches) -> str:
    """A hub namespace queues with the project it names."""
    if HUB not in caches.planes(Role.HUB):
        return NOBODYS
    entry = caches.view(HUB, NAMESPACE).entry("", key.name)
    return (entry and read_project(entry.metadata)) or NOBODYS
