"""A project that is suspended: its refusal is told apart, and after it only probes are sent."""

from __future__ import annotations

import logging

import orjson
import pytest

from compute_operator_kit.client.flow_control import FlowControl
from compute_operator_kit.client.http_client import HttpKubeClient
from compute_operator_kit.client.interface import FieldOwner, Preconditions
from compute_operator_kit.client.rest import RestConfig
from compute_operator_kit.client.status_errors import RequestInfo, error_of_answer, parse_status
from compute_operator_kit.client.write_suspension import WriteSuspension
from compute_operator_kit.controller.reconcile import Result, ResultLabel, run_reconcile
from compute_operator_kit.core.errors import (
    ForbiddenError,
    ProjectSuspendedError,
    ReconcileError,
    RejectedError,
    UnavailableError,
)
from compute_operator_kit.core.keys import Kind, PlaneName, Role
from compute_operator_kit.core.timeouts import Deadline
from compute_operator_kit.testing.fakes import (
    FakeClock,
    ScriptedResponse,
    ScriptedTransport,
    a_key,
    a_snapshot,
)

WRITE = RequestInfo("creating Note 'default/web' on 'p'", "p", is_mutating=True)
PLANE = PlaneName("project-a")
KEY = a_key()
NOTE = a_snapshot(KEY)
WHY = 'project "p" is suspended (Billing) and cannot accept new updates while suspended'


def a_status(*causes: str, message: str = WHY, code: int = 403) -> bytes:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "code": code,
        "reason": "Forbidden",
        "message": f'notes "web" is forbidden: {message}',
        "details": {"causes": [{"reason": cause, "message": message} for cause in causes]},
    }
    return orjson.dumps(status)


def a_refusal(cause: str) -> ScriptedResponse:
    return ScriptedResponse(403, a_status(cause))


def error_of(*causes: str, message: str = WHY, code: int = 403) -> ReconcileError:
    body = a_status(*causes, message=message, code=code)
    return error_of_answer(WRITE, parse_status(code, body), None)


@pytest.mark.spec("SU-01")
def test_a_403_with_the_cause_means_that_the_project_is_suspended() -> None:
    error = error_of("ProjectSuspended")
    assert isinstance(error, ProjectSuspendedError)
    assert isinstance(error, RejectedError)
    assert (error.reason, error.plane) == ("ProjectSuspended", "p")


@pytest.mark.spec("SU-02")
def test_a_403_with_the_words_and_without_the_cause_is_an_error_as_before() -> None:
    assert type(error_of()) is ForbiddenError
    assert type(error_of("FieldValueInvalid")) is ForbiddenError
    assert type(error_of(message="ProjectSuspended")) is ForbiddenError


@pytest.mark.spec("SU-02")
def test_the_cause_under_another_status_is_no_suspension() -> None:
    assert not isinstance(error_of("ProjectSuspended", code=422), ProjectSuspendedError)
    assert not isinstance(error_of("ProjectSuspended", code=503), ProjectSuspendedError)


# --- the state of a plane -------------------------------------------------------------------------


def test_one_permit_lets_one_write_through_and_its_acceptance_ends_the_suspension() -> None:
    changes: list[bool] = []
    suspension = WriteSuspension()
    suspension.listen(lambda: changes.append(suspension.is_suspended))
    suspension.permit_probe()
    assert not suspension.is_suspended
    suspension.refused()
    assert not suspension.take_permit()
    suspension.permit_probe()
    assert suspension.has_permit
    assert suspension.take_permit()
    assert not suspension.take_permit()
    suspension.refused()
    suspension.permit_probe()
    assert suspension.take_permit()
    suspension.answered(409)
    assert suspension.has_permit, "a conflict says nothing: the next write probes"
    assert suspension.take_permit()
    suspension.answered(200)
    assert changes == [True, False]


# --- the client -----------------------------------------------------------------------------------


class World:
    """A client of one plane with scripted answers."""

    def __init__(self, *script: ScriptedResponse) -> None:
        self.transport = ScriptedTransport(*script)
        self.lane = FlowControl(PLANE, FakeClock())
        config = RestConfig(PLANE, Role.PROJECT, self.transport, self.lane)
        self.kube = HttpKubeClient(config, FieldOwner("notes", "compute-notes"))


@pytest.mark.spec("SU-01")
async def test_after_a_refusal_no_write_is_sent_until_one_is_permitted() -> None:
    world = World(a_refusal("ProjectSuspended"), ScriptedResponse(201, NOTE.raw))
    for _ in range(3):
        with pytest.raises(ProjectSuspendedError, match="creating Note"):
            await world.kube.create(KEY, NOTE.decode())
    with pytest.raises(ProjectSuspendedError):
        await world.kube.update_status(KEY, NOTE.decode())
    assert len(world.transport.sent) == 1
    world.lane.suspension.permit_probe()
    await world.kube.create(KEY, NOTE.decode())
    assert not world.lane.suspension.is_suspended
    assert len(world.transport.sent) == 2


@pytest.mark.spec("SU-01")
async def test_reads_reviews_deletes_and_writes_to_terminating_objects_are_sent_as_ever() -> None:
    found = ScriptedResponse(200, NOTE.raw)
    world = World(a_refusal("ProjectSuspended"), *[found] * 5)
    with pytest.raises(ProjectSuspendedError):
        await world.kube.create(KEY, NOTE.decode())
    await world.kube.get(KEY)
    await world.kube.delete(KEY, preconditions=Preconditions(NOTE.metadata.uid))
    await world.kube.patch_json(KEY, [], is_terminating=True)
    await world.kube.update_status(KEY, NOTE.decode(), is_terminating=True)
    reviews = Kind("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview")
    await world.kube.review(reviews, {})
    assert len(world.transport.sent) == 6
    assert world.lane.suspension.is_suspended, "none of them shows that the project resumed"


# --- the outcome of a reconcile -------------------------------------------------------------------


@pytest.mark.spec("SU-01")
async def test_a_reconcile_that_a_suspended_project_refused_is_a_success(
    caplog: pytest.LogCaptureFixture,
) -> None:
    refused = ProjectSuspendedError("ProjectSuspended", "creating Note", plane="p")

    async def run() -> Result:
        return Result(errors=(refused, refused))

    with caplog.at_level(logging.INFO):
        outcome = await run_reconcile(run, Deadline(1.0))
    assert (outcome.label, outcome.errors) == (ResultLabel.SUCCESS, ())
    assert outcome.suspended == ("p",)
    assert not outcome.is_terminal
    assert caplog.records == []


@pytest.mark.spec("SU-02")
async def test_another_error_beside_it_counts_as_before() -> None:
    refused = ProjectSuspendedError("ProjectSuspended", "creating Note", plane="p")
    away = UnavailableError("Unreachable", "reading Note", plane="@hub")

    async def run() -> Result:
        return Result(errors=(refused, away))

    outcome = await run_reconcile(run, Deadline(1.0))
    assert (outcome.label, outcome.errors) == (ResultLabel.ERROR, (away,))
    assert outcome.suspended == ("p",)
