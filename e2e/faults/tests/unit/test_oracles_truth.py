from __future__ import annotations

from datetime import datetime

import pytest

from compute_api_types.wire import JsonObject
from e2e.faults.layout import Layout
from e2e.faults.testing import Script, an_object
from e2e.faults.truth import truthful_status

LAYOUT = Layout(frozenset({"dfw-1"}))
AT_START = "2026-03-01T00:00:00Z"
LATER = "2026-03-01T00:00:30Z"


def _workload(generation: int = 1, **condition: str | int) -> JsonObject:
    told: JsonObject = {
        "type": "Ready",
        "status": "True",
        "reason": "PlacementsReady",
        "message": "",
        "lastTransitionTime": AT_START,
        "observedGeneration": generation,
        **condition,
    }
    metadata: JsonObject = {"generation": generation}
    return an_object("Workload", "shop/web", metadata=metadata, status={"conditions": [told]})


def _judge(script: Script, acts: list[datetime] | None = None) -> list[str]:
    return [one.message for one in truthful_status(script.history, LAYOUT, acts=acts)]


def test_a_status_of_this_generation_is_true(script: Script) -> None:
    script.write("management", "acme", _workload())
    assert _judge(script) == []


def test_ready_of_an_older_generation_breaks_o10(script: Script) -> None:
    script.write("tenant", "acme", _workload(2, status="False", observedGeneration=1))
    script.wait(30)
    script.write("management", "acme", _workload(2, lastTransitionTime=LATER, observedGeneration=1))
    assert _judge(script) == ["acme Workload shop/web: Ready=True of generation 1 at generation 2"]


def test_what_the_next_pass_corrects_at_once_was_under_way(script: Script) -> None:
    script.write("tenant", "acme", _workload(2, status="False", observedGeneration=1))
    script.wait(30)
    told = _workload(2, lastTransitionTime=LATER, observedGeneration=1)
    script.write("management", "acme", told)
    script.wait(0.1)
    script.write("management", "acme", _workload(2, lastTransitionTime=LATER))
    assert _judge(script) == []


def test_a_time_that_moves_without_its_status_breaks_o10(script: Script) -> None:
    script.write("management", "acme", _workload())
    script.wait(30)
    script.write("management", "acme", _workload(lastTransitionTime=LATER))
    (message,) = _judge(script)
    assert "moved its lastTransitionTime and kept its status" in message


def test_a_status_that_moves_without_its_time_breaks_o10(script: Script) -> None:
    script.write("management", "acme", _workload())
    script.wait(30)
    script.write("management", "acme", _workload(status="False"))
    (message,) = _judge(script)
    assert "changed its status and kept its lastTransitionTime" in message


@pytest.mark.parametrize(
    "message", ["Karmada is away", "the hub does not answer", "ask the cell operator"]
)
def test_a_condition_that_tells_of_our_insides_breaks_o10(script: Script, message: str) -> None:
    script.write("management", "acme", _workload(message=message))
    (found,) = _judge(script)
    assert "tells of our insides" in found


def test_a_condition_that_goes_and_comes_back_by_itself_breaks_o10(script: Script) -> None:
    for status, moment in (("True", AT_START), ("False", "2026-03-01T00:02:00Z")):
        told = _workload(status=status, lastTransitionTime=moment)
        script.write("management", "acme", told)
        script.wait(120)
    back = _workload(lastTransitionTime="2026-03-01T00:04:00Z")
    script.write("management", "acme", back)
    (message,) = _judge(script, [])
    assert "Ready went False" in message
    caused = script.history.begun
    assert len(_judge(script, [caused])) == 1, "an act of two minutes ago explains nothing"
    edited = script.history.entries[2].at
    assert _judge(script, [edited]) == []
