from __future__ import annotations

import pytest

from e2e.faults.testing import Script


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def another_script() -> Script:
    return Script()
