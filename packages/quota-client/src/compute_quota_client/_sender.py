"""Sends requests to a project plane, with pauses, circuit breaker, credentials and retries.

Three ways to send, by what a lost answer means:

    send_once        one request, for writes: the caller reads whether a lost one was carried out
    send_repeatable  GET, LIST and DELETE: tried up to three times
    open_stream      a watch: the answer is left open

In all of them a request that was answered with 429 is sent again after the pause, since it was not
carried out, and a 401 reads the credential again once.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

import httpx

from compute_quota_client import _retry
from compute_quota_client._answers import Answer, Attempt, error_of
from compute_quota_client._circuit import Admission
from compute_quota_client._clock import loop_now
from compute_quota_client._exceptions import QuotaError, QuotaUnavailableError
from compute_quota_client._exchange import Call, Exchanges, Lost
from compute_quota_client._telemetry import Outcome

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from compute_kubeconfig.access import Material
    from compute_quota_client._credentials import Credentials
    from compute_quota_client._dependencies import ClientDependencies
    from compute_quota_client._projects import ProjectState, ProjectStates

_Got = TypeVar("_Got", bound="Answer | httpx.Response")


class Sender:
    """Sends all requests of one client."""

    def __init__(
        self,
        *,
        exchanges: Exchanges,
        credentials: Credentials,
        states: ProjectStates,
        dependencies: ClientDependencies,
    ) -> None:
        self._exchanges = exchanges
        self._credentials = credentials
        self._states = states
        self._telemetry = dependencies.telemetry
        self._chance = dependencies.chance

    async def send_repeatable(self, call: Call, deadline: timedelta) -> Answer:
        """Tries up to three times; the status is below 500.

        Raises:
            QuotaError: unavailable, throttled or not authenticated.
        """
        failed = 0
        while True:
            try:
                answer = await self.send_once(call, deadline)
                if not _retry.is_server_failure(answer.status):
                    return answer
                error: QuotaError = error_of(call.attempt, answer)
            except QuotaUnavailableError as lost:
                if not isinstance(lost.__cause__, Lost):
                    raise
                error = lost
            failed += 1
            delay = _retry.retry_delay(failed, self._chance)
            if failed >= _retry.TRIES or loop_now() + delay >= deadline:
                raise error
            await asyncio.sleep(delay.total_seconds())

    async def send_once(self, call: Call, deadline: timedelta) -> Answer:
        """Sends one request and waits for its whole answer, of any status but 401 and 429.

        Raises:
            QuotaUnavailableError: no answer; the request may have been carried out all the same.
            QuotaThrottledError: the plane asks for a longer pause than there is time.
            QuotaAuthError: the credential is refused twice, or cannot be read.
        """

        async def exchange(material: Material) -> Answer:
            return await self._exchanges.send(call, material, deadline)

        with self._states.using(call.attempt.project) as state:
            return await self._admitted(call, state, deadline, exchange)

    @asynccontextmanager
    async def open_stream(self, call: Call) -> AsyncGenerator[httpx.Response, None]:
        """An answer of status 200, to be read by the caller.

        Raises:
            QuotaError: there is no such answer, as `send_once`, or it has another status.
        """
        deadline = loop_now() + _retry.OPERATION_LIMIT
        async with AsyncExitStack() as stack:

            async def exchange(material: Material) -> httpx.Response | Answer:
                return await self._exchanges.open(call, material, deadline, stack)

            state = stack.enter_context(self._states.using(call.attempt.project))
            answer = await self._admitted(call, state, deadline, exchange)
            if isinstance(answer, Answer):
                raise error_of(call.attempt, answer)
            yield answer

    async def _admitted(
        self,
        call: Call,
        state: ProjectState,
        deadline: timedelta,
        exchange: Callable[[Material], Awaitable[_Got]],
    ) -> _Got:
        """Sends until the answer is neither 429 nor the first 401."""
        renewed = False
        while True:
            await self._wait_for_turn(call.attempt, state, deadline)
            if loop_now() >= deadline:
                # Sent now it could only time out, which would count as a failure of the plane.
                raise call.attempt.unavailable("there is no time left")
            material = await self._material(call.attempt, renew=False)
            got = await self._accounted(call, state, material, exchange)
            if not isinstance(got, Answer) or got.status not in {401, 429}:
                return got
            if got.status == 401:
                if renewed:
                    raise error_of(call.attempt, got)
                renewed = True
                await self._material(call.attempt, renew=True)

    async def _accounted(
        self,
        call: Call,
        state: ProjectState,
        material: Material,
        exchange: Callable[[Material], Awaitable[_Got]],
    ) -> _Got:
        """One exchange; its result is recorded in circuit, pause and telemetry."""
        admission = state.circuit.admit(loop_now())
        if admission is None:
            raise call.attempt.unavailable("the circuit is open, it failed too often")
        begun, was_open, outcome = loop_now(), state.circuit.is_open, None
        try:
            got = await exchange(material)
            outcome = self._record(state, admission, got)
        except Lost as lost:
            if lost.blames_plane:
                state.circuit.record_failure(admission, loop_now())
                outcome = Outcome.FAILED
            raise call.attempt.unavailable(str(lost)) from lost
        finally:
            if outcome is None:
                # Cancelled by the caller, or closed with the client: a probe without a result would
                # keep the circuit open for ever.
                state.circuit.record_nothing(admission)
            self._telemetry.request_ended(
                call.attempt.operation, outcome or Outcome.GIVEN_UP, loop_now() - begun
            )
            if state.circuit.is_open != was_open:
                self._telemetry.circuit_moved(is_open=state.circuit.is_open)
        return got

    @staticmethod
    def _record(
        state: ProjectState, admission: Admission, answer: Answer | httpx.Response
    ) -> Outcome:
        if isinstance(answer, httpx.Response):
            state.circuit.record_success()
            return Outcome.ANSWERED
        if answer.retry_after is not None:
            state.pause_for(answer.retry_after, answer.status)
        if answer.status == 429:
            state.circuit.record_nothing(admission)
            return Outcome.THROTTLED
        if _retry.is_server_failure(answer.status):
            state.circuit.record_failure(admission, loop_now())
            return Outcome.FAILED
        state.circuit.record_success()
        return Outcome.ANSWERED

    @staticmethod
    async def _wait_for_turn(attempt: Attempt, state: ProjectState, deadline: timedelta) -> None:
        """Waits for the end of the project's pause; raises if that is after the deadline."""
        while (pause := state.not_before - loop_now()) > timedelta(0):
            if state.not_before >= deadline:
                raise attempt.throttled(pause, state.paused_by)
            await asyncio.sleep(pause.total_seconds())

    async def _material(self, attempt: Attempt, *, renew: bool) -> Material:
        try:
            if renew:
                return await self._credentials.renew()
            return await self._credentials.current()
        except QuotaError as error:
            raise attempt.auth(str(error)) from error
