"""`kubectl compute` on the kubeconfig that the demo keeps: all planes, and a restart."""

from __future__ import annotations

import asyncio
import io
import json
from dataclasses import dataclass

import pytest

from compute_kubectl.__main__ import run
from compute_kubectl.commands.terminal import Terminal
from e2e.demo.backend import PROJECT_NAMESPACES, UserClient
from e2e.demo.environment import EmbeddedEnvironment
from e2e.world.documents import a_placement, a_workload

PLACE = PROJECT_NAMESPACES[0]
PATIENCE = 120


@dataclass(frozen=True)
class Command:
    """`kubectl compute` with the kubeconfig of the demo."""

    environment: EmbeddedEnvironment

    async def __call__(self, *words: str) -> tuple[int, str]:
        out = io.StringIO()
        environ = {"KUBECONFIG": str(self.environment.kubeconfig)}
        code = await asyncio.to_thread(run, [*words], environ, terminal=Terminal(out, out))
        return code, out.getvalue()

    async def until_ready(self) -> str:
        """The answer once every city is Ready and no plane contradicts another."""
        text = ""
        for _ in range(2 * PATIENCE):
            code, text = await self("why", "web")
            if code == 0 and "Contradictions: none" in text:
                return text
            await asyncio.sleep(0.5)
        pytest.fail(text)


def _no_progress(done: int, total: int, what: str) -> None:
    """Progress, which a test does not show."""


@pytest.mark.spec("WY-18")
async def test_all_planes_of_the_demo_are_read_without_a_flag() -> None:
    async with EmbeddedEnvironment(_no_progress) as environment:
        command = Command(environment)
        await environment.set_grant(PLACE.project, 100)
        project = UserClient(environment, PLACE.project, PLACE.namespace)
        await project.create(a_workload("web", a_placement("us", "DFW", "ORD", replicas=1)))
        text = await command.until_ready()
        assert "2 of 2 cities ready" in text
        assert "asked: project, hub, cells dfw-1, ord-1" in text
        code, text = await command("restart", "web", "--yes")
        assert code == 0, text
        await command.until_ready()
        await _look_at_timeline(command)
        for words in (("tree", "web"), ("cities",), ("quota",)):
            code, text = await command(*words)
            assert code == 0, text


async def _look_at_timeline(command: Command) -> None:
    code, text = await command("timeline", "web", "-o", "json")
    assert code == 0, text
    moments = json.loads(text)["moments"]
    times = [one["at"] for one in moments]  # RFC 3339 in UTC sorts as text
    assert times == sorted(times)
    assert [one["slowest"] for one in moments].count(True) == 1
    assert {"project", "hub", "dfw-1", "ord-1"} <= {one["plane"] for one in moments}
