from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kubeconfig_builders import PLUGIN_API, START, ManualClock, Mount, a_plugin, prints

from compute_kubeconfig.access import ExecCommand
from compute_kubeconfig.exec_plugins import ExecPluginError, run_plugin

pytestmark = pytest.mark.usefixtures("plugins_are_reaped")

LONG = timedelta(seconds=60)


async def test_an_allowed_plugin_is_run_once_and_again_before_its_token_ends(
    mount: Mount, clock: ManualClock
) -> None:
    counter = mount.folder / "runs"
    expires = (START + timedelta(minutes=10)).isoformat()
    status: dict[str, object] = {"token": "printed", "expirationTimestamp": expires}
    mount.user = {"exec": a_plugin(prints(status, counter))}
    credentials = mount.credentials(clock, allow_exec=True)
    assert not counter.exists()

    used = await asyncio.gather(*(credentials.headers() for _ in range(5)))
    assert used == [{"Authorization": "Bearer printed"}] * 5
    assert counter.read_text() == "x"

    clock.pass_time(timedelta(minutes=9, seconds=30))
    await credentials.headers()
    assert counter.read_text() == "xx"


async def test_a_401_runs_the_plugin_again(mount: Mount, clock: ManualClock) -> None:
    counter = mount.folder / "runs"
    mount.user = {"exec": a_plugin(prints({"token": "printed"}, counter))}
    credentials = mount.credentials(clock, allow_exec=True)
    await credentials.headers()

    assert await credentials.refresh() is False
    assert counter.read_text() == "xx"
    assert (await credentials.renew()).token == "printed"  # noqa: S105  # a test's own
    assert counter.read_text() == "xxx"


async def test_a_kubeconfig_that_is_read_again_unchanged_does_not_run_the_plugin(
    mount: Mount, clock: ManualClock
) -> None:
    counter = mount.folder / "runs"
    mount.user = {"exec": a_plugin(prints({"token": "printed"}, counter))}
    credentials = mount.credentials(clock, allow_exec=True)
    await credentials.headers()

    clock.pass_time(timedelta(minutes=5))
    await credentials.headers()
    assert counter.read_text() == "x"

    mount.user = {"exec": a_plugin(prints({"token": "other"}, counter))}
    mount.kubeconfig()
    clock.pass_time(timedelta(minutes=1))
    assert await credentials.headers() == {"Authorization": "Bearer other"}


async def test_a_plugin_that_a_new_kubeconfig_no_longer_names_gives_nothing(
    mount: Mount, clock: ManualClock
) -> None:
    started, released = mount.folder / "started", mount.folder / "released"
    wait = f"""
import os, time
open({str(started)!r}, "w").close()
while not os.path.exists({str(released)!r}):
    time.sleep(0.01)
"""
    mount.user = {"exec": a_plugin(wait + prints({"token": "printed"}))}
    credentials = mount.credentials(clock, allow_exec=True)
    asked = asyncio.create_task(credentials.headers())
    assert await eventually(started.exists)

    mount.user = {"token": "written"}
    mount.kubeconfig()
    await credentials.refresh()
    mount.write("released", b"")
    await asked

    assert await credentials.headers() == {"Authorization": "Bearer written"}


async def test_a_certificate_that_a_plugin_prints_is_presented(
    mount: Mount, clock: ManualClock
) -> None:
    pair = mount.identity()
    status: dict[str, object] = {
        "clientCertificateData": pair.certificate.decode(),
        "clientKeyData": pair.key.decode(),
    }
    mount.user = {"exec": a_plugin(prints(status))}
    credentials = mount.credentials(clock, allow_exec=True)
    before = credentials.ssl_context

    assert await credentials.headers() == {}
    assert credentials.last_read.identity == pair
    assert credentials.last_read.ca == mount.authority.cert_pem.bytes()
    assert credentials.ssl_context is not before


async def test_a_program_gets_its_arguments_its_variables_and_no_terminal() -> None:
    script = """
import json, os, sys
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
assert sys.argv[1:] == ["x"] and os.environ["MODE"] == "test" and os.environ["PATH"]
assert info["spec"] == {"interactive": False} and sys.stdin.read() == ""
assert os.getsid(0) == os.getpid()
info["status"] = {"token": "t"}
print(json.dumps(info))
"""
    argv = (sys.executable, "-c", script, "x")
    command = ExecCommand(PLUGIN_API, argv, (("MODE", "test"),))

    assert (await run_plugin(command, LONG)).token == "t"  # noqa: S105  # a test's own
    assert "test" not in repr(command)


def a_reply(**change: object) -> str:
    reply = {"apiVersion": PLUGIN_API, "kind": "ExecCredential", "status": {"token": "s3cr3t"}}
    return f"print({json.dumps({**reply, **change})!r})"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("import sys; print('s3cr3t'); sys.exit('s3cr3t')", "it ends with 1"),
        ("print('s3cr3t')", "it prints no ExecCredential"),
        ("print('[' * 100000)", "it prints no ExecCredential"),
        ("print('[]')", "it prints no ExecCredential"),
        (a_reply(kind="Secret"), "it prints no ExecCredential"),
        (a_reply(apiVersion="v2"), "of another apiVersion"),
        (a_reply(status="s3cr3t"), "without status"),
        (a_reply(status={}), "neither a token nor a client certificate"),
        (a_reply(status={"token": 5}), "whose token is no text"),
        (a_reply(status={"token": "s3cr3t\nX: y"}), "a token that is none"),
        (a_reply(status={"clientCertificateData": "s3cr3t"}), "half of a client certificate"),
        (
            a_reply(status={"clientCertificateData": "s3cr3t", "clientKeyData": "\ud800"}),
            "certificate and key do not fit each other",
        ),
        (
            a_reply(status={"token": "t", "expirationTimestamp": "2026-01-01T00:00:00"}),
            "expirationTimestamp that is no time",
        ),
        ("import sys; sys.stdout.write('s3cr3t' * 1000000)", "it prints more than 1 MiB"),
    ],
)
async def test_a_plugin_that_gives_no_credential_is_an_error_without_what_it_printed(
    mount: Mount, clock: ManualClock, script: str, why: str
) -> None:
    mount.user = {"exec": a_plugin(script)}
    credentials = mount.credentials(clock, allow_exec=True)

    with pytest.raises(ExecPluginError, match=why) as failed:
        await credentials.headers()

    assert "s3cr3t" not in f"{failed.value}{failed.value.__cause__}"
    assert failed.value.__cause__ is None


async def test_a_program_that_is_not_there_is_an_error_with_its_name(
    mount: Mount, clock: ManualClock
) -> None:
    mount.user = {"exec": {"apiVersion": PLUGIN_API, "command": "./absent"}}
    credentials = mount.credentials(clock, allow_exec=True)

    with pytest.raises(ExecPluginError, match=r"absent.*No such file or directory"):
        await credentials.headers()


class Sleeper:
    """A plugin that starts a child and waits with it for ever."""

    def __init__(self, folder: Path) -> None:
        self._pid = folder / "child"
        child = "import time; time.sleep(600)"
        script = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {child!r}])
open({str(self._pid)!r}, "w").write(str(child.pid))
time.sleep(600)
"""
        self.command = ExecCommand(PLUGIN_API, (sys.executable, "-c", script))

    def is_running(self) -> bool:
        return self._pid.exists() and bool(self._pid.read_text())

    def has_left_nothing(self) -> bool:
        """A zombie, which nothing may reap here, has ended."""
        try:
            stat = Path(f"/proc/{self._pid.read_text()}/stat").read_text()
        except (ProcessLookupError, FileNotFoundError):
            return True
        return stat.rpartition(")")[2].split()[0] == "Z"


async def eventually(holds: Callable[[], bool]) -> bool:
    for _ in range(1000):
        if holds():
            return True
        await asyncio.sleep(0.01)
    return False


async def test_a_program_that_is_no_longer_wanted_is_killed_with_its_children(
    tmp_path: Path,
) -> None:
    sleeper = Sleeper(tmp_path)
    running = asyncio.create_task(run_plugin(sleeper.command, LONG))
    assert await eventually(sleeper.is_running)

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert await eventually(sleeper.has_left_nothing)


async def test_a_program_that_is_cancelled_while_it_starts_is_killed_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeper, start = Sleeper(tmp_path), asyncio.create_subprocess_exec

    async def start_slowly(*argv: str, **options: Any) -> asyncio.subprocess.Process:  # noqa: ANN401  # passed on
        process = await start(*argv, **options)
        assert await eventually(sleeper.is_running)
        running.cancel()
        await asyncio.sleep(0)
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start_slowly)
    running = asyncio.create_task(run_plugin(sleeper.command, LONG))
    with pytest.raises(asyncio.CancelledError):
        await running

    assert await eventually(sleeper.has_left_nothing)


async def test_a_program_that_takes_too_long_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ExecPluginError, match="it takes too long"):
        await run_plugin(Sleeper(tmp_path).command, timedelta(milliseconds=1))
