from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from e2e.harness.access.waiting import side_by_side, until
from e2e.harness.errors import PlanesError, ProcessDiedError
from e2e.harness.processes.die_with_parent import with_parent_death_signal
from e2e.harness.processes.process import Command, ManagedProcess
from e2e.harness.processes.run_folder import RunFolder
from e2e.harness.testing.helpers import is_running, wait_for

STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, lambda *_: None)
print("up", flush=True)
time.sleep(600)
"""
ORDERLY = """
import signal, time
signal.signal(signal.SIGTERM, lambda *_: exit("orderly end"))
print("up", flush=True)
time.sleep(600)
"""
PATIENT = "import time; print('up', flush=True); time.sleep(600)"


def a_process(run: RunFolder, script: str) -> ManagedProcess:
    async def said_up() -> bool:
        return "up" in process.last_words()

    command = Command("hub.thing", Path(sys.executable), ("-c", script))
    process = ManagedProcess(command, run, said_up)
    return process


@pytest_asyncio.fixture
async def patient(run_folder: RunFolder) -> AsyncIterator[ManagedProcess]:
    process = a_process(run_folder, PATIENT)
    await process.up()
    yield process
    await process.crash()


async def test_process_that_dies_is_named_with_its_last_lines(run_folder: RunFolder) -> None:
    process = a_process(run_folder, "import sys; print('x\\n' * 50 + 'out of luck'); sys.exit(3)")
    with pytest.raises(ProcessDiedError) as death:
        await process.up()
    assert death.value.process == "hub.thing"
    assert str(death.value).startswith("hub.thing: ended with code 3; its last lines follow")
    assert death.value.detail.endswith("out of luck")
    assert len(death.value.detail.splitlines()) == 12


async def test_error_of_a_killed_process_names_its_signal(patient: ManagedProcess) -> None:
    assert patient.pid
    os.kill(patient.pid, signal.SIGKILL)
    wait_for(lambda: not is_running(patient.pid or 0))
    with pytest.raises(ProcessDiedError, match=r"hub\.thing: killed by SIGKILL"):
        patient.check()


async def test_taken_port_is_one_line_with_its_remedy(run_folder: RunFolder) -> None:
    words = "listen tcp 127.0.0.1:6443: bind: address already in use"
    process = a_process(run_folder, f"import sys; sys.exit({words!r})")
    with pytest.raises(ProcessDiedError) as death:
        await process.up()
    assert str(death.value) == "hub.thing: its port was taken by another process; run again"


async def test_missing_program_is_an_error(run_folder: RunFolder) -> None:
    async def never() -> bool:
        return False

    process = ManagedProcess(Command("x", Path("/nowhere/x"), ()), run_folder, never)
    with pytest.raises(ProcessDiedError, match="starting /nowhere/x: No such file"):
        await process.up()


async def test_stopped_process_is_no_dead_one(patient: ManagedProcess) -> None:
    await patient.stop()
    assert patient.pid is None
    patient.check()


async def test_process_that_does_not_listen_is_killed_after_its_grace(
    run_folder: RunFolder,
) -> None:
    process = a_process(run_folder, STUBBORN)
    await process.up()
    pid = process.pid or 0
    await process.stop(grace=timedelta(milliseconds=100))
    assert not is_running(pid)


async def test_frozen_process_can_end_by_itself_when_it_is_stopped(run_folder: RunFolder) -> None:
    process = a_process(run_folder, ORDERLY)
    await process.up()
    process.freeze()
    await process.stop(grace=timedelta(seconds=10))
    assert process.last_words().endswith("orderly end")


async def test_last_words_are_those_of_the_last_start(run_folder: RunFolder) -> None:
    process = a_process(run_folder, PATIENT)
    process.log.write_text("words of an earlier life\n", "utf-8")
    await process.up()
    await process.crash()
    assert process.last_words() == "up"


async def test_restart_gives_a_new_process_that_is_ready(patient: ManagedProcess) -> None:
    before = patient.pid
    await patient.restart()
    assert patient.pid not in (None, before)
    patient.check()


async def test_memory_of_a_running_process_is_counted(patient: ManagedProcess) -> None:
    assert patient.rss() > 1024**2
    await patient.stop()
    assert patient.rss() == 0


async def test_process_sees_no_home_and_no_proxy_of_the_user(run_folder: RunFolder) -> None:
    script = (
        "import os; print(sorted(os.environ)); print('up', flush=True); import time; time.sleep(9)"
    )
    process = a_process(run_folder, script)
    await process.up()
    seen = process.last_words()
    await process.crash()
    assert "HOME" in seen
    assert "XDG_CACHE_HOME" not in seen
    assert not any(word in seen.lower() for word in ("proxy", "kubeconfig"))


def test_process_dies_with_its_parent_even_if_that_is_killed() -> None:
    starter = (
        "import subprocess, sys, time\n"
        "from e2e.harness.processes.die_with_parent import with_parent_death_signal\n"
        "program = 'import time; print(1, flush=True); time.sleep(600)'\n"
        "command = with_parent_death_signal([sys.executable, '-c', program])\n"
        "child = subprocess.Popen(command, process_group=0)\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    root = str(Path(__file__).parents[4])
    with subprocess.Popen(
        [sys.executable, "-c", starter],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": root},
    ) as parent:
        assert parent.stdout
        child = int(parent.stdout.readline())
        # The script has become the program: from here on only the kernel can end it.
        assert parent.stdout.readline() == "1\n"
        assert is_running(child)
        parent.kill()
    wait_for(lambda: not is_running(child))


def test_process_of_a_dead_parent_does_not_start() -> None:
    command = with_parent_death_signal(["/bin/echo", "started"])
    command[4] = "1"  # as if the parent had died and init were the new one
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (125, "")


async def test_waiting_ends_with_the_name_of_the_dead(run_folder: RunFolder) -> None:
    process = a_process(run_folder, "raise SystemExit(1)")
    process.start()

    async def never() -> bool:
        return False

    with pytest.raises(ProcessDiedError, match=r"hub\.thing"):
        await until("something", never, check=process.check)


async def test_timeout_names_the_last_result() -> None:
    async def refused() -> bool:
        raise ConnectionRefusedError("nobody there")

    with pytest.raises(PlanesError, match=r"waiting for the hub: .*nobody there"):
        await until("the hub", refused, check=lambda: None, patience=timedelta(milliseconds=60))


async def test_first_failure_of_steps_side_by_side_ends_the_others() -> None:
    ended: list[str] = []

    async def fails() -> None:
        raise PlanesError("no", remedy="none")

    async def waits() -> None:
        try:
            await until("nothing", _false, check=lambda: None)
        finally:
            ended.append("waits")

    with pytest.raises(PlanesError, match="no; none"):
        await side_by_side((waits(), fails()))
    assert ended == ["waits"]


async def _false() -> bool:
    return False
