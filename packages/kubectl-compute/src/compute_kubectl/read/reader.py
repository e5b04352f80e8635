"""Reads the planes of one question in parallel, in three rounds, into one capture.

```
 round 1   project: its namespace, the Workloads        hub: Clusters
 round 2   project, hub and each cell: deployments, Instances, …
 round 3   details of what is blocked, on the planes where it is
```

Each round needs what the one before it found: the UID of the namespace gives the hub namespace, the
Clusters give the cells. A plane that fails is marked, and the others are read all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from compute_api_types import labels, names
from compute_kubectl.read import kinds, questions
from compute_kubectl.read.contexts import ContextError, PlaneEndpoints
from compute_kubectl.read.kinds import ReadKind
from compute_kubectl.read.questions import Question, Scope
from compute_kubectl.read.requests import Clock, PlaneClient, Sent, utc_now
from compute_kubectl.read.transport import LONGEST_DETAIL, Endpoint, HttpsTransport, Transport
from compute_kubectl.snapshot.access import Access
from compute_kubectl.snapshot.capture import Capture, CapturedPlane, Reading
from compute_kubectl.snapshot.decode import decode
from compute_kubectl.snapshot.json_reads import text_at
from compute_kubectl.snapshot.planes import Role, Snapshot

TIMEOUT: Final = timedelta(seconds=5)
# Threads mostly wait: fifty cells that do not answer take two time limits, not fifty.
MOST_THREADS: Final = 32
_PUSH: Final = "Push"


@dataclass(slots=True)
class _Plane:
    """One plane while it is read."""

    name: str
    role: Role
    client: PlaneClient
    readings: dict[str, Reading] = field(default_factory=dict[str, Reading])

    def captured(self, at: datetime) -> CapturedPlane:
        access, detail = _summed(self.readings.values())
        return CapturedPlane(
            self.name, self.role, access, detail, at, self.client.skew, dict(self.readings)
        )


def _summed(readings: Iterable[Reading]) -> tuple[Access, str]:
    """How the plane as a whole was read: by what the most telling of its readings had."""
    known = list(readings)
    for access in (Access.READ, Access.UNREACHABLE, Access.REFUSED, Access.NOT_SERVED):
        for one in known:
            if one.access is access:
                return access, "" if access is Access.READ else one.detail
    return Access.NOT_ASKED, ""


class SnapshotReader:
    """Reads snapshots of the planes that a kubeconfig gives; may be used again and again."""

    def __init__(
        self,
        endpoints: PlaneEndpoints,
        *,
        timeout: timedelta = TIMEOUT,
        sent: Sent | None = None,
        progress: Callable[[str], None] | None = None,
        transport: Transport | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.endpoints = endpoints
        self._timeout = timeout
        self._sent = sent
        self._progress = progress
        self._transport = transport or HttpsTransport()
        self.clock = clock or utc_now

    @property
    def namespace(self) -> str:
        return self.endpoints.namespace

    def close(self) -> None:
        self._transport.close()

    def client(self, name: str, endpoint: Endpoint) -> PlaneClient:
        return PlaneClient(
            name,
            endpoint,
            self._transport,
            timeout=self._timeout,
            sent=self._sent,
            clock=self.clock,
        )

    def read(self, question: Question) -> Snapshot:
        """The decoded snapshot of the planes for a question; raises for no answer of a plane."""
        return decode(self.capture(question))

    def capture(self, question: Question) -> Capture:
        """The documents of the planes for a question, as they were served."""
        with ThreadPoolExecutor(MOST_THREADS) as pool:
            return _Round(self, question, pool).run()

    def say(self, text: str) -> None:
        if self._progress is not None:
            self._progress(text)


class _Round:
    """One read of all planes."""

    def __init__(
        self, reader: SnapshotReader, question: Question, pool: ThreadPoolExecutor
    ) -> None:
        self._reader = reader
        self._question = question
        self._pool = pool
        self._at = reader.clock()
        endpoints = reader.endpoints
        self._project = self._plane("project", Role.PROJECT, endpoints.project)
        self._hub = self._plane("hub", Role.HUB, endpoints.hub)
        if question.scope is Scope.QUOTA:
            self._hub = None
        self._cells: dict[str, _Plane] = {}
        self._unusable: list[CapturedPlane] = []
        if question.scope is not Scope.QUOTA:
            for name, detail in endpoints.unusable.items():
                self._give_up(name, Role.HUB, detail)

    def _give_up(self, name: str, role: Role, detail: str) -> None:
        """Adds a plane with a context that cannot be used."""
        away = Reading(Access.UNREACHABLE, at=self._at, detail=detail[:LONGEST_DETAIL])
        readings = {kind.plural: away for kind in kinds.KINDS[role]}
        self._unusable.append(
            CapturedPlane(name, role, away.access, away.detail, self._at, readings=readings)
        )

    def _plane(self, name: str, role: Role, endpoint: Endpoint | None) -> _Plane | None:
        return None if endpoint is None else _Plane(name, role, self._reader.client(name, endpoint))

    def run(self) -> Capture:
        question = self._question
        self._reader.say("reading the project")
        self._together([(self._project, self._first), (self._hub, self._clusters)])
        self._choose_cells()
        cells = f", {len(self._cells)} cells" if self._cells else ""
        self._reader.say(f"reading project{', hub' if self._hub else ''}{cells}")
        self._together(
            [
                (self._project, self._rest_of_project),
                (self._hub, self._rest_of_hub),
                *((cell, self._rest_of_cell) for cell in self._cells.values()),
            ]
        )
        if question.scope is Scope.BLOCKS:
            self._details()
        return self._captured()

    def _together(self, work: Iterable[tuple[_Plane | None, Callable[[_Plane], None]]]) -> None:
        running = [self._pool.submit(act, plane) for plane, act in work if plane is not None]
        for one in running:
            one.result()

    def _captured(self) -> Capture:
        planes = [one for one in (self._project, self._hub, *self._cells.values()) if one]
        captured = [*(one.captured(self._at) for one in planes), *self._unusable]
        return Capture(self._question.namespace, self._at, tuple(captured))

    def _snapshot(self) -> Snapshot:
        return decode(self._captured())

    # --- round 1 ----------------------------------------------------------------------------------

    def _first(self, plane: _Plane) -> None:
        question = self._question
        client, namespace = plane.client, question.namespace
        plane.readings["namespaces"] = client.read_one(kinds.NAMESPACES, namespace)
        query = {"fieldSelector": f"metadata.name={question.workload}"} if question.workload else {}
        named = client.read(kinds.WORKLOADS, namespace, query=query)
        if question.workload and named.access is Access.READ and not named.items:
            # Not there: the others are read for similar names.
            named = client.read(kinds.WORKLOADS, namespace, most_pages=1)
            named = replace(named, is_partial=False) if named.access is Access.READ else named
        plane.readings["workloads"] = named

    def _clusters(self, plane: _Plane) -> None:
        plane.readings["clusters"] = plane.client.read(kinds.CLUSTERS)

    def _choose_cells(self) -> None:
        question, endpoints = self._question, self._reader.endpoints
        if not endpoints.asks_cells or not questions.first_of_cell(question):
            return
        snapshot = self._snapshot()
        cities = questions.wanted_cities(question, snapshot.project.workloads.items)
        chosen = dict.fromkeys(endpoints.cells)
        for cluster in snapshot.hub.clusters:
            if cities is None or cluster.city in cities:
                chosen[cluster.meta.name] = None
        modes = {one.meta.name: one.sync_mode for one in snapshot.hub.clusters}
        for name in list(chosen)[: questions.MOST_CELLS]:
            try:
                endpoint = endpoints.cell(name)
            except ContextError as failure:
                self._give_up(name, Role.CELL, str(failure))
                continue
            if endpoint is None and endpoints.hub is not None and modes.get(name) == _PUSH:
                endpoint = endpoints.hub.below(kinds.proxy_prefix(name))
            plane = self._plane(name, Role.CELL, endpoint)
            if plane is not None:
                self._cells[name] = plane

    # --- round 2 ----------------------------------------------------------------------------------

    @property
    def _uid(self) -> str:
        """The UID of the Workload in question."""
        if self._project is None:
            return ""
        for one in self._project.readings["workloads"].items:
            if text_at(one, "metadata", "name") == self._question.workload:
                return text_at(one, "metadata", "uid")
        return ""

    @property
    def _hub_namespace(self) -> str:
        """The hub namespace by the UID of the project's; empty, so all of them, without it."""
        if self._project is None or self._question.all_projects:
            return ""
        for one in self._project.readings["namespaces"].items:
            return names.derive_hub_namespace(text_at(one, "metadata", "uid"))
        return ""

    def _read(self, plane: _Plane, wanted: Iterable[ReadKind], namespace: str) -> None:
        for kind in wanted:
            if kind.plural in plane.readings:
                continue
            query = questions.selector_of(self._question, kind, self._uid)
            where = kinds.BUCKET_NAMESPACE if kind is kinds.BUCKETS else namespace
            most = self._most_pages(plane)
            plane.readings[kind.plural] = plane.client.read(
                kind, where, query=query, most_pages=most
            )

    def _most_pages(self, plane: _Plane) -> int:
        """`why --all` has at most ten requests for a project: 1 + 2 + 3 + 3 and one for details."""
        if self._question.scope is Scope.EVERYTHING or self._question.workload:
            return 20
        return 3 if plane.role is Role.PROJECT else 20

    def _rest_of_project(self, plane: _Plane) -> None:
        self._read(plane, questions.first_of_project(self._question), self._question.namespace)

    def _rest_of_hub(self, plane: _Plane) -> None:
        wanted = questions.first_of_hub(self._question)
        if kinds.NAMESPACES in wanted:
            query = {"labelSelector": f"{labels.UPSTREAM_NAMESPACE}={self._question.namespace}"}
            plane.readings["namespaces"] = plane.client.read(kinds.NAMESPACES, query=query)
        self._read(plane, wanted, self._hub_namespace)

    def _rest_of_cell(self, plane: _Plane) -> None:
        self._read(plane, questions.first_of_cell(self._question), self._hub_namespace)

    # --- round 3 ----------------------------------------------------------------------------------

    def _details(self) -> None:
        snapshot = self._snapshot()
        wanted: list[tuple[_Plane | None, tuple[ReadKind, ...], str]] = [
            (
                self._project,
                questions.details_of_project(self._question, snapshot),
                self._question.namespace,
            ),
            (self._hub, questions.details_of_hub(snapshot), self._hub_namespace),
        ]
        wanted += [
            (plane, questions.details_of_cell(snapshot.cell(name)), self._hub_namespace)
            for name, plane in self._cells.items()
        ]
        by_plane: Mapping[str, tuple[tuple[ReadKind, ...], str]] = {
            plane.name: (some, where) for plane, some, where in wanted if plane and some
        }
        if not by_plane:
            return
        self._reader.say("reading what is blocked")

        def act(plane: _Plane) -> None:
            some, where = by_plane[plane.name]
            self._read(plane, some, where)

        self._together((plane, act) for plane, some, _ in wanted if plane and some)
