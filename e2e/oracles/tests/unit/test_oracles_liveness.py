from __future__ import annotations

from datetime import timedelta

from compute_api_types import labels
from compute_api_types.wire import JsonObject
from e2e.oracles.liveness import bystander_liveness, times_to_visible
from e2e.oracles.testing import HistoryBuilder, an_object

UID = "3bea65ed-100f-4d8d-b0ef-c7cbf3074b4b"


def _federate(script: HistoryBuilder, seconds: float) -> None:
    script.write("tenant", "beta", an_object("Namespace", "shop", UID))
    script.write("tenant", "beta", an_object("WorkloadDeployment", "shop/web"))
    script.wait(seconds)
    noted: JsonObject = {"annotations": {labels.PROJECT_GENERATION: "1"}}
    copy = an_object("WorkloadDeployment", f"ns-{UID}/web", metadata=noted)
    script.write("management", "hub", copy)


def test_the_time_to_visible_is_from_the_write_to_the_hub(script: HistoryBuilder) -> None:
    _federate(script, 0.5)
    assert times_to_visible(script.history, "beta") == [timedelta(seconds=0.5)]


def test_twice_the_usual_time_is_borne_and_more_breaks_o8(
    script: HistoryBuilder, another_script: HistoryBuilder
) -> None:
    _federate(another_script, 0.5)
    _federate(script, 1.0)
    assert bystander_liveness(script.history, another_script.history, "beta") == []
    late = type(script)()
    _federate(late, 1.1)
    assert len(bystander_liveness(late.history, another_script.history, "beta")) == 1


def test_what_never_becomes_visible_breaks_o8(
    script: HistoryBuilder, another_script: HistoryBuilder
) -> None:
    _federate(another_script, 0.5)
    (violation,) = bystander_liveness(script.history, another_script.history, "beta")
    assert "only 0 changes of beta became visible" in violation.message
