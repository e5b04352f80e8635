"""Each project as the worker knows it: its claims' watch, its namespaces' proof, and whether its
plane is away.

```
 a request fails ──► away: nobody asks, everybody who would is put aside ──► one probe for all
                                                                               │ any answer
                     everybody who was put aside is woken  ◄───────────────────┘
```

How often a plane that is away is asked is the circuit's of the quota client (1 s doubling to 30 s,
± 20 %): a probe that comes too early costs no request. One project's trouble is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Protocol

from compute_api_types import labels, names
from compute_cell_operator.quota_gate.evidence import Payer
from compute_cell_operator.quota_gate.findings import NamespaceNotFound, Unresolvable
from compute_cell_operator.quota_gate.place import Place
from compute_operator_kit.clock import Clock
from compute_operator_kit.crew import Crew
from compute_operator_kit.keys import ObjectKey
from compute_quota_client import (
    Absent,
    ClaimKey,
    ClaimTracker,
    Following,
    ProjectQuota,
    QuotaClient,
    QuotaError,
    QuotaUnavailableError,
    Verdict,
)

PROOF_LASTS: Final = timedelta(minutes=10)  # quota.md B1
# The circuit waits at most 36 s after a request, at least 24 s once it waits longest. A probe is
# punctual to a quarter of a second where that matters, and does not poll where it does not.
PROBE_EVERY: Final = timedelta(seconds=1)
PROBE_LATE_EVERY: Final = timedelta(milliseconds=250)
LATE: Final = timedelta(seconds=20)


@dataclass(frozen=True, slots=True)
class _Proof:
    uid: str
    at: timedelta


class Project:
    """One project that slots of this cell claim in."""

    def __init__(self, quota: ProjectQuota, cell: str) -> None:
        self.quota = quota
        self.away: QuotaUnavailableError | None = None
        self.waiting: dict[ObjectKey, None] = {}
        self.is_probed = False
        self._tracker = ClaimTracker(quota, derive_selector(cell))
        self._followers: dict[ObjectKey, None] = {}
        self._following: Following | None = None
        self._proofs: dict[str, _Proof] = {}

    @property
    def name(self) -> str:
        return self.quota.name

    @property
    def is_used(self) -> bool:
        return bool(self._followers or self.waiting or self.away)

    # the watch -----------------------------------------------------------------------------------

    def follow(self, key: ObjectKey, wake: Callable[[ClaimKey], None]) -> None:
        """An Instance is undecided: its claim is watched, with those of all others."""
        self._followers[key] = None
        if self._following is None:
            self._following = self._tracker.follow(wake)

    def unfollow(self, key: ObjectKey) -> None:
        self._followers.pop(key, None)
        if not self._followers:
            self.stop_following()

    def stop_following(self) -> None:
        self._followers.clear()
        if self._following is not None:
            self._following.close()
            self._following = None

    @property
    def is_watched(self) -> bool:
        """Whether the watch knows every claim of ours right now."""
        return self._tracker.synced

    def watched(self, place: Place) -> Verdict | Absent | None:
        """What the watch says of a claim now; None where only a read can tell."""
        if not self.is_watched:
            return None
        return self._tracker.verdict(place.namespace, place.name)

    def last_watched(self, key: ClaimKey) -> Verdict | Absent | None:
        return self._tracker.verdict(key.namespace, key.name)

    # the proof -----------------------------------------------------------------------------------

    def is_proven(self, payer: Payer) -> bool:
        """Whether the namespace was the right one when it was last read, however long ago."""
        found = self._proofs.get(payer.namespace)
        return found is not None and found.uid == payer.proof

    async def prove(self, payer: Payer, clock: Clock) -> NamespaceNotFound | Unresolvable | None:
        """Why a claim may not be made there; None where it may (quota.md B1).

        Raises:
            QuotaError: the namespace cannot be read.
        """
        found = self._proofs.get(payer.namespace)
        is_fresh = found is not None and clock.monotonic() - found.at < PROOF_LASTS
        if is_fresh and self.is_proven(payer):
            return None
        uid = await self.quota.namespace_uid(payer.namespace)
        if isinstance(uid, Absent):
            self._proofs.pop(payer.namespace, None)
            return NamespaceNotFound(self.name, payer.namespace)
        self._proofs[payer.namespace] = _Proof(uid, clock.monotonic())
        return None if uid == payer.proof else _disproof(payer, uid)


def _disproof(payer: Payer, uid: str) -> Unresolvable:
    owner = names.derive_hub_namespace(payer.proof)
    return Unresolvable(
        "namespace",
        f'label {labels.UPSTREAM_NAMESPACE!r} of Namespace "{owner}": namespace '
        f'"{payer.namespace}" of project "{payer.project}" has the UID {uid[:63]!r}',
    )


def derive_selector(cell: str) -> str:
    return f"{labels.SOURCE_CLUSTER}={cell}"


class Recovery(Protocol):
    """Whom to tell that a project answers again."""

    def answers(self, project: str, waiting: tuple[ObjectKey, ...]) -> None: ...


class Projects:
    """All projects of one quota server that this cell has to do with."""

    def __init__(self, client: QuotaClient, cell: str, clock: Clock) -> None:
        self._client = client
        self._cell = cell
        self._clock = clock
        self._projects: dict[str, Project] = {}

    def __iter__(self) -> Iterator[Project]:
        return iter(self._projects.values())

    def get(self, name: str) -> Project:
        """The project of this name.

        Raises:
            QuotaUsageError: the name cannot be a project's, or the client is closed.
        """
        found = self._projects.get(name)
        if found is None:
            found = self._projects[name] = Project(self._client.project(name), self._cell)
        return found

    def find(self, name: str) -> Project | None:
        return self._projects.get(name)

    def keep_only(self, wanted: frozenset[str]) -> None:
        """Forgets projects that nothing here has to do with any more."""
        for name in [n for n, p in self._projects.items() if n not in wanted and not p.is_used]:
            del self._projects[name]

    def close(self) -> None:
        for project in self._projects.values():
            project.stop_following()

    # away ----------------------------------------------------------------------------------------

    def await_answer(
        self,
        project: Project,
        error: QuotaUnavailableError,
        crew: Crew,
        recovery: Recovery,
        *,
        place: Place,
    ) -> None:
        """The plane does not answer: from now on one probe asks for everybody."""
        project.away = error
        if not project.is_probed:
            project.is_probed = True
            crew.start(self._probe(project, recovery, place), f"probe:{project.name}")

    async def _probe(self, project: Project, recovery: Recovery, place: Place) -> None:
        begun = self._clock.monotonic()
        while project.away is not None:
            is_late = self._clock.monotonic() - begun > LATE
            await self._clock.sleep(PROBE_LATE_EVERY if is_late else PROBE_EVERY)
            project.away = await _ask(project, place)
        project.is_probed = False
        waiting = tuple(project.waiting)
        project.waiting.clear()
        recovery.answers(project.name, waiting)


async def _ask(project: Project, place: Place) -> QuotaUnavailableError | None:
    """Why the plane is still away; None as soon as it answers anything at all."""
    try:
        await project.quota.read(place.namespace, place.name)
    except QuotaUnavailableError as error:
        return error
    except QuotaError:
        return None
    return None
