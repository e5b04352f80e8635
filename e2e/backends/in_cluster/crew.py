"""One operator as a Deployment: started, stopped, killed, frozen, rolled.

Replicas are kept alive by the cluster, not by us: what is asked for is written into the overlay and
applied, and the Deployment's own status says when it is so. Everything here runs backstage but what
is read (`metric`, `deaths`, `logs`, `pids`).
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
from e2e.backends.in_cluster.host import HostOfPods
from e2e.backends.in_cluster.overlay import SYSTEM, Desired, Overlay
from e2e.backends.in_cluster.pods import CONTAINER, Pod, Pods
from e2e.backends.real.installing import SCRAPER
from e2e.backends.real.metrics import sum_of
from e2e.backends.shipped import lay_over
from e2e.objects import number_at, object_at, text_at
from e2e.planes.client import PlaneClient
from e2e.planes.waiting import until

PATIENCE: Final = timedelta(seconds=120)


@dataclass(frozen=True, slots=True)
class PodFitting:
    """What an operator is installed with, beside what a scenario asks for."""

    operator: str
    deployment: str  # and its Lease
    node: HostOfPods
    overlay: Overlay
    shipped: JsonObject  # the configuration that the overlay brings
    configuration: JsonObject  # with what this installation says


class PodCrew:
    """All replicas of one operator."""

    def __init__(self, fitting: PodFitting) -> None:
        self.fitting = fitting
        self.pods = Pods(fitting.node, fitting.deployment)
        self._laid: JsonObject = {}
        self._frozen: list[int] = []
        # Restarts that somebody asked for, by pod.
        self._forgiven: dict[str, int] = {}
        self._folder = (
            fitting.node.plane.site.ground.run.path / "logs" / "operators" / fitting.operator
        )

    @property
    def arrangement(self) -> tuple[int, JsonObject]:
        return self._desired.replicas, self._laid

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
        """Of every container so far. kubelet removes its logs with the pod: ours are second names
        of the same files.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        prefix = f"{SYSTEM}_{self.fitting.deployment}-"
        for written in self.fitting.node.pods_logs.glob(f"{prefix}*/{CONTAINER}/*.log"):
            pod = written.parent.parent.name.split("_")[1]
            kept = self._folder / f"{pod}.{written.name}"
            if not kept.exists():
                os.link(written, kept)
        return sorted(self._folder.iterdir())

    def forgive(self) -> None:
        """What ended until now was asked to."""
        self._forgiven = {pod.uid: pod.restarts for pod in self.pods.find()}

    @property
    def _desired(self) -> Desired:
        return self.fitting.overlay.of(self.fitting.deployment)

    @property
    def _path(self) -> str:
        return f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/{self.fitting.deployment}"

    # --- life ------------------------------------------------------------------------------------

    async def start(self, replicas: int = 1, laid: JsonObject | None = None) -> None:
        """Applies the overlay and waits until the Deployment is as it says."""
        self.forgive()  # what ended under another arrangement was told then
        self._laid = dict(laid or {})
        self._desired.replicas = replicas
        wanted = lay_over(self.fitting.configuration, self._laid)
        self._desired.configuration = {} if wanted == self.fitting.shipped else wanted
        await self.apply()
        await self.ready()

    async def apply(self) -> None:
        async with self.fitting.node.plane.client() as client:
            await apply_overlay(self.fitting.overlay, client)

    async def ready(self, *, is_forgiving: bool = False) -> None:
        await until(
            f"{self.fitting.deployment} of {self.fitting.operator} to be rolled out",
            self._is_rolled_out,
            check=_nothing if is_forgiving else self._complain_of_refusal,
            patience=PATIENCE,
        )
        _ = self.logs  # so that they outlive their pods

    async def begin_roll(self) -> None:
        """New pods for old, as a new version brings them."""
        self._desired.round += 1
        await self.apply()

    async def reboot_node(self) -> None:
        """The node loses power and gets it back; returns when it has begun its pods anew."""
        before = {pod.uid: pod.restarts for pod in self.pods.find()}
        await self.fitting.node.reboot()

        async def begun_anew() -> bool:
            # What a pod says of itself before that is of the node's former life.
            found = await asyncio.to_thread(self.pods.find)
            return all(pod.restarts > before.get(pod.uid, -1) for pod in found)

        await until("the node to begin its pods anew", begun_anew, check=_nothing)

    async def stop(self) -> None:
        _ = self.logs
        await self._scale_to_zero()
        await self._gone()

    async def kill(self) -> None:
        """kubelet looks away meanwhile: it would start them again before the Deployment shrinks."""
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
            # One that kubelet ended meanwhile may have left its number to somebody else.
            if pid in living:
                os.kill(pid, signal.SIGCONT)

    async def _leader(self) -> Pod:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/{self.fitting.deployment}"
        async with self.fitting.node.plane.client() as client:
            holder = text_at(await client.get(path), "spec", "holderIdentity")
        for pod in self.pods.running():
            if holder.startswith(f"{pod.name}_"):
                return pod
        raise AssertionError(f"nobody of {self.fitting.operator} leads: the Lease names {holder!r}")

    async def leader(self) -> str:
        return (await self._leader()).name

    @asynccontextmanager
    async def _unseen(self) -> AsyncGenerator[None]:
        kubelet = self.fitting.node.pid_of("kubelet")
        os.kill(kubelet, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(kubelet, signal.SIGCONT)

    async def _scale_to_zero(self) -> None:
        self._desired.replicas = 0
        async with self.fitting.node.plane.client() as client:
            await client.patch(self._path, {"spec": {"replicas": 0}})

    # --- questions -------------------------------------------------------------------------------

    async def _is_rolled_out(self) -> bool:
        async with self.fitting.node.plane.client() as client:
            found = await client.get(self._path)
        pods = await asyncio.to_thread(self.pods.find)
        return is_rolled_out(found, pods)

    async def _are_going(self) -> bool:
        return all(pod.is_going for pod in await asyncio.to_thread(self.pods.find))

    async def _gone(self) -> None:
        async def gone() -> bool:
            return not await asyncio.to_thread(self.pods.find)

        await until(
            f"pods of {self.fitting.operator} to be gone", gone, check=_nothing, patience=PATIENCE
        )

    def _complain_of_refusal(self) -> None:
        """An end while the first start is awaited is a refused configuration more often than
        not.
        """
        if self.deaths:
            raise AssertionError(self.deaths[-1])

    # --- looking at them -------------------------------------------------------------------------

    def metric(self, name: str, labels: Mapping[str, str]) -> float:
        texts = [self.pods.scrape(pod, SCRAPER.user) for pod in self.pods.running()]
        return sum(sum_of(text, name, labels) for text in texts)


async def apply_overlay(overlay: Overlay, client: PlaneClient) -> None:
    """Everything of the plane, as `kubectl apply -k --prune` would: what a component brought goes
    with it, as the disruption budget does with the second replica.
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
    """Whether a Deployment is what its specification says, and nothing of what it was is left."""
    wanted = number_at(deployment, "spec", "replicas")
    status = object_at(deployment, "status")
    counted = {number_at(status, name) for name in ("updatedReplicas", "readyReplicas", "replicas")}
    return (
        number_at(status, "observedGeneration") >= number_at(deployment, "metadata", "generation")
        and counted == {wanted}
        and len(pods) == wanted
    )


def _nothing() -> None:
    """Nobody needs to live while others end."""
