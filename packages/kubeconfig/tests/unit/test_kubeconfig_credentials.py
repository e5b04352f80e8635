from __future__ import annotations

import gc
import logging
import ssl
import weakref
from collections.abc import Callable
from datetime import timedelta

import pytest
import trustme
from kubeconfig_builders import ManualClock, Mount, in_base64

from compute_kubeconfig.access import Access
from compute_kubeconfig.credentials import FileCredentials
from compute_kubeconfig.problems import FileError, UnreadableFileError
from compute_kubeconfig.tls import ClientIdentity, UnusableTlsError, share_client_context


async def token_of(credentials: FileCredentials) -> str:
    return (await credentials.headers())["Authorization"]


@pytest.fixture
def credentials(mount: Mount, clock: ManualClock) -> FileCredentials:
    mount.write("token", b"first")
    return mount.credentials(clock)


async def test_a_rotated_token_is_in_use_within_a_minute(
    mount: Mount, clock: ManualClock, credentials: FileCredentials
) -> None:
    assert await token_of(credentials) == "Bearer first"

    mount.write("token", b"second")
    clock.pass_time(timedelta(seconds=60))

    assert await token_of(credentials) == "Bearer second"


async def test_files_are_not_read_for_every_request(
    mount: Mount, clock: ManualClock, credentials: FileCredentials
) -> None:
    mount.write("token", b"second")
    clock.pass_time(timedelta(seconds=1))

    assert await token_of(credentials) == "Bearer first"


async def test_a_401_reads_again_at_once(mount: Mount, credentials: FileCredentials) -> None:
    mount.write("token", b"second")

    assert await credentials.refresh() is True
    assert await token_of(credentials) == "Bearer second"


async def test_a_401_without_a_change_on_disk_is_false(credentials: FileCredentials) -> None:
    assert await credentials.refresh() is False


async def test_a_token_inside_a_rotated_kubeconfig_is_taken_too(
    mount: Mount, clock: ManualClock
) -> None:
    mount.user = {"token": "inline"}
    credentials = mount.credentials(clock)

    mount.user = {"token": "rotated"}
    mount.kubeconfig()

    assert await credentials.refresh() is True
    assert await token_of(credentials) == "Bearer rotated"


@pytest.mark.parametrize("content", [b"", b"torn by\nhalf"])
async def test_a_half_written_file_leaves_the_former_credentials_in_use(
    mount: Mount, credentials: FileCredentials, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    mount.write("token", content)

    assert await credentials.refresh() is False
    assert await credentials.refresh() is False

    assert await token_of(credentials) == "Bearer first"
    assert [record.message for record in caplog.records] == ["Keeping former credentials"]


async def test_a_file_that_vanished_comes_back(mount: Mount, credentials: FileCredentials) -> None:
    (mount.folder / "token").unlink()
    assert await credentials.refresh() is False

    mount.write("token", b"second")

    assert await credentials.refresh() is True


async def test_a_strict_renewal_is_an_error_where_a_file_is_gone(
    mount: Mount, credentials: FileCredentials
) -> None:
    (mount.folder / "token").unlink()

    with pytest.raises(UnreadableFileError, match="token: cannot be read"):
        await credentials.renew()
    assert credentials.last_read.token == "first"  # noqa: S105  # a test's own

    mount.write("token", b"second")
    assert (await credentials.renew()).token == "second"  # noqa: S105


async def test_refused_files_are_reported_once_for_each_reason(
    mount: Mount, clock: ManualClock
) -> None:
    reported: list[FileError] = []
    credentials = FileCredentials(mount.load, clock, on_refused=reported.append)
    for content in (b"torn by half", b"torn by half", b""):
        mount.write("token", content)
        clock.pass_time(timedelta(seconds=30))
        assert credentials.ssl_context is not None
    (mount.folder / "token").unlink()
    clock.pass_time(timedelta(seconds=30))
    assert credentials.ssl_context is not None

    assert [type(error) for error in reported] == [FileError, UnreadableFileError]


async def test_a_new_server_needs_a_restart_and_gets_no_new_token(
    mount: Mount, credentials: FileCredentials
) -> None:
    before = credentials.server
    mount.cluster["server"] = "https://elsewhere"
    mount.write("token", b"for-elsewhere")
    mount.kubeconfig()

    assert await credentials.refresh() is False
    assert credentials.server == before
    assert await token_of(credentials) == "Bearer first"


@pytest.mark.parametrize("content", [b"", b"\n", b"no certificate"])
def test_a_ca_file_without_certificate_is_refused_and_never_the_systems(
    mount: Mount, clock: ManualClock, content: bytes
) -> None:
    mount.write("ca.crt", content)

    with pytest.raises(FileError, match="the CA bundle does not hold certificates") as refused:
        mount.credentials(clock)

    assert refused.value.field == "certificate-authority"


def test_clients_with_the_same_trust_share_one_context(mount: Mount, clock: ManualClock) -> None:
    one, other = mount.credentials(clock), mount.credentials(clock)

    assert one.ssl_context is other.ssl_context
    assert one.ssl_context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert one.ssl_context.verify_mode is ssl.CERT_REQUIRED
    assert one.ssl_context.check_hostname


def test_servers_without_a_ca_of_their_own_share_the_systems_trust(clock: ManualClock) -> None:
    one, other = (
        FileCredentials(lambda: Access("https://milo.example", token=b"t"), clock) for _ in range(2)
    )

    assert one.ssl_context is other.ssl_context
    assert one.ssl_context.verify_mode is ssl.CERT_REQUIRED
    assert one.ssl_context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_a_context_is_freed_with_its_last_client(mount: Mount) -> None:
    context = weakref.ref(share_client_context(mount.authority.cert_pem.bytes()))

    gc.collect()

    assert context() is None


def test_a_rotated_authority_is_another_context(
    mount: Mount, clock: ManualClock, credentials: FileCredentials
) -> None:
    former = credentials.ssl_context

    mount.write("ca.crt", trustme.CA().cert_pem.bytes())
    clock.pass_time(timedelta(seconds=60))

    assert credentials.ssl_context is not former


def test_a_client_certificate_and_the_key_of_another_do_not_fit(
    mount: Mount, clock: ManualClock
) -> None:
    one, other = mount.identity(), mount.identity()
    mount.user = {
        "client-certificate-data": in_base64(one.certificate),
        "client-key-data": in_base64(other.key),
    }

    with pytest.raises(FileError, match="certificate and key do not fit each other") as refused:
        mount.credentials(clock)

    assert refused.value.field == "client-certificate"


@pytest.mark.parametrize("has_memory_files", [True, False])
def test_a_key_pair_is_loaded_from_memory_or_from_a_file(
    mount: Mount, monkeypatch: pytest.MonkeyPatch, has_memory_files: bool
) -> None:
    if not has_memory_files:
        monkeypatch.delattr("os.memfd_create")
    identity = mount.identity()

    assert share_client_context(None, identity) is not share_client_context(None)
    with pytest.raises(UnusableTlsError):
        share_client_context(None, ClientIdentity(identity.certificate, b""))


def test_half_of_a_rotated_pair_is_refused_as_a_whole(mount: Mount, clock: ManualClock) -> None:
    def write(write_key: Callable[[bytes], object]) -> None:
        pair = mount.identity()
        mount.write("tls.crt", pair.certificate)
        write_key(pair.key)

    mount.user = {"client-certificate": "tls.crt", "client-key": "tls.key"}
    write(lambda key: mount.write("tls.key", key))
    credentials = mount.credentials(clock)
    former = credentials.ssl_context, credentials.last_read

    write(lambda _: None)
    clock.pass_time(timedelta(seconds=60))
    assert (credentials.ssl_context, credentials.last_read) == former

    write(lambda key: mount.write("tls.key", key))
    clock.pass_time(timedelta(seconds=60))
    assert credentials.ssl_context is not former[0]


def test_no_secret_is_logged_or_printed(
    mount: Mount, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    mount.write("token", b"c4n4ry")
    credentials = mount.credentials(clock)
    mount.write("token", b"c4n4ry torn")
    clock.pass_time(timedelta(minutes=1))

    assert credentials.ssl_context is not None
    assert caplog.records
    assert "c4n4ry" not in repr(credentials.last_read)
    assert all("c4n4ry" not in repr(vars(record)) for record in caplog.records)
