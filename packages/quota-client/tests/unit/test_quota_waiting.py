"""Claim and wait in one call, and the credential of a pod's service account."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest

import compute_quota_client
from compute_kubeconfig.access import read_material
from compute_kubeconfig.credentials import REREAD_AFTER
from compute_quota_client import (
    Denied,
    Granted,
    Operation,
    Pending,
    QuotaAuthError,
    QuotaClient,
    QuotaUnavailableError,
    QuotaUsageError,
    Releasing,
)
from compute_quota_client._clock import wall_now
from compute_quota_client._credentials import RotatingCredentials
from compute_quota_client._in_cluster import find_service_account
from compute_quota_client.testing import GIB, FakeQuota, a_claim

if TYPE_CHECKING:
    from pathlib import Path

FIRST, SECOND = "first", "second"


async def test_one_call_claims_and_waits_for_the_grant(fake: FakeQuota, quota: QuotaClient) -> None:
    verdict = await quota.project("acme").claim_and_wait(a_claim())
    assert isinstance(verdict, Granted)
    assert len(fake.sent(Operation.CREATE)) == 1


async def test_one_call_waits_for_a_denial_and_ends_with_it(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    fake.grant("acme", {GIB: 1})
    assert isinstance(await quota.project("acme").claim_and_wait(a_claim()), Denied)


async def test_the_wait_ends_in_time_and_leaves_the_claim(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    fake.knobs.paused = True
    loop = asyncio.get_running_loop()
    began = loop.time()
    verdict = await quota.project("acme").claim_and_wait(a_claim(), within=timedelta(seconds=30))
    assert isinstance(verdict, Pending)
    assert 30 <= loop.time() - began < 31
    assert len(fake.claims("acme")) == 1
    # 0.1 s doubling to 2 s: a busy server is asked about every 2 s.
    assert len(fake.sent(Operation.GET)) <= 21
    fake.knobs.paused = False
    fake.evaluate()
    assert isinstance(await quota.project("acme").claim_and_wait(a_claim()), Granted)
    assert len(fake.sent(Operation.CREATE)) == 1


async def test_a_wait_of_no_time_is_a_claim(fake: FakeQuota, quota: QuotaClient) -> None:
    verdict = await quota.project("acme").claim_and_wait(a_claim(), within=timedelta(0))
    assert isinstance(verdict, Pending)
    assert len(fake.sent(Operation.GET)) == 1


async def test_a_claim_that_is_being_released_is_waited_for(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    acme = quota.project("acme")
    await acme.claim_and_wait(a_claim())
    fake.edit_claim(
        "acme", "default", a_claim().name, {"metadata": {"finalizers": ["example.com/held"]}}
    )
    fake.delete_claim("acme", "default", a_claim().name)
    short = await acme.claim_and_wait(a_claim(), within=timedelta(seconds=1))
    assert isinstance(short, Releasing)
    waiting = asyncio.create_task(acme.claim_and_wait(a_claim()))
    await asyncio.sleep(1)
    fake.edit_claim("acme", "default", a_claim().name, {"metadata": {"finalizers": []}})
    assert isinstance(await waiting, Granted)


async def test_an_error_while_waiting_is_an_error_and_never_a_grant(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    fake.knobs.paused = True
    waiting = asyncio.create_task(quota.project("acme").claim_and_wait(a_claim()))
    await asyncio.sleep(1)
    fake.knobs.away.add("acme")
    with pytest.raises(QuotaUnavailableError):
        await waiting


async def test_a_negative_wait_is_refused(quota: QuotaClient) -> None:
    with pytest.raises(QuotaUsageError, match="within"):
        await quota.project("acme").claim_and_wait(a_claim(), within=timedelta(seconds=-1))


@pytest.fixture
def mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "token").write_text(f"{FIRST}\n")
    (tmp_path / "ca.crt").write_text("unused until a connection is made")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    return tmp_path


def test_a_pod_finds_its_own_cluster_token_and_ca(mount: Path) -> None:
    access = find_service_account(None, mount, None, system_ca=False)
    material = read_material(access)
    assert access.server == "https://10.0.0.1:443"
    assert material.token == FIRST
    assert material.ca == (mount / "ca.crt").read_bytes()
    assert FIRST not in repr(material)


def test_another_server_has_the_ca_that_is_named_or_the_systems(mount: Path) -> None:
    other = mount / "other.crt"
    other.write_text("other")
    server = "https://milo.example.com"
    named = find_service_account(server, mount, other, system_ca=False)
    assert read_material(named).ca == b"other"
    assert read_material(find_service_account(server, mount, None, system_ca=True)).ca is None
    with pytest.raises(QuotaUsageError, match="ca_file: excludes system_ca"):
        QuotaClient.in_cluster(server, mount=mount, ca_file=other, system_ca=True)


def test_ipv6_addresses_of_a_cluster_are_written_in_brackets(
    mount: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    assert (
        find_service_account(None, mount, None, system_ca=False).server == "https://[fd00::1]:443"
    )


def test_outside_of_a_pod_the_error_has_the_remedy(
    mount: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    with pytest.raises(QuotaUsageError, match="name the server, or use from_kubeconfig"):
        QuotaClient.in_cluster(mount=mount)


@pytest.mark.parametrize("content", ["", "a\nb", "gr\u00fc\u00df"])
def test_a_token_that_is_none_is_an_error_with_its_path(mount: Path, content: str) -> None:
    (mount / "token").write_text(content)
    with pytest.raises(QuotaUsageError, match="token: does not hold a token"):
        QuotaClient.in_cluster(mount=mount)


def test_a_missing_file_is_an_error_with_its_path(mount: Path) -> None:
    (mount / "token").unlink()
    with pytest.raises(QuotaAuthError, match="token"):
        QuotaClient.in_cluster(mount=mount)


async def test_a_rotated_token_is_used_within_a_minute(mount: Path) -> None:
    access = find_service_account("https://milo.example.com", mount, None, system_ca=True)
    credentials = RotatingCredentials(lambda: access, wall_now)
    (mount / "token").write_text(SECOND)
    assert (await credentials.current()).token == FIRST
    await asyncio.sleep(REREAD_AFTER.total_seconds())
    assert (await credentials.current()).token == SECOND


async def test_a_client_in_a_pod_is_made_without_a_request(mount: Path) -> None:
    async with QuotaClient.in_cluster(mount=mount, system_ca=True) as quota:
        assert quota.project("acme").name == "acme"


def test_the_version_is_that_of_the_distribution() -> None:
    assert compute_quota_client.__version__ == version("datum-compute-quota-client")
