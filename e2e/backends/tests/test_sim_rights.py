"""Which refused requests count as forbidden in a run on simulated planes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from compute_api_types.wire import JsonObject
from compute_sim_planes.history import Caller, Request
from compute_sim_planes.request_address import Address
from e2e.backends.sim.rights import refusals
from e2e.oracles.testing import HistoryBuilder, an_object
from e2e.world.port import MANAGEMENT

NOT_SERVED = {"deletionTimestamp": "2026-03-01T00:00:00Z"}


def refuse(script: HistoryBuilder, verb: str, user: str = MANAGEMENT) -> None:
    address = Address("acme", verb, "", "events", "Event", "shop", "web.1")
    now = script.clock.now()
    script.history.entries.append(Request(0, now, now, Caller(user), address, 403, "", ()))


@pytest.mark.spec("FS-06")
def test_a_create_in_a_namespace_that_goes_is_no_missing_right() -> None:
    script = HistoryBuilder()
    script.write("tenant", "acme", an_object("Namespace", "shop"))
    refuse(script, "create", user="tenant")
    refuse(script, "create")
    assert len(refusals(script.history, ())) == 1
    script.write("tenant", "acme", an_object("Namespace", "shop", metadata={**NOT_SERVED}))
    refuse(script, "create")
    assert len(refusals(script.history, ())) == 1
    refuse(script, "patch")
    assert len(refusals(script.history, ())) == 2
    # The namespace is created again under its name and is no longer terminating.
    script.remove("tenant", "acme", an_object("Namespace", "shop"))
    script.write("tenant", "acme", an_object("Namespace", "shop"))
    refuse(script, "create")
    assert len(refusals(script.history, ())) == 3


def test_a_write_into_a_suspended_project_is_no_missing_right() -> None:
    script = HistoryBuilder()

    def note(status: str) -> None:
        shown: JsonObject = {"conditions": [{"type": "Suspended", "status": status}]}
        script.write("milo", "root", an_object("Project", "acme", status=shown))

    note("True")
    refuse(script, "patch")
    refuse(script, "get")
    assert len(refusals(script.history, ())) == 1, "reads pass, so the second is one"
    note("False")
    script.clock.passed += timedelta(seconds=10)
    refuse(script, "patch")
    assert len(refusals(script.history, ())) == 2
