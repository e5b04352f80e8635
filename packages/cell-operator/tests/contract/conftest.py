"""Contract tests of the cell operator are played on simulated planes under virtual time.

The harness is `cell_builders.world` (planes, processes, neighbours, people, `play`) and
`cell_builders.documents` (objects as management and Karmada deliver them); it is a module and not a
fixture, so that a test can say what world it wants.
"""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _on_simulated_planes(planes_backend: str) -> None:
    if planes_backend != "sim":
        pytest.skip("these are played on simulated planes; real ones are e2e's and tests/cluster's")
