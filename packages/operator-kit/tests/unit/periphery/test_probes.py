from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest

from compute_kubeconfig.problems import ConfigurationError
from compute_operator_kit.config.settings import Bind
from compute_operator_kit.process.probes import Checks, ProbeServer


@pytest.fixture
async def probes() -> AsyncIterator[ProbeServer]:
    server = ProbeServer(Bind("127.0.0.1", 0))
    await server.start()
    yield server
    await server.stop()


async def ask(probes: ProbeServer, path: str, method: str = "GET") -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, f"http://127.0.0.1:{probes.port}{path}") as answer,
    ):
        return answer.status, await answer.text()


async def test_probes_answer_before_there_is_anything_to_check(probes: ProbeServer) -> None:
    assert await ask(probes, "/healthz") == (200, "check passed\n")
    assert await ask(probes, "/readyz") == (200, "check passed\n")


async def test_readiness_names_what_is_missing_and_liveness_stays_green(
    probes: ProbeServer,
) -> None:
    missing: list[str] = ["first list of Projects is not done"]
    probes.ready.add("home-synced", lambda: None)
    probes.ready.add("discovery-synced", lambda: missing[0] if missing else None)

    assert await ask(probes, "/readyz") == (
        503,
        (
            "[+]home-synced ok\n"
            "[-]discovery-synced failed: first list of Projects is not done\n"
            "check failed\n"
        ),
    )
    assert (await ask(probes, "/healthz"))[0] == 200

    missing.clear()
    assert (await ask(probes, "/readyz"))[0] == 200


async def test_only_two_paths_are_served_and_only_to_readers(probes: ProbeServer) -> None:
    assert (await ask(probes, "/metrics"))[0] == 404
    assert (await ask(probes, "/healthz", "POST"))[0] == 405


async def test_an_address_that_is_taken_is_named(probes: ProbeServer) -> None:
    other = ProbeServer(Bind("127.0.0.1", probes.port))

    with pytest.raises(ConfigurationError, match=f"127.0.0.1:{probes.port}: cannot be bound"):
        await other.start()


@pytest.mark.spec("S15")
def test_a_finding_cannot_forge_a_line() -> None:
    checks = Checks()
    checks.add("home-synced", lambda: "away\n[+]home-synced ok\x1b[2J")

    _, text = checks.run()

    assert text.splitlines() == [
        r"[-]home-synced failed: away\n[+]home-synced ok\x1b[2J",
        "check failed",
    ]
