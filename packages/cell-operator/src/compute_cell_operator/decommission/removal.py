"""Goes through what a cell left behind: says what is there, deletes it on demand, and counts.

Every deletion carries the UID that was listed: what bears the name by then and is another stays.
One that fails stops no other, and running it all again is harmless.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from compute_cell_operator.decommission.finding import (
    HUB,
    Claim,
    Copy,
    Unread,
    find_claims,
    find_copies,
    find_projects,
)
from compute_operator_kit.clock import Clock
from compute_operator_kit.errors import ReconcileError
from compute_operator_kit.kube import Kube, Preconditions
from compute_operator_kit.printable import escape_unprintable
from compute_quota_client import NotOurs, QuotaClient, QuotaError

WOULD_DELETE: Final = "would delete"
DELETED: Final = "deleted"
FAILED: Final = "failed"


@dataclass(frozen=True, slots=True)
class Means:
    """What the command works with; `quota` is None where claims are left alone."""

    hub: Kube
    quota: QuotaClient | None
    clock: Clock
    say: Callable[[str], None]


class Removal:
    """One run over everything that one cell left."""

    def __init__(self, cell: str, means: Means, *, is_executed: bool) -> None:
        self._cell = cell
        self._means = means
        self._is_executed = is_executed
        self._totals: Counter[tuple[str, str]] = Counter()

    async def run(self, projects: Iterable[str]) -> bool:
        """Copies first, then claims; whether everything was read and, if asked for, removed."""
        for copy in await find_copies(self._means.hub, self._cell):
            if isinstance(copy, Unread):
                self._report_unread("copies", copy)
            else:
                await self._treat_copy(copy)
        if self._means.quota is not None:
            await self._treat_claims(self._means.quota, projects)
        self._say_totals()
        return not any(outcome == FAILED for _, outcome in self._totals)

    async def _treat_claims(self, quota: QuotaClient, named: Iterable[str]) -> None:
        projects = set(named)
        for project in await find_projects(self._means.hub):
            if isinstance(project, Unread):
                self._report_unread("claims", project)
            else:
                projects.add(project)
        found = find_claims(quota, sorted(projects), self._cell, self._means.clock)
        async for claim in found:
            if isinstance(claim, Unread):
                self._report_unread("claims", claim)
            else:
                await self._treat_claim(quota, claim)

    async def _treat_copy(self, copy: Copy) -> None:
        key, metadata = copy.snapshot.key, copy.snapshot.metadata
        outcome, cause = WOULD_DELETE, ""
        if self._is_executed:
            try:
                # Absent by now is what was wanted.
                await self._means.hub.delete(key, preconditions=Preconditions(metadata.uid))
                outcome = DELETED
            except ReconcileError as error:
                outcome, cause = FAILED, str(error)
        self._report("copies", HUB, f"{key.namespace}/{key.name}", metadata.uid, outcome, cause)

    async def _treat_claim(self, quota: QuotaClient, claim: Claim) -> None:
        found = claim.found
        outcome, cause = WOULD_DELETE, ""
        if self._is_executed:
            try:
                released = await quota.project(claim.project).release(
                    found.namespace, found.name, uid=found.uid
                )
                is_other = isinstance(released, NotOurs)
                outcome = FAILED if is_other else DELETED
                cause = "another claim bears its name now" if is_other else ""
            except QuotaError as error:
                outcome, cause = FAILED, str(error)
        name = f"{found.namespace}/{found.name}"
        self._report("claims", claim.project, name, found.uid, outcome, cause)

    # saying --------------------------------------------------------------------------------------

    def _report_unread(self, kind: str, unread: Unread) -> None:
        self._report(kind, unread.plane, unread.what, "-", FAILED, unread.cause)

    def _report(
        self, kind: str, plane: str, name: str, uid: str, outcome: str, cause: str = ""
    ) -> None:
        self._totals[(kind, outcome)] += 1
        told = f"{outcome}: {cause}" if cause else outcome
        # Names and causes are foreign text: one object is one line, whatever it is called.
        self._means.say(escape_unprintable(f"{plane} {name} {uid} {told}"))

    def _say_totals(self) -> None:
        kinds = ("copies", "claims") if self._means.quota is not None else ("copies",)
        done = DELETED if self._is_executed else WOULD_DELETE
        for kind in kinds:
            counted = f"{self._totals[(kind, done)]} {done}, {self._totals[(kind, FAILED)]} failed"
            self._means.say(f"{kind}: {counted}")
