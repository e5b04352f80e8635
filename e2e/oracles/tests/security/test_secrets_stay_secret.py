"""S12: canaries in every credential and Secret, on planes that repeat credentials in errors.

Every simulated scenario is checked (`e2e.backends.sim.oracles`). Here are the errors that scenarios
do not meet, and a leak is shown to be a violation.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from itertools import cycle

import orjson
import pytest

from compute_api_types.wire import JsonValue
from compute_operator_kit.testing.fakes import FakeMetrics
from compute_sim_planes.api_server.http.transport import BytesResponse, Response
from compute_sim_planes.faults.plans import FaultPlan
from e2e.backends.sim.backend import SimBackend
from e2e.backends.sim.planes import AnswerOverride
from e2e.backends.sim.scheduler import captured_logs, run_once
from e2e.oracles.leaks import (
    SECRET,
    TOKEN,
    CanaryLogHandler,
    a_canary_secret,
    leaks_in_history,
    leaks_in_series,
)
from e2e.oracles.testing import HistoryBuilder, an_object
from e2e.world.documents import a_placement, a_template, a_workload
from e2e.world.kinds import WORKLOAD
from e2e.world.objects import condition_of
from e2e.world.port import DFW, HUB, Backend, Needs
from e2e.world.scenario import World, within

NEEDS = Needs(has_quota=True, expects_errors=True)
REFUSALS = ((401, "Unauthorized"), (422, "Invalid"), (500, "InternalError"), (400, "BadRequest"))


def a_repeating_plane(heard_from: set[str], answered: list[int]) -> AnswerOverride:
    """Refuses every other write of an operator in one of several ways and repeats its credential in
    message, causes and headers.
    """
    turns = cycle(range(2))
    refusals = cycle(REFUSALS)

    def answer(_: str, method: str, headers: Mapping[str, str]) -> Response | None:
        shown = next(
            (value for name, value in headers.items() if name.lower() == "authorization"), ""
        )
        if TOKEN not in shown:
            return None
        heard_from.add(shown)
        if method == "GET" or next(turns):
            return None
        status, reason = next(refusals)
        answered.append(status)
        return BytesResponse(status, {"Warning": f'299 - "{shown}"'}, _words(status, reason, shown))

    return answer


def _words(status: int, reason: str, shown: str) -> bytes:
    cause = {"reason": "FieldValueInvalid", "message": f"not {shown}", "field": "spec"}
    return orjson.dumps(
        {
            "apiVersion": "v1",
            "kind": "Status",
            "status": "Failure",
            "code": status,
            "reason": reason,
            "message": f"refused for {shown}",
            "details": {"causes": [cause]},
        }
    )


@pytest.mark.fault("S12")
@pytest.mark.fault("G10")
def test_a_credential_that_planes_repeat_is_not_leaked() -> None:
    heard_from: set[str] = set()
    answered: list[int] = []

    async def body(backend: Backend) -> None:
        assert isinstance(backend, SimBackend)
        world = World(backend, NEEDS)
        project = world.project
        await project.create(a_workload("web", a_placement("default", "DFW", replicas=2)))

        async def is_ready() -> None:
            workload = await project.get(WORKLOAD, "web")
            assert condition_of(workload, "Ready").status == "True"

        await world.eventually(is_ready, within(120))
        backend.planes.answer_override = a_repeating_plane(heard_from, answered)
        await project.patch(WORKLOAD, "web", {"spec": {"template": a_template("2.0")}})
        # Rejected objects are reconciled again every five minutes.
        await world.sleep(900)
        await project.delete(WORKLOAD, "web")
        await world.sleep(600)

    # Convergence cannot hold while requests are refused at random; only S12 is checked.
    _, violations = run_once(FaultPlan("repeated_credentials", 1), NEEDS, body)
    assert [one for one in violations if one.startswith("S12")] == []
    assert {status for status, _ in REFUSALS} == {*answered}
    # Both operators, to every plane they write on, and the quota client.
    hub = f"for-@{HUB}"  # as operators call it
    for user in (f"of-management-{hub}", f"of-{DFW.name}-{hub}", f"of-{DFW.name}-for-quota"):
        assert any(user in shown for shown in heard_from), user


# --- a leak is a violation ------------------------------------------------------------------------


@pytest.fixture
def listening() -> Iterator[CanaryLogHandler]:
    handler = CanaryLogHandler()
    with captured_logs(handler):
        yield handler


@pytest.mark.fault("S12")
@pytest.mark.parametrize(
    ("message", "arguments", "keys"),
    [
        (f"Sending {TOKEN}", (), {}),
        ("Sending %s", (f"Bearer {TOKEN}-of-management",), {}),
        ("Sending", (), {"headers": {"Authorization": TOKEN}}),
        ("Reading", (), {"found": a_canary_secret("shop", "acme")}),
    ],
)
def test_a_canary_in_a_line_at_debug_is_found(
    listening: CanaryLogHandler,
    message: str,
    arguments: tuple[str, ...],
    keys: dict[str, object],
) -> None:
    logger = logging.getLogger("compute_operator_kit.client.rest")
    logger.debug("Reading nothing of interest")
    assert listening.leaks == []
    logger.debug(message, *arguments, extra=keys)
    assert listening.read == 2
    assert len(listening.leaks) == 1


@pytest.mark.fault("S12")
def test_a_canary_in_a_traceback_is_found(listening: CanaryLogHandler) -> None:
    try:
        raise ValueError(f"not a token: {TOKEN}")
    except ValueError:
        logging.getLogger("compute_quota_client").exception("Reading credentials failed")
    assert len(listening.leaks) == 1


@pytest.mark.fault("S12")
def test_a_canary_in_an_object_is_found_but_in_its_secret() -> None:
    script = HistoryBuilder()
    script.write("admin", "acme", a_canary_secret("shop", "acme"))
    assert leaks_in_history(script.history) == []
    conditions: list[JsonValue] = [
        {"type": "Ready", "message": f"the password is {SECRET}cret-of-acme"}
    ]
    script.write(
        "management", "acme", an_object("Workload", "shop/web", status={"conditions": conditions})
    )
    note = f"cannot log in as {TOKEN}-of-management-for-hub"
    script.write("management", "acme", an_object("Event", "shop/web.1", message=note))
    assert leaks_in_history(script.history) == [
        "S12: Workload shop/web on acme holds a canary",
        "S12: Event shop/web.1 on acme holds a canary",
    ]


@pytest.mark.fault("S12")
def test_a_canary_in_a_pass_or_a_label_is_found() -> None:
    script = HistoryBuilder()
    script.history.add_reconcile("workload", f"acme/shop/{TOKEN}", "done")
    assert leaks_in_history(script.history) == ["S12: a reconcile of workload contains a canary"]
    measures = FakeMetrics()
    measures.count("compute_writes_total", plane="hub")
    assert leaks_in_series(measures.counts) == []
    measures.count("compute_writes_total", plane=TOKEN)
    assert len(leaks_in_series(measures.counts)) == 1
