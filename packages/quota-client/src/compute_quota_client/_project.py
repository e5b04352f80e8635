"""Quota in one project: claim, adopt, read, release, list and watch.

The rules that keep claims safe are implemented here. A write is never repeated blindly: after a
lost answer the claim is read, and the existing claim decides (docs/spec/quota.md A5). The spec of
an existing claim is never changed. A claim is deleted only after it was read and recognised, with
UID and resourceVersion as preconditions.
"""

from __future__ import annotations

import asyncio
import builtins
from datetime import timedelta
from typing import TYPE_CHECKING, Final, overload

from compute_quota_client._answers import Answer, Attempt, error_of
from compute_quota_client._clock import loop_now
from compute_quota_client._exceptions import (
    Operation,
    QuotaError,
    QuotaThrottledError,
    QuotaUnavailableError,
    QuotaUsageError,
)
from compute_quota_client._exchange import Lost
from compute_quota_client._judge import judge, judge_identity
from compute_quota_client._models import check_identity
from compute_quota_client._requests import PlaneRequests, claim_in
from compute_quota_client._retry import is_server_failure
from compute_quota_client._verdicts import (
    Absent,
    Mismatch,
    NotOurs,
    Pending,
    Released,
    Releasing,
    Verdict,
)
from compute_quota_client._watch import ClaimWatch

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Mapping

    from compute_quota_client._models import Claim, FoundClaim
    from compute_quota_client._tracking import SharedWatch, Watches
    from compute_quota_client._verdicts import WatchEvent

# A write and, where the first was lost and not carried out, one more.
MAX_WRITES: Final = 2
# docs/spec/quota.md A1: a conflicting release reads and recognises again up to 3 times.
MAX_CONFLICTS: Final = 3
# A real Milo evaluates a claim in 60 to 160 ms; one that takes longer is busy.
FIRST_WAIT: Final = timedelta(milliseconds=100)
LONGEST_WAIT: Final = timedelta(seconds=2)


class ProjectQuota:
    """Quota of one project. Made by `QuotaClient.project`; a cheap handle without state."""

    def __init__(self, requests: PlaneRequests, watches: Watches) -> None:
        self._requests = requests
        self._watches = watches

    @property
    def name(self) -> str:
        """The project."""
        return self._requests.project

    async def claim(self, wanted: Claim, *, known_absent: bool = False) -> Verdict:
        """Creates `wanted` if no claim of its name exists, and returns the verdict on the claim
        that exists then. Never updates, never replaces.

        `known_absent` saves the first read: the caller has just seen that there is none, by `read`
        or by a synced tracker. If there is one all the same, the server refuses a second of the
        name, and it is read then.

        Raises:
            QuotaError: the existing claim is not known, or the claim could not be created.
        """
        deadline = self._requests.deadline()
        lost: QuotaError | None = None
        for writes in range(MAX_WRITES + 1):
            existing: FoundClaim | Absent = Absent()
            if writes or not known_absent:
                existing = await self._read(wanted.namespace, wanted.name, deadline, lost)
            if not isinstance(existing, Absent):
                return judge(existing, wanted)
            if writes == MAX_WRITES:
                break
            attempt = self._attempt(Operation.CREATE, wanted.namespace, wanted.name)
            answer = await _unless_lost(self._requests.create(wanted, deadline), attempt)
            if isinstance(answer, Answer) and answer.status != 409:
                return judge(claim_in(attempt, answer), wanted)
            # Whether it was carried out, or exists already, is only known after a read.
            lost = answer if isinstance(answer, QuotaError) else _elusive(attempt)
        raise lost or _elusive(self._attempt(Operation.CREATE, wanted.namespace, wanted.name))

    async def claim_and_wait(
        self, wanted: Claim, *, within: timedelta = timedelta(seconds=30)
    ) -> Verdict:
        """As `claim`, and reads again until the claim is decided, or the time is over.

        It waits for a claim of the same name that is being released, too. `Pending` or `Releasing`
        means that the time was not enough: the claim stays, and another call goes on waiting.
        A caller that gives up releases it. For many claims use a `ClaimTracker`, which does not
        ask for each.

        Raises:
            QuotaError: the existing claim is not known, or the claim could not be created; it may
                exist all the same, and another call finds it.
        """
        if within < timedelta(0):
            raise QuotaUsageError("must not be negative", argument="within")
        end = loop_now() + within
        wait = FIRST_WAIT
        while True:
            verdict = await self.claim(wanted)
            left = end - loop_now()
            if not isinstance(verdict, Pending | Releasing) or left <= timedelta(0):
                return verdict
            await asyncio.sleep(min(wait, left).total_seconds())
            wait = min(2 * wait, LONGEST_WAIT)

    async def adopt(
        self,
        namespace: str,
        name: str,
        *,
        owner: Mapping[str, str],
        old_subject: Mapping[str, str | None],
        new_subject: Mapping[str, str],
    ) -> Verdict | Absent:
        """Hands a claim of the same owner on to the next subject; its spec, UID and grant stay.

        None in `old_subject` is a key that the claim does not carry, as in one made by a service
        that records less; it is written as an annotation.

        The caller must know that the old subject no longer exists. The verdict compares owner and
        subject and takes the rest as it is: the caller compares requests, consumer and resource.

        Raises:
            QuotaError: the existing claim is not known, or the patch was refused.
        """
        _check_adoption(owner, old_subject, new_subject)
        deadline = self._requests.deadline()
        lost: QuotaError | None = None
        refused = False
        for writes in range(MAX_WRITES + 1):
            existing = await self._read(namespace, name, deadline, lost)
            if isinstance(existing, Absent):
                return existing
            verdict = judge_identity(existing, owner=owner, subject=new_subject)
            # Only a claim that is ours, not being deleted and still of the old subject is patched;
            # after a failed test none is.
            waits = isinstance(verdict, Mismatch) and verdict.fields == ("subject",)
            if refused or not waits or not existing.carries(old_subject):
                return verdict
            if writes == MAX_WRITES:
                break
            answer = await _unless_lost(
                self._requests.adopt(existing, old_subject, new_subject, deadline),
                self._attempt(Operation.ADOPT, namespace, name),
            )
            if isinstance(answer, QuotaError):
                lost = answer
            elif answer.status in {409, 422}:
                # Another client wrote between the read and the patch. The verdict is on the claim
                # as it is now.
                refused = True
            else:
                return self._handed_on(answer, owner, new_subject, namespace, name)
        raise lost or _elusive(self._attempt(Operation.ADOPT, namespace, name))

    async def read(self, namespace: str, name: str) -> Verdict | Absent:
        """The verdict on a claim by itself.

        Raises:
            QuotaError: it cannot be read.
        """
        claim = await self._requests.get(namespace, name, self._requests.deadline())
        return claim if isinstance(claim, Absent) else judge(claim)

    async def list(self, selector: str = "") -> builtins.list[FoundClaim]:
        """All claims of the project that match the label selector, in all namespaces.

        Raises:
            QuotaError: they cannot be listed.
        """
        return list((await self._requests.list(selector)).claims)

    @overload
    async def release(
        self, namespace: str, name: str, *, owner: Mapping[str, str], subject: Mapping[str, str]
    ) -> Released | Absent | NotOurs: ...

    @overload
    async def release(
        self, namespace: str, name: str, *, uid: str
    ) -> Released | Absent | NotOurs: ...

    async def release(
        self,
        namespace: str,
        name: str,
        *,
        owner: Mapping[str, str] | None = None,
        subject: Mapping[str, str] | None = None,
        uid: str | None = None,
    ) -> Released | Absent | NotOurs:
        """Deletes a claim that is recognised, by owner and subject or by the exact UID the caller
        has seen.

        Raises:
            QuotaError: it cannot be read or deleted.
        """
        _check_recognition(owner, subject, uid)
        deadline = self._requests.deadline()
        conflicts = 0
        while True:
            claim = await self._requests.get(namespace, name, deadline)
            if isinstance(claim, Absent):
                return claim
            if not _is_recognised(claim, owner, subject, uid) or conflicts > MAX_CONFLICTS:
                return NotOurs(claim)
            if claim.deleting_since is not None:
                return Released(claim)
            answer = await self._requests.delete(claim, deadline)
            if answer.status in {200, 202}:
                return Released(claim)
            if answer.status == 404:
                return Absent()
            if answer.status != 409:
                raise error_of(self._attempt(Operation.RELEASE, namespace, name), answer)
            # Changed since it was read: a status update is no reason to stop, an adoption is. The
            # next read decides.
            conflicts += 1

    def watch(self, selector: str = "") -> AsyncGenerator[WatchEvent, None]:
        """All claims that match, then every change: `Changed` for each, `Synced`, then `Changed`
        and `Gone`.

        It does not end by itself: after a lost connection, silence or lost history it lists and
        watches again. Close it (`aclosing`) to end it.

        Raises:
            QuotaError: an error that a retry does not solve: no rights, no such project, an answer
                that cannot be decoded.
        """
        return self._watches.follow(ClaimWatch(self._requests, selector, self._watches.chance))

    def share_watch(self, selector: str) -> SharedWatch:
        """For `ClaimTracker`: the shared watch of this project, made if there is none."""
        return self._watches.share(self._requests, selector)

    def shared_watch(self, selector: str) -> SharedWatch | None:
        """For `ClaimTracker`: the shared watch of this project, if there is one."""
        return self._watches.find(self.name, selector)

    async def namespace_uid(self, name: str) -> str | Absent:
        """The UID of a namespace of the project: proof of identity for callers that cross planes.

        Raises:
            QuotaError: it cannot be read.
        """
        return await self._requests.namespace_uid(name)

    async def _read(
        self, namespace: str, name: str, deadline: timedelta, lost: QuotaError | None
    ) -> FoundClaim | Absent:
        try:
            return await self._requests.get(namespace, name, deadline)
        except QuotaUnavailableError as error:
            if lost is None or lost.operation is None:
                raise
            # After a write the error is that its result is unknown, with the pause that the plane
            # asks for.
            if isinstance(error, QuotaThrottledError):
                attempt = self._attempt(lost.operation, namespace, name)
                raise attempt.throttled(error.retry_after, error.status) from error
            raise lost from error

    def _handed_on(
        self,
        answer: Answer,
        owner: Mapping[str, str],
        subject: Mapping[str, str],
        namespace: str,
        name: str,
    ) -> Verdict | Absent:
        if answer.status == 404:
            return Absent()
        adopted = claim_in(self._attempt(Operation.ADOPT, namespace, name), answer)
        return judge_identity(adopted, owner=owner, subject=subject)

    def _attempt(self, operation: Operation, namespace: str, name: str) -> Attempt:
        return self._requests.attempt(operation, f"{namespace}/{name}")


async def _unless_lost(write: Awaitable[Answer], attempt: Attempt) -> Answer | QuotaError:
    """The answer to a write; or, as a value, the error that leaves its result unknown."""
    try:
        answer = await write
    except QuotaUnavailableError as error:
        if isinstance(error.__cause__, Lost):
            return error
        raise
    return error_of(attempt, answer) if is_server_failure(answer.status) else answer


def _elusive(attempt: Attempt) -> QuotaUnavailableError:
    return attempt.unavailable("it is there for one request and gone for the next", 409)


def _check_adoption(
    owner: Mapping[str, str], old_subject: Mapping[str, str | None], new_subject: Mapping[str, str]
) -> None:
    if not owner:
        raise QuotaUsageError("is empty: anybody's claim would do", argument="owner")
    if not new_subject:
        raise QuotaUsageError("is empty: there is nobody to hand it to", argument="new_subject")
    if old_subject.keys() != new_subject.keys():
        raise QuotaUsageError("has other keys than old_subject", argument="new_subject")
    check_identity(owner=owner, new_subject=new_subject)
    known = {key: value for key, value in old_subject.items() if value is not None}
    check_identity(owner=owner, old_subject=known)


def _check_recognition(
    owner: Mapping[str, str] | None, subject: Mapping[str, str] | None, uid: str | None
) -> None:
    if uid is not None:
        if owner is not None or subject is not None:
            raise QuotaUsageError("excludes owner and subject", argument="uid")
        if not uid:
            raise QuotaUsageError("is empty", argument="uid")
    elif not owner or not subject:
        raise QuotaUsageError("is missing, as is uid", argument="subject" if owner else "owner")


def _is_recognised(
    claim: FoundClaim,
    owner: Mapping[str, str] | None,
    subject: Mapping[str, str] | None,
    uid: str | None,
) -> bool:
    if uid is not None:
        return claim.uid == uid
    return claim.carries(owner or {}) and claim.carries(subject or {})
