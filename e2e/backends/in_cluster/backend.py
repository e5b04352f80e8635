"""The backend `in-cluster`: the world's port on pods, and what only pods can suffer."""

from __future__ import annotations

from compute_api_types.wire import JsonObject
from e2e.backends.in_cluster import harm
from e2e.backends.in_cluster.crew import PodCrew
from e2e.backends.in_cluster.overlay import SYSTEM
from e2e.backends.in_cluster.theatre import PodTheatre
from e2e.backends.port import Needs
from e2e.backends.real.backend import RealBackend
from e2e.backends.real.theatre import Theatre


class PodBackend(RealBackend):
    """See `e2e/backends/port.py`, also `HasPods`."""

    name = "in-cluster"

    def __init__(self, theatre: Theatre, scenario: str, needs: Needs) -> None:
        if not isinstance(theatre, PodTheatre):
            raise TypeError("operators are pods on a PodTheatre only")
        super().__init__(theatre, scenario, needs)
        self._stack = theatre

    def _of(self, operator: str) -> PodCrew:
        self._act()
        return self._stack.pod_crew(operator)

    def pod_names(self, operator: str) -> list[str]:
        return [pod.name for pod in self._stack.pod_crew(operator).pods.running()]

    async def leader(self, operator: str) -> str:
        return await self.theatre.backstage.do(self._stack.pod_crew(operator).leader())

    async def begin_roll(self, operator: str) -> None:
        await self.theatre.backstage.do(self._of(operator).begin_roll())

    async def await_ready(self, operator: str) -> None:
        crew = self._of(operator)
        await self.theatre.backstage.do(crew.ready(is_forgiving=True))
        crew.forgive()

    async def delete_pod(self, operator: str, pod: str) -> None:
        async with self._of(operator).fitting.node.plane.client() as client:
            await client.delete(f"/api/v1/namespaces/{SYSTEM}/pods/{pod}")

    async def evict(self, operator: str, pod: str) -> None:
        """As `kubectl drain` does: by the API that minds disruption budgets."""
        eviction: JsonObject = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": SYSTEM},
        }
        async with self._of(operator).fitting.node.plane.client() as client:
            await client.post(f"/api/v1/namespaces/{SYSTEM}/pods/{pod}/eviction", eviction)

    async def reboot_node(self, operator: str) -> None:
        await self.theatre.backstage.do(self._of(operator).reboot_node())

    async def exhaust_memory(self, operator: str) -> str:
        return await self.theatre.backstage.do(harm.exhaust_memory(self._of(operator)))

    async def expire_token(self, operator: str, plane: str) -> None:
        await self.theatre.backstage.do(harm.expire_token(self._of(operator), plane))

    async def rotate_tokens(self, operator: str) -> None:
        await self.theatre.backstage.do(harm.let_kubelet_see(self._of(operator)))
