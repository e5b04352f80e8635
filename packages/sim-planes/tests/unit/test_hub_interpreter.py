"""The script that ships in `deploy/hub/interpreter`, run in Karmada's sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from lupa import lua51

from compute_sim_planes.json_types import JsonObject, JsonValue, objects_at, string_at
from compute_sim_planes.karmada.interpreter.customization import Interpreter, StatusItem
from compute_sim_planes.karmada.interpreter.lua_sandbox import LuaSandbox, ScriptError

MANIFEST = Path(__file__).parents[4] / "deploy/hub/interpreter/workloaddeployment.yaml"
NOW = datetime(2026, 6, 20, 9, 0, 0, tzinfo=UTC)
EARLIER = "2026-06-20T08:00:00Z"
COUNTERS = (
    "replicas",
    "currentReplicas",
    "updatedReplicas",
    "desiredReplicas",
    "readyReplicas",
)
UID = "5f0c9c2e-0000-4000-8000-000000000002"
FORMER = 'The former deployment of this name is still being deleted in city "DFW"'
NOT_ACCEPTED = "A cell has not accepted the latest change yet"


@pytest.fixture
def interpreter() -> Interpreter:
    return Interpreter(yaml.safe_load(MANIFEST.read_text("utf-8")), lambda: NOW)


def a_condition(
    kind: str,
    status: str,
    reason: str = "InstancesProvisioning",
    message: str = "told by the cell",
    since: str = EARLIER,
) -> JsonObject:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since,
    }


READY = (
    a_condition("Available", "True", "StableInstanceFound", "2/2 instances are ready"),
    a_condition("Ready", "True", "ReplicasAvailable", "2/2 replicas available"),
    a_condition("ReplicasReady", "True", "ReplicasAvailable", "2/2 replicas available"),
)


def blocked(reason: str, status: str = "False") -> tuple[JsonObject, ...]:
    return tuple(
        a_condition(kind, status, reason, f"{reason} here")
        for kind in ("Available", "Ready", "ReplicasReady")
    )


def a_cell_status(
    conditions: Sequence[JsonObject] = READY,
    replicas: int = 2,
    *,
    ready: int | None = None,
    answers_to: int = 7,
    **changed: JsonValue,
) -> JsonObject:
    entries: list[JsonValue] = list(conditions)
    status: JsonObject = {
        "replicas": replicas,
        "currentReplicas": replicas,
        "updatedReplicas": replicas,
        "desiredReplicas": replicas,
        "readyReplicas": replicas if ready is None else ready,
        "observedGeneration": 3,
        "observedTemplateGeneration": answers_to,
        "location": {"name": "us-dallas-1", "namespace": ""},
        "conditions": entries,
    }
    return {**status, **changed}


def reports(cluster: str, status: JsonObject | None = None) -> StatusItem:
    return StatusItem(cluster, is_applied=True, status=status or a_cell_status())


def silent(cluster: str) -> StatusItem:
    return StatusItem(cluster, is_applied=False, status=None)


def a_hub_object(status: JsonObject | None = None, generation: int = 7) -> JsonObject:
    document: JsonObject = {
        "apiVersion": "compute.datumapis.com/v1alpha",
        "kind": "WorkloadDeployment",
        "metadata": {
            "name": "web-default-dfw",
            "namespace": "ns-1",
            "uid": UID,
            "generation": generation,
            "labels": {"topology.datum.net/city-code": "DFW"},
            "annotations": {"propagationpolicy.karmada.io/name": "city-dfw"},
            "managedFields": [{"manager": "karmada", "fieldsV1": {"f:a|b": {}}}],
        },
        "spec": {"cityCode": "DFW", "template": {"metadata": {"labels": {"a|b": "x"}}}},
    }
    if status is not None:
        document["status"] = status
    return document


def aggregated(
    interpreter: Interpreter,
    items: Sequence[StatusItem] | None,
    old: JsonObject | None = None,
    generation: int = 7,
) -> JsonObject:
    status = interpreter.aggregate(a_hub_object(old, generation), items)["status"]
    assert isinstance(status, dict)
    return status


def condition(status: JsonObject, kind: str) -> JsonObject:
    entries = [entry for entry in objects_at(status, "conditions") if entry["type"] == kind]
    assert len(entries) == 1, f"{kind} stands {len(entries)} times"
    return entries[0]


def condition_text(status: JsonObject, kind: str) -> tuple[str, str, str]:
    entry = condition(status, kind)
    return string_at(entry, "status"), string_at(entry, "reason"), string_at(entry, "message")


def counters(status: JsonObject) -> list[JsonValue]:
    return [status[name] for name in COUNTERS]


@pytest.mark.spec("M-51")
@pytest.mark.parametrize(
    ("items", "reason"),
    [(None, "NoCellPlaced"), ([], "NoCellPlaced"), ([silent("dfw-1")], "CellsSilent")],
)
def test_without_history_and_reports_all_counters_are_zero(
    interpreter: Interpreter, items: Sequence[StatusItem] | None, reason: str
) -> None:
    status = aggregated(interpreter, items)
    assert counters(status) == [0, 0, 0, 0, 0]
    assert status["observedGeneration"] == 0
    assert condition_text(status, "CellsReporting") == ("False", reason, "")
    assert len(objects_at(status, "conditions")) == 1
    assert aggregated(interpreter, items, status) == status


@pytest.mark.spec("M-52")
def test_one_cell_speaks_for_itself(interpreter: Interpreter) -> None:
    status = aggregated(interpreter, [reports("dfw-1")])
    assert counters(status) == [2, 2, 2, 2, 2]
    assert condition_text(status, "Available") == (
        "True",
        "StableInstanceFound",
        "2/2 instances are ready",
    )
    assert condition_text(status, "Ready") == (
        "True",
        "ReplicasAvailable",
        "2/2 replicas available",
    )
    assert condition_text(status, "CellsReporting") == ("True", "AllCellsReport", "dfw-1")
    assert status["location"] == {"name": "us-dallas-1", "namespace": ""}
    assert all(entry["observedGeneration"] == 7 for entry in objects_at(status, "conditions"))


@pytest.mark.spec("M-52")
def test_two_cells_are_summed_and_one_available_is_enough(interpreter: Interpreter) -> None:
    down = a_cell_status(blocked("ImageUnavailable"), 2, ready=0)
    status = aggregated(interpreter, [reports("dfw-1", down), reports("dfw-2")])
    assert counters(status) == [4, 4, 4, 4, 2]
    assert condition_text(status, "Available") == (
        "True",
        "StableInstanceFound",
        "2/4 instances are ready",
    )
    assert condition_text(status, "CellsReporting") == ("True", "AllCellsReport", "dfw-1,dfw-2")


def test_a_location_that_cells_disagree_on_is_left_out(interpreter: Interpreter) -> None:
    elsewhere = a_cell_status(location={"name": "us-dallas-2", "namespace": ""})
    status = aggregated(interpreter, [reports("dfw-1"), reports("dfw-2", elsewhere)])
    assert "location" not in status


@pytest.mark.spec("M-53")
def test_the_higher_rank_wins_and_ties_go_by_cluster_name(interpreter: Interpreter) -> None:
    quota = a_cell_status(blocked("QuotaNotGranted"), ready=0)
    image = a_cell_status(blocked("ImageUnavailable"), ready=0)
    status = aggregated(interpreter, [reports("dfw-1", quota), reports("dfw-2", image)])
    for kind in ("Available", "Ready", "ReplicasReady"):
        assert condition_text(status, kind) == (
            "False",
            "ImageUnavailable",
            "ImageUnavailable here",
        )
    crash = a_cell_status(blocked("InstanceCrashing"), ready=0)
    status = aggregated(interpreter, [reports("dfw-2", crash), reports("dfw-1", image)])
    assert condition_text(status, "Available")[1] == "ImageUnavailable"
    assert condition_text(status, "Ready")[1] == "ImageUnavailable"


@pytest.mark.spec("M-53")
def test_false_comes_before_unknown_of_the_same_rank(interpreter: Interpreter) -> None:
    unknown = a_cell_status(blocked("InstancesProvisioning", "Unknown"), ready=0)
    false = a_cell_status(blocked("InstancesProvisioning", "False"), ready=0)
    status = aggregated(interpreter, [reports("dfw-1", unknown), reports("dfw-2", false)])
    assert condition_text(status, "Ready")[0] == "False"


@pytest.mark.spec("M-53")
def test_ready_needs_every_cell_to_be_ready_and_to_report(interpreter: Interpreter) -> None:
    both = aggregated(interpreter, [reports("dfw-1"), reports("dfw-2")])
    assert condition_text(both, "Ready")[0] == "True"
    one_silent = aggregated(interpreter, [reports("dfw-1"), silent("dfw-2")])
    assert condition_text(one_silent, "Ready") == ("Unknown", "InstancesProvisioning", NOT_ACCEPTED)
    assert condition_text(one_silent, "CellsReporting") == ("False", "CellsSilent", "dfw-1")


@pytest.mark.spec("M-54")
@pytest.mark.parametrize(
    "other",
    [
        silent("dfw-2"),
        StatusItem("dfw-2", is_applied=True, status=None),
        StatusItem("dfw-2", is_applied=True, status=a_cell_status(observedGeneration=0)),
    ],
)
def test_what_does_not_report_counts_neither_in_numbers_nor_in_available(
    interpreter: Interpreter, other: StatusItem
) -> None:
    status = aggregated(interpreter, [reports("dfw-1"), other])
    assert counters(status) == [2, 2, 2, 2, 2]
    assert condition_text(status, "Available") == (
        "True",
        "StableInstanceFound",
        "2/2 instances are ready",
    )


@pytest.mark.spec("M-55")
def test_a_cell_that_falls_silent_keeps_what_is_known_to_run(interpreter: Interpreter) -> None:
    running = aggregated(interpreter, [reports("dfw-1")])
    status = aggregated(interpreter, [silent("dfw-1")], running, generation=8)
    assert counters(status) == counters(running)
    assert condition(status, "Available") == condition(running, "Available")
    assert status["observedGeneration"] == 7
    assert status["location"] == running["location"]
    assert condition_text(status, "Ready") == ("Unknown", "InstancesProvisioning", NOT_ACCEPTED)
    assert condition_text(status, "ReplicasReady")[0] == "Unknown"
    assert condition_text(status, "CellsReporting") == ("Unknown", "CellsSilent", "dfw-1")
    assert condition(status, "Ready")["lastTransitionTime"] == "2026-06-20T09:00:00Z"
    assert aggregated(interpreter, [silent("dfw-1")], status, generation=8) == status
    back = aggregated(interpreter, [reports("dfw-1", a_cell_status(answers_to=8))], status, 8)
    assert condition_text(back, "Ready")[0] == "True"
    assert back["observedGeneration"] == 8


@pytest.mark.spec("M-56")
@pytest.mark.parametrize("items", [None, [], [silent("dfw-2")]])
def test_a_cell_that_left_is_cleared(
    interpreter: Interpreter, items: Sequence[StatusItem] | None
) -> None:
    running = aggregated(interpreter, [reports("dfw-1")])
    status = aggregated(interpreter, items, running)
    assert counters(status) == [0, 0, 0, 0, 0]
    assert [entry["type"] for entry in objects_at(status, "conditions")] == ["CellsReporting"]


@pytest.mark.spec("M-57")
def test_the_generation_moves_when_every_reporting_cell_acted_on_it(
    interpreter: Interpreter,
) -> None:
    old = aggregated(interpreter, [reports("dfw-1")])
    behind = [
        reports("dfw-1", a_cell_status(answers_to=8)),
        reports("dfw-2", a_cell_status(answers_to=7)),
    ]
    assert aggregated(interpreter, behind, old, 8)["observedGeneration"] == 7
    there = [reports(name, a_cell_status(answers_to=8)) for name in ("dfw-1", "dfw-2")]
    status = aggregated(interpreter, there, old, 8)
    assert status["observedGeneration"] == 8
    assert all(entry["observedGeneration"] == 8 for entry in objects_at(status, "conditions"))


def test_an_edit_and_its_revert_are_distinguished_by_the_hub_generation_alone(
    interpreter: Interpreter,
) -> None:
    # A→B→A on the hub: generation 9, the cell's own stays 3, and the annotation it copies is 9.
    old = aggregated(interpreter, [reports("dfw-1")])
    status = aggregated(interpreter, [reports("dfw-1", a_cell_status(answers_to=9))], old, 9)
    assert status["observedGeneration"] == 9


@pytest.mark.spec("M-58")
def test_the_same_input_twice_gives_the_same_status(interpreter: Interpreter) -> None:
    items = [reports("dfw-1", a_cell_status((), 0)), reports("dfw-2", a_cell_status((), 0))]
    status = aggregated(interpreter, items)
    assert counters(status) == [0, 0, 0, 0, 0]
    assert aggregated(interpreter, items, status) == status


@pytest.mark.spec("M-58")
def test_the_time_stays_when_only_the_winning_cell_changes(interpreter: Interpreter) -> None:
    old = aggregated(interpreter, [reports("dfw-1", a_cell_status(blocked("QuotaNotGranted")))])
    worse = a_condition("Ready", "False", "ImageUnavailable", "m", "2026-06-20T08:59:00Z")
    items = [reports("dfw-1", a_cell_status(blocked("QuotaNotGranted")))]
    items.append(reports("dfw-2", a_cell_status((worse,))))
    ready = condition(aggregated(interpreter, items, old), "Ready")
    assert ready["reason"] == "ImageUnavailable"
    assert ready["lastTransitionTime"] == EARLIER


@pytest.mark.spec("OU-05")
@pytest.mark.parametrize("echo", ["", "5f0c9c2e-0000-4000-8000-000000000001", "x" * 65])
def test_the_status_of_a_former_deployment_never_counts(
    interpreter: Interpreter, echo: str
) -> None:
    # The report of a terminating copy: nothing desired, nothing there, and so ready.
    former = a_cell_status(READY, 0, observedTemplateUID=echo)
    status = aggregated(interpreter, [reports("dfw-1", former)])
    for kind in ("Available", "Ready", "ReplicasReady"):
        assert condition_text(status, kind) == ("False", "InstancesProvisioning", FORMER)
    assert condition_text(status, "CellsReporting") == ("False", "CellsSilent", "")
    assert counters(status) == [0, 0, 0, 0, 0]
    assert status["observedGeneration"] == 0
    assert status["observedTemplateUID"] == ("" if len(echo) > 64 else echo)
    assert aggregated(interpreter, [reports("dfw-1", former)], status) == status


@pytest.mark.spec("OU-05")
def test_a_former_deployment_gives_way_to_the_one_of_its_name(interpreter: Interpreter) -> None:
    former = a_cell_status(READY, 0, observedTemplateUID="")
    waiting = aggregated(interpreter, [reports("dfw-1", former)])
    delivered = aggregated(interpreter, [silent("dfw-1")], waiting)
    assert "observedTemplateUID" not in delivered
    assert [entry["type"] for entry in objects_at(delivered, "conditions")] == ["CellsReporting"]
    new = a_cell_status(observedTemplateUID=UID)
    status = aggregated(interpreter, [reports("dfw-1", new)], delivered)
    assert condition_text(status, "Ready") == (
        "True",
        "ReplicasAvailable",
        "2/2 replicas available",
    )
    assert status["observedTemplateUID"] == UID


@pytest.mark.spec("OU-05")
def test_a_copy_deleted_on_its_cell_is_not_kept_as_a_silent_one(interpreter: Interpreter) -> None:
    running = aggregated(interpreter, [reports("dfw-1", a_cell_status(observedTemplateUID=UID))])
    going = a_cell_status(READY, 0, observedTemplateUID="")
    status = aggregated(interpreter, [reports("dfw-1", going)], running)
    assert condition_text(status, "Ready") == ("False", "InstancesProvisioning", FORMER)
    assert counters(status) == [0, 0, 0, 0, 0]


@pytest.mark.spec("OU-05")
def test_beside_a_former_deployment_another_cell_counts_and_ready_waits(
    interpreter: Interpreter,
) -> None:
    new = a_cell_status(observedTemplateUID=UID)
    former = a_cell_status(READY, 0, observedTemplateUID="")
    status = aggregated(interpreter, [reports("dfw-1", new), reports("dfw-2", former)])
    assert counters(status) == [2, 2, 2, 2, 2]
    assert condition_text(status, "Available")[0] == "True"
    assert condition_text(status, "Ready") == ("False", "InstancesProvisioning", FORMER)
    assert condition_text(status, "CellsReporting") == ("False", "CellsSilent", "dfw-1")
    assert "observedTemplateUID" not in status


@pytest.mark.spec("OU-05")
@pytest.mark.parametrize("echo", [None, 7, {"a": "b"}])
def test_a_cell_of_an_older_version_counts_as_before(
    interpreter: Interpreter, echo: JsonValue
) -> None:
    older = a_cell_status() if echo is None else a_cell_status(observedTemplateUID=echo)
    status = aggregated(interpreter, [reports("dfw-1", older)])
    assert condition_text(status, "Ready")[0] == "True"
    assert "observedTemplateUID" not in status


@pytest.mark.spec("M-97")
def test_a_field_name_that_karmada_cannot_convert_stops_nothing(interpreter: Interpreter) -> None:
    given = a_hub_object()
    returned = interpreter.aggregate(given, [reports("dfw-1")])
    assert "spec" not in returned
    metadata = returned["metadata"]
    assert isinstance(metadata, dict)
    assert "managedFields" not in metadata
    assert metadata["labels"] == {"topology.datum.net/city-code": "DFW"}
    assert metadata["annotations"] == {"propagationpolicy.karmada.io/name": "city-dfw"}


@pytest.mark.spec("M-97")
def test_two_calls_in_one_machine_do_not_see_each_other(interpreter: Interpreter) -> None:
    first = aggregated(interpreter, [reports("dfw-1")])
    aggregated(interpreter, [reports("ord-1", a_cell_status(blocked("ImageUnavailable")))])
    assert aggregated(interpreter, [reports("dfw-1")]) == first


@pytest.mark.spec("M-97")
def test_a_schema_default_is_no_history(interpreter: Interpreter) -> None:
    pending = a_condition("Ready", "Unknown", "Pending", "Waiting for controller")
    default = a_cell_status((pending,), 0, observedGeneration=0)
    status = aggregated(interpreter, [silent("dfw-1")], default)
    assert condition_text(status, "CellsReporting") == ("False", "CellsSilent", "")
    assert [entry["type"] for entry in objects_at(status, "conditions")] == ["CellsReporting"]


@pytest.mark.parametrize(
    "conditions",
    ["text", [None, 7, {"type": 3}], [{"status": "True"}], {"type": "Ready"}],
)
def test_a_malformed_cell_status_breaks_nothing(
    interpreter: Interpreter, conditions: JsonValue
) -> None:
    odd = a_cell_status(readyReplicas="many") | {"conditions": conditions}
    status = aggregated(interpreter, [reports("dfw-1", odd)])
    assert status["readyReplicas"] == 0
    assert condition_text(status, "CellsReporting")[0] == "True"


@pytest.mark.parametrize(
    ("conditions", "healthy"), [(READY, True), (blocked("ImageUnavailable"), False), ((), False)]
)
def test_healthy_is_what_is_ready(
    interpreter: Interpreter, conditions: Sequence[JsonObject], *, healthy: bool
) -> None:
    assert interpreter.is_healthy({"status": a_cell_status(conditions)}) is healthy
    assert interpreter.is_healthy({}) is False


@pytest.mark.spec("M-64")
def test_the_rank_table_in_lua_is_the_one_of_the_api_types() -> None:
    from compute_api_types.conditions import RANKS

    script = (MANIFEST.parent / "aggregate_status.lua").read_text("utf-8")
    sandbox = LuaSandbox(lambda: NOW)
    probe = script + "\nfunction Ranks() return RANKS end\n"
    assert sandbox.call(probe, "Ranks") == dict(RANKS)


@pytest.mark.parametrize(
    "line",
    ["string.rep('a', 9)", "string.gsub('a', 'a', 'b')", "setmetatable({}, {})", "io.open('x')"],
)
def test_the_sandbox_has_no_more_than_karmadas(line: str) -> None:
    sandbox = LuaSandbox(lambda: NOW)
    with pytest.raises(ScriptError):
        sandbox.call(f"function Try() return {line} end", "Try")


def test_globals_persist_between_calls_as_they_do_in_karmada() -> None:
    sandbox = LuaSandbox(lambda: NOW)
    count = "function Count() seen = (seen or 0) + 1; return seen end"
    assert [sandbox.call(count, "Count"), sandbox.call(count, "Count")] == [1, 2]


def test_a_field_name_with_a_path_character_fails_as_it_does_in_karmada() -> None:
    sandbox = LuaSandbox(lambda: NOW)
    with pytest.raises(ScriptError, match=r"a\|b"):
        sandbox.call("function Echo(given) return given end", "Echo", {"spec": {"a|b": 1}})


# --- work ----------------------------------------------------------------------------------------

# Counts the instructions of one aggregation, in hundreds, with Lua's count hook.
WORK = """
function Work(types)
  local conditions = {}
  for index = 1, types do
    conditions[index] = { type = "Type" .. index, status = "True", reason = "Fine", message = "" }
  end
  local status = { replicas = 1, observedGeneration = 1, conditions = conditions }
  local metadata = { generation = 1, uid = "a" }
  local object = { metadata = metadata, spec = {}, status = { conditions = conditions } }
  local item = { clusterName = "dfw-1", applied = true, status = status }
  local work = 0
  debug.sethook(function() work = work + 1 end, "", 100)
  local result = AggregateStatus(object, { item })
  debug.sethook()
  return work, #result.status.conditions
end
"""


def work_of(types: int) -> tuple[int, int]:
    machine = lua51.LuaRuntime(unpack_returned_tuples=True)
    machine.execute((MANIFEST.parent / "aggregate_status.lua").read_text("utf-8"))
    machine.execute(WORK)
    work, kept = machine.globals()["Work"](types)
    return int(work), int(kept)


@pytest.mark.spec("AT-20")
def test_the_work_of_an_aggregation_is_linear_in_the_number_of_condition_types() -> None:
    (half, _), (full, kept) = work_of(1_000), work_of(2_000)
    assert full < 2.2 * half
    assert full < 2_000  # one hundred instructions for each of the types
    assert kept == 17  # sixteen of the cell's, and CellsReporting


@pytest.mark.spec("AT-20")
@pytest.mark.parametrize("value", [-1, 1_000_001, 1e300, 1.5, float("nan"), float("inf"), "9"])
def test_a_counter_that_cannot_be_counts_as_zero(
    interpreter: Interpreter, value: JsonValue
) -> None:
    odd = a_cell_status(readyReplicas=value, desiredReplicas=value)
    status = aggregated(interpreter, [reports("dfw-1", odd)])
    assert (status["readyReplicas"], status["desiredReplicas"], status["replicas"]) == (0, 0, 2)


@pytest.mark.spec("AT-20")
def test_a_sum_of_counters_is_capped(interpreter: Interpreter) -> None:
    items = [reports(name, a_cell_status(replicas=600_000)) for name in ("dfw-1", "dfw-2")]
    assert counters(aggregated(interpreter, items)) == [1_000_000] * 5


@pytest.mark.spec("AT-20")
def test_the_texts_of_a_condition_are_bounded(interpreter: Interpreter) -> None:
    told_by_cell = (
        a_condition("Ready", "Perhaps", "R" * 129, "m" * 5_000),
        a_condition("T" * 317, "True"),
    )
    status = aggregated(interpreter, [reports("dfw-1", a_cell_status(told_by_cell))])
    assert condition_text(status, "Ready") == ("Unknown", "Unknown", "m" * 4_096)
    kinds = [entry["type"] for entry in objects_at(status, "conditions")]
    assert kinds == ["CellsReporting", "Ready"]


# --- suspension (suspension.md 4) -----------------------------------------------------------------

SUSPENDED = a_cell_status(blocked("Suspended"), ready=0, suspended=True)


@pytest.mark.spec("SU-18")
@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([], None),
        ([reports("a", SUSPENDED)], True),
        ([reports("a")], None),
        ([reports("a", SUSPENDED), reports("b", SUSPENDED)], True),
        ([reports("a", SUSPENDED), reports("b")], None),
        ([reports("a", a_cell_status(suspended="true"))], None),
        ([reports("a", SUSPENDED), silent("b")], True),
        ([silent("a")], None),
        ([silent("a"), silent("b")], None),
    ],
)
def test_a_deployment_is_suspended_once_every_reporting_cell_is(
    interpreter: Interpreter, items: list[StatusItem], expected: bool | None
) -> None:
    assert aggregated(interpreter, items).get("suspended") is expected


@pytest.mark.spec("SU-18")
def test_a_suspension_does_not_outlast_the_report_of_its_cell(interpreter: Interpreter) -> None:
    suspended = aggregated(interpreter, [reports("a", SUSPENDED)])
    assert "suspended" not in aggregated(interpreter, [reports("a")], suspended)
    assert "suspended" not in aggregated(interpreter, [silent("a")], suspended)


@pytest.mark.spec("SU-12", "SU-18")
def test_suspended_outranks_every_reason_of_another_cell(interpreter: Interpreter) -> None:
    items = [reports("a", a_cell_status(blocked("CityCodeMismatch"), ready=0))]
    status = aggregated(interpreter, [*items, reports("b", SUSPENDED)])
    for kind in ("Available", "Ready", "ReplicasReady"):
        assert condition_text(status, kind)[1] == "Suspended"


# --- autoscaling (autoscaling.md 2, 4) ------------------------------------------------------------


@pytest.mark.spec("AS-13")
@pytest.mark.parametrize(
    ("kind", "first", "second", "wins"),
    [
        ("AutoscalingReady", "True", "False", "second"),
        ("AutoscalingReady", "Unknown", "True", "first"),
        ("AutoscalingReady", "Unknown", "False", "second"),
        ("AutoscalingLimited", "False", "True", "second"),
        ("AutoscalingLimited", "Unknown", "False", "first"),
        ("AutoscalingLimited", "Unknown", "True", "second"),
    ],
)
def test_autoscaling_is_merged_over_the_cells_that_have_it(
    interpreter: Interpreter, kind: str, first: str, second: str, wins: str
) -> None:
    one = a_cell_status((*READY, a_condition(kind, first, "First", "first")))
    two = a_cell_status((*READY, a_condition(kind, second, "Second", "second")))
    none = a_cell_status(READY)
    items = [reports("a", one), reports("b", two), reports("c", none)]
    status = aggregated(interpreter, items)
    assert condition_text(status, kind)[2] == wins
    assert condition_text(status, "Available")[0] == "True"
    assert condition_text(status, "Ready")[0] == "True"
    without = aggregated(interpreter, [reports("c", none)])
    assert kind not in {string_at(each, "type") for each in objects_at(without, "conditions")}


def a_copy(replicas: int | None, *, is_autoscaled: bool) -> JsonObject:
    settings: JsonObject = {"minReplicas": 2, "instanceManagementPolicy": "OrderedReady"}
    if is_autoscaled:
        settings |= {"maxReplicas": 9, "metrics": [{"resource": {"name": "cpu", "target": {}}}]}
    template: JsonObject = {"metadata": {"labels": {"a.b/c": "d"}}, "spec": {"volumes": []}}
    spec: JsonObject = {"cityCode": "DFW", "scaleSettings": settings, "template": template}
    if replicas is not None:
        spec["replicas"] = replicas
    return {"metadata": {"name": "web", "annotations": {}}, "spec": spec}


@pytest.mark.spec("AS-06")
def test_the_number_of_a_cell_is_retained_for_autoscaled_deployments_alone(
    interpreter: Interpreter,
) -> None:
    for is_autoscaled in (True, False):
        desired = a_copy(None, is_autoscaled=is_autoscaled)
        kept = interpreter.retain(desired, a_copy(7, is_autoscaled=True))
        assert kept == a_copy(7 if is_autoscaled else None, is_autoscaled=is_autoscaled)
        assert interpreter.retain(desired, a_copy(None, is_autoscaled=True)) == desired


def test_what_is_empty_in_neither_argument_vanishes_from_a_retained_object() -> None:
    sandbox = LuaSandbox(lambda: NOW)
    script = "function Retain(a, b) a.new = {} return a end"
    given: JsonObject = {"kept": {}, "list": [], "deep": [{"x": {}}], "text": "t"}
    assert sandbox.call_about(script, "Retain", given, {}) == given


# --- what a deployment depends on -----------------------------------------------------------------

EXPECTED = "compute.datumapis.com/expected-referenced-data"


def dependencies(interpreter: Interpreter, metadata: JsonValue) -> list[str]:
    found = interpreter.dependencies({"kind": "WorkloadDeployment", "metadata": metadata})
    assert all((one["apiVersion"], one["namespace"]) == ("v1", "ns-1") for one in found)
    return [f"{one['kind']}/{one['name']}" for one in found]


def test_tokens_of_the_annotation_are_dependencies_in_the_same_namespace(
    interpreter: Interpreter,
) -> None:
    text = '["ConfigMap/app.config-1","Secret/db"]'
    metadata: JsonObject = {"namespace": "ns-1", "annotations": {EXPECTED: text}}
    assert dependencies(interpreter, metadata) == ["ConfigMap/app.config-1", "Secret/db"]


@pytest.mark.spec("RD-22")
@pytest.mark.parametrize(
    "metadata",
    [
        {"namespace": "ns-1"},
        {"namespace": "ns-1", "annotations": {}},
        {"namespace": "ns-1", "annotations": {EXPECTED: ""}},
        {"namespace": "ns-1", "annotations": {EXPECTED: "[]"}},
        {"namespace": "ns-1", "annotations": {EXPECTED: '{"Secret": "db"}'}},
        {"namespace": "ns-1", "annotations": {EXPECTED: '["Pod/web","Secret/"]'}},
        {"namespace": "ns-1", "annotations": {EXPECTED: 7}},
        {"namespace": "ns-1", "annotations": "none"},
        None,
    ],
)
def test_any_other_text_yields_no_dependency_and_no_error(
    interpreter: Interpreter, metadata: JsonValue
) -> None:
    assert dependencies(interpreter, metadata) == []
