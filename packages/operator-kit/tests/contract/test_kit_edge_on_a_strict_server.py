"""Leader election, Events and metrics rights against a strict API server, with the shipped rights
and no more.

The roles below are row F of `operations.md` 5: what one of our requests needs beyond them is a 403
here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from http import HTTPStatus

import pytest
import yaml

from compute_operator_kit.client.flow_control import FlowControl
from compute_operator_kit.client.http_client import HttpKubeClient
from compute_operator_kit.client.interface import FieldOwner, Page, Preconditions
from compute_operator_kit.client.rest import RestConfig
from compute_operator_kit.core.errors import ForbiddenError
from compute_operator_kit.core.json import JsonObject, member_object
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Role, Uid
from compute_operator_kit.core.metrics import NoMetrics
from compute_operator_kit.core.objects import Snapshot
from compute_operator_kit.intents.intents import RecordEvent
from compute_operator_kit.process.leader import LEASE, Candidacy, Election, LeaseLostError
from compute_operator_kit.process.metrics_server import TokenReviewGuard
from compute_operator_kit.telemetry.events import EventSink, EventSource
from compute_sim_planes.api_server.authz.identity import ADMIN, User, authenticated
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.time.clock import VirtualClock, run

START = datetime(2026, 3, 1, tzinfo=UTC)
HOME = PlaneName("home")
NAMESPACE = "compute-system"
EVENT = Kind("", "v1", "events", "Event")
DEPLOYMENT = Kind("apps", "v1", "deployments", "Deployment")
LEASE_KEY = ObjectKey(HOME, LEASE, NAMESPACE, "compute-cell-operator")
OPERATOR = authenticated("system:serviceaccount:compute-system:compute-cell-operator")

ROLES = """
apiVersion: v1
kind: Namespace
metadata: {name: compute-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: home, namespace: compute-system}
rules:
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [compute-cell-operator]
  verbs: [get, update]
- {apiGroups: [""], resources: [events], verbs: [create, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: home, namespace: compute-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: home}
subjects: [{kind: ServiceAccount, name: compute-cell-operator, namespace: compute-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: home}
rules:
- {apiGroups: [authentication.k8s.io], resources: [tokenreviews], verbs: [create]}
- {apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: home}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: home}
subjects: [{kind: ServiceAccount, name: compute-cell-operator, namespace: compute-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: compute-metrics-reader}
rules: [{nonResourceURLs: [/metrics], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: compute-metrics-reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: prometheus}]
"""


class Home:
    """A home plane with our roles, and clients of it."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.plane = Plane("home", PlaneParts(clock=clock, identities=clock.identities))

    async def prepare(self) -> None:
        await apply_manifests(self.plane.connect(), list(yaml.safe_load_all(ROLES)))

    def client(self, user: User = OPERATOR) -> HttpKubeClient:
        lane = FlowControl(HOME, self.clock)
        connection = RestConfig(HOME, Role.HOME, self.plane.connect(user), lane)
        return HttpKubeClient(connection, FieldOwner("leader", "compute-cell-operator"))

    def election(self, identity: str) -> Election:
        return Election(
            self.client(),
            Candidacy(LEASE_KEY, identity),
            clock=self.clock,
            random=self.clock.random(identity),
            measures=NoMetrics(),
        )

    async def lease(self) -> JsonObject:
        existing = await self.client(ADMIN).get(LEASE_KEY)
        assert isinstance(existing, Snapshot)
        return member_object(existing.decode(), "spec")


def play(story: Callable[[Home], Awaitable[None]]) -> None:
    async def main(clock: VirtualClock) -> None:
        home = Home(clock)
        await home.prepare()
        await story(home)
        await home.plane.close()

    run(main, seed=1, start=START)


async def rest() -> None:
    await asyncio.Event().wait()


def test_the_lease_is_held_renewed_and_handed_on_with_the_shipped_rights() -> None:
    async def story(home: Home) -> None:
        leader, standby = home.election("a"), home.election("b")
        leading = asyncio.create_task(leader.lead(rest))
        await home.clock.sleep(timedelta(seconds=1))
        waiting = asyncio.create_task(standby.lead(rest))
        await home.clock.sleep(timedelta(minutes=5))
        assert leader.is_leading
        assert not standby.is_leading
        first = await home.lease()
        assert first["holderIdentity"] == "a"
        assert first["leaseDurationSeconds"] == 15
        assert first["renewTime"] != first["acquireTime"]

        leading.cancel()
        await asyncio.wait({leading})
        await home.clock.sleep(timedelta(seconds=3))

        assert standby.is_leading
        second = await home.lease()
        assert second["holderIdentity"] == "b"
        assert second["leaseTransitions"] == 1
        waiting.cancel()
        await asyncio.wait({waiting})

    play(story)


def test_a_lease_that_an_administrator_deletes_is_lost() -> None:
    async def story(home: Home) -> None:
        election = home.election("a")
        leading = asyncio.create_task(election.lead(rest))
        await home.clock.sleep(timedelta(seconds=5))
        existing = await home.client(ADMIN).get(LEASE_KEY)
        assert isinstance(existing, Snapshot)

        await home.client(ADMIN).delete(
            LEASE_KEY, preconditions=Preconditions(existing.metadata.uid)
        )
        await asyncio.wait({leading}, timeout=10)

        assert isinstance(leading.exception(), LeaseLostError)

    play(story)


def test_a_lease_of_another_name_is_not_ours_to_take() -> None:
    async def story(home: Home) -> None:
        other = ObjectKey(HOME, LEASE, NAMESPACE, "compute-management-operator")

        with pytest.raises(ForbiddenError):
            await home.client().get(other)

    play(story)


def test_events_are_accepted_and_counted_with_the_shipped_rights() -> None:
    async def story(home: Home) -> None:
        client = home.client()
        recorder = EventSink(
            lambda _: client, EventSource("compute-cell-operator", "pod-1"), home.clock
        )
        running = asyncio.create_task(recorder.run())
        about = ObjectKey(HOME, DEPLOYMENT, NAMESPACE, "compute-cell-operator")

        for _ in range(3):
            message = "The hub does not answer\x1b[2J"
            recorder.record(
                RecordEvent(about, Uid("u"), "WriteBackDelayed", message, "WriteBack", "Warning")
            )
            await recorder.drain()

        assert recorder.dropped == 0
        page = await home.client(ADMIN).list(EVENT, namespace=NAMESPACE)
        assert isinstance(page, Page)
        (stored,) = page.items
        assert stored.body["count"] == 3
        assert stored.body["type"] == "Warning"
        assert stored.body["message"] == r"The hub does not answer\x1b[2J"
        assert stored.body["reportingComponent"] == "compute-cell-operator"
        running.cancel()
        await asyncio.wait({running})

    play(story)


@pytest.mark.spec("S16")
def test_the_plane_itself_says_who_may_read_metrics() -> None:
    async def story(home: Home) -> None:
        tokens = home.plane.state.tokens.users
        tokens["reader"] = authenticated("prometheus")
        tokens["stranger"] = authenticated("other")
        guard = TokenReviewGuard(home.client(), home.clock)

        assert await guard.authorize("Bearer reader") is HTTPStatus.OK
        assert await guard.authorize("Bearer stranger") is HTTPStatus.FORBIDDEN
        assert await guard.authorize("Bearer forged") is HTTPStatus.UNAUTHORIZED
        assert await guard.authorize("") is HTTPStatus.UNAUTHORIZED

    play(story)
