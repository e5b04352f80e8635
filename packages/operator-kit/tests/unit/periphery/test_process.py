"""A process from its start to its exit code; signals need processes of their own."""

from __future__ import annotations

import asyncio
import gc
import platform
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from textwrap import dedent

import pytest
import uvloop

from compute_kubeconfig.problems import ConfigurationError, Problem
from compute_operator_kit.core.memory import freeze_heap
from compute_operator_kit.process.election import LeaseLost
from compute_operator_kit.process.leader import LeaseLostError
from compute_operator_kit.process.lifecycle import (
    GRACE,
    HARD_EXIT_AFTER,
    ExitCode,
    Lifecycle,
    finish,
    run_process,
)

PROGRAM = """
import asyncio, sys
from compute_operator_kit.process import lifecycle as process
from compute_operator_kit.process.lifecycle import Lifecycle, run_process

async def main(lifecycle: Lifecycle) -> None:
    print("ready", flush=True)
    {body}

{before}
sys.exit(run_process(main))
"""


class Program:
    """A started process that prints when it is ready."""

    def __init__(self, folder: Path, body: str, before: str = "") -> None:
        path = folder / "program.py"
        path.write_text(PROGRAM.format(body=body, before=before))
        self.process = subprocess.Popen(
            [sys.executable, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def end(self, number: signal.Signals) -> tuple[int, float]:
        """Exit code, and how long it took after the signal."""
        began = time.monotonic()
        self.process.send_signal(number)
        self.process.communicate(timeout=30)
        return self.process.returncode, time.monotonic() - began


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_a_process_that_listens_with_code_0(
    tmp_path: Path, number: signal.Signals
) -> None:
    code, took = Program(tmp_path, "await lifecycle.wait_for_stop()").end(number)

    assert code == 0
    assert took < 3


def test_what_does_not_end_within_the_grace_is_aborted_with_code_0(tmp_path: Path) -> None:
    before = "from datetime import timedelta; process.GRACE = timedelta(seconds=0.5)"

    code, took = Program(tmp_path, "await asyncio.sleep(60)", before).end(signal.SIGTERM)

    assert code == 0
    assert 0.5 <= took < 3


def test_the_grace_is_that_of_the_specification() -> None:
    assert GRACE.total_seconds() == 8
    assert HARD_EXIT_AFTER.total_seconds() < 15  # terminationGracePeriodSeconds


def test_what_ignores_even_cancelling_is_left_behind(tmp_path: Path) -> None:
    before = (
        "from datetime import timedelta; "
        "process.GRACE = timedelta(seconds=0.2); "
        "process.HARD_EXIT_AFTER = timedelta(seconds=1)"
    )
    body = dedent(
        """
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                pass
        """
    ).replace("\n", "\n    ")

    code, took = Program(tmp_path, body, before).end(signal.SIGTERM)

    assert code == 1
    assert took < 5


async def _end_well(_: Lifecycle) -> None:
    assert isinstance(asyncio.get_running_loop(), uvloop.Loop)


def test_a_process_that_ends_well_has_code_0_and_ran_on_uvloop() -> None:
    assert run_process(_end_well) is ExitCode.CLEAN


def test_a_refused_configuration_has_code_2_and_one_line_per_problem(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def refuse(_: Lifecycle) -> None:
        raise ConfigurationError([Problem("a.b", "unknown key"), Problem("c", "is required")])

    assert run_process(refuse) is ExitCode.REFUSED
    assert capsys.readouterr().err == "a.b: unknown key\nc: is required\n"


def test_a_refusal_inside_a_group_of_tasks_has_code_2_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def refuse() -> None:
        raise ConfigurationError([Problem("a", "is refused")])

    async def main(_: Lifecycle) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(refuse())

    assert run_process(main) is ExitCode.REFUSED
    assert capsys.readouterr().err == "a: is refused\n"


@pytest.mark.parametrize("failure", [LeaseLostError(LeaseLost.STOLEN), ValueError("our bug")])
def test_a_fatal_error_has_code_1_and_is_logged_once(
    failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(_: Lifecycle) -> None:
        raise failure

    assert run_process(fail) is ExitCode.FATAL
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_a_part_may_ask_for_the_stop_and_the_first_reason_counts() -> None:
    seen: list[str] = []

    async def main(lifecycle: Lifecycle) -> None:
        assert not lifecycle.is_stopping
        lifecycle.request_stop("first")
        lifecycle.request_stop("second")
        await lifecycle.wait_for_stop()
        seen.append(lifecycle.why)

    assert run_process(main) is ExitCode.CLEAN
    assert seen == ["first"]


async def test_tasks_are_given_their_time_and_then_cancelled() -> None:
    ended: list[str] = []

    async def work(name: str, seconds: float) -> None:
        try:
            await asyncio.sleep(seconds)
        finally:
            ended.append(name)

    quick, slow = (
        asyncio.create_task(work("quick", 0.01)),
        asyncio.create_task(work("slow", 60), name="slow"),
    )
    await finish({quick, slow}, within=timedelta(seconds=0.1))
    await finish(set(), within=timedelta(seconds=1))

    assert ended == ["quick", "slow"]
    assert slow.cancelled()
    assert not quick.cancelled()


ALLOCATING = """
import ctypes, sys
from compute_operator_kit.core.memory import return_large_blocks

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "abcdefghij"]

libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Info
if sys.argv[1] == "set":
    return_large_blocks()
bytearray(2 * 1024 * 1024)  # freed at once: from here on glibc would keep what is smaller
before = libc.mallinfo2().d
kept = [bytearray(256 * 1024) for _ in range(64)]
print(libc.mallinfo2().d - before)
"""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="only glibc's allocator keeps large blocks"
)
@pytest.mark.parametrize(("option", "is_mapped"), [("left", False), ("set", True)])
def test_large_blocks_go_back_to_the_system_when_they_are_freed(
    option: str, is_mapped: bool
) -> None:
    command = [sys.executable, "-c", ALLOCATING, option]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # Each in a mapping of its own, which goes when it is freed; a few still fit into the heap.
    assert (int(output) > 32) is is_mapped


def test_the_heap_is_frozen_after_the_first_sync() -> None:
    before = gc.get_freeze_count()
    try:
        freeze_heap()
        assert gc.get_freeze_count() > before
    finally:
        gc.unfreeze()
