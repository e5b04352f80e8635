"""One story of an Instance, by the simulated provider and by the pod provider.

The same body runs on both: `compute_sim_planes.provider` in virtual time, and the pod provider on a
simulated API server with PodStatus as kubelet writes it. A scenario that passes on simulated planes
must find the same words where containers run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Protocol, TypeAlias

import pytest
import yaml
from provider_builders.cluster import INSTANCES, ROOT, Cluster, a_cluster
from provider_builders.documents import NAMESPACE, a_container, a_spec, an_instance

from compute_api_types.wire import JsonObject
from compute_pod_provider.instance_facts import object_at, objects_at, text_at
from compute_pod_provider.options import PodOptions
from compute_sim_planes import provider as simulated
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.certificates import ServerFiles
from compute_sim_planes.client.rest import Client
from compute_sim_planes.pod_life import ProviderOptions
from compute_sim_planes.time.clock import VirtualClock, run

NAME: Final = "web-dfw-0"
MEMORY: Final = "64Mi"
IMAGE: Final = "registry.example.com/main"
LOOKS_EVERY: Final = 0.05
AVAILABLE_AFTER: Final = timedelta(seconds=1)
AVAILABLE_AFTER_RESTART: Final = timedelta(seconds=2)

Shown: TypeAlias = tuple[str, str, str]
Step: TypeAlias = tuple[Shown, Shown]  # Available, Programmed

PROVISIONING: Final = "Instance is provisioning"
PROGRAMMED: Final = ("True", "Programmed", "Instance is programmed")
PENDING: Final[Step] = (
    ("Unknown", "Provisioning", PROVISIONING),
    ("Unknown", "ProgrammingInProgress", PROVISIONING),
)
AVAILABLE: Final[Step] = (
    ("True", "Available", "Instance is available"),
    ("True", "Programmed", "Instance is available"),
)
STARTING: Final[Step] = (("False", "Starting", "Instance is starting"), PROGRAMMED)
UNREACHABLE: Final[Step] = (
    ("Unknown", "NodeUnreachable", "The node of the instance does not answer"),
    PROGRAMMED,
)


def never_started(reason: str, message: str) -> Step:
    return ("False", reason, message), ("Unknown", "ProgrammingInProgress", message)


def crashing(message: str) -> Step:
    return ("False", "InstanceCrashing", f'Container "main" {message}'), PROGRAMMED


ENDS: Final = crashing("ends again and again (exit code 1)")
OUT_OF_MEMORY: Final = crashing(f"runs out of memory ({MEMORY})")
STORIES: Final[dict[str, tuple[Step, ...]]] = {
    "ok": (AVAILABLE,),
    "image-unavailable": (
        never_started(
            "ImageUnavailable",
            f'Image "{IMAGE}:image-unavailable" of container "main" could not be pulled: not found',
        ),
    ),
    "config-error": (
        never_started(
            "ConfigurationError",
            'Container "main" could not be started: the image runs as root, which this cell does '
            "not allow",
        ),
    ),
    "crash": (ENDS, STARTING, ENDS),
    "oom": (OUT_OF_MEMORY, STARTING, OUT_OF_MEMORY),
    # After the first restart it is Available again once it has settled.
    "crash-after-3": (AVAILABLE, ENDS, STARTING, AVAILABLE, ENDS),
}


class StoryBackend(Protocol):
    """A provider with the means to run and to watch one Instance."""

    async def create(self, document: JsonObject) -> None: ...

    async def read(self) -> JsonObject: ...

    def set_node_away(self, *, is_away: bool) -> None: ...


Story: TypeAlias = Callable[[StoryBackend], Awaitable[None]]


def a_document(tag: str) -> JsonObject:
    limits: JsonObject = {"limits": {"memory": MEMORY}}
    container: JsonObject = {**a_container(), "image": f"{IMAGE}:{tag}", "resources": limits}
    document = an_instance(NAME, spec=a_spec(container), finalizers=())
    for given in ("uid", "resourceVersion", "generation"):
        object_at(document, "metadata").pop(given)
    return document


def step_of(document: JsonObject) -> Step:
    listed = objects_at(object_at(document, "status"), "conditions")
    found = {
        text_at(one, "type"): (
            text_at(one, "status"),
            text_at(one, "reason"),
            text_at(one, "message"),
        )
        for one in listed
    }
    return found["Available"], found["Programmed"]


async def follow(backend: StoryBackend, expected: tuple[Step, ...]) -> None:
    """Until every step was seen in its order and no other; a start in progress may be left out."""
    seen: list[Step] = []
    loop = asyncio.get_running_loop()
    deadline = loop.time() + 30
    while tuple(seen) != expected:
        step = step_of(await backend.read())
        is_start = step == PENDING or step[0][1] == "Pending"
        if not is_start and (not seen or seen[-1] != step):
            seen.append(step)
            assert tuple(seen) == expected[: len(seen)]
        assert loop.time() < deadline, f"seen: {seen}"
        await asyncio.sleep(LOOKS_EVERY)


@pytest.fixture(params=["simulated", "pods"])
def run_story(
    request: pytest.FixtureRequest, server_files: ServerFiles, tmp_path: Path
) -> Callable[[Story], None]:
    """Runs a body on the provider."""
    if request.param == "simulated":
        return _run_simulated
    return lambda story: asyncio.run(_run_pods(story, server_files, tmp_path))


# --- bodies ---------------------------------------------------------------------------------------


@pytest.mark.spec("C-91", "PP-20")
@pytest.mark.parametrize("tag", STORIES)
def test_both_providers_report_the_same_steps(run_story: Callable[[Story], None], tag: str) -> None:
    async def story(backend: StoryBackend) -> None:
        await backend.create(a_document(tag))
        await follow(backend, STORIES[tag])

    run_story(story)


def test_a_start_that_takes_long_is_reported(run_story: Callable[[Story], None]) -> None:
    async def story(backend: StoryBackend) -> None:
        await backend.create(a_document("hang"))
        deadline = asyncio.get_running_loop().time() + 30
        while step_of(await backend.read()) != PENDING:
            assert asyncio.get_running_loop().time() < deadline
            await asyncio.sleep(LOOKS_EVERY)

    run_story(story)


@pytest.mark.spec("PP-11")
def test_hash_and_address_come_with_the_first_status_after_the_start(
    run_story: Callable[[Story], None],
) -> None:
    async def story(backend: StoryBackend) -> None:
        await backend.create(a_document("ok"))
        while "controller" not in object_at(seen := await backend.read(), "status"):
            assert step_of(seen)[0][0] != "True"
            await asyncio.sleep(LOOKS_EVERY)
        status = object_at(seen, "status")
        assert status["controller"] == {"observedTemplateHash": "hash-1"}
        assert text_at(
            object_at(objects_at(status, "networkInterfaces")[0], "assignments"), "networkIP"
        )

    run_story(story)


@pytest.mark.spec("PP-25")
def test_a_silent_node_is_reported_until_it_answers(run_story: Callable[[Story], None]) -> None:
    async def story(backend: StoryBackend) -> None:
        await backend.create(a_document("ok"))
        await follow(backend, (AVAILABLE,))
        backend.set_node_away(is_away=True)
        await follow(backend, (AVAILABLE, UNREACHABLE))
        backend.set_node_away(is_away=False)
        await follow(backend, (UNREACHABLE, AVAILABLE))

    run_story(story)


# --- the simulated provider -----------------------------------------------------------------------


class SimulatedBackend:
    """The provider of sim-planes on a plane, in virtual time."""

    def __init__(self, client: Client, provider: simulated.Provider) -> None:
        self._client = client
        self._provider = provider

    async def create(self, document: JsonObject) -> None:
        await self._client.create(simulated.INSTANCES, document)

    async def read(self) -> JsonObject:
        existing = await self._client.get(simulated.INSTANCES, NAME, NAMESPACE)
        assert existing is not None
        return existing

    def set_node_away(self, *, is_away: bool) -> None:
        self._provider.set_node_away(is_away=is_away)


def _run_simulated(story: Story) -> None:
    async def main(clock: VirtualClock) -> None:
        plane = Plane("cell", PlaneParts(clock=clock, identities=clock.identities))
        path = ROOT / "deploy" / "crds" / "compute.datumapis.com_instances.yaml"
        namespace: JsonObject = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": NAMESPACE},
        }
        crd: JsonObject = yaml.safe_load(path.read_text("utf-8"))
        await apply_manifests(plane.connect(), [crd, namespace])
        options = ProviderOptions(
            available_after=AVAILABLE_AFTER, available_after_restart=AVAILABLE_AFTER_RESTART
        )
        provider = simulated.Provider(Client(plane.connect(), manager="p"), clock, options)
        working = asyncio.create_task(provider.run())
        try:
            await story(SimulatedBackend(Client(plane.connect(), manager="test"), provider))
        finally:
            working.cancel()
            with suppress(asyncio.CancelledError):
                await working
            await plane.close()

    run(main, seed=1, start=datetime(2026, 3, 1, tzinfo=UTC))


# --- the pod provider -----------------------------------------------------------------------------


class PodBackend:
    """The pod provider by kopf, with a kubelet that writes PodStatus."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def create(self, document: JsonObject) -> None:
        await self._cluster.create(document)

    async def read(self) -> JsonObject:
        return (await self._cluster.api.get(f"{INSTANCES}/{NAME}")).expect(200)

    def set_node_away(self, *, is_away: bool) -> None:
        self._cluster.kubelet.is_away = is_away


@asynccontextmanager
async def _a_pod_backend(files: ServerFiles, folder: Path) -> AsyncGenerator[PodBackend, None]:
    options = PodOptions(
        available_after=AVAILABLE_AFTER, available_after_restart=AVAILABLE_AFTER_RESTART
    )
    async with a_cluster(files, folder) as cluster, cluster.provider(options):
        yield PodBackend(cluster)


async def _run_pods(story: Story, files: ServerFiles, folder: Path) -> None:
    async with _a_pod_backend(files, folder) as backend:
        await story(backend)
