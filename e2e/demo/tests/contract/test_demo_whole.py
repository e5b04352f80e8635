"""The demo as a process: complete, interrupted, with an operator killed, beside another demo.

Temporary files go to a folder of the test, so that leftover files and processes are detected.
"""

from __future__ import annotations

import fcntl
import os
import pty
import resource
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from e2e.demo.recording import normalise, read_recording

TREE = Path(__file__).parents[4]
# The demo's own limit is a minute on two free cores; in tests the machine may be busy.
PATIENCE = 240
COMMAND = [sys.executable, "-m", "e2e.demo"]


def _environment(folder: Path, **more: str) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    kept = {name: os.environ[name] for name in ("PATH",) if name in os.environ}
    return {**kept, "PYTHONPATH": str(TREE), "TMPDIR": str(folder), **more}


@contextmanager
def _demo(folder: Path, *options: str) -> Generator[subprocess.Popen[str]]:
    """A demo without a terminal, ended with the test."""
    process = subprocess.Popen(
        [*COMMAND, *options],
        cwd=folder.parent,
        env=_environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def _read_until(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if word in line:
            return
    pytest.fail(f"the demo ended before it printed {word!r}: {process.communicate()[1]}")


def _await_folder(folder: Path) -> None:
    end = time.monotonic() + PATIENCE
    while not any(folder.glob("compute-planes-*/logs/planes.log")):
        assert time.monotonic() < end, "no process was started"
        time.sleep(0.02)


def _processes_of(folder: Path) -> list[psutil.Process]:
    """Processes with a path inside the folder in their command line."""
    processes: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            if any(str(folder) in word for word in process.cmdline()):
                processes.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return processes


def _assert_nothing_is_left(folder: Path) -> None:
    assert not _processes_of(folder)
    assert not list(folder.iterdir())


def test_the_whole_story_prints_what_the_readme_shows_beside_another_demo(
    tmp_path: Path,
) -> None:
    folder, beside = tmp_path / "first", tmp_path / "second"
    with _demo(folder) as demo, _demo(beside) as other:
        _read_until(other, "Up after")
        other.send_signal(signal.SIGINT)
        other.communicate(timeout=PATIENCE)
        assert other.returncode == 128 + signal.SIGINT
        output, complaints = demo.communicate(timeout=PATIENCE)
    assert (demo.returncode, complaints) == (0, "")
    assert normalise(output.splitlines()) == normalise(read_recording())
    _assert_nothing_is_left(folder)
    _assert_nothing_is_left(beside)


def test_an_interrupt_while_planes_start_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with _demo(folder) as demo:
        _await_folder(folder)
        demo.send_signal(signal.SIGINT)
        output, complaints = demo.communicate(timeout=PATIENCE)
    assert demo.returncode == 128 + signal.SIGINT
    assert "nothing is left" in output
    assert not complaints
    _assert_nothing_is_left(folder)


def test_an_interrupt_in_the_middle_on_a_narrow_terminal_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    environment = _environment(folder, TERM="xterm", NO_COLOR="1")
    demo = subprocess.Popen(
        COMMAND, cwd=tmp_path, env=environment, stdout=side, stderr=side, process_group=0
    )
    os.close(side)
    try:
        seen = _read_terminal(main, "A Workload")
        demo.send_signal(signal.SIGINT)
        seen += _read_terminal(main, "")
        assert demo.wait(PATIENCE) == 128 + signal.SIGINT
    finally:
        os.close(main)
        if demo.poll() is None:
            demo.kill()
            demo.wait()
    assert "city want rdy new reason" in seen
    shown = [_without_moves(line) for line in seen.replace("\r", "").split("\n")]
    assert max(len(line) for line in shown) < 40
    _assert_nothing_is_left(folder)


def test_an_interrupt_while_a_city_is_cut_off_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with _demo(folder) as demo:
        _read_until(demo, "An outage")
        demo.send_signal(signal.SIGINT)
        output, complaints = demo.communicate(timeout=PATIENCE)
    assert demo.returncode == 128 + signal.SIGINT
    assert "nothing is left" in output
    assert not complaints
    _assert_nothing_is_left(folder)


def _read_terminal(main: int, word: str) -> str:
    """The terminal's output up to a word, or all of it."""
    seen = ""
    while not word or word not in seen:
        try:
            part = os.read(main, 4096)
        except OSError:  # the other side is closed
            part = b""
        if not part:
            break
        seen += part.decode()
    return seen


def _without_moves(line: str) -> str:
    return line.rpartition("\x1b[J")[2]


def test_a_killed_operator_is_named_with_its_log_and_nothing_runs_on(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with _demo(folder) as demo:
        _read_until(demo, "Up after")
        named = [one for one in _processes_of(folder) if "dfw-1.config.yaml" in one.cmdline()[-1]]
        (operator,) = named
        operator.kill()
        _, complaints = demo.communicate(timeout=PATIENCE)
    assert demo.returncode == 1
    assert complaints.startswith("demo failed: operator-dfw-1: killed by SIGKILL")
    (log,) = folder.glob("compute-planes-*/logs/operator-dfw-1.log")
    assert str(log) in complaints
    assert "while: " in complaints
    assert not _processes_of(folder)


def test_a_folder_that_takes_nothing_is_an_error_of_one_line(tmp_path: Path) -> None:
    def fill_the_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    done = subprocess.run(
        COMMAND,
        env=_environment(tmp_path / "run", PYTHONDONTWRITEBYTECODE="1"),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        preexec_fn=fill_the_disk,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("demo failed: making the run folder")
    assert "free disk space" in done.stderr
    assert len(done.stderr.splitlines()) == 1
