"""One cluster with a kubelet and the provider, in this process, over HTTP and TLS."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

import yaml
from kubernetes.aio import client as kubernetes_client

from compute_api_types.wire import JsonObject
from compute_operator_kit.controller.reconcile import NoSpans, Spans
from compute_operator_kit.core.metrics import NoMetrics
from compute_operator_kit.core.system_clock import SystemClock
from compute_operator_kit.intents.intents import RecordEvent
from compute_pod_provider.cluster.client import ClusterClient
from compute_pod_provider.cluster.login import derive_login
from compute_pod_provider.handlers import run_kopf
from compute_pod_provider.options import PodOptions
from compute_pod_provider.provider import PodProvider, ProviderDeps
from compute_sim_planes.api_server.authz.identity import MASTERS, Tokens, authenticated
from compute_sim_planes.api_server.http.server import HttpServer, route_all
from compute_sim_planes.api_server.http.transport import BytesResponse, Response
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.api_server.testing import Api, ServerAddress, connect, eventually
from compute_sim_planes.certificates import ServerFiles
from provider_builders.documents import NAMESPACE
from provider_builders.kubelet import FakeKubelet
from provider_builders.rights import PROVIDER, Witness, shipped

ROOT: Final = Path(__file__).parents[4]
CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
INSTANCES: Final = f"/apis/compute.datumapis.com/v1alpha/namespaces/{NAMESPACE}/instances"
PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
QUICK: Final = PodOptions(
    grace=timedelta(seconds=2),
    available_after=timedelta(milliseconds=200),
    available_after_restart=timedelta(milliseconds=400),
)


class BrokenWatch:
    """A watch that ends without a word when its connection breaks."""

    def __init__(self, response: Response, broken: asyncio.Event) -> None:
        self._response = response
        self._broken = broken

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        parts = self._response.chunks()
        ending = asyncio.create_task(self._broken.wait())
        part = asyncio.create_task(_next(parts))
        try:
            while True:
                await asyncio.wait({part, ending}, return_when=asyncio.FIRST_COMPLETED)
                if not part.done() or not part.result():
                    return
                yield part.result()
                part = asyncio.create_task(_next(parts))
        finally:
            for task in (ending, part):
                task.cancel()
            await asyncio.wait({ending, part})

    async def close(self) -> None:
        await self._response.close()


async def _next(parts: AsyncIterator[bytes]) -> bytes:
    """The next part; empty at the end."""
    return await anext(parts, b"")


class AuditedTransport:
    """The plane, with a log of the mutating requests of the provider and faults between them."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self.writes: list[str] = []
        self.bodies: list[bytes] = []
        self.conflicts: list[str] = []
        self.turned_away: list[str] = []
        self.is_away = False
        self.last_write: int | None = None  # after so many writes the provider reaches nothing
        self.loses: Callable[[str], bool] = lambda _: False  # writes that never arrive
        self._broken = asyncio.Event()

    def break_watches(self) -> None:
        """Every open watch ends, and none begins until `is_away` is taken back."""
        self.is_away = True
        self._broken.set()
        self._broken = asyncio.Event()

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        named = {name.lower(): value for name, value in headers.items()}
        if not named.get("authorization", "").endswith("provider"):
            return await self._plane.request(method, target, headers, body)
        is_write = method not in {"GET", "HEAD"}
        shown = f"{method} {_short(target)}"
        if self._is_cut(is_write=is_write) or (is_write and self.loses(shown)):
            self.turned_away.append(shown)
            return BytesResponse(503, {}, b"")
        if is_write:
            self.writes.append(shown)
            self.bodies.append(body or b"")
        response = await self._plane.request(method, target, headers, body)
        if is_write and response.status == 409:
            self.conflicts.append(shown)
        return BrokenWatch(response, self._broken) if "watch=true" in target else response

    def _is_cut(self, *, is_write: bool) -> bool:
        if self.last_write is not None and is_write and len(self.writes) >= self.last_write:
            self.is_away = True
        return self.is_away


def _short(target: str) -> str:
    """`pods`, `instances/web-dfw-0`, `instances/web-dfw-0/status`."""
    path = target.partition("?")[0]
    return path.partition(f"{NAMESPACE}/")[2] or path


@dataclass
class Cluster:
    """The API server, its kubelet, and what the provider sent."""

    api: Api
    audit: AuditedTransport
    address: ServerAddress
    folder: Path
    kubelet: FakeKubelet
    witness: Witness
    events: list[RecordEvent] = field(default_factory=list[RecordEvent])

    async def create(self, document: JsonObject) -> JsonObject:
        return (await self.api.post(INSTANCES, document)).expect(201)

    async def instance(self, name: str = "web-dfw-0") -> JsonObject | None:
        answer = await self.api.get(f"{INSTANCES}/{name}")
        return None if answer.status == 404 else answer.expect(200)

    async def pod(self, name: str = "web-dfw-0") -> JsonObject | None:
        answer = await self.api.get(f"{PODS}/{name}")
        return None if answer.status == 404 else answer.expect(200)

    async def condition(self, kind: str, name: str = "web-dfw-0") -> tuple[str, str, str]:
        document = await self.instance(name) or {}
        status = document.get("status")
        listed = status.get("conditions") if isinstance(status, dict) else None
        for one in listed if isinstance(listed, list) else ():
            if isinstance(one, dict) and one.get("type") == kind:
                return str(one["status"]), str(one["reason"]), str(one["message"])
        return "", "", ""

    async def until_reason(self, reason: str, name: str = "web-dfw-0") -> None:
        async def has_it() -> bool:
            return (await self.condition("Available", name))[1] == reason

        await until(has_it, f"{name} never became {reason}")

    async def until_started(self, count: int) -> None:
        """Until kubelet has started that many Pods."""

        async def is_reached() -> bool:
            return len(self.kubelet.started) >= count

        await until(is_reached, f"fewer than {count} Pods were started")

    @asynccontextmanager
    async def provider(
        self, options: PodOptions = QUICK, spans: Spans | None = None
    ) -> AsyncGenerator[PodProvider, None]:
        """The provider as a process runs it, but for the Lease."""
        configuration = kubernetes_client.Configuration()
        configuration.host = self.address.url
        configuration.api_key["BearerToken"] = f"bearer {self.address.token}"
        bundle = self.folder / "ca.crt"
        bundle.write_bytes(self.address.authority or b"")
        configuration.ssl_ca_cert = str(bundle)
        clock = SystemClock()
        client = ClusterClient(configuration, NoMetrics(), "compute-pod-provider/test")
        provider = PodProvider(
            ProviderDeps(
                client=client,
                options=options,
                record=self.events.append,
                metrics=NoMetrics(),
                clock=clock,
                random=random.Random(1),  # noqa: S311  # jitter
                spans=spans or NoSpans(),
            )
        )
        stop = asyncio.Event()
        kopf = asyncio.create_task(
            run_kopf(provider, clock, lambda: derive_login(configuration), stop)
        )
        sweep = asyncio.create_task(provider.sweep())
        try:
            yield provider
        finally:
            stop.set()
            sweep.cancel()
            await kopf
            with suppress(asyncio.CancelledError):
                await sweep
            await provider.close()
            await client.close()


async def until(
    holds: Callable[[], Awaitable[bool]], why: str, within: timedelta = timedelta(seconds=15)
) -> None:
    """Waits until an async predicate holds."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within.total_seconds()
    while True:
        if await holds():
            return
        assert loop.time() < deadline, why
        await asyncio.sleep(0.05)


@asynccontextmanager
async def a_cluster(
    files: ServerFiles, folder: Path, overlay: str = "pod-provider"
) -> AsyncGenerator[Cluster, None]:
    plane = Plane(
        "cell",
        PlaneParts(
            tokens=Tokens(
                {
                    "admin": authenticated("admin", MASTERS),
                    "provider": authenticated(PROVIDER),
                }
            )
        ),
    )
    # The rights and the policy that ship, and no others.
    await apply_manifests(plane.connect(), shipped(overlay))
    witness = plane.state.authorizer = Witness(plane.state.authorizer)
    audit = AuditedTransport(plane)
    server = HttpServer(route_all(audit), tls=files.context())
    await server.start()
    authority = files.authority.read_bytes()
    try:
        async with connect(ServerAddress(server.url, "admin", authority)) as api:
            await _install(api)
            kubelet = FakeKubelet(api)
            running = asyncio.create_task(kubelet.run())
            try:
                address = ServerAddress(server.url, "provider", authority)
                yield Cluster(api, audit, address, folder, kubelet, witness)
                assert not witness.refused, f"deploy/ does not grant {witness.refused}"
            finally:
                running.cancel()
                with suppress(asyncio.CancelledError):
                    await running
    finally:
        await plane.close()
        await server.close()


async def _install(api: Api) -> None:
    path = ROOT / "deploy" / "crds" / "compute.datumapis.com_instances.yaml"
    definition: JsonObject = yaml.safe_load(path.read_text("utf-8"))
    (await api.post(CRDS, definition)).expect(201)
    namespace: JsonObject = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE},
    }
    (await api.post("/api/v1/namespaces", namespace)).expect(201)
    await eventually(lambda: api.get(INSTANCES), lambda answer: answer.status == 200)
