"""One operator for all tests here, on the session's real planes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from cell_builders.real_operator import RealOperator, install, running_operator

from e2e.planes.stack import RealPlanes


@pytest.fixture(scope="session", autouse=True)
def _on_real_planes_only(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--planes") != "real":
        pytest.skip("needs real planes: run with --planes real (`nox -s cluster`)")


@pytest.fixture(scope="session")
def operator(
    real_planes: RealPlanes, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealOperator]:
    with asyncio.Runner() as runner:
        runner.run(install(real_planes))
    with running_operator(real_planes, tmp_path_factory.mktemp("cell-operator")) as running:
        yield running
