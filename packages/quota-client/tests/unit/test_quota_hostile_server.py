"""A server that answers without an end: memory stays bounded, and the caller gets a clear error."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import httpx
import pytest
from typing_extensions import override

from compute_quota_client import (
    QuotaClient,
    QuotaProtocolError,
    QuotaSettings,
    QuotaUnavailableError,
    Surroundings,
)
from compute_quota_client._exchange import BODY_LIMIT, ERROR_BODY_LIMIT
from compute_quota_client._requests import LIST_BYTES, LIST_PAGES
from compute_quota_client._retry import TRIES
from compute_quota_client.testing import SERVER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

MIB = 1024 * 1024


class Endless(httpx.AsyncByteStream):
    """A body that goes on for as long as it is read; `taken` counts its bytes."""

    def __init__(self, piece: bytes) -> None:
        self._piece = piece
        self.taken = 0

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            self.taken += len(self._piece)
            yield self._piece


class Answering(httpx.AsyncBaseTransport):
    """Answers every request with what a function makes; `count` is the number of requests."""

    def __init__(self, answer: Callable[[httpx.Request], httpx.Response]) -> None:
        self._answer = answer
        self.count = 0

    @override
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.count += 1
        return self._answer(request)


def a_client(transport: httpx.AsyncBaseTransport) -> QuotaClient:
    return QuotaClient(
        SERVER,
        transport=transport,
        settings=QuotaSettings(),
        surroundings=Surroundings(chance=lambda: 0.5),
    )


@pytest.mark.spec("AT-03")
async def test_a_body_without_an_end_is_given_up_at_its_limit() -> None:
    body = Endless(b" " * MIB)
    async with a_client(Answering(lambda _: httpx.Response(200, stream=body))) as quota:
        with pytest.raises(QuotaUnavailableError, match="longer than 32 MiB"):
            await quota.project("acme").read("default", "x")
    assert body.taken <= TRIES * (BODY_LIMIT + MIB)


@pytest.mark.spec("AT-03")
async def test_the_text_of_a_failure_is_cut_and_its_status_counts() -> None:
    body = Endless(b"x" * 1024)
    async with a_client(Answering(lambda _: httpx.Response(418, stream=body))) as quota:
        with pytest.raises(QuotaProtocolError) as refused:
            await quota.project("acme").read("default", "x")
    assert refused.value.status == 418
    assert len(str(refused.value)) < 512
    assert body.taken <= ERROR_BODY_LIMIT + 2048


@pytest.mark.spec("AT-03")
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "gzip, gzip"])
async def test_an_encoding_that_was_not_asked_for_is_refused_unread(encoding: str) -> None:
    body = Endless(gzip.compress(b" " * MIB))
    headers = {"Content-Encoding": encoding}
    transport = Answering(lambda _: httpx.Response(200, headers=headers, stream=body))
    async with a_client(transport) as quota:
        with pytest.raises(QuotaUnavailableError, match="encoding"):
            await quota.project("acme").read("default", "x")
        with pytest.raises(QuotaUnavailableError, match="encoding"):
            await quota.project("other").list("a=b")
    assert body.taken == 0


def a_page(filler: str = "") -> httpx.Response:
    metadata = {"resourceVersion": "1", "continue": "more", "filler": filler}
    page: dict[str, object] = {"kind": "ResourceClaimList", "metadata": metadata, "items": []}
    return httpx.Response(200, content=json.dumps(page))


@pytest.mark.spec("AT-03")
async def test_a_list_without_a_last_page_is_given_up() -> None:
    transport = Answering(lambda _: a_page())
    async with a_client(transport) as quota:
        with pytest.raises(QuotaProtocolError, match=f"no end after {LIST_PAGES} pages"):
            await quota.project("acme").list("a=b")
    assert transport.count == LIST_PAGES


@pytest.mark.spec("AT-03")
async def test_a_list_of_large_pages_is_given_up_by_its_bytes() -> None:
    transport = Answering(lambda _: a_page("x" * (BODY_LIMIT - MIB)))
    async with a_client(transport) as quota:
        with pytest.raises(QuotaProtocolError, match="longer than 128 MiB"):
            await quota.project("acme").list("a=b")
    assert transport.count <= LIST_BYTES // (BODY_LIMIT - MIB) + 1
