"""Diagnoses of every Workload of a namespace, those that need attention first. Pure.

A snapshot of hundreds of Workloads is divided once by Workload: each diagnosis then looks at its
own objects alone, instead of all of them again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from compute_api_types import conditions
from compute_kubectl.explain.diagnosis import Diagnosis, Verdict
from compute_kubectl.explain.explain import Subject, explain
from compute_kubectl.snapshot.access import Listing
from compute_kubectl.snapshot.objects import (
    SeenDeployment,
    SeenInstance,
    SeenObject,
)
from compute_kubectl.snapshot.planes import CellPlane, HubPlane, ProjectPlane, Snapshot

T = TypeVar("T", bound=SeenObject)


def explain_all(snapshot: Snapshot, now: datetime) -> tuple[Diagnosis, ...]:
    """A diagnosis for each Workload: by rank of what blocks it, then by its age, then by name."""
    parts = _Parts(snapshot)
    found = [
        explain(parts.of(one.meta.uid, one.meta.name), now, Subject(one.meta.name))
        for one in snapshot.project.workloads
    ]
    return tuple(sorted(found, key=_order))


def _order(one: Diagnosis) -> tuple[bool, int, timedelta, str]:
    rank = conditions.rank(one.finding.reason) if one.finding else 0
    return one.verdict is Verdict.READY, -rank, -(one.age or timedelta()), one.name


class _Parts:
    """The objects of a snapshot by the Workload they belong to."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._deployments: dict[str, dict[str, list[SeenDeployment]]] = {}
        self._instances: dict[str, dict[str, list[SeenInstance]]] = {}
        owners: dict[str, str] = {}
        planes: list[ProjectPlane | HubPlane | CellPlane] = [snapshot.project, snapshot.hub]
        planes += [snapshot.cells[name] for name in sorted(snapshot.cells)]
        for plane in planes:
            name = plane.facts.name
            self._deployments[name] = _grouped(plane.deployments, lambda one: one.workload_uid)
            owners |= {one.meta.name: one.workload_uid for one in plane.deployments}
        for plane in planes:
            self._instances[plane.facts.name] = _grouped(
                plane.instances, lambda one: owners.get(_deployment_of(one), "")
            )
        self._claims = _grouped(
            snapshot.project.claims, lambda one: owners.get(one.instance.rpartition("-")[0], "")
        )
        self._bindings = _grouped(
            snapshot.hub.bindings, lambda one: owners.get(one.resource_name, "")
        )

    def of(self, uid: str, name: str) -> Snapshot:
        """The snapshot of one Workload."""
        snapshot = self._snapshot
        project, hub = snapshot.project, snapshot.hub
        own = [one for one in project.workloads if one.meta.name == name]
        return replace(
            snapshot,
            project=replace(
                project,
                workloads=replace(project.workloads, items=tuple(own)),
                deployments=self._deployments_of(project.facts.name, project.deployments, uid),
                instances=self._instances_of(project.facts.name, project.instances, uid),
                claims=_only(project.claims, self._claims, uid),
            ),
            hub=replace(
                hub,
                deployments=self._deployments_of(hub.facts.name, hub.deployments, uid),
                instances=self._instances_of(hub.facts.name, hub.instances, uid),
                bindings=_only(hub.bindings, self._bindings, uid),
            ),
            cells={cell: self._cell(plane, uid) for cell, plane in snapshot.cells.items()},
        )

    def _cell(self, cell: CellPlane, uid: str) -> CellPlane:
        return replace(
            cell,
            deployments=self._deployments_of(cell.name, cell.deployments, uid),
            instances=self._instances_of(cell.name, cell.instances, uid),
        )

    def _deployments_of(
        self, plane: str, listing: Listing[SeenDeployment], uid: str
    ) -> Listing[SeenDeployment]:
        return _only(listing, self._deployments[plane], uid)

    def _instances_of(
        self, plane: str, listing: Listing[SeenInstance], uid: str
    ) -> Listing[SeenInstance]:
        return _only(listing, self._instances[plane], uid)


def _deployment_of(instance: SeenInstance) -> str:
    return instance.deployment_name or instance.meta.name.rpartition("-")[0]


def _grouped(listing: Iterable[T], key: Callable[[T], str]) -> dict[str, list[T]]:
    groups: defaultdict[str, list[T]] = defaultdict(list)
    for one in listing:
        groups[key(one)].append(one)
    return groups


def _only(listing: Listing[T], groups: Mapping[str, list[T]], uid: str) -> Listing[T]:
    return replace(listing, items=tuple(groups.get(uid, ())))
