"""The `Backend` protocol with operators as pods, and the disruptions of `HasPods`."""

from __future__ import annotations

import os
import signal

from compute_api_types.wire import JsonObject
from e2e.backends.pods import disruptions
from e2e.backends.pods.environment import PodEnvironment
from e2e.backends.pods.instances.asking import ask
from e2e.backends.pods.overlay import SYSTEM
from e2e.backends.pods.replicas import PodReplicas
from e2e.backends.real.backend import RealBackend
from e2e.backends.real.environment import RealEnvironment
from e2e.world.port import Needs


class PodBackend(RealBackend):
    """See `e2e/world/port.py`, with `HasPods`."""

    name = "in-cluster"

    def __init__(self, environment: RealEnvironment, scenario: str, needs: Needs) -> None:
        if not isinstance(environment, PodEnvironment):
            raise TypeError("operators are pods on a PodTheatre only")
        super().__init__(environment, scenario, needs)
        self._stack = environment

    def _of(self, operator: str) -> PodReplicas:
        self._act()
        return self._stack.pod_replicas(operator)

    def pod_names(self, operator: str) -> list[str]:
        return [pod.name for pod in self._stack.pod_replicas(operator).pods.running()]

    async def leader(self, operator: str) -> str:
        return await self.environment.background_loop.do(
            self._stack.pod_replicas(operator).leader()
        )

    async def begin_roll(self, operator: str) -> None:
        await self.environment.background_loop.do(self._of(operator).begin_roll())

    async def run_version(self, operator: str, *, is_previous: bool) -> None:
        replicas = self._of(operator)
        await self.environment.background_loop.do(replicas.run_version(is_previous=is_previous))

    async def await_ready(self, operator: str) -> None:
        replicas = self._of(operator)
        await self.environment.background_loop.do(replicas.ready(is_forgiving=True))
        replicas.expect_restarts()

    async def delete_pod(self, operator: str, pod: str) -> None:
        async with self._of(operator).config.node.plane.client() as client:
            await client.delete(f"/api/v1/namespaces/{SYSTEM}/pods/{pod}")

    async def evict(self, operator: str, pod: str) -> None:
        """Uses the eviction API as `kubectl drain` does, which respects PodDisruptionBudgets."""
        eviction: JsonObject = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": SYSTEM},
        }
        async with self._of(operator).config.node.plane.client() as client:
            await client.post(f"/api/v1/namespaces/{SYSTEM}/pods/{pod}/eviction", eviction)

    async def reboot_node(self, operator: str) -> None:
        await self.environment.background_loop.do(self._of(operator).reboot_node())

    async def silence_node(self, operator: str) -> None:
        os.kill(self._of(operator).config.node.pid_of("kubelet"), signal.SIGSTOP)

    async def wake_node(self, operator: str) -> None:
        os.kill(self._of(operator).config.node.pid_of("kubelet"), signal.SIGCONT)

    async def exhaust_memory(self, operator: str) -> str:
        return await self.environment.background_loop.do(
            disruptions.exhaust_memory(self._of(operator))
        )

    async def expire_token(self, operator: str, plane: str) -> None:
        await self.environment.background_loop.do(
            disruptions.expire_token(self._of(operator), plane)
        )

    async def ask(self, address: str, path: str = "/") -> str:
        return await ask(address, path)

    async def measure_pods(self, cell: str) -> None:
        self._act()
        await self.install_pod_metrics(cell)
        await self.environment.background_loop.do(self._start_scraper(cell))

    async def _start_scraper(self, cell: str) -> None:
        self.environment.external.start_scraper(cell)

    async def kill_container(self, cell: str, container: str) -> None:
        self.last_act = self.now()
        node = self._stack.pod_replicas(cell).config.node
        for pid in node.pids_of_container(container):
            os.kill(pid, signal.SIGKILL)

    def count_processes(self, cell: str, container: str) -> int:
        node = self._stack.pod_replicas(cell).config.node
        return len(node.pids_of_container(container)) if container else 0

    async def rotate_tokens(self, operator: str) -> None:
        await self.environment.background_loop.do(
            disruptions.resume_token_rotation(self._of(operator))
        )
