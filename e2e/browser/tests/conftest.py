"""One browser for each test, its requests recorded, and where pictures go."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from e2e.browser.chromium import ARGUMENTS, BrowserFacts

ROOT = Path(__file__).resolve().parents[3]


@pytest_asyncio.fixture
async def browser() -> AsyncIterator[Browser]:
    path = BrowserFacts.detect().browser
    if path is None:
        pytest.skip("no Chromium on the PATH: ./dev browser installs it where it can")
    async with async_playwright() as playwright:
        running = await playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield running
        await running.close()


@pytest.fixture
def pictures() -> Path:
    """`.site-pictures`, or the folder that BROWSER_PICTURES names."""
    folder = ROOT / os.environ.get("BROWSER_PICTURES", ".site-pictures")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
