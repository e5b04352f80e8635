"""The example of the README, run as written."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast, get_args

import pytest

from compute_quota_client import QuotaClient, Verdict
from compute_quota_client.testing import GIB, FakeQuota

README = Path(__file__).parents[2] / "README.md"


def example() -> dict[str, object]:
    (code,) = re.findall(
        r"^```python\n(.*?)^```", README.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    names: dict[str, object] = {}
    exec(compile(code, str(README), "exec"), names)  # noqa: S102 - our own README
    return names


@pytest.fixture
def may_start() -> Callable[[QuotaClient, str], Awaitable[str]]:
    # What `exec` defines has no type; the README states it.
    return cast("Callable[[QuotaClient, str], Awaitable[str]]", example()["may_start"])


@pytest.fixture
def is_gone() -> Callable[[QuotaClient, str], Awaitable[None]]:
    return cast("Callable[[QuotaClient, str], Awaitable[None]]", example()["is_gone"])


async def test_the_example_claims_waits_starts_and_releases(
    fake: FakeQuota,
    quota: QuotaClient,
    may_start: Callable[[QuotaClient, str], Awaitable[str]],
    is_gone: Callable[[QuotaClient, str], Awaitable[None]],
) -> None:
    assert (await may_start(quota, "uid-1")).startswith("read again")
    await asyncio.sleep(1)
    assert (await may_start(quota, "uid-1")).startswith("start the bucket")
    assert (await may_start(quota, "uid-2")).startswith("adopt it")
    await is_gone(quota, "uid-1")
    assert fake.claims("acme") == []


async def test_the_example_releases_what_is_denied(
    fake: FakeQuota,
    quota: QuotaClient,
    may_start: Callable[[QuotaClient, str], Awaitable[str]],
) -> None:
    fake.grant("acme", {GIB: 49})
    await may_start(quota, "uid-1")
    await asyncio.sleep(1)
    assert (await may_start(quota, "uid-1")).startswith("report it")
    assert fake.claims("acme") == []


async def test_the_example_leaves_what_belongs_to_others(
    fake: FakeQuota,
    quota: QuotaClient,
    may_start: Callable[[QuotaClient, str], Awaitable[str]],
) -> None:
    await may_start(quota, "uid-1")
    (stored,) = fake.claims("acme")
    fake.edit_claim(
        "acme",
        "default",
        stored.name,
        {"metadata": {"labels": {"storage.example.com/region": "ams"}}},
    )
    assert await may_start(quota, "uid-1") == "refuse and report"
    assert len(fake.claims("acme")) == 1


def test_the_example_knows_every_verdict() -> None:
    assert {verdict.__name__ for verdict in get_args(Verdict)} <= set(example())
