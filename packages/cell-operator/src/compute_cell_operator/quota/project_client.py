"""Clients of the projects in which this cell has claims: watch, proof of namespaces, availability.

```
a request fails ──► unavailable: keys that need the project wait ──► one probe for all of them
                                                                       │ any answer
                    the waiting keys are enqueued  ◄───────────────────┘
```

Without the shared probe, every slot would send a request of its own to a project that does not
answer. The circuit of the quota client decides how often a probe becomes a request (1 s doubling to
30 s, ± 20 %): one that comes too early costs none. Projects do not affect each other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

from compute_api_types import labels, names
from compute_cell_operator.quota.project_ref import BillingProject, ClaimRef, ProjectUnresolvable
from compute_cell_operator.quota.result import NamespaceNotFound
from compute_cell_operator.quota.suspension import ClaimSuspension, derive_probe_delay
from compute_cell_operator.settings import CellSettings
from compute_kubeconfig.problems import ConfigurationError, Problem
from compute_operator_kit.core.clock import Clock, Random
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.tasks import SupervisedTasks
from compute_operator_kit.planes.engaged_plane import PlaneState
from compute_quota_client import (
    Absent,
    ClaimKey,
    ClaimTracker,
    Following,
    ProjectQuota,
    QuotaAuthError,
    QuotaClient,
    QuotaError,
    QuotaSettings,
    QuotaUnavailableError,
    QuotaUsageError,
    Surroundings,
    Verdict,
)

PATH_FIELD: Final = "quota.kubeconfigPath"
PROOF_LASTS: Final = timedelta(minutes=10)  # quota.md B1
# The circuit waits at most 36 s after a request, at least 24 s once its waits are longest. From
# then on a probe is at most a quarter of a second late; before, it polls less often.
PROBE_EVERY: Final = timedelta(seconds=1)
PROBE_LATE_EVERY: Final = timedelta(milliseconds=250)
LATE: Final = timedelta(seconds=20)

logger = logging.getLogger(__name__)

OnAnswer = Callable[[str, tuple[ObjectKey, ...]], None]


def open_client(
    settings: CellSettings, user_agent: str, clock: Clock, random: Random
) -> QuotaClient:
    """The client of the configured quota server; its files are read now, no request is sent.

    Raises:
        ConfigurationError: the kubeconfig is refused, or a file cannot be read.
    """
    try:
        return QuotaClient.from_kubeconfig(
            Path(settings.quota.kubeconfig_path),
            settings=QuotaSettings(
                user_agent=user_agent,
                field_manager=labels.QUOTA_MANAGER,
                http="aiohttp",  # in the process anyway, and faster with a claim per Instance
                allow_exec=settings.clients.allow_exec,
            ),
            surroundings=Surroundings(chance=random.random, wall_clock=clock.now),
        )
    except (QuotaAuthError, QuotaUsageError) as refused:
        raise ConfigurationError([Problem(PATH_FIELD, str(refused))]) from refused


def derive_selector(cell: str) -> str:
    """Selects the claims of this cell."""
    return f"{labels.SOURCE_CLUSTER}={cell}"


@dataclass(frozen=True, slots=True)
class _NamespaceRead:
    uid: str
    at: timedelta


class ProjectClient:
    """One project in which slots of this cell have claims."""

    def __init__(
        self,
        quota: ProjectQuota,
        cell: str,
        on_resume: Callable[[tuple[ObjectKey, ...]], None],
    ) -> None:
        self.quota = quota
        self.outage: QuotaUnavailableError | None = None
        self.waiting: dict[ObjectKey, None] = {}  # enqueued when the project answers
        self.is_probed = False
        self.suspension = ClaimSuspension(on_resume)
        self._tracker = ClaimTracker(quota, derive_selector(cell))
        self._followers: dict[ObjectKey, None] = {}
        self._following: Following | None = None
        self._namespaces: dict[str, _NamespaceRead] = {}

    @property
    def name(self) -> str:
        return self.quota.name

    @property
    def state(self) -> PlaneState:
        """For metrics."""
        if self.outage is not None:
            return PlaneState.DOWN
        return PlaneState.SUSPENDED if self.suspension.is_suspended else PlaneState.UP

    @property
    def is_used(self) -> bool:
        is_awaited = bool(self.waiting or self.outage or self.suspension.is_suspended)
        return bool(self._followers) or is_awaited

    # the watch -----------------------------------------------------------------------------------

    def follow(self, key: ObjectKey, on_change: Callable[[ClaimKey], None]) -> None:
        """Watches claims for a slot that is undecided; all slots share one watch."""
        self._followers[key] = None
        if self._following is None:
            self._following = self._tracker.follow(on_change)

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
        """Whether the watch is synced, so that it has every claim of this cell."""
        return self._tracker.synced

    def watched(self, claim: ClaimRef) -> Verdict | Absent | None:
        """The verdict of a synced watch; None where only a read can show it."""
        if not self.is_watched:
            return None
        return self._tracker.verdict(claim.namespace, claim.name)

    def last_watched(self, key: ClaimKey) -> Verdict | Absent | None:
        return self._tracker.verdict(key.namespace, key.name)

    # the proof -----------------------------------------------------------------------------------

    def is_proven(self, billing: BillingProject) -> bool:
        """Whether the namespace had the right UID when it was last read, however long ago."""
        last = self._namespaces.get(billing.namespace)
        return last is not None and last.uid == billing.namespace_uid

    async def prove(
        self, billing: BillingProject, clock: Clock
    ) -> NamespaceNotFound | ProjectUnresolvable | None:
        """Why no claim may be made in the namespace; None where one may (quota.md B1).

        Raises:
            QuotaError: the namespace cannot be read.
        """
        last = self._namespaces.get(billing.namespace)
        is_recent = last is not None and clock.monotonic() - last.at < PROOF_LASTS
        if is_recent and self.is_proven(billing):
            return None
        uid = await self.quota.namespace_uid(billing.namespace)
        if isinstance(uid, Absent):
            self._namespaces.pop(billing.namespace, None)
            return NamespaceNotFound(self.name, billing.namespace)
        self._namespaces[billing.namespace] = _NamespaceRead(uid, clock.monotonic())
        return None if uid == billing.namespace_uid else _describe_other_uid(billing, uid)


def _describe_other_uid(billing: BillingProject, uid: str) -> ProjectUnresolvable:
    owner = names.derive_hub_namespace(billing.namespace_uid)
    return ProjectUnresolvable(
        "namespace",
        f'label {labels.UPSTREAM_NAMESPACE!r} of Namespace "{owner}": namespace '
        f'"{billing.namespace}" of project "{billing.project}" has the UID {uid[:63]!r}',
    )


class ProjectClients:
    """Clients by project; `on_answer` is called when a project answers again."""

    def __init__(
        self,
        client: QuotaClient,
        cell: str,
        clock: Clock,
        random: Random,
        on_answer: OnAnswer,
    ) -> None:
        self._client = client
        self._random = random
        self._cell = cell
        self._clock = clock
        self._on_answer = on_answer
        self._projects: dict[str, ProjectClient] = {}
        self.tasks: SupervisedTasks | None = None  # of probes; None: this replica does not lead

    def __iter__(self) -> Iterator[ProjectClient]:
        return iter(self._projects.values())

    def get(self, name: str) -> ProjectClient:
        """The client of a project.

        Raises:
            QuotaUsageError: the name cannot be a project's, or the quota client is closed.
        """
        project = self._projects.get(name)
        if project is None:
            on_resume = partial(self._on_answer, name)
            project = ProjectClient(self._client.project(name), self._cell, on_resume)
            self._projects[name] = project
        return project

    def unfollow(self, key: ObjectKey, claim: ClaimRef | None) -> None:
        """The claim of a slot need not be watched."""
        project = self._projects.get(claim.project) if claim is not None else None
        if project is not None:
            project.unfollow(key)

    def keep_only(self, named: frozenset[str]) -> None:
        """Forgets projects that no Namespace names and no slot uses."""
        for name in [n for n, p in self._projects.items() if n not in named and not p.is_used]:
            del self._projects[name]

    def close(self) -> None:
        for project in self._projects.values():
            project.stop_following()

    # outages -------------------------------------------------------------------------------------

    def await_answer(
        self,
        project: ProjectClient,
        claim: ClaimRef,
        error: QuotaUnavailableError,
        key: ObjectKey | None = None,
    ) -> None:
        """The project does not answer: one probe reads a claim, existing or not, until it does, and
        `key` waits for it.
        """
        if key is not None:
            project.waiting[key] = None
        if self.tasks is None:
            return
        project.outage = error
        if not project.is_probed:
            project.is_probed = True
            self.tasks.start(self._probe(project, claim), f"probe:{project.name}")

    def await_resume(self, project: ProjectClient, key: ObjectKey) -> None:
        """The project is suspended: `key` waits, and once a minute one slot asks again."""
        if not project.suspension.is_suspended:
            logger.info("Project is suspended", extra={"plane": project.name})
        project.suspension.refuse(key)
        if self.tasks is not None and not project.suspension.is_probed:
            project.suspension.is_probed = True
            self.tasks.start(self._permit(project), f"resume:{project.name}")

    async def _permit(self, project: ProjectClient) -> None:
        while project.suspension.is_suspended:
            await self._clock.sleep(derive_probe_delay(self._random.random()))
            key = project.suspension.permit() if project.suspension.is_suspended else None
            if key is not None:
                self._on_answer(project.name, (key,))
        project.suspension.is_probed = False

    async def _probe(self, project: ProjectClient, claim: ClaimRef) -> None:
        begun = self._clock.monotonic()
        while project.outage is not None:
            is_late = self._clock.monotonic() - begun > LATE
            await self._clock.sleep(PROBE_LATE_EVERY if is_late else PROBE_EVERY)
            project.outage = await _read_outage(project, claim)
        project.is_probed = False
        waiting = tuple(project.waiting)
        project.waiting.clear()
        self._on_answer(project.name, waiting)


async def _read_outage(project: ProjectClient, claim: ClaimRef) -> QuotaUnavailableError | None:
    """Why the project still does not answer; None on any answer."""
    try:
        await project.quota.read(claim.namespace, claim.name)
    except QuotaUnavailableError as error:
        return error
    except QuotaError:
        return None
    return None
