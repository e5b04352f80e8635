"""S19: every write is signed.

Every scenario is checked for it. Here all controllers of both operators write once, and an unsigned
write is shown to be a violation.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from compute_sim_planes.history import Caller, Request
from compute_sim_planes.request_address import Address
from e2e.backends.sim.backend import SimBackend
from e2e.backends.sim.oracles import layout_of
from e2e.backends.sim.scheduler import SimScheduler
from e2e.oracles.audit_trail import (
    CELL_AGENT,
    MANAGEMENT_AGENT,
    SIGNATURES,
    WriteSignature,
    audit_trail,
    shown_signatures,
)
from e2e.oracles.layout import Layout
from e2e.oracles.testing import HistoryBuilder
from e2e.world.documents import a_workload
from e2e.world.kinds import WORKLOAD
from e2e.world.objects import condition_of
from e2e.world.port import DFW, Backend, Needs
from e2e.world.scenario import World, within

NEEDS = Needs(has_quota=True)
LAYOUT = Layout(frozenset({DFW.name}))
# These controllers only delete, which leaves no field manager. S19 is also checked in the scenarios
# in which they do, `test_claims.py` and `test_ownership.py`.
DELETERS = {
    WriteSignature(f"{MANAGEMENT_AGENT} (claims)", "compute-claims"),
    WriteSignature(f"{MANAGEMENT_AGENT} (hub-namespace)", "compute-federation"),
}
# Write only with `referencedData: on` and `autoscaling.mode: on`; S19 is checked in the scenarios
# that switch them on.
SWITCHED_OFF = {
    WriteSignature(f"{MANAGEMENT_AGENT} (referenced-data)", "compute-referenced-data"),
    WriteSignature(f"{CELL_AGENT} (autoscaling)", "compute-autoscaling"),
}
SIGNED = Caller("management", "compute-management-operator (federation)", "compute-federation")


@pytest.mark.fault("S19")
def test_every_controller_signs_what_it_writes() -> None:
    shown: set[WriteSignature] = set()

    async def body(backend: Backend) -> None:
        assert isinstance(backend, SimBackend)
        world = World(backend, NEEDS)
        project = world.project
        await project.create(a_workload("web"))

        async def is_ready() -> None:
            workload = await project.get(WORKLOAD, "web")
            assert condition_of(workload, "Ready").status == "True"

        await world.eventually(is_ready, within(120))
        # Events are written asynchronously, after the reconcile.
        await backend.sleep(timedelta(seconds=30))
        await project.delete(WORKLOAD, "web")
        await world.eventually(lambda: project.expect_gone(WORKLOAD, "web"), within(60))
        shown.update(shown_signatures(backend.history, layout_of(backend)))

    # The run checks S19 itself; the test checks that every controller wrote.
    SimScheduler().run("every_controller_signs", NEEDS, body)
    every = {one for signatures in SIGNATURES.values() for one in signatures}
    assert shown == every - DELETERS - SWITCHED_OFF


def violations_of(caller: Caller, verb: str = "patch") -> list[str]:
    script = HistoryBuilder()
    now = script.clock.now()
    address = Address(
        "hub", verb, "compute.datumapis.com", "instances", "Instance", "ns-1", "web-0"
    )
    script.history.entries.append(Request(1, now, now, caller, address, 200, "", ()))
    return audit_trail(script.history, LAYOUT)


@pytest.mark.fault("S19")
def test_a_signed_write_and_what_is_no_operators_are_in_order() -> None:
    assert violations_of(SIGNED) == []
    assert violations_of(Caller("karmada", "execution-controller")) == []
    assert violations_of(Caller("management", "curl/8"), verb="list") == []


@pytest.mark.fault("S19")
@pytest.mark.parametrize(
    ("caller", "expected"),
    [
        (replace(SIGNED, user_agent=""), "came from ''"),
        (replace(SIGNED, user_agent="python-httpx/0.28"), "came from 'python-httpx/0.28'"),
        # The other operator's agent, and a controller that never writes.
        (replace(SIGNED, user_agent=f"{CELL_AGENT} (instance)"), "came from 'compute-cell"),
        (replace(SIGNED, user_agent="compute-management-operator (cache)"), "(cache)"),
        (replace(SIGNED, field_manager=""), "wrote as '', not as 'compute-federation'"),
        (replace(SIGNED, field_manager="compute-policy"), "not as 'compute-federation'"),
    ],
)
def test_an_unsigned_write_is_found(caller: Caller, expected: str) -> None:
    (violation,) = violations_of(caller)
    assert violation.startswith("S19: patch instances ns-1/web-0 on hub")
    assert expected in violation


@pytest.mark.fault("S19")
def test_a_delete_has_no_field_manager_and_is_known_by_its_agent() -> None:
    assert violations_of(replace(SIGNED, field_manager=""), verb="delete") == []
    assert (
        len(violations_of(replace(SIGNED, user_agent="curl/8", field_manager=""), verb="delete"))
        == 1
    )
