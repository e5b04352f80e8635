"""What counts as forbidden in a run on simulated planes."""

from __future__ import annotations

import pytest

from compute_sim_planes.history import Caller, Request
from compute_sim_planes.request_address import Address
from e2e.backends.port import MANAGEMENT
from e2e.backends.sim.rights import refusals
from e2e.faults.testing import Script, an_object

GOING = {"deletionTimestamp": "2026-03-01T00:00:00Z"}


def refuse(script: Script, verb: str, who: str = MANAGEMENT) -> None:
    address = Address("acme", verb, "", "events", "Event", "shop", "web.1")
    now = script.clock.now()
    script.history.entries.append(Request(0, now, now, Caller(who), address, 403, "", ()))


@pytest.mark.spec("FS-06")
def test_a_create_in_a_namespace_that_goes_is_no_missing_right() -> None:
    script = Script()
    script.write("tenant", "acme", an_object("Namespace", "shop"))
    refuse(script, "create", who="tenant")
    refuse(script, "create")
    assert len(refusals(script.history, ())) == 1
    script.write("tenant", "acme", an_object("Namespace", "shop", metadata={**GOING}))
    refuse(script, "create")
    assert len(refusals(script.history, ())) == 1
    refuse(script, "patch")
    assert len(refusals(script.history, ())) == 2
    # Made again under its name, it goes no more.
    script.remove("tenant", "acme", an_object("Namespace", "shop"))
    script.write("tenant", "acme", an_object("Namespace", "shop"))
    refuse(script, "create")
    assert len(refusals(script.history, ())) == 3
