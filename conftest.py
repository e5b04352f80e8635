"""What every pytest run shares: the choice of planes, a record of what was shown, and hygiene.

The record ties acceptance statements and fault rows to outcomes. Each run leaves, per backend and
test file, which test carried which ids and how it ended, in `.spec/`; `nox -s spec` reads it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

import hypothesis
import pytest
import pytest_asyncio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

RECORDS: Final = Path(__file__).parent / ".spec"
REAL_PLANES: Final = Path(__file__).parent / "e2e" / "harness" / "testing" / "fixtures.py"
MARKERS: Final = ("spec", "fault")
CARRIED: Final = "carried"
# Pods are on no loopback address; these are nodes of this machine alone.
WITH_NODES: Final = frozenset({"in-cluster", "kind"})
NODES: Final = "10.0.0.0/8"
# A passing phase never hides a failing one of the same test (setup, call, teardown report apart).
WORST_LAST: Final = ("passed", "skipped", "failed")


# No test judges time, and a run in CI tries what the run before it tried.
hypothesis.settings.register_profile("ours", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("ours")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--planes",
        choices=("sim", "real", "in-cluster", "kind"),
        default="sim",
        help="what contract tests and scenarios run on: simulated planes or real servers; "
        "scenarios also on those with operators as pods",
    )


@pytest.hookimpl(tryfirst=True)  # before the plugin that closes sockets reads what is allowed
def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell's background job ignores it, and so would every process that a test interrupts.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    backend = str(config.getoption("--planes"))
    if backend in WITH_NODES:
        config.option.allow_hosts = f"{config.getoption('--allow-hosts')},{NODES}"
    config.pluginmanager.register(
        ShownStatements(backend, writes=not hasattr(config, "workerinput"))
    )
    if backend != "sim" and REAL_PLANES.exists():
        # Only then: the environments of single packages have nothing of what it imports.
        config.pluginmanager.import_plugin("e2e.harness.testing.fixtures")


class Shown(TypedDict):
    """What one test carried, and how it ended."""

    ids: list[str]
    outcome: str


class ShownStatements:
    """Collects outcomes of tests that carry ids and merges them into the record.

    Ids travel with a test's reports: workers of one run only report, and the process that
    started them writes, so that two never write the record of one file.
    """

    def __init__(self, backend: str, *, writes: bool) -> None:
        self._backend = backend
        self._writes = writes
        self._ids: dict[str, list[str]] = {}
        self._outcomes: dict[str, str] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            ids = [
                str(shown)
                for name in MARKERS
                for mark in item.iter_markers(name)
                for shown in mark.args
            ]
            if ids:
                item.user_properties.append((CARRIED, " ".join(ids)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, carried in report.user_properties:
            if name == CARRIED:
                self._ids[report.nodeid] = str(carried).split()
                found = self._outcomes.get(report.nodeid, "passed")
                self._outcomes[report.nodeid] = max(found, report.outcome, key=WORST_LAST.index)

    def pytest_sessionfinish(self) -> None:
        if not self._writes:
            return
        by_file: dict[str, dict[str, Shown]] = {}
        for nodeid, outcome in self._outcomes.items():
            shown: Shown = {"ids": self._ids[nodeid], "outcome": outcome}
            by_file.setdefault(nodeid.partition("::")[0], {})[nodeid] = shown
        for test_file, shown_by_test in by_file.items():
            self._merge(test_file, shown_by_test)

    def _merge(self, test_file: str, shown_by_test: dict[str, Shown]) -> None:
        record = RECORDS / self._backend / (test_file.replace("/", "__") + ".json")
        record.parent.mkdir(parents=True, exist_ok=True)
        # A run of one test keeps what an earlier run of its file has shown.
        merged: dict[str, Shown] = json.loads(record.read_text("utf-8")) if record.exists() else {}
        merged.update(shown_by_test)
        record.write_text(json.dumps(merged, indent=1, sort_keys=True) + "\n", "utf-8")


@pytest.fixture
def planes_backend(request: pytest.FixtureRequest) -> str:
    """`sim` or `real`, as chosen on the command line."""
    return str(request.config.getoption("--planes"))


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    """A test that starts a thread ends it: one left over would act in another test."""
    before = set(threading.enumerate())
    yield
    begun = [thread for thread in threading.enumerate() if thread not in before]
    for thread in begun:
        if thread.name.startswith("asyncio-waitpid"):
            thread.join(timeout=5)  # it ends by itself once the child it waits for is reaped
    left = [
        thread
        for thread in begun
        # The default executor's idle workers belong to an event loop that closes after this
        # fixture.
        if thread.is_alive() and not thread.name.startswith("asyncio_")
    ]
    assert not left, f"threads left running: {[thread.name for thread in left]}"


@pytest_asyncio.fixture
async def _tasks_end_with_their_test() -> AsyncIterator[None]:
    before = asyncio.all_tasks()
    yield
    left = [task for task in asyncio.all_tasks() - before if not task.done()]
    left = [task for task in left if task is not asyncio.current_task()]
    assert not left, f"tasks left running: {left}"


@pytest.fixture(autouse=True)
def _no_task_is_left(request: pytest.FixtureRequest) -> None:
    """An async test ends with the tasks it began with; one left over is a leak."""
    if request.node.get_closest_marker("asyncio") is not None:
        # Asked for by name, because an autouse async fixture would give every plain test a loop.
        request.getfixturevalue("_tasks_end_with_their_test")
