"""The requests to one project plane: URL, body and expected statuses of each.

`_project` decides what to do about a lost answer or a conflict.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from compute_quota_client._answers import Answer, Attempt, error_of
from compute_quota_client._clock import loop_now
from compute_quota_client._depth import TOO_DEEP, is_too_deep
from compute_quota_client._exceptions import Operation, QuotaProtocolError
from compute_quota_client._exchange import Call
from compute_quota_client._retry import OPERATION_LIMIT
from compute_quota_client._verdicts import Absent
from compute_quota_client._wire import (
    WireClaim,
    WireClaimList,
    WireNamespace,
    adopt_body,
    claim_body,
    delete_body,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    from compute_quota_client._models import Claim, FoundClaim
    from compute_quota_client._sender import Sender
    from compute_quota_client._urls import PlaneUrls

PAGE: Final = 500
# A page token expires where a list takes longer than the server keeps history; after three times
# the list is not readable.
LIST_TRIES: Final = 3
# 100,000 claims. A server that answers with page tokens for ever must not fill the memory.
LIST_PAGES: Final = 200
LIST_BYTES: Final = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Listing:
    """All claims at one moment, and the resourceVersion to watch from."""

    claims: tuple[FoundClaim, ...]
    resource_version: str


@dataclass(frozen=True, slots=True)
class PlaneRequests:
    """One project plane, request by request."""

    project: str
    urls: PlaneUrls
    sender: Sender
    field_manager: str

    @staticmethod
    def deadline() -> timedelta:
        """When an operation that begins now must be over."""
        return loop_now() + OPERATION_LIMIT

    async def get(self, namespace: str, name: str, deadline: timedelta) -> FoundClaim | Absent:
        """The claim, or `Absent`."""
        url = self.urls.claim(namespace, name)
        attempt = self.attempt(Operation.GET, f"{namespace}/{name}")
        answer = await self.sender.send_repeatable(Call(attempt, "GET", url), deadline)
        if answer.status == 404:
            return Absent()
        claim = claim_in(attempt, answer)
        if (claim.namespace, claim.name) != (namespace, name):
            raise attempt.protocol("the server answered with another claim", answer.status)
        return claim

    async def create(self, wanted: Claim, deadline: timedelta) -> Answer:
        """One attempt to create; any status but 401 and 429."""
        call = Call(
            self.attempt(Operation.CREATE, f"{wanted.namespace}/{wanted.name}"),
            "POST",
            self.urls.claims_in(wanted.namespace),
            {"fieldManager": self.field_manager},
            claim_body(wanted),
        )
        return await self.sender.send_once(call, deadline)

    async def adopt(
        self,
        claim: FoundClaim,
        old_subject: Mapping[str, str | None],
        new_subject: Mapping[str, str],
        deadline: timedelta,
    ) -> Answer:
        """One attempt to hand `claim` on; any status but 401 and 429."""
        call = Call(
            self.attempt(Operation.ADOPT, f"{claim.namespace}/{claim.name}"),
            "PATCH",
            self.urls.claim(claim.namespace, claim.name),
            {"fieldManager": self.field_manager},
            adopt_body(claim, old_subject, new_subject),
            "application/json-patch+json",
        )
        return await self.sender.send_once(call, deadline)

    async def delete(self, claim: FoundClaim, deadline: timedelta) -> Answer:
        """Deletes exactly the claim that was read; the status is below 500."""
        call = Call(
            self.attempt(Operation.RELEASE, f"{claim.namespace}/{claim.name}"),
            "DELETE",
            self.urls.claim(claim.namespace, claim.name),
            content=delete_body(claim),
        )
        return await self.sender.send_repeatable(call, deadline)

    async def namespace_uid(self, name: str) -> str | Absent:
        """The UID of a Namespace, or `Absent`."""
        attempt = self.attempt(Operation.NAMESPACE, name)
        call = Call(attempt, "GET", self.urls.namespace(name))
        answer = await self.sender.send_repeatable(call, self.deadline())
        if answer.status == 404:
            return Absent()
        if answer.status != 200:
            raise error_of(attempt, answer)
        _check_depth(attempt, answer)
        try:
            namespace = WireNamespace.model_validate_json(answer.body)
        except ValidationError:
            raise attempt.protocol("the answer is not a Namespace", answer.status) from None
        if namespace.kind != "Namespace":
            raise attempt.protocol(f"the answer is a {namespace.kind}", answer.status)
        return namespace.metadata.uid

    async def list(self, selector: str) -> Listing:
        """All claims of the project that match, page by page."""
        attempt, deadline = self.attempt(Operation.LIST), self.deadline()
        for _ in range(LIST_TRIES):
            listing = await self._list_pages(attempt, selector, deadline)
            if listing is not None:
                return listing
        raise attempt.unavailable("the list changes faster than it can be read", 410)

    async def _list_pages(
        self, attempt: Attempt, selector: str, deadline: timedelta
    ) -> Listing | None:
        params = {"limit": str(PAGE)} | ({"labelSelector": selector} if selector else {})
        call = Call(attempt, "GET", self.urls.claims(), params)
        claims: list[FoundClaim] = []
        version, size = "", 0
        for _ in range(LIST_PAGES):
            answer = await self.sender.send_repeatable(call, deadline)
            size += len(answer.body)
            if size > LIST_BYTES:
                raise attempt.protocol(f"the list is longer than {LIST_BYTES // 1024**2} MiB")
            if answer.status == 410:
                # The token of the next page expired: the pages read so far are of another moment.
                return None
            if answer.status != 200:
                raise error_of(attempt, answer)
            page = _page_in(attempt, answer)
            claims += [wire.to_found() for wire in page.items]
            # The first page's: a watch from it misses no change.
            version = version or page.metadata.resource_version
            if not page.metadata.next_page:
                return Listing(tuple(claims), version)
            call = replace(call, params={**params, "continue": page.metadata.next_page})
        raise attempt.protocol(f"the list has no end after {LIST_PAGES} pages")

    def attempt(self, operation: Operation, target: str = "") -> Attempt:
        """Operation and target, for messages."""
        return Attempt(self.project, operation, target)


def claim_in(attempt: Attempt, answer: Answer) -> FoundClaim:
    """The claim in an answer that should carry one."""
    if answer.status not in {200, 201}:
        raise error_of(attempt, answer)
    _check_depth(attempt, answer)
    try:
        wire = WireClaim.model_validate_json(answer.body)
        if wire.kind is None:
            raise _not_a_claim(attempt, answer)
        return wire.to_found()
    except ValueError:
        raise _not_a_claim(attempt, answer) from None


def _page_in(attempt: Attempt, answer: Answer) -> WireClaimList:
    _check_depth(attempt, answer)
    try:
        return WireClaimList.model_validate_json(answer.body)
    except ValidationError:
        raise attempt.protocol(
            "the answer is not a list of ResourceClaims", answer.status
        ) from None


def _check_depth(attempt: Attempt, answer: Answer) -> None:
    if is_too_deep(answer.body):
        raise attempt.protocol(f"the answer is {TOO_DEEP}", answer.status)


def _not_a_claim(attempt: Attempt, answer: Answer) -> QuotaProtocolError:
    return attempt.protocol("the answer is not a ResourceClaim", answer.status)
