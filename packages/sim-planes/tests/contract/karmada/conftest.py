"""The Karmada under test: simulated and new for every test, or with `--planes real` a real hub.

Both are a `KarmadaStack` with two members; tests use them through the fixture `karmada`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from karmada_builders.fixture import StackFixture, open_fixture
from karmada_builders.simulated_stack import open_stack
from karmada_builders.stack import KarmadaStack


@pytest.fixture(scope="module")
def real_stack(request: pytest.FixtureRequest) -> KarmadaStack | None:
    """The real stack, with `--planes real`. Not async: it is started outside of any test's loop."""
    if request.config.getoption("--planes") != "real":
        return None
    stack: KarmadaStack = request.getfixturevalue("real_karmada")
    return stack


@pytest_asyncio.fixture
async def karmada(real_stack: KarmadaStack | None) -> AsyncIterator[StackFixture]:
    if real_stack is not None:
        async with open_fixture(real_stack) as fixture:
            yield fixture
        return
    async with open_stack() as simulated, open_fixture(simulated) as fixture:
        yield fixture
