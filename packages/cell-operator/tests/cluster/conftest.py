"""One operator for the tests of a file, on the session's real planes.

It ends with its file, and what was installed for it is taken away: one that still ran would act on
what the next file's tests make.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cell_builders.real_operator import install, running_operator

from e2e.harness.stack.stack import RealPlanes
from e2e.harness.testing.helpers import run_outside
from e2e.harness.testing.installation import Installation
from e2e.harness.testing.operator_process import OperatorProcess


@pytest.fixture(scope="session", autouse=True)
def _on_real_planes_only(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--planes") != "real":
        pytest.skip("needs real planes: run with --planes real (`nox -s cluster`)")


@pytest.fixture(scope="module")
def operator(
    real_planes: RealPlanes,
    installation: Installation,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[OperatorProcess]:
    run_outside(install(installation))
    with running_operator(real_planes, tmp_path_factory.mktemp("cell-operator")) as running:
        yield running
