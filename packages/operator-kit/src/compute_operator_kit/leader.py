"""Leader election on a `coordination.k8s.io` Lease: carries out what `election.py` decides.

Writers run only inside `lead`; they are stopped before the renew deadline ends, and the Lease is
given back on the way out. Safety never rests on this alone: every create has a deterministic name
and every delete a UID. A leader that lost its Lease raises; the process ends with it and starts
again as a candidate.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Protocol, assert_never

from compute_operator_kit import election
from compute_operator_kit.clock import ZERO, Clock, Random
from compute_operator_kit.configuration import ConfigurationError
from compute_operator_kit.election import Found, Lost, Standing, Timing
from compute_operator_kit.errors import ConflictError, ReconcileError
from compute_operator_kit.keys import Kind, ObjectKey
from compute_operator_kit.kube import AlreadyExists
from compute_operator_kit.measures import Measures
from compute_operator_kit.objects import Absent, Snapshot
from compute_operator_kit.strict_yaml import Problem
from compute_operator_kit.wire import (
    JsonMapping,
    JsonObject,
    member_int,
    member_object,
    member_text,
)

LEASE: Final = Kind("coordination.k8s.io", "v1", "leases", "Lease")
MASTER_STATUS: Final = "leader_election_master_status"
# A released Lease lives one second, as client-go leaves it, so that candidates of any make take it
# at once.
RELEASED_SECONDS: Final = 1
RELEASE_TIMEOUT: Final = timedelta(seconds=2)  # part of the 8 s a stop may take

logger = logging.getLogger(__name__)


class Leases(Protocol):
    """What election needs of a plane: exactly the verbs its role grants (get, create, update)."""

    async def get(self, key: ObjectKey) -> Snapshot | Absent: ...

    async def create(self, key: ObjectKey, body: JsonMapping) -> Snapshot | AlreadyExists: ...

    async def update(self, key: ObjectKey, body: JsonMapping) -> Snapshot | Absent:
        """Replaces the object; `ConflictError` when it is not at the body's resourceVersion any
        more.
        """
        ...


class LeaseLostError(Exception):
    """Somebody else may lead now; the process must end (exit code 1)."""

    def __init__(self, why: Lost) -> None:
        super().__init__(f"leading as holder of the Lease: {why.value}")
        self.why = why


@dataclass(frozen=True, slots=True)
class Candidacy:
    """Who wants which Lease. `identity` must be of this process alone: two that share it both
    lead.
    """

    key: ObjectKey
    identity: str
    timing: Timing = field(default_factory=Timing)


def derive_identity(pod_name: str, host_name: str, token: str) -> str:
    """Where we run, for people, and a random part, because a container restarts under its pod's
    name.
    """
    return f"{pod_name or host_name}_{token}"


def find_namespace(configured: str, environ: Mapping[str, str], own: str) -> str:
    """Where the Lease lives: as configured, as the pod says, or where our credentials belong."""
    namespace = configured or environ.get("POD_NAMESPACE", "") or own
    if not namespace:
        hint = "is required outside a cluster (POD_NAMESPACE does the same)"
        raise ConfigurationError([Problem("leaderElection.namespace", hint)])
    return namespace


class Election:
    """One candidate for one Lease."""

    def __init__(
        self,
        leases: Leases,
        candidacy: Candidacy,
        *,
        clock: Clock,
        random: Random,
        measures: Measures,
    ) -> None:
        self._leases = leases
        self._key = candidacy.key
        self._timing = candidacy.timing
        self._clock = clock
        self._random = random
        self._measures = measures
        self._standing = Standing(candidacy.identity)
        self._body: JsonObject = {}
        self._complained = ""

    @property
    def is_leading(self) -> bool:
        """Whether writing is allowed at this very moment; false the instant the deadline nears,
        even after a freeze.
        """
        return self._standing.may_write(self._clock.monotonic(), self._timing)

    async def lead(self, write: Callable[[], Coroutine[None, None, None]]) -> None:
        """Waits for the Lease, runs the writers under it, gives it back when they end or we are
        cancelled.

        Raises `LeaseLostError` once the writers have been stopped because the Lease was lost.
        """
        self._report(leading=False)
        await self._take()
        logger.info("Leading", extra={"lease": str(self._key)})
        self._report(leading=True)
        writers = asyncio.create_task(write(), name="writers of the leader")
        keeper = asyncio.create_task(self._keep(), name="keeper of the Lease")
        try:
            await asyncio.wait({writers, keeper}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self._end(writers)
            await self._end(keeper)
            self._report(leading=False)
            await self._release()
        if keeper.done() and not keeper.cancelled():
            raise LeaseLostError(keeper.result())
        if not writers.cancelled():
            writers.result()

    async def _end(self, task: asyncio.Task[Lost] | asyncio.Task[None]) -> None:
        """Cancels and waits; what the task raised is for whoever asks for its result."""
        task.cancel()
        await asyncio.wait({task})

    async def _take(self) -> None:
        while not self.is_leading:
            await self._step()

    async def _keep(self) -> Lost:
        while True:
            lost = await self._step()
            if lost is not None:
                logger.error("Stopping writers", extra={"reason": lost.value})
                return lost

    async def _step(self) -> Lost | None:
        now = self._clock.monotonic()
        step = election.plan_step(self._standing, now, self._timing)
        match step:
            case election.StepDown(why=why):
                self._standing = Standing(self._standing.me)
                return why
            case election.Pause(delay=delay):
                await self._clock.sleep(self._jitter(delay))
            case election.Read() | election.Create() | election.Write():
                await self._ask(step)
            case _:
                assert_never(step)
        return None

    async def _ask(self, step: election.Read | election.Create | election.Write) -> None:
        """One request; a failure changes what we know, never whether we go on."""
        sent = self._clock.monotonic()
        try:
            async with asyncio.timeout(self._patience(sent).total_seconds()):
                match step:
                    case election.Read():
                        await self._read()
                    case election.Create():
                        await self._create(sent)
                    case election.Write(found=found):
                        await self._write(found, sent)
        except ConflictError:
            # Somebody wrote first: who, says the next read. A candidate's clock starts anew with
            # it.
            self._standing = self._standing.after_conflict()
        except (ReconcileError, TimeoutError) as cause:
            self._complain(cause)
            self._standing = self._standing.after_failing()
            await self._clock.sleep(self._jitter(self._pause_after_failure()))

    def _patience(self, now: timedelta) -> timedelta:
        """How long one request may take: a leader must be able to try again before its deadline."""
        patience = self._timing.renew_deadline / 2
        if self._standing.renewed_at is None:
            return patience
        left = self._standing.renewed_at + self._timing.stop_after - now
        return max(ZERO, min(patience, left))

    def _pause_after_failure(self) -> timedelta:
        pause = self._timing.retry_period / 2
        if self._standing.renewed_at is None:
            return pause
        left = self._standing.renewed_at + self._timing.stop_after - self._clock.monotonic()
        return max(ZERO, min(pause, left))

    async def _read(self) -> None:
        answer = await self._leases.get(self._key)
        found = self._remember(answer) if isinstance(answer, Snapshot) else answer
        self._standing = self._standing.after_reading(found, self._clock.monotonic())
        self._complained = ""

    async def _create(self, sent: timedelta) -> None:
        metadata: JsonObject = {"name": self._key.name, "namespace": self._key.namespace}
        body: JsonObject = {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": metadata,
            "spec": self._spec({}),
        }
        answer = await self._leases.create(self._key, body)
        self._settle(answer, sent)

    async def _write(self, found: Found, sent: timedelta) -> None:
        spec = self._spec(member_object(self._body, "spec"))
        self._settle(await self._leases.update(self._key, self._with_spec(spec, found)), sent)

    def _settle(self, answer: Snapshot | AlreadyExists | Absent, sent: timedelta) -> None:
        match answer:
            case Snapshot():
                self._standing = self._standing.after_writing(self._remember(answer), sent)
                self._complained = ""
            case AlreadyExists():
                self._standing = self._standing.after_conflict()
            case Absent():
                self._standing = self._standing.after_reading(answer, self._clock.monotonic())

    async def _release(self) -> None:
        """Gives the Lease back if it is still ours; if that fails, it ends by itself."""
        standing, self._standing = self._standing, Standing(self._standing.me)
        if standing.renewed_at is None or not isinstance(standing.found, Found):
            return
        spec = member_object(self._body, "spec") | {
            "holderIdentity": "",
            "leaseDurationSeconds": RELEASED_SECONDS,
            "renewTime": self._wall_clock(),
        }
        try:
            async with asyncio.timeout(RELEASE_TIMEOUT.total_seconds()):
                await self._leases.update(self._key, self._with_spec(spec, standing.found))
        except (ReconcileError, TimeoutError) as cause:
            logger.warning("Leaving Lease to expire", extra={"reason": type(cause).__name__})

    def _spec(self, former: JsonObject) -> JsonObject:
        """Our claim; times are for people and for candidates of other makes, we never read them."""
        spec = former | {
            "holderIdentity": self._standing.me,
            "leaseDurationSeconds": round(self._timing.lease_duration.total_seconds()),
            "renewTime": self._wall_clock(),
        }
        if member_text(former, "holderIdentity") != self._standing.me:
            spec["acquireTime"] = spec["renewTime"]
            spec["leaseTransitions"] = member_int(former, "leaseTransitions") + bool(former)
        return spec

    def _with_spec(self, spec: JsonObject, found: Found) -> JsonObject:
        metadata = member_object(self._body, "metadata") | {"resourceVersion": found.version}
        return {**self._body, "metadata": metadata, "spec": spec}

    def _remember(self, snapshot: Snapshot) -> Found:
        self._body = snapshot.decode()
        spec = member_object(self._body, "spec")
        return Found(
            holder=member_text(spec, "holderIdentity"),
            version=snapshot.metadata.resource_version,
            duration=timedelta(seconds=member_int(spec, "leaseDurationSeconds")),
            uid=snapshot.metadata.uid,
        )

    def _wall_clock(self) -> str:
        return self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def _jitter(self, delay: timedelta) -> timedelta:
        # Only ever earlier: later would add to how long a takeover takes.
        return delay * (1 - 0.1 * self._random.random())

    def _complain(self, cause: ReconcileError | TimeoutError) -> None:
        why = cause.reason if isinstance(cause, ReconcileError) else type(cause).__name__
        if why != self._complained:
            logger.warning("Waiting for Lease", extra={"reason": why})
        self._complained = why

    def _report(self, *, leading: bool) -> None:
        self._measures.gauge(MASTER_STATUS, float(leading), name=self._key.name)
