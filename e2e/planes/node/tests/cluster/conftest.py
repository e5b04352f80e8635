"""Tests on nodes of their own run where nodes can: `nox -s e2e -- --in-cluster`."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _with_nodes(planes_backend: str) -> None:
    if planes_backend != "in-cluster":
        pytest.skip("needs --planes in-cluster")
