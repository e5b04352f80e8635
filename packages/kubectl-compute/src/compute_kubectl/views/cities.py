"""`cities`: per city code its Clusters, deployments, Instances, and what waits for what. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from compute_api_types import conditions
from compute_kubectl.snapshot.access import Access
from compute_kubectl.snapshot.objects import SeenCluster, SeenDeployment, SeenInstance
from compute_kubectl.snapshot.planes import PlaneFacts, Snapshot, Unread


@dataclass(frozen=True, slots=True)
class ClusterState:
    """A cell of a city as Karmada sees it."""

    name: str
    status: str
    reason: str = ""
    since: datetime | None = None

    @property
    def is_ready(self) -> bool:
        return self.status == "True"


@dataclass(frozen=True, slots=True)
class City:
    """One city: cells, deployments, Instances desired and ready, what waits by reason."""

    code: str
    clusters: tuple[ClusterState, ...] = ()
    reporting: tuple[str, ...] = ()
    """Cells from which Instances are shown."""
    deployments: int = 0
    desired: int = 0
    ready: int = 0
    waiting: Mapping[str, int] = field(default_factory=dict[str, int])
    oldest: datetime | None = None
    """Since when the Instance that waits longest has been waiting."""


@dataclass(frozen=True, slots=True)
class Cities:
    """All cities that a Cluster serves or a deployment names."""

    at: datetime
    cities: tuple[City, ...]
    knows_clusters: bool
    planes: tuple[PlaneFacts, ...] = ()
    unread: tuple[Unread, ...] = ()

    def waited(self, city: City) -> timedelta | None:
        return None if city.oldest is None else max(self.at - city.oldest, timedelta())


def derive_cities(snapshot: Snapshot, now: datetime, *, all_projects: bool = False) -> Cities:
    """The cities of the namespace, or of every project where the hub was read as a whole."""
    hub, project = snapshot.hub, snapshot.project
    deployments = hub.deployments if all_projects else project.deployments
    instances = hub.instances if all_projects else project.instances
    codes = {one.city for one in deployments if one.city}
    codes |= {one.city for one in hub.clusters if one.city}
    codes |= {
        city
        for one in (() if all_projects else project.workloads)
        for placement in one.placements
        for city in placement.cities
    }
    found = tuple(_city(code, hub.clusters, deployments, instances) for code in sorted(codes))
    return Cities(now, found, hub.clusters.access is Access.READ, snapshot.planes, snapshot.unread)


def _city(
    code: str,
    clusters: Iterable[SeenCluster],
    deployments: Iterable[SeenDeployment],
    instances: Iterable[SeenInstance],
) -> City:
    own = [one for one in deployments if one.city == code]
    named = {(one.meta.namespace, one.meta.name) for one in own}
    shown = [one for one in instances if (one.meta.namespace, one.deployment_name) in named]
    waiting = [one for one in shown if not one.is_true(conditions.READY)]
    reasons: Counter[str] = Counter()
    times: list[datetime] = []
    for one in waiting:
        ready = one.condition(conditions.READY)
        reasons[ready.reason if ready and ready.reason else "not reported"] += 1
        since = (ready.since if ready else None) or one.meta.created
        times += [since] if since else []
    return City(
        code=code,
        clusters=tuple(_state(one) for one in clusters if one.city == code),
        reporting=tuple(sorted({one.cell for one in shown if one.cell})),
        deployments=len(own),
        desired=sum(one.desired for one in own if not one.meta.is_terminating),
        ready=sum(one.is_true(conditions.READY) for one in shown),
        waiting={name: reasons[name] for name in sorted(reasons)},
        oldest=min(times, default=None),
    )


def _state(cluster: SeenCluster) -> ClusterState:
    ready = cluster.condition(conditions.READY)
    if ready is None:
        return ClusterState(cluster.meta.name, "Unknown")
    return ClusterState(cluster.meta.name, ready.status, ready.reason, ready.since)
