"""Real planes for a whole run: one full topology, brought up once.

A kind of the tests' own (Widget) is on every plane from the start, so that no test waits the 30 s
in which Karmada looks for new kinds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from e2e.planes.stack import Options, RealPlanes
from e2e.planes.testing import WIDGETS
from e2e.planes.topology import FULL


@pytest.fixture(scope="session", autouse=True)
def _on_real_planes_only(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--planes") != "real":
        pytest.skip("needs real planes: run with --planes real (`nox -s cluster`)")


@pytest.fixture(scope="session")
def real_planes(_on_real_planes_only: None) -> Iterator[RealPlanes]:
    """The full topology. It belongs to no event loop, so every test may use its own."""
    planes = RealPlanes(FULL, Options(crds=(WIDGETS,)))
    with asyncio.Runner() as runner:
        runner.run(planes.start())
    yield planes
    with asyncio.Runner() as runner:
        runner.run(planes.stop())


@pytest.fixture(autouse=True)
def _no_process_died(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test on a stack of which a process died fails with the name of that process."""
    yield
    if "real_planes" in request.fixturenames:
        planes: RealPlanes = request.getfixturevalue("real_planes")
        planes.check()
