"""One operator as a Deployment: started, stopped, killed, frozen, rolled.

The cluster restarts replicas. Changes are written to the overlay and applied, and the status of the
Deployment shows when they are rolled out. Everything runs on the background loop except the
properties and `metric`, which block.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from compute_api_types.wire import JsonObject
from e2e.backends.pods.host import PodHost
from e2e.backends.pods.overlay import (
    IMAGE_TAG,
    PREVIOUS_TAG,
    SYSTEM,
    DesiredDeployment,
    Overlay,
)
from e2e.backends.pods.pods import CONTAINER, Pod, Pods
from e2e.backends.real.installing import SCRAPER
from e2e.backends.real.metrics import sum_of
from e2e.harness.access.client import PlaneClient
from e2e.harness.access.waiting import until
from e2e.harness.deploy.shipped import merge_over
from e2e.world.objects import number_at, object_at, text_at

PATIENCE: Final = timedelta(seconds=120)


@dataclass(frozen=True, slots=True)
class PodReplicaConfig:
    """How an operator is installed, independent of the scenario."""

    operator: str
    deployment: str  # also the name of its Lease
    node: PodHost
    overlay: Overlay
    shipped: JsonObject  # the overlay's configuration
    configuration: JsonObject  # with the values of this installation


class PodReplicas:
    """All replicas of one operator."""

    def __init__(self, config: PodReplicaConfig) -> None:
        self.config = config
        self.pods = Pods(config.node, config.deployment)
        self._overrides: JsonObject = {}
        self._frozen: list[int] = []
        # Expected restarts, by pod.
        self._forgiven: dict[str, int] = {}
        self._folder = (
            config.node.plane.runtime.settings.run.path / "logs" / "operators" / config.operator
        )

    @property
    def arrangement(self) -> tuple[int, JsonObject]:
        return self._desired.replicas, self._overrides

    @property
    def deaths(self) -> list[str]:
        return [
            f"pod {pod.name}: its container ended {pod.restarts} times, last: {pod.last_end}"
            for pod in self.pods.find()
            if pod.restarts > self._forgiven.get(pod.uid, 0)
        ]

    @property
    def pids(self) -> list[int]:
        return [pid for pod in self.pods.running() for pid in self.pods.pids(pod)]

    @property
    def logs(self) -> list[Path]:
        """Logs of all containers so far, as hard links: the kubelet deletes its own with the
        pod.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        prefix = f"{SYSTEM}_{self.config.deployment}-"
        for written in self.config.node.pods_logs.glob(f"{prefix}*/{CONTAINER}/*.log"):
            pod = written.parent.parent.name.split("_")[1]
            kept = self._folder / f"{pod}.{written.name}"
            if not kept.exists():
                os.link(written, kept)
        return sorted(self._folder.iterdir())

    def expect_restarts(self) -> None:
        """Accepts all restarts so far."""
        self._forgiven = {pod.uid: pod.restarts for pod in self.pods.find()}

    @property
    def _desired(self) -> DesiredDeployment:
        return self.config.overlay.of(self.config.deployment)

    @property
    def _path(self) -> str:
        return f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/{self.config.deployment}"

    # --- life ------------------------------------------------------------------------------------

    async def start(self, replicas: int = 1, overrides: JsonObject | None = None) -> None:
        """Applies the overlay and waits until the Deployment is rolled out."""
        self.expect_restarts()  # earlier exits belong to another arrangement
        self._overrides = dict(overrides or {})
        self._desired.replicas, self._desired.tag = replicas, IMAGE_TAG
        wanted = merge_over(self.config.configuration, self._overrides)
        self._desired.configuration = {} if wanted == self.config.shipped else wanted
        await self.apply()
        await self.ready()

    async def apply(self) -> None:
        async with self.config.node.plane.client() as client:
            await apply_overlay(self.config.overlay, client)

    async def ready(self, *, is_forgiving: bool = False) -> None:
        await until(
            f"{self.config.deployment} of {self.config.operator} to be rolled out",
            self._is_rolled_out,
            check=_nothing if is_forgiving else self._raise_on_exit,
            patience=PATIENCE,
        )
        _ = self.logs  # links the logs before their pods are deleted

    async def begin_roll(self) -> None:
        """Starts a rolling update, as a new version does."""
        self._desired.round += 1
        await self.apply()

    async def run_version(self, *, is_previous: bool) -> None:
        """Replaces the image by that of the previous version, or by this one again."""
        self._desired.tag = PREVIOUS_TAG if is_previous else IMAGE_TAG
        await self.apply()
        await self.ready()

    async def reboot_node(self) -> None:
        """Power-cycles the node and waits until its containers were restarted."""
        before = {pod.uid: pod.restarts for pod in self.pods.find()}
        await self.config.node.reboot()

        async def begun_anew() -> bool:
            # Until then the status is the one from before the reboot.
            pods = await asyncio.to_thread(self.pods.find)
            return all(pod.restarts > before.get(pod.uid, -1) for pod in pods)

        await until("the node to begin its pods anew", begun_anew, check=_nothing)

    async def stop(self) -> None:
        _ = self.logs
        await self._scale_to_zero()
        await self._gone()

    async def kill(self) -> None:
        """Stops the kubelet meanwhile, which would restart the containers before the scale-down."""
        _ = self.logs
        async with self._unseen():
            for pod in self.pods.find():
                self.pods.signal(pod, signal.SIGKILL)
            await self._scale_to_zero()
            await until("its pods to be let go", self._are_going, check=_nothing)
        await self._gone()

    async def freeze_leader(self) -> None:
        self._frozen = self.pods.pids(await self._leader())
        for pid in self._frozen:
            os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        frozen, self._frozen = self._frozen, []
        living = {pid for pod in self.pods.find() for pid in self.pods.pids(pod)}
        for pid in frozen:
            # The id of a process that the kubelet ended may have been reused.
            if pid in living:
                os.kill(pid, signal.SIGCONT)

    async def _leader(self) -> Pod:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/{self.config.deployment}"
        async with self.config.node.plane.client() as client:
            holder = text_at(await client.get(path), "spec", "holderIdentity")
        for pod in self.pods.running():
            if holder.startswith(f"{pod.name}_"):
                return pod
        raise AssertionError(f"no pod of {self.config.operator} leads: the Lease names {holder!r}")

    async def leader(self) -> str:
        return (await self._leader()).name

    @asynccontextmanager
    async def _unseen(self) -> AsyncGenerator[None]:
        kubelet = self.config.node.pid_of("kubelet")
        os.kill(kubelet, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(kubelet, signal.SIGCONT)

    async def _scale_to_zero(self) -> None:
        self._desired.replicas = 0
        async with self.config.node.plane.client() as client:
            await client.patch(self._path, {"spec": {"replicas": 0}})

    # --- status ----------------------------------------------------------------------------------

    async def _is_rolled_out(self) -> bool:
        async with self.config.node.plane.client() as client:
            deployment = await client.get(self._path)
        pods = await asyncio.to_thread(self.pods.find)
        return is_rolled_out(deployment, pods)

    async def _are_going(self) -> bool:
        return all(pod.is_terminating for pod in await asyncio.to_thread(self.pods.find))

    async def _gone(self) -> None:
        async def gone() -> bool:
            return not await asyncio.to_thread(self.pods.find)

        await until(
            f"pods of {self.config.operator} to be gone", gone, check=_nothing, patience=PATIENCE
        )

    def _raise_on_exit(self) -> None:
        """Fails at once if a container exits while its start is awaited, usually because its
        configuration was refused.
        """
        if self.deaths:
            raise AssertionError(self.deaths[-1])

    # --- metrics ---------------------------------------------------------------------------------

    def metric(self, name: str, labels: Mapping[str, str]) -> float:
        texts = [self.pods.scrape(pod, SCRAPER.user) for pod in self.pods.running()]
        return sum(sum_of(text, name, labels) for text in texts)


async def apply_overlay(overlay: Overlay, client: PlaneClient) -> None:
    """Applies all objects of the plane and deletes those of the last time that are no longer
    rendered, as `kubectl apply -k --prune` does: the PodDisruptionBudget goes with the second
    replica.
    """
    async with overlay.turn:
        before, documents = overlay.applied, overlay.render()
        overlay.applied = [await client.path_of(document) for document in documents]
        overlay.ever |= {*overlay.applied}
        for document in documents:
            await client.apply(document)
        for path in before:
            if path not in overlay.applied:
                await client.delete(path)


def is_rolled_out(deployment: JsonObject, pods: list[Pod]) -> bool:
    """Whether the Deployment's status equals its spec and no old pod is left."""
    wanted = number_at(deployment, "spec", "replicas")
    status = object_at(deployment, "status")
    counted = {number_at(status, name) for name in ("updatedReplicas", "readyReplicas", "replicas")}
    return (
        number_at(status, "observedGeneration") >= number_at(deployment, "metadata", "generation")
        and counted == {wanted}
        and len(pods) == wanted
    )


def _nothing() -> None:
    """No process has to run while this waits."""
