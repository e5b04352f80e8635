"""Readiness probes of processes. Each opens its own connection and closes it."""

from __future__ import annotations

from http import HTTPStatus

import aiohttp

from e2e.harness.access.client import Endpoint, PlaneClient
from e2e.harness.processes.process import Probe


def https_answers(endpoint: Endpoint, path: str) -> Probe:
    """Whether the server answers with success, as this user."""

    async def ask() -> bool:
        async with PlaneClient(endpoint) as client:
            await client.get(path)
        return True

    return ask


def http_answers(url: str) -> Probe:
    async def ask() -> bool:
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return answer.status == HTTPStatus.OK

    return ask
