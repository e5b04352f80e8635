"""Leader election on a `coordination.k8s.io` Lease: sends the requests that `election.py` plans.

Controllers run only inside `lead`: they are stopped before the renew deadline, and the Lease is
released on the way out. Without it two replicas would write at once; even then every create has a
deterministic name and every delete a UID. A leader that lost its Lease raises, the process ends and
starts again as a candidate.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Protocol, assert_never

from compute_kubeconfig.problems import ConfigurationError, Problem
from compute_operator_kit.client.interface import AlreadyExists
from compute_operator_kit.core.clock import ZERO, Clock, Random
from compute_operator_kit.core.errors import ConflictError, ReconcileError
from compute_operator_kit.core.json import (
    JsonMapping,
    JsonObject,
    member_int,
    member_object,
    member_text,
)
from compute_operator_kit.core.keys import Kind, ObjectKey
from compute_operator_kit.core.metrics import MetricsPort
from compute_operator_kit.core.objects import Absent, Snapshot
from compute_operator_kit.process import election
from compute_operator_kit.process.election import CandidateState, LeaseLost, ObservedLease, Timing

LEASE: Final = Kind("coordination.k8s.io", "v1", "leases", "Lease")
MASTER_STATUS: Final = "leader_election_master_status"
# Of a released Lease, as client-go writes it: every implementation may then acquire it at once.
RELEASED_SECONDS: Final = 1
RELEASE_TIMEOUT: Final = timedelta(seconds=2)  # part of the 8 s a stop may take

logger = logging.getLogger(__name__)


class Leases(Protocol):
    """The client of the home plane, with the verbs that RBAC grants: get, create, update."""

    async def get(self, key: ObjectKey) -> Snapshot | Absent: ...

    async def create(self, key: ObjectKey, body: JsonMapping) -> Snapshot | AlreadyExists: ...

    async def update(self, key: ObjectKey, body: JsonMapping) -> Snapshot | Absent:
        """Replaces the object; `ConflictError` when the body has an older resourceVersion."""
        ...


class LeaseLostError(Exception):
    """Another replica may lead now; the process must end (exit code 1)."""

    def __init__(self, why: LeaseLost) -> None:
        super().__init__(f"leading as holder of the Lease: {why.value}")
        self.why = why


@dataclass(frozen=True, slots=True)
class Candidacy:
    """A Lease and the identity to hold it with; two processes with one identity would both lead."""

    key: ObjectKey
    identity: str
    timing: Timing = field(default_factory=Timing)


def derive_identity(pod_name: str, host_name: str, token: str) -> str:
    """The pod, for people, and a random part: a restarted container has the same pod name."""
    return f"{pod_name or host_name}_{token}"


def find_namespace(
    configured: str, environ: Mapping[str, str], own: str, *, is_elected: bool = True
) -> str:
    """The operator's namespace, with its Lease: of the settings, of the pod, or of the credentials.

    Where there is no election, there is no Lease to put anywhere, and `default` will do.
    """
    namespace = configured or environ.get("POD_NAMESPACE", "") or own
    if not namespace and not is_elected:
        return "default"
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
        measures: MetricsPort,
    ) -> None:
        self._leases = leases
        self._key = candidacy.key
        self._timing = candidacy.timing
        self._clock = clock
        self._random = random
        self._measures = measures
        self._state = CandidateState(candidacy.identity)
        self._body: JsonObject = {}
        self._logged = ""

    @property
    def is_leading(self) -> bool:
        """Whether writes are allowed now; False from shortly before the deadline on, also after a
        freeze of the process.
        """
        return self._state.may_write(self._clock.monotonic(), self._timing)

    async def lead(self, write: Callable[[], Coroutine[None, None, None]]) -> None:
        """Acquires the Lease, runs `write` under it, and releases it when `write` ends or this is
        cancelled.

        Raises `LeaseLostError` once `write` has been stopped because the Lease was lost.
        """
        self._report(leading=False)
        await self._take()
        logger.info("Leading", extra={"lease": str(self._key)})
        self._report(leading=True)
        writers = asyncio.create_task(write(), name="writers of the leader")
        renewing = asyncio.create_task(self._renew(), name="renewing the Lease")
        try:
            await asyncio.wait({writers, renewing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self._end(writers)
            await self._end(renewing)
            self._report(leading=False)
            await self._release()
        if renewing.done() and not renewing.cancelled():
            raise LeaseLostError(renewing.result())
        if not writers.cancelled():
            writers.result()

    async def _end(self, task: asyncio.Task[LeaseLost] | asyncio.Task[None]) -> None:
        """Cancels and waits; an exception of the task stays in its result."""
        task.cancel()
        await asyncio.wait({task})

    async def _take(self) -> None:
        while not self.is_leading:
            await self._step()

    async def _renew(self) -> LeaseLost:
        while True:
            lost = await self._step()
            if lost is not None:
                logger.error("Stopping writers", extra={"reason": lost.value})
                return lost

    async def _step(self) -> LeaseLost | None:
        now = self._clock.monotonic()
        step = election.plan_step(self._state, now, self._timing)
        match step:
            case election.StepDown(why=why):
                self._state = CandidateState(self._state.me)
                return why
            case election.PauseStep(delay=delay):
                await self._clock.sleep(self._jitter(delay))
            case election.ReadStep() | election.CreateStep() | election.WriteStep():
                await self._ask(step)
            case _:
                assert_never(step)
        return None

    async def _ask(
        self, step: election.ReadStep | election.CreateStep | election.WriteStep
    ) -> None:
        """One request; after a failure the next step is planned from what is known still."""
        sent = self._clock.monotonic()
        try:
            async with asyncio.timeout(self._request_timeout(sent).total_seconds()):
                match step:
                    case election.ReadStep():
                        await self._read()
                    case election.CreateStep():
                        await self._create(sent)
                    case election.WriteStep(lease=lease):
                        await self._write(lease, sent)
        except ConflictError:
            self._state = self._state.after_conflict()
        except (ReconcileError, TimeoutError) as cause:
            self._log_once(cause)
            self._state = self._state.after_failing()
            await self._clock.sleep(self._jitter(self._pause_after_failure()))

    def _request_timeout(self, now: timedelta) -> timedelta:
        """Timeout of one request: a leader must be able to repeat it before its deadline."""
        timeout = self._timing.renew_deadline / 2
        if self._state.renewed_at is None:
            return timeout
        left = self._state.renewed_at + self._timing.stop_after - now
        return max(ZERO, min(timeout, left))

    def _pause_after_failure(self) -> timedelta:
        pause = self._timing.retry_period / 2
        if self._state.renewed_at is None:
            return pause
        left = self._state.renewed_at + self._timing.stop_after - self._clock.monotonic()
        return max(ZERO, min(pause, left))

    async def _read(self) -> None:
        answer = await self._leases.get(self._key)
        lease = self._remember(answer) if isinstance(answer, Snapshot) else answer
        self._state = self._state.after_reading(lease, self._clock.monotonic())
        self._logged = ""

    async def _create(self, sent: timedelta) -> None:
        metadata: JsonObject = {"name": self._key.name, "namespace": self._key.namespace}
        body: JsonObject = {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": metadata,
            "spec": self._spec({}),
        }
        answer = await self._leases.create(self._key, body)
        self._record_write(answer, sent)

    async def _write(self, lease: ObservedLease, sent: timedelta) -> None:
        spec = self._spec(member_object(self._body, "spec"))
        answer = await self._leases.update(self._key, self._with_spec(spec, lease))
        self._record_write(answer, sent)

    def _record_write(self, answer: Snapshot | AlreadyExists | Absent, sent: timedelta) -> None:
        match answer:
            case Snapshot():
                self._state = self._state.after_writing(self._remember(answer), sent)
                self._logged = ""
            case AlreadyExists():
                self._state = self._state.after_conflict()
            case Absent():
                self._state = self._state.after_reading(answer, self._clock.monotonic())

    async def _release(self) -> None:
        """Releases the Lease if we hold it; where that fails, it expires."""
        state, self._state = self._state, CandidateState(self._state.me)
        if state.renewed_at is None or not isinstance(state.lease, ObservedLease):
            return
        spec = member_object(self._body, "spec") | {
            "holderIdentity": "",
            "leaseDurationSeconds": RELEASED_SECONDS,
            "renewTime": self._wall_clock(),
        }
        try:
            async with asyncio.timeout(RELEASE_TIMEOUT.total_seconds()):
                await self._leases.update(self._key, self._with_spec(spec, state.lease))
        except (ReconcileError, TimeoutError) as cause:
            logger.warning("Leaving Lease to expire", extra={"reason": type(cause).__name__})

    def _spec(self, former: JsonObject) -> JsonObject:
        """The spec with our name. Its times are for people and other implementations; this one
        never reads them.
        """
        spec = former | {
            "holderIdentity": self._state.me,
            "leaseDurationSeconds": round(self._timing.lease_duration.total_seconds()),
            "renewTime": self._wall_clock(),
        }
        if member_text(former, "holderIdentity") != self._state.me:
            spec["acquireTime"] = spec["renewTime"]
            spec["leaseTransitions"] = member_int(former, "leaseTransitions") + bool(former)
        return spec

    def _with_spec(self, spec: JsonObject, lease: ObservedLease) -> JsonObject:
        metadata = member_object(self._body, "metadata") | {"resourceVersion": lease.version}
        return {**self._body, "metadata": metadata, "spec": spec}

    def _remember(self, snapshot: Snapshot) -> ObservedLease:
        self._body = snapshot.decode()
        spec = member_object(self._body, "spec")
        return ObservedLease(
            holder=member_text(spec, "holderIdentity"),
            version=snapshot.metadata.resource_version,
            duration=timedelta(seconds=member_int(spec, "leaseDurationSeconds")),
            uid=snapshot.metadata.uid,
        )

    def _wall_clock(self) -> str:
        return self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def _jitter(self, delay: timedelta) -> timedelta:
        # Only earlier: a later read would make a takeover longer.
        return delay * (1 - 0.1 * self._random.random())

    def _log_once(self, cause: ReconcileError | TimeoutError) -> None:
        why = cause.reason if isinstance(cause, ReconcileError) else type(cause).__name__
        if why != self._logged:
            logger.warning("Waiting for Lease", extra={"reason": why})
        self._logged = why

    def _report(self, *, leading: bool) -> None:
        self._measures.gauge(MASTER_STATUS, float(leading), name=self._key.name)
