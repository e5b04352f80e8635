from __future__ import annotations

import base64
import gc
import json
import logging
import ssl
import sys
import threading
import weakref
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from compute_operator_kit.client.credentials import FileCredentials
from compute_operator_kit.client.kubeconfig import Access, KubeconfigError
from compute_operator_kit.client.tls import share_client_context
from compute_operator_kit.core.errors import UnavailableError
from compute_operator_kit.testing.certificates import Authority
from compute_operator_kit.testing.fakes import FakeClock

PLUGIN_API = "client.authentication.k8s.io/v1"


class Mount:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority()
        self.user: dict[str, object] = {"tokenFile": "token"}
        self.server = "https://127.0.0.1:6443"
        self.write("token", "first")
        self.write("ca.crt", self.authority.certificate.decode())

    def write(self, name: str, content: str) -> None:
        (self.folder / name).write_text(content)

    def kubeconfig(self) -> Path:
        content = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [
                {"name": "c", "cluster": {"server": self.server, "certificate-authority": "ca.crt"}}
            ],
            "users": [{"name": "u", "user": self.user}],
        }
        self.write("kubeconfig", yaml.safe_dump(content))
        return self.folder / "kubeconfig"

    def credentials(self, clock: FakeClock, *, allow_exec: bool = False) -> FileCredentials:
        return FileCredentials.from_kubeconfig(
            self.kubeconfig(), clock=clock, allow_exec=allow_exec
        )


@pytest.fixture
def mount(tmp_path: Path) -> Mount:
    return Mount(tmp_path)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


async def token_of(credentials: FileCredentials) -> str:
    return (await credentials.headers())["Authorization"]


async def test_a_rotated_token_is_in_use_within_a_minute(mount: Mount, clock: FakeClock) -> None:
    credentials = mount.credentials(clock)
    assert await token_of(credentials) == "Bearer first"

    mount.write("token", "second")
    clock.pass_time(timedelta(seconds=60))

    assert await token_of(credentials) == "Bearer second"


async def test_files_are_not_read_for_every_request(mount: Mount, clock: FakeClock) -> None:
    credentials = mount.credentials(clock)

    mount.write("token", "second")
    clock.pass_time(timedelta(seconds=1))

    assert await token_of(credentials) == "Bearer first"


async def test_a_401_reads_again_at_once(mount: Mount, clock: FakeClock) -> None:
    credentials = mount.credentials(clock)
    mount.write("token", "second")

    assert await credentials.refresh() is True
    assert await token_of(credentials) == "Bearer second"


async def test_a_401_without_a_change_on_disk_is_false(mount: Mount, clock: FakeClock) -> None:
    assert await mount.credentials(clock).refresh() is False


async def test_a_token_inside_a_rotated_kubeconfig_is_taken_too(
    mount: Mount, clock: FakeClock
) -> None:
    mount.user = {"token": "inline"}
    credentials = mount.credentials(clock)

    mount.user = {"token": "rotated"}
    mount.kubeconfig()

    assert await credentials.refresh() is True
    assert await token_of(credentials) == "Bearer rotated"


@pytest.mark.parametrize("content", ["", "torn by\nhalf"])
async def test_a_half_written_file_leaves_the_former_credentials_in_use(
    mount: Mount, clock: FakeClock, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    credentials = mount.credentials(clock)
    mount.write("token", content)

    assert await credentials.refresh() is False
    assert await credentials.refresh() is False

    assert await token_of(credentials) == "Bearer first"
    assert [record.message for record in caplog.records] == ["Keeping former credentials"]


async def test_a_file_that_vanished_comes_back(mount: Mount, clock: FakeClock) -> None:
    credentials = mount.credentials(clock)
    (mount.folder / "token").unlink()
    assert await credentials.refresh() is False

    mount.write("token", "second")

    assert await credentials.refresh() is True


async def test_a_new_server_needs_a_restart_and_gets_no_new_token(
    mount: Mount, clock: FakeClock
) -> None:
    credentials = mount.credentials(clock)
    mount.server = "https://elsewhere"
    mount.write("token", "for elsewhere")
    mount.kubeconfig()

    assert await credentials.refresh() is False
    assert credentials.server == "https://127.0.0.1:6443"
    assert await token_of(credentials) == "Bearer first"


def test_credentials_that_are_refused_at_start_stop_the_start(
    mount: Mount, clock: FakeClock
) -> None:
    mount.write("ca.crt", "no certificate")

    with pytest.raises(KubeconfigError, match="the CA bundle does not hold certificates"):
        mount.credentials(clock)


def test_planes_with_the_same_trust_share_one_context(mount: Mount, clock: FakeClock) -> None:
    one, other = mount.credentials(clock), mount.credentials(clock)

    assert one.ssl_context is other.ssl_context
    assert one.ssl_context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert one.ssl_context.verify_mode is ssl.CERT_REQUIRED
    assert one.ssl_context.check_hostname


def test_servers_without_a_ca_of_their_own_share_the_systems_trust(clock: FakeClock) -> None:
    one, other = (
        FileCredentials(lambda: Access("https://milo.example", token=b"t"), clock) for _ in range(2)
    )

    assert one.ssl_context is other.ssl_context
    assert one.ssl_context.verify_mode is ssl.CERT_REQUIRED
    assert one.ssl_context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_a_context_is_freed_with_its_last_plane() -> None:
    context = weakref.ref(share_client_context(Authority().certificate))

    gc.collect()

    assert context() is None


def test_a_rotated_authority_is_another_context(mount: Mount, clock: FakeClock) -> None:
    credentials = mount.credentials(clock)
    former = credentials.ssl_context

    mount.write("ca.crt", Authority().certificate.decode())
    clock.pass_time(timedelta(seconds=60))

    assert credentials.ssl_context is not former


def test_a_client_certificate_and_the_key_of_another_do_not_fit(
    mount: Mount, clock: FakeClock
) -> None:
    one, other = mount.authority.issue(), mount.authority.issue()
    mount.user = {
        "client-certificate-data": base64.b64encode(one.certificate).decode(),
        "client-key-data": base64.b64encode(other.key).decode(),
    }

    with pytest.raises(KubeconfigError, match="certificate and key do not fit each other"):
        mount.credentials(clock)


@pytest.fixture
def _plugins_are_reaped() -> Iterator[None]:
    """Python 3.11 waits for a child in a thread, which ends a moment after the child is awaited."""
    yield
    for thread in threading.enumerate():
        if thread.name.startswith("asyncio-waitpid"):
            thread.join()


def a_plugin(status: dict[str, str], counter: Path) -> dict[str, object]:
    """A program that prints credentials, and a line into `counter` each time it is run."""
    pytest.importorskip("kubernetes", reason="the extra `exec` is not installed")
    reply = json.dumps({"apiVersion": PLUGIN_API, "kind": "ExecCredential", "status": status})
    program = f"open({str(counter)!r}, 'a').write('x\\n'); print({reply!r})"
    return {"exec": {"apiVersion": PLUGIN_API, "command": sys.executable, "args": ["-c", program]}}


@pytest.mark.usefixtures("_plugins_are_reaped")
async def test_an_allowed_plugin_is_run_once_and_again_before_its_token_ends(
    mount: Mount, clock: FakeClock
) -> None:
    counter = mount.folder / "runs"
    expires = (clock.now() + timedelta(minutes=10)).isoformat()
    mount.user = a_plugin({"token": "printed", "expirationTimestamp": expires}, counter)
    credentials = mount.credentials(clock, allow_exec=True)

    assert await token_of(credentials) == "Bearer printed"
    assert await token_of(credentials) == "Bearer printed"
    assert counter.read_text() == "x\n"

    clock.pass_time(timedelta(minutes=9, seconds=30))
    assert await token_of(credentials) == "Bearer printed"
    assert counter.read_text() == "x\nx\n"


@pytest.mark.usefixtures("_plugins_are_reaped")
async def test_a_401_runs_the_plugin_again(mount: Mount, clock: FakeClock) -> None:
    counter = mount.folder / "runs"
    mount.user = a_plugin({"token": "printed"}, counter)
    credentials = mount.credentials(clock, allow_exec=True)
    await credentials.headers()

    assert await credentials.refresh() is False
    assert counter.read_text() == "x\nx\n"


@pytest.mark.usefixtures("_plugins_are_reaped")
async def test_a_plugin_that_fails_makes_the_plane_unavailable_and_prints_nothing(
    mount: Mount, clock: FakeClock
) -> None:
    pytest.importorskip("kubernetes", reason="the extra `exec` is not installed")
    program = "import sys; sys.exit('leaked-c4n4ry')"
    mount.user = {
        "exec": {"apiVersion": PLUGIN_API, "command": sys.executable, "args": ["-c", program]}
    }
    credentials = mount.credentials(clock, allow_exec=True)

    with pytest.raises(UnavailableError) as failed:
        await credentials.headers()

    assert failed.value.reason == "CredentialPluginFailed"
    assert "c4n4ry" not in str(failed.value)
    assert failed.value.__cause__ is None


async def test_without_the_extra_a_plugin_is_refused_with_what_is_missing(
    mount: Mount, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes.aio.config.exec_provider", None)
    mount.user = {"exec": {"apiVersion": PLUGIN_API, "command": "x"}}
    credentials = mount.credentials(clock, allow_exec=True)

    with pytest.raises(KubeconfigError, match="needs the extra `exec`"):
        await credentials.headers()


def test_no_secret_is_logged_or_printed(
    mount: Mount, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    mount.write("token", "c4n4ry")
    credentials = mount.credentials(clock)
    mount.write("token", "c4n4ry torn")
    clock.pass_time(timedelta(minutes=1))

    assert credentials.ssl_context is not None
    assert caplog.records
    assert "c4n4ry" not in repr(credentials.material)
    assert all("c4n4ry" not in repr(vars(record)) for record in caplog.records)
