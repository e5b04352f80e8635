"""The hub-namespace controller: watches, one live read of the source, the delete.

Without it every namespace that a tenant creates and deletes stays on the hub and in every cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from compute_api_types import labels, names
from compute_management_operator.dependencies import RESYNC, RETRY, Dependencies
from compute_management_operator.hub import indexes, metrics
from compute_management_operator.hub.api_reader import ApiReader
from compute_management_operator.hub.caches import HUB_CACHES
from compute_management_operator.hub.namespace_uids import NamespaceUids
from compute_management_operator.hub.namespaces.observe import (
    CONTENTS,
    EmptyHubNamespace,
    ObservedNamespace,
    SourceState,
    find_empty,
    read_state,
)
from compute_management_operator.hub.namespaces.plan import plan
from compute_management_operator.hub.watches import fairness_of_namespace
from compute_management_operator.planes import HUB, NAMESPACE, ROOT
from compute_operator_kit.cache.store import Caches, Change
from compute_operator_kit.client.interface import FieldOwner
from compute_operator_kit.controller.mass_delete import FEWEST, LARGEST_SHARE
from compute_operator_kit.controller.reconcile import ReconcileContext, Result, run_steps
from compute_operator_kit.controller.registration import ControllerSetup
from compute_operator_kit.controller.spec import Controller, Watch
from compute_operator_kit.core.errors import PlaneGoneError
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Role
from compute_operator_kit.intents.intents import Plan
from compute_operator_kit.intents.outcomes import Applied

NAME: Final = "hub-namespace"
WRITER: Final = FieldOwner(NAME, labels.FEDERATION_MANAGER)


@dataclass(frozen=True, slots=True)
class GoneSource:
    """A source that a live read showed as gone: its plane, and the time of the first such read."""

    plane: PlaneName
    since: timedelta


class HubNamespaces:
    """Reclaims hub namespaces; remembers those with a source that was read as gone."""

    def __init__(self, deps: Dependencies, namespaces: NamespaceUids) -> None:
        self._deps = deps
        self._namespaces = namespaces
        self._reads = ApiReader(deps.context, WRITER)
        self._gone: dict[ObjectKey, GoneSource] = {}

    async def reconcile(self, key: ObjectKey, work: ReconcileContext) -> Result:
        known = self._namespaces.find_namespace(names.parse_hub_namespace(key.name) or "")
        empty = find_empty(key, work.caches, known)
        if empty is None:
            self._gone.pop(key, None)
            return Result()
        observed = self._note(empty, await self._read_state(empty), work.caches)
        result = await run_steps(NamespaceReconciler(observed), key, work)
        metrics.count_writes(work.session.so_far, self._deps.metrics)
        metrics.count_hub_errors(work.session.so_far, NAME, self._deps.metrics)
        return result

    async def _read_state(self, empty: EmptyHubNamespace) -> SourceState:
        try:
            return read_state(empty, await self._reads.get(empty.source))
        except PlaneGoneError:
            return SourceState.UNKNOWN

    def _note(
        self, empty: EmptyHubNamespace, state: SourceState, caches: Caches
    ) -> ObservedNamespace:
        if state is not SourceState.GONE:
            self._gone.pop(empty.key, None)
            return ObservedNamespace(empty, state)
        view = caches.lister(HUB, NAMESPACE)
        self._gone = {key: gone for key, gone in self._gone.items() if view.entry("", key.name)}
        now, plane = self._deps.clock.monotonic(), empty.source.plane
        since = self._gone.setdefault(empty.key, GoneSource(plane, now)).since
        missing = sum(gone.plane == plane for gone in self._gone.values())
        are_many = missing >= FEWEST and missing > LARGEST_SHARE * _count(plane, caches)
        return ObservedNamespace(empty, state, now - since, are_many)


def _count(plane: PlaneName, caches: Caches) -> int:
    """Hub namespaces of one project; all of them where the plane is the root."""
    view = caches.lister(HUB, NAMESPACE)
    if plane == ROOT:
        projects = view.index_values(indexes.PROJECT)
        return sum(len(view.entries_by_index(indexes.PROJECT, name)) for name in projects)
    return len(view.entries_by_index(indexes.PROJECT, plane))


@dataclass(frozen=True, slots=True)
class NamespaceReconciler:
    """One reconcile; a hub namespace has no status of ours."""

    namespace: ObservedNamespace

    def observe(self, key: ObjectKey, caches: Caches) -> ObservedNamespace:  # noqa: ARG002
        return self.namespace

    def plan(self, observed: ObservedNamespace, now: datetime) -> Plan:  # noqa: ARG002
        return plan(observed)

    def report(self, observed: ObservedNamespace, applied: Applied, now: datetime) -> Plan:  # noqa: ARG002
        return Plan()


def map_namespace(change: Change, _: Caches) -> Iterator[ObjectKey]:
    """A new hub namespace; other changes of it are repaired by federation."""
    if change.before is None and names.parse_hub_namespace(change.key.name) is not None:
        yield change.key


def map_contents(change: Change, _: Caches) -> Iterator[ObjectKey]:
    """The hub namespace of a deleted object, which may be empty now."""
    namespace = change.key.namespace
    if change.after is None and names.parse_hub_namespace(namespace) is not None:
        yield ObjectKey(HUB, NAMESPACE, "", namespace)


def build(deps: Dependencies, namespaces: NamespaceUids) -> ControllerSetup:
    controller = Controller(
        name=NAME,
        owner=WRITER,
        watches=(
            Watch(Role.HUB, NAMESPACE, map_namespace),
            *(Watch(Role.HUB, kind, map_contents) for kind in CONTENTS),
        ),
        reconcile=HubNamespaces(deps, namespaces).reconcile,
        fairness_key=fairness_of_namespace,
        retry=RETRY,
        resync=RESYNC,
        deadline=deps.settings.clients.reconcile_timeout,
        dropped_metric=metrics.DROPPED,
    )
    return ControllerSetup(controller=controller, cached_kinds=HUB_CACHES)
