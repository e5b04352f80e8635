"""These tests need real planes and are skipped without them."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def _on_real_planes_only(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--planes") != "real":
        pytest.skip("needs real planes: run with --planes real (`nox -s cluster`)")
