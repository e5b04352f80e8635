"""`SetScale` on the simulated API server, and with `--planes real` on a kube-apiserver: the number
of a WorkloadDeployment, through its `scale` subresource.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

import orjson
import pytest
import pytest_asyncio

from compute_api_types.crd import derive_crds
from compute_api_types.testing import a_deployment, a_workload
from compute_operator_kit.apply.applier import Applier
from compute_operator_kit.apply.context import ApplyDeps
from compute_operator_kit.apply.write_expectations import WriteExpectations
from compute_operator_kit.client.flow_control import FlowControl
from compute_operator_kit.client.http_client import HttpKubeClient
from compute_operator_kit.client.interface import FieldOwner, KubeClient, Preconditions
from compute_operator_kit.client.rest import RestConfig, Transport
from compute_operator_kit.core.errors import ConflictError, ReconcileError
from compute_operator_kit.core.json import JsonObject, member_object
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Role, Uid
from compute_operator_kit.core.objects import Snapshot
from compute_operator_kit.core.system_clock import SystemClock
from compute_operator_kit.intents.intents import Plan, SetScale
from compute_operator_kit.intents.outcomes import Effect, Outcome
from compute_operator_kit.planes.engaged_plane import CachedKind, Plane
from compute_operator_kit.planes.registry import Planes, RegistryDeps
from compute_operator_kit.testing.fakes import FakeEventRecorder, FakeLeadership
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.plane import Plane as SimulatedPlane
from compute_sim_planes.api_server.testing import ServerAddress
from compute_sim_planes.client.http import HttpTransport

CELL: Final = PlaneName("cell")
DEPLOYMENT: Final = Kind(
    "compute.datumapis.com", "v1alpha", "workloaddeployments", "WorkloadDeployment"
)
TRIES: Final = 400
POLL: Final = 0.05


class ScaledCell:
    """One deployment on a server, and an applier that has it in its cache."""

    def __init__(self, transport: Transport) -> None:
        self.clock = SystemClock()
        self._transport = transport
        deps = RegistryDeps(clock=self.clock, random=random.Random(1))  # noqa: S311 jitter
        self.planes = Planes(self._connect, [CachedKind(Role.HOME, DEPLOYMENT)], deps)
        apply_deps = ApplyDeps(
            planes=self.planes,
            clock=self.clock,
            leadership=FakeLeadership(),
            recorder=FakeEventRecorder(),
        )
        expectations = WriteExpectations(self.planes.find_store)
        owner = FieldOwner("autoscaling", "compute-autoscaling")
        self._applier = Applier(apply_deps, owner, expectations)
        self.key = ObjectKey(CELL, DEPLOYMENT, "default", f"web-{secrets.token_hex(3)}")

    def _connect(self, plane: Plane, lane: FlowControl) -> KubeClient:
        config = RestConfig(plane.name, plane.role, self._transport, lane)
        return HttpKubeClient(config, FieldOwner("x", "x"))

    @property
    def stranger(self) -> KubeClient:
        config = RestConfig(CELL, Role.HOME, self._transport, FlowControl(CELL, self.clock))
        return HttpKubeClient(config, FieldOwner("stranger", "stranger"))

    async def open(self) -> Snapshot:
        """The deployment, which has no number."""
        kinds: list[JsonObject] = [orjson.loads(orjson.dumps(one)) for one in derive_crds()]
        await apply_manifests(self._transport, kinds)
        dumped = a_deployment(a_workload()).model_dump(
            mode="json", by_alias=True, exclude_none=True
        )
        dumped.pop("status", None)
        metadata = {"name": self.key.name, "namespace": self.key.namespace}
        for _ in range(TRIES):
            with suppress(ReconcileError):  # the kind is not served yet
                made = await self.stranger.create(self.key, {**dumped, "metadata": metadata})
                assert isinstance(made, Snapshot)
                self.planes.engage(Plane(CELL, Role.HOME))
                return made
            await asyncio.sleep(POLL)
        raise AssertionError("the kind is never served")

    async def close(self, made: Snapshot) -> None:
        await self.stranger.delete(self.key, preconditions=Preconditions(made.metadata.uid))
        await self.planes.close()

    async def set_scale(self, replicas: int, uid: Uid) -> Outcome:
        """Repeated until the cache has the object as it is on the server."""
        outcome = await self.set_scale_once(replicas, uid)
        for _ in range(TRIES):
            if outcome.error is None:
                break
            await asyncio.sleep(POLL)
            outcome = await self.set_scale_once(replicas, uid)
        return outcome

    async def set_scale_once(self, replicas: int, uid: Uid) -> Outcome:
        intent = SetScale(self.key, uid, replicas, "Test")
        (outcome,) = (await self._applier.begin(self.key).apply(Plan.of(intent))).outcomes
        return outcome

    async def catch_up(self, replicas: int) -> None:
        """Waits until the cache has this number."""
        for _ in range(TRIES):
            cached = self.planes.lister(CELL, DEPLOYMENT).get("default", self.key.name)
            spec = member_object(cached.read(), "spec") if isinstance(cached, Snapshot) else {}
            if spec.get("replicas") == replicas:
                return
            await asyncio.sleep(POLL)
        raise AssertionError(f"the cache never has {replicas}")

    async def read(self) -> JsonObject:
        existing = await self.stranger.get(self.key)
        assert isinstance(existing, Snapshot)
        return existing.decode()


@pytest.fixture(scope="session")
def real_server(request: pytest.FixtureRequest) -> ServerAddress | None:
    """The real server, with `--planes real`. Not async: it starts outside of any test's loop."""
    if request.config.getoption("--planes") != "real":
        return None
    address: ServerAddress = request.getfixturevalue("real_api_server")
    return address


@pytest_asyncio.fixture
async def cell(real_server: ServerAddress | None) -> AsyncIterator[ScaledCell]:
    if real_server is None:
        plane = SimulatedPlane("cell")
        yield ScaledCell(plane.connect())
        await plane.close()
        return
    trusted = real_server.context()
    transport = HttpTransport(
        real_server.url,
        token=real_server.token,
        context=trusted if isinstance(trusted, ssl.SSLContext) else None,
    )
    yield ScaledCell(transport)
    await transport.close()


async def test_the_first_number_is_written_through_the_scale_and_then_equal(
    cell: ScaledCell,
) -> None:
    made = await cell.open()
    try:
        uid = made.metadata.uid
        assert (await cell.set_scale(3, uid)).effect is Effect.WRITTEN
        stored = await cell.read()
        assert member_object(stored, "spec") == {
            **member_object(made.decode(), "spec"),
            "replicas": 3,
        }
        await cell.catch_up(3)
        assert (await cell.set_scale(3, uid)).effect is Effect.EQUAL
        assert (await cell.set_scale(5, uid)).effect is Effect.WRITTEN
    finally:
        await cell.close(made)


async def test_the_number_of_another_object_of_that_name_is_not_written(
    cell: ScaledCell,
) -> None:
    made = await cell.open()
    try:
        await cell.set_scale(2, made.metadata.uid)
        outcome = await cell.set_scale_once(4, Uid("of-another"))
        assert isinstance(outcome.error, ConflictError)
        assert member_object(await cell.read(), "spec")["replicas"] == 2
    finally:
        await cell.close(made)
