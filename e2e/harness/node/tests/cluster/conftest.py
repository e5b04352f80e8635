"""Tests with nodes of their own run with `nox -s e2e -- --in-cluster`."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _with_nodes(planes_backend: str) -> None:
    if planes_backend != "in-cluster":
        pytest.skip("needs --planes in-cluster")
