from __future__ import annotations

import pytest

from e2e.oracles.testing import HistoryBuilder


@pytest.fixture
def script() -> HistoryBuilder:
    return HistoryBuilder()


@pytest.fixture
def another_script() -> HistoryBuilder:
    return HistoryBuilder()
