"""S12: canaries in every credential and Secret of a world, and planes that repeat what they heard.

Every scenario on simulated planes is looked through (`e2e.backends.sim.judging`); here are the
errors that scenarios do not meet, and proof that a leak would be found.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from itertools import cycle

import orjson
import pytest

from compute_api_types.wire import JsonValue
from compute_operator_kit.testing import FakeMeasures
from compute_sim_planes.api_server.transport import Answer, BytesAnswer
from compute_sim_planes.fault_plans import FaultPlan
from e2e.backends.port import DFW, HUB, Backend, Needs
from e2e.backends.sim.backend import SimBackend
from e2e.backends.sim.planes import Impostor
from e2e.backends.sim.stage import heard, play_once
from e2e.documents import a_placement, a_template, a_workload
from e2e.faults.leaks import (
    SECRET,
    TOKEN,
    ListeningHandler,
    a_canary_secret,
    leaks_in_history,
    leaks_in_series,
)
from e2e.faults.testing import Script, an_object
from e2e.kinds import WORKLOAD
from e2e.objects import condition_of
from e2e.world import World, within

NEEDS = Needs(has_quota=True, expects_errors=True)
REFUSALS = ((401, "Unauthorized"), (422, "Invalid"), (500, "InternalError"), (400, "BadRequest"))


def a_repeating_plane(heard_from: set[str], answered: list[int]) -> Impostor:
    """Refuses every other write of an operator in one of several ways, and in its words, causes
    and headers repeats the credential that came with it.
    """
    turns = cycle(range(2))
    refusals = cycle(REFUSALS)

    def answer(_: str, method: str, headers: Mapping[str, str]) -> Answer | None:
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
        return BytesAnswer(status, {"Warning": f'299 - "{shown}"'}, _words(status, reason, shown))

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
def test_a_credential_that_planes_repeat_is_told_to_nobody() -> None:
    heard_from: set[str] = set()
    answered: list[int] = []

    async def body(backend: Backend) -> None:
        assert isinstance(backend, SimBackend)
        world = World(backend, NEEDS)
        project = world.project
        await project.create(a_workload("web", a_placement("default", "DFW", replicas=2)))

        async def is_ready() -> None:
            found = await project.get(WORKLOAD, "web")
            assert condition_of(found, "Ready").status == "True"

        await world.eventually(is_ready, within(120))
        backend.planes.impostor = a_repeating_plane(heard_from, answered)
        await project.patch(WORKLOAD, "web", {"spec": {"template": a_template("2.0")}})
        # What is refused for good is looked at again every five minutes.
        await world.sleep(900)
        await project.delete(WORKLOAD, "web")
        await world.sleep(600)

    # Of a world that refuses at random no oracle of convergence can hold; what it tells can be
    # judged all the same.
    _, violations = play_once(FaultPlan("repeated_credentials", 1), NEEDS, body)
    assert [one for one in violations if one.startswith("S12")] == []
    assert {status for status, _ in REFUSALS} == {*answered}
    # Both operators, to every plane they write on, and the quota client.
    hub = f"for-@{HUB}"  # as operators call it
    for who in (f"of-management-{hub}", f"of-{DFW.name}-{hub}", f"of-{DFW.name}-for-quota"):
        assert any(who in shown for shown in heard_from), who


# --- a leak would be found ------------------------------------------------------------------------


@pytest.fixture
def listening() -> Iterator[ListeningHandler]:
    handler = ListeningHandler()
    with heard(handler):
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
    listening: ListeningHandler,
    message: str,
    arguments: tuple[str, ...],
    keys: dict[str, object],
) -> None:
    logger = logging.getLogger("compute_operator_kit.exchange")
    logger.debug("Reading nothing of interest")
    assert listening.leaks == []
    logger.debug(message, *arguments, extra=keys)
    assert listening.read == 2
    assert len(listening.leaks) == 1


@pytest.mark.fault("S12")
def test_a_canary_in_a_traceback_is_found(listening: ListeningHandler) -> None:
    try:
        raise ValueError(f"not a token: {TOKEN}")
    except ValueError:
        logging.getLogger("compute_quota_client").exception("Reading credentials failed")
    assert len(listening.leaks) == 1


@pytest.mark.fault("S12")
def test_a_canary_in_an_object_is_found_but_in_its_secret() -> None:
    script = Script()
    script.write("admin", "acme", a_canary_secret("shop", "acme"))
    assert leaks_in_history(script.history) == []
    said: list[JsonValue] = [{"type": "Ready", "message": f"the password is {SECRET}cret-of-acme"}]
    script.write(
        "management", "acme", an_object("Workload", "shop/web", status={"conditions": said})
    )
    note = f"cannot log in as {TOKEN}-of-management-for-hub"
    script.write("management", "acme", an_object("Event", "shop/web.1", message=note))
    assert leaks_in_history(script.history) == [
        "S12: Workload shop/web on acme holds a canary",
        "S12: Event shop/web.1 on acme holds a canary",
    ]


@pytest.mark.fault("S12")
def test_a_canary_in_a_pass_or_a_label_is_found() -> None:
    script = Script()
    script.history.add_pass("workload", f"acme/shop/{TOKEN}", "done")
    assert leaks_in_history(script.history) == ["S12: a pass of workload tells a canary"]
    measures = FakeMeasures()
    measures.count("compute_writes_total", plane="hub")
    assert leaks_in_series(measures.counts) == []
    measures.count("compute_writes_total", plane=TOKEN)
    assert len(leaks_in_series(measures.counts)) == 1
