"""S19: every write is signed. Scenarios are judged by it after every run; here is a life in which
every controller of both operators writes, and proof that an unsigned write would be found.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from compute_sim_planes.history import Caller, Request
from compute_sim_planes.request_address import Address
from e2e.backends.port import DFW, Backend, Needs
from e2e.backends.sim.backend import SimBackend
from e2e.backends.sim.judging import layout_of
from e2e.backends.sim.stage import SimStage
from e2e.documents import a_workload
from e2e.faults.audit_trail import (
    CELL_AGENT,
    MANAGEMENT_AGENT,
    SIGNATURES,
    Signed,
    audit_trail,
    shown_signatures,
)
from e2e.faults.layout import Layout
from e2e.faults.testing import Script
from e2e.kinds import WORKLOAD
from e2e.objects import condition_of
from e2e.world import World, within

NEEDS = Needs(has_quota=True)
LAYOUT = Layout(frozenset({DFW.name}))
# These only delete, which leaves no field manager; the scenarios in which they do, `test_claims.py`
# and `test_ownership.py`, are judged by S19 too.
DELETERS = {
    Signed(f"{MANAGEMENT_AGENT} (claims)", "compute-claims"),
    Signed(f"{MANAGEMENT_AGENT} (hub-namespace)", "compute-federation"),
}
SIGNED = Caller("management", "compute-management-operator (federation)", "compute-federation")


@pytest.mark.fault("S19")
def test_every_controller_signs_what_it_writes() -> None:
    shown: set[Signed] = set()

    async def body(backend: Backend) -> None:
        assert isinstance(backend, SimBackend)
        world = World(backend, NEEDS)
        project = world.project
        await project.create(a_workload("web"))

        async def is_ready() -> None:
            found = await project.get(WORKLOAD, "web")
            assert condition_of(found, "Ready").status == "True"

        await world.eventually(is_ready, within(120))
        # Events are written behind the passes that tell them.
        await backend.sleep(timedelta(seconds=30))
        await project.delete(WORKLOAD, "web")
        await world.eventually(lambda: project.expect_gone(WORKLOAD, "web"), within(60))
        shown.update(shown_signatures(backend.history, layout_of(backend)))

    # The run itself is judged, S19 included; this looks whether it had anything to judge.
    SimStage().play("every_controller_signs", NEEDS, body)
    every = {one for signatures in SIGNATURES.values() for one in signatures}
    assert shown == every - DELETERS


def judged(caller: Caller, verb: str = "patch") -> list[str]:
    script = Script()
    now = script.clock.now()
    address = Address(
        "hub", verb, "compute.datumapis.com", "instances", "Instance", "ns-1", "web-0"
    )
    script.history.entries.append(Request(1, now, now, caller, address, 200, "", ()))
    return audit_trail(script.history, LAYOUT)


@pytest.mark.fault("S19")
def test_a_signed_write_and_what_is_no_operators_are_in_order() -> None:
    assert judged(SIGNED) == []
    assert judged(Caller("karmada", "execution-controller")) == []
    assert judged(Caller("management", "curl/8"), verb="list") == []


@pytest.mark.fault("S19")
@pytest.mark.parametrize(
    ("caller", "told"),
    [
        (replace(SIGNED, user_agent=""), "came from ''"),
        (replace(SIGNED, user_agent="python-httpx/0.28"), "came from 'python-httpx/0.28'"),
        # The other operator's name, and a controller that has no business with writing.
        (replace(SIGNED, user_agent=f"{CELL_AGENT} (instance)"), "came from 'compute-cell"),
        (replace(SIGNED, user_agent="compute-management-operator (cache)"), "(cache)"),
        (replace(SIGNED, field_manager=""), "wrote as '', not as 'compute-federation'"),
        (replace(SIGNED, field_manager="compute-policy"), "not as 'compute-federation'"),
    ],
)
def test_an_unsigned_write_is_found(caller: Caller, told: str) -> None:
    (found,) = judged(caller)
    assert found.startswith("S19: patch instances ns-1/web-0 on hub")
    assert told in found


@pytest.mark.fault("S19")
def test_a_delete_has_no_field_manager_and_is_known_by_its_agent() -> None:
    assert judged(replace(SIGNED, field_manager=""), verb="delete") == []
    assert len(judged(replace(SIGNED, user_agent="curl/8", field_manager=""), verb="delete")) == 1
