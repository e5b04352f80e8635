from __future__ import annotations

from datetime import datetime

import pytest

from compute_api_types import labels
from compute_api_types.wire import JsonObject
from e2e.oracles.layout import Layout
from e2e.oracles.testing import HistoryBuilder, an_object
from e2e.oracles.truth import untruthful_statuses

LAYOUT = Layout(frozenset({"dfw-1"}))
AT_START = "2026-03-01T00:00:00Z"
LATER = "2026-03-01T00:00:30Z"


def _workload(generation: int = 1, **condition: str | int) -> JsonObject:
    ready: JsonObject = {
        "type": "Ready",
        "status": "True",
        "reason": "PlacementsReady",
        "message": "",
        "lastTransitionTime": AT_START,
        "observedGeneration": generation,
        **condition,
    }
    metadata: JsonObject = {"generation": generation}
    return an_object("Workload", "shop/web", metadata=metadata, status={"conditions": [ready]})


def _violations_of(script: HistoryBuilder, acts: list[datetime] | None = None) -> list[str]:
    return [one.message for one in untruthful_statuses(script.history, LAYOUT, acts=acts)]


def test_a_status_of_this_generation_is_true(script: HistoryBuilder) -> None:
    script.write("management", "acme", _workload())
    assert _violations_of(script) == []


def test_ready_of_an_older_generation_breaks_o10(script: HistoryBuilder) -> None:
    script.write("tenant", "acme", _workload(2, status="False", observedGeneration=1))
    script.wait(30)
    script.write("management", "acme", _workload(2, lastTransitionTime=LATER, observedGeneration=1))
    assert _violations_of(script) == [
        "acme Workload shop/web: Ready=True of generation 1 at generation 2"
    ]


def test_what_the_next_pass_corrects_at_once_was_under_way(script: HistoryBuilder) -> None:
    script.write("tenant", "acme", _workload(2, status="False", observedGeneration=1))
    script.wait(30)
    workload = _workload(2, lastTransitionTime=LATER, observedGeneration=1)
    script.write("management", "acme", workload)
    script.wait(0.1)
    script.write("management", "acme", _workload(2, lastTransitionTime=LATER))
    assert _violations_of(script) == []


def test_a_time_that_moves_without_its_status_breaks_o10(script: HistoryBuilder) -> None:
    script.write("management", "acme", _workload())
    script.wait(30)
    script.write("management", "acme", _workload(lastTransitionTime=LATER))
    (message,) = _violations_of(script)
    assert "moved its lastTransitionTime and kept its status" in message


def test_two_changes_in_a_second_that_ends_before_the_second_commit_have_one_time(
    script: HistoryBuilder,
) -> None:
    script.wait(0.2)
    script.write("management", "acme", _workload())
    script.wait(0.9)
    script.write("management", "acme", _workload(status="False"))
    assert _violations_of(script) == []


def test_a_status_that_moves_without_its_time_breaks_o10(script: HistoryBuilder) -> None:
    script.write("management", "acme", _workload())
    script.wait(30)
    script.write("management", "acme", _workload(status="False"))
    (message,) = _violations_of(script)
    assert "changed its status and kept its lastTransitionTime" in message


@pytest.mark.parametrize(
    "message", ["Karmada is away", "the hub does not answer", "ask the cell operator"]
)
def test_a_condition_that_names_internals_breaks_o10(script: HistoryBuilder, message: str) -> None:
    script.write("management", "acme", _workload(message=message))
    (violation,) = _violations_of(script)
    assert "names internals" in violation


def test_a_condition_that_goes_and_comes_back_by_itself_breaks_o10(script: HistoryBuilder) -> None:
    for status, moment in (("True", AT_START), ("False", "2026-03-01T00:02:00Z")):
        workload = _workload(status=status, lastTransitionTime=moment)
        script.write("management", "acme", workload)
        script.wait(120)
    back = _workload(lastTransitionTime="2026-03-01T00:04:00Z")
    script.write("management", "acme", back)
    (message,) = _violations_of(script, [])
    assert "Ready went False" in message
    caused = script.history.begun
    assert len(_violations_of(script, [caused])) == 1, "an act of two minutes ago explains nothing"
    edited = script.history.entries[2].at
    assert _violations_of(script, [edited]) == []


LATEST = "2026-03-01T00:01:00Z"


@pytest.mark.parametrize(
    ("status", "reason", "expected"),
    [
        ("False", "PlacementsNotReady", 1),
        ("Unknown", "CellUnreachable", 0),  # the silence of a site, which is its cause
    ],
)
def test_ready_that_goes_and_comes_back_without_an_act_breaks_o10(
    script: HistoryBuilder, status: str, reason: str, expected: int
) -> None:
    script.write("management", "acme", _workload())
    script.wait(30)
    gone = _workload(status=status, reason=reason, lastTransitionTime=LATER)
    script.write("management", "acme", gone)
    script.wait(30)
    script.write("management", "acme", _workload(lastTransitionTime=LATEST))
    assert len([one for one in _violations_of(script, []) if "came back" in one]) == expected


# --- a mirrored status: its source is on another plane --------------------------------------------


def _deployment(
    generation: int, observed: int, status: str = "True", **labelled: str
) -> JsonObject:
    ready: JsonObject = {
        "type": "Ready",
        "status": status,
        "reason": "ReplicasAvailable",
        "message": "",
        "lastTransitionTime": AT_START,
        "observedGeneration": observed,
    }
    metadata: JsonObject = {"generation": generation, "labels": {**labelled}}
    return an_object(
        "WorkloadDeployment",
        "ns-1/web" if labelled else "shop/web",
        metadata=metadata,
        status={"observedGeneration": observed, "conditions": [ready]},
    )


COPY = {labels.UPSTREAM_CLUSTER_NAME: "cluster-acme", labels.UPSTREAM_NAMESPACE: "shop"}
STALE = "acme WorkloadDeployment shop/web: Ready=True of generation 1 at generation 2"


def _late_report(script: HistoryBuilder, about: int) -> None:
    """An edit, and 30 s later the mirror of a report that became true under generation 1."""
    script.write("management", "acme", _deployment(2, 1, "False"))
    script.write("management", "hub", _deployment(2, 1, "False", **COPY))
    script.wait(30)
    script.write("karmada", "hub", _deployment(2, about, **COPY))
    script.write("management", "acme", _deployment(2, 1))


def test_a_late_report_of_the_former_generation_is_mirrored_as_that(script: HistoryBuilder) -> None:
    _late_report(script, about=1)
    script.wait(30)
    script.write("karmada", "hub", _deployment(2, 2, **COPY))
    script.write("management", "acme", _deployment(2, 2))
    assert _violations_of(script) == []


def test_a_mirror_that_stays_behind_a_report_of_this_generation_breaks_o10(
    script: HistoryBuilder,
) -> None:
    _late_report(script, about=1)
    script.write("karmada", "hub", _deployment(2, 2, "False", **COPY))
    script.wait(30)
    script.write("management", "acme", _deployment(2, 2, "False"))
    assert _violations_of(script) == [STALE]


def test_the_former_generation_of_a_report_of_this_one_breaks_o10(script: HistoryBuilder) -> None:
    _late_report(script, about=2)
    assert _violations_of(script) == [STALE]
