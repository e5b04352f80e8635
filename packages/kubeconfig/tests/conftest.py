"""Fixtures of the tests of kubeconfig."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from kubeconfig_builders import ManualClock, Mount


@pytest.fixture
def mount(tmp_path: Path) -> Mount:
    return Mount(tmp_path / "mount")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def plugins_are_reaped() -> Iterator[None]:
    """Python 3.11 waits for a child in a thread, which ends a moment after the child is awaited."""
    yield
    for thread in threading.enumerate():
        if thread.name.startswith("asyncio-waitpid"):
            thread.join()
