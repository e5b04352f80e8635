"""The Karmada under contract: the simulated one, fresh for every test, or with `--planes real` a
real hub with two members, brought up once.

Both are a `KarmadaStack`; tests see `karmada`, hands on it, and cannot tell which it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from karmada_builders.hands import Hands, take_hold
from karmada_builders.simulated_stack import open_stack
from karmada_builders.stack import KarmadaStack


@pytest.fixture(scope="module")
def real_stack(request: pytest.FixtureRequest) -> KarmadaStack | None:
    """The real one, if asked for. Not async: it is brought up outside of any test's loop."""
    if request.config.getoption("--planes") != "real":
        return None
    stack: KarmadaStack = request.getfixturevalue("real_karmada")
    return stack


@pytest_asyncio.fixture
async def karmada(real_stack: KarmadaStack | None) -> AsyncIterator[Hands]:
    if real_stack is not None:
        async with take_hold(real_stack) as hands:
            yield hands
        return
    async with open_stack() as simulated, take_hold(simulated) as hands:
        yield hands
