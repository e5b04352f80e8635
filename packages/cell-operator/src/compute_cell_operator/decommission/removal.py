"""Removal of the objects that a cell left: prints each, deletes it with `--execute`, and counts.

Every deletion carries the UID that was listed, so that a new object of the same name is not
deleted. A failed one stops no other, and the command can be run again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from compute_cell_operator.decommission.discovery import (
    HUB,
    LeftClaim,
    UnreadPlane,
    find_claims,
    find_copies,
    find_lease,
    find_projects,
)
from compute_operator_kit.client.interface import KubeClient, Preconditions
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.errors import ReconcileError
from compute_operator_kit.core.objects import Snapshot
from compute_operator_kit.core.text import escape_unprintable
from compute_quota_client import NotOurs, QuotaClient, QuotaError

WOULD_DELETE: Final = "would delete"
DELETED: Final = "deleted"
FAILED: Final = "failed"


@dataclass(frozen=True, slots=True)
class RemovalDeps:
    """Connections and output of the command; `quota` is None where claims are left alone."""

    hub: KubeClient
    quota: QuotaClient | None
    clock: Clock
    write_line: Callable[[str], None]


class Removal:
    """One run over all objects of one cell."""

    def __init__(self, cell: str, deps: RemovalDeps, *, is_executed: bool) -> None:
        self._cell = cell
        self._deps = deps
        self._is_executed = is_executed
        self._totals: Counter[tuple[str, str]] = Counter()

    async def run(self, projects: Iterable[str]) -> bool:
        """Copies first, then claims, the Lease last; whether all were read and, with `--execute`,
        deleted.
        """
        for copy in await find_copies(self._deps.hub, self._cell):
            if isinstance(copy, UnreadPlane):
                self._report_unread("copies", copy)
            else:
                await self._remove_object("copies", copy.snapshot)
        if self._deps.quota is not None:
            await self._remove_claims(self._deps.quota, projects)
        lease = await find_lease(self._deps.hub, self._cell)
        if isinstance(lease, UnreadPlane):
            self._report_unread("leases", lease)
        elif lease is not None:
            await self._remove_object("leases", lease)
        self._write_totals()
        return not any(outcome == FAILED for _, outcome in self._totals)

    async def _remove_claims(self, quota: QuotaClient, named: Iterable[str]) -> None:
        projects = set(named)
        for project in await find_projects(self._deps.hub):
            if isinstance(project, UnreadPlane):
                self._report_unread("claims", project)
            else:
                projects.add(project)
        claims = find_claims(quota, sorted(projects), self._cell, self._deps.clock)
        async for claim in claims:
            if isinstance(claim, UnreadPlane):
                self._report_unread("claims", claim)
            else:
                await self._remove_claim(quota, claim)

    async def _remove_object(self, kind: str, left: Snapshot) -> None:
        key, metadata = left.key, left.metadata
        outcome, cause = WOULD_DELETE, ""
        if self._is_executed:
            try:
                # An absent object is no error: it is deleted either way.
                await self._deps.hub.delete(key, preconditions=Preconditions(metadata.uid))
                outcome = DELETED
            except ReconcileError as error:
                outcome, cause = FAILED, str(error)
        self._report(kind, HUB, f"{key.namespace}/{key.name}", metadata.uid, outcome, cause)

    async def _remove_claim(self, quota: QuotaClient, left: LeftClaim) -> None:
        claim = left.claim
        outcome, cause = WOULD_DELETE, ""
        if self._is_executed:
            try:
                released = await quota.project(left.project).release(
                    claim.namespace, claim.name, uid=claim.uid
                )
                is_other = isinstance(released, NotOurs)
                outcome = FAILED if is_other else DELETED
                cause = "another claim bears its name now" if is_other else ""
            except QuotaError as error:
                outcome, cause = FAILED, str(error)
        name = f"{claim.namespace}/{claim.name}"
        self._report("claims", left.project, name, claim.uid, outcome, cause)

    # output --------------------------------------------------------------------------------------

    def _report_unread(self, kind: str, unread: UnreadPlane) -> None:
        self._report(kind, unread.plane, unread.what, "-", FAILED, unread.cause)

    def _report(
        self, kind: str, plane: str, name: str, uid: str, outcome: str, cause: str = ""
    ) -> None:
        self._totals[(kind, outcome)] += 1
        result = f"{outcome}: {cause}" if cause else outcome
        # Names and causes are foreign text: a line break in one must not forge a second line.
        self._deps.write_line(escape_unprintable(f"{plane} {name} {uid} {result}"))

    def _write_totals(self) -> None:
        claims = ("claims",) if self._deps.quota is not None else ()
        kinds = ("copies", *claims, "leases")
        done = DELETED if self._is_executed else WOULD_DELETE
        for kind in kinds:
            counted = f"{self._totals[(kind, done)]} {done}, {self._totals[(kind, FAILED)]} failed"
            self._deps.write_line(f"{kind}: {counted}")
