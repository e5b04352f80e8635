"""kstatus of single objects, and detection of a status that is early."""

from __future__ import annotations

import pytest

from compute_api_types import labels
from compute_api_types.wire import JsonObject, JsonValue
from e2e.oracles.layout import Layout
from e2e.oracles.premature_status import premature_statuses
from e2e.oracles.testing import HistoryBuilder, an_object
from e2e.world.kstatus import KStatus, derive_kstatus, is_wait_over

LAYOUT = Layout(frozenset({"dfw-1"}))


def a_status(ready: str, observed: int | None = 1, **more: str) -> JsonObject:
    conditions: list[JsonValue] = [
        {"type": kind, "status": status} for kind, status in {"Ready": ready, **more}.items()
    ]
    status: JsonObject = {"conditions": conditions}
    return status if observed is None else {**status, "observedGeneration": observed}


def a_deployment(status: JsonObject, tag: str = "1", generation: int = 1) -> JsonObject:
    template: JsonObject = {"spec": {"runtime": a_runtime(tag)}}
    spec: JsonObject = {
        "cityCode": "DFW",
        "placementName": "default",
        "scaleSettings": {"minReplicas": 1},
        "template": template,
    }
    metadata: JsonObject = {"generation": generation}
    return an_object("WorkloadDeployment", "shop/web", spec=spec, status=status, metadata=metadata)


def a_runtime(tag: str) -> JsonObject:
    return {"sandbox": {"containers": [{"name": "web", "image": f"web:{tag}"}]}}


def a_cell_instance(tag: str = "1", available: str = "True", gate: str = "") -> JsonObject:
    gates: list[JsonValue] = [{"name": gate}] if gate else []
    spec: JsonObject = {"runtime": a_runtime(tag), "controller": {"schedulingGates": gates}}
    metadata: JsonObject = {"labels": {labels.WORKLOAD_DEPLOYMENT_NAME: "web"}}
    status: JsonObject = {"conditions": [{"type": "Available", "status": available}]}
    return an_object(
        "Instance", "ns-uid-of-shop/web-0", spec=spec, metadata=metadata, status=status
    )


@pytest.mark.parametrize(
    ("document", "verdict"),
    [
        (an_object("Workload", "shop/web"), KStatus.CURRENT),
        (an_object("Workload", "shop/web", status=a_status("Unknown", 0)), KStatus.IN_PROGRESS),
        (an_object("Workload", "shop/web", status=a_status("True", 0)), KStatus.IN_PROGRESS),
        (an_object("Workload", "shop/web", status=a_status("True")), KStatus.CURRENT),
        (an_object("Workload", "shop/web", status=a_status("True", None)), KStatus.CURRENT),
        (an_object("Workload", "shop/web", status=a_status("False")), KStatus.IN_PROGRESS),
        (
            an_object("Workload", "shop/web", status=a_status("True", Reconciling="True")),
            KStatus.IN_PROGRESS,
        ),
        (
            an_object("Workload", "shop/web", status=a_status("True", Stalled="True")),
            KStatus.FAILED,
        ),
        (
            an_object(
                "Workload",
                "shop/web",
                metadata={"deletionTimestamp": "now"},
                status=a_status("True"),
            ),
            KStatus.TERMINATING,
        ),
    ],
)
def test_an_object_is_read_as_kstatus_reads_it(document: JsonObject, verdict: KStatus) -> None:
    assert derive_kstatus(document) is verdict


@pytest.mark.parametrize(
    ("condition", "is_over"),
    [
        ({"type": "Ready", "status": "True"}, True),
        ({"type": "Ready", "status": "True", "observedGeneration": 1}, True),
        ({"type": "Ready", "status": "True", "observedGeneration": 0}, False),
        ({"type": "Ready", "status": "False"}, False),
        ({"type": "Available", "status": "True"}, False),
    ],
)
def test_a_wait_ends_with_its_condition_at_this_generation(
    condition: JsonObject, *, is_over: bool
) -> None:
    document = an_object("Workload", "shop/web", status={"conditions": [condition]})
    assert is_wait_over(document, "ready") is is_over


def begin(script: HistoryBuilder) -> None:
    script.write("admin", "acme", an_object("Namespace", "shop"))


def violations_of(script: HistoryBuilder) -> list[str]:
    return [one.message for one in premature_statuses(script.history, LAYOUT)]


def test_done_in_the_cell_may_be_reported_in_the_project(script: HistoryBuilder) -> None:
    begin(script)
    script.write("tenant", "acme", a_deployment(a_status("Unknown", 0)))
    script.write("dfw-1", "dfw-1", a_cell_instance())
    script.write("management", "acme", a_deployment(a_status("True")))
    assert violations_of(script) == []


@pytest.mark.parametrize(
    "held",
    [a_cell_instance(gate="Quota"), a_cell_instance(available="Unknown"), a_cell_instance("0")],
)
def test_current_before_the_cell_runs_it_is_too_early(
    script: HistoryBuilder, held: JsonObject
) -> None:
    begin(script)
    script.write("dfw-1", "dfw-1", held)
    script.write("management", "acme", a_deployment(a_status("True")))
    assert [one.partition(": ")[2] for one in violations_of(script)] == [
        "reads Current at generation 1, too early",
        "`kubectl wait --for=condition=Ready` is over too early",
    ]


def test_an_edit_is_not_done_by_what_ran_before_it(script: HistoryBuilder) -> None:
    begin(script)
    script.write("dfw-1", "dfw-1", a_cell_instance())
    script.write("management", "acme", a_deployment(a_status("True")))
    script.write("management", "acme", a_deployment(a_status("True", 2), "2", 2))
    assert len(violations_of(script)) == 2


def test_an_object_without_a_status_is_born_too_early(script: HistoryBuilder) -> None:
    begin(script)
    script.write("tenant", "acme", a_deployment({}))
    assert "too early" in violations_of(script)[0]


def test_nothing_that_heals_reads_failed(script: HistoryBuilder) -> None:
    begin(script)
    script.write("management", "acme", a_deployment(a_status("False", Stalled="True")))
    assert "reads Failed" in violations_of(script)[0]


def test_a_projection_is_believed_for_the_instance_it_shows(script: HistoryBuilder) -> None:
    begin(script)
    script.write("dfw-1", "dfw-1", a_cell_instance())
    for uid in ("uid-of-web-0", "uid-of-another"):
        metadata: JsonObject = {"annotations": {labels.INSTANCE_UID: uid}}
        shown = an_object(
            "Instance", "shop/web-0", status=a_status("True", None), metadata=metadata
        )
        script.write("management", "acme", shown)
    assert [one.partition(": ")[2] for one in violations_of(script)] == [
        "reads Current at generation 1, too early",
        "`kubectl wait --for=condition=Ready` is over too early",
    ]


def test_available_before_anything_ran_is_too_early(script: HistoryBuilder) -> None:
    begin(script)
    script.write("management", "acme", a_deployment(a_status("False", Available="True")))
    assert "condition=Available" in violations_of(script)[0]


@pytest.mark.spec("DS-18")
@pytest.mark.parametrize("kind", ["Workload", "WorkloadDeployment", "Instance"])
def test_what_cannot_be_heard_is_never_current(kind: str) -> None:
    """With every condition as dark-sites.md states it, whatever else is True."""
    for observed in (None, 1):
        status = a_status("Unknown", observed, Available="Unknown", ReplicasReady="Unknown")
        assert derive_kstatus(an_object(kind, "shop/web", status=status)) is KStatus.IN_PROGRESS
        partly = a_status("Unknown", observed, Available="True")
        assert derive_kstatus(an_object(kind, "shop/web", status=partly)) is KStatus.IN_PROGRESS
