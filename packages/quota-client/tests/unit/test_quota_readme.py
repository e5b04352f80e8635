"""The examples of the README, run as written."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import cast, get_args

import pytest

from compute_quota_client import Claim, QuotaClient, QuotaSettings, Verdict
from compute_quota_client.testing import GIB, FakeQuota, a_claim

README = Path(__file__).parents[2] / "README.md"


CLAIM, WAIT, TRACKER, SETTINGS, TEST = re.findall(
    r"^```python\n(.*?)^```", README.read_text("utf-8"), re.DOTALL | re.MULTILINE
)


def example(code: str = CLAIM) -> dict[str, object]:
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


async def test_the_example_that_waits_starts_or_says_why_not(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    start = cast("Callable[[QuotaClient, Claim], Awaitable[str]]", example(WAIT)["start"])
    assert await start(quota, a_claim()) == "start"
    fake.knobs.away.add("acme")
    assert (await start(quota, a_claim())).startswith("try again later")
    fake.knobs.away.clear()
    fake.knobs.paused = True
    await asyncio.sleep(60)  # the circuit closes
    other = replace(a_claim(), name="other")
    assert await start(quota, other) == "not now: Pending"


async def test_the_example_of_a_tracker_reports_denials(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    report = cast(
        "Callable[[QuotaClient, list[str]], Coroutine[None, None, None]]",
        example(TRACKER)["report_denials"],
    )
    reported: list[str] = []
    task = asyncio.create_task(report(quota, reported))
    fake.grant("acme", {GIB: 1})
    await asyncio.sleep(1)
    await quota.project("acme").claim(a_claim())
    await asyncio.sleep(5)
    task.cancel()
    assert any(a_claim().name in line for line in reported)


def test_the_settings_of_the_readme_are_all_there_are() -> None:
    settings = example(SETTINGS)["settings"]
    assert isinstance(settings, QuotaSettings)
    assert settings.model_fields_set == set(QuotaSettings.model_fields)


def test_the_test_of_the_readme_passes() -> None:
    assert subprocess.run([sys.executable, "-W", "error", "-c", TEST], check=False).returncode == 0


def test_the_example_knows_every_verdict() -> None:
    assert {verdict.__name__ for verdict in get_args(Verdict)} <= set(example())
