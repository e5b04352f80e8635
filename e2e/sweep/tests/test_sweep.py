"""The sweep itself: a plan strikes its point, its file is the same run, bad input is one line."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from compute_sim_planes.faults.plan_files import print_plan
from compute_sim_planes.faults.plans import Point, default_fault
from compute_sim_planes.history import Injected
from compute_sim_planes.json_types import JsonObject
from e2e.sweep.command import Share, main, plan_jobs
from e2e.sweep.forking import PlanResult, repeat, strike_all
from e2e.sweep.histories import Act, run_histories, run_history
from e2e.sweep.plans import (
    StruckPair,
    derive_faults,
    plan_of,
    sample_pairs,
    thin,
    without_known,
)
from e2e.sweep.results import ScenarioReport, report_rows
from e2e.sweep.running import UNREACHED, SweepRun, judge, judge_reference, play
from e2e.sweep.scenarios import catalogue

SMALLEST = "delete-1x1x1"


@pytest.fixture(scope="module")
def reference() -> SweepRun:
    return play(catalogue()[SMALLEST], plan_of(SMALLEST))


def test_the_reference_of_a_scenario_violates_nothing(reference: SweepRun) -> None:
    assert judge_reference(reference) == []


def test_every_fault_of_the_method_is_derived(reference: SweepRun) -> None:
    faults = derive_faults(reference.recorder.points, reference.backend.history, reference.begun)
    assert {one.fault.id for one in faults} == {
        *("A1", "A2", "C1", "C5", "C8", "B1", "B3", "B4", "B5"),
    }
    assert all(one.point.number >= reference.begun for one in faults)
    assert len(thin(faults)) <= len(faults)


def test_a_forked_run_and_its_plan_file_find_the_same(reference: SweepRun) -> None:
    scenario = catalogue()[SMALLEST]
    recorder = reference.recorder
    faults = derive_faults(recorder.points, reference.backend.history, reference.begun)
    chosen = [faults[0], faults[len(faults) // 2]]
    results: list[PlanResult] = []
    strike_all(scenario, reference, chosen, results.append)
    assert [one.plan.faults for one in results] == [(one.fault,) for one in chosen]
    for result in results:
        assert repeat(scenario, result.plan, reference).violations == result.violations == ()


def test_a_pair_strikes_twice(reference: SweepRun) -> None:
    scenario, recorder = catalogue()[SMALLEST], reference.recorder
    faults = derive_faults(recorder.points, reference.backend.history, reference.begun)
    pairs = sample_pairs(recorder.points, faults, 3, seed=1)
    assert pairs == sample_pairs(recorder.points, faults, 3, seed=1)
    results: list[PlanResult] = []
    strike_all(scenario, reference, pairs, results.append)
    for result, pair in zip(results, _in_order(pairs), strict=True):
        assert len(result.plan.faults) == 2
        done = play(scenario, result.plan)
        struck = [one.fault for one in done.backend.history.of(Injected)]
        assert struck[:1] == [pair.first.fault.id]
        assert (len(struck) == 2) is (result.violations != (UNREACHED,))


def _in_order(pairs: list[StruckPair]) -> list[StruckPair]:
    return sorted(pairs, key=lambda pair: pair.first.point.number)


def test_a_fault_that_never_happens_is_no_pass(reference: SweepRun) -> None:
    recorder = reference.recorder
    struck = derive_faults(recorder.points, reference.backend.history, reference.begun)[0]
    misplaced = replace(struck.fault, at=Point(plane="hub", kind="Nothing"))
    done = play(catalogue()[SMALLEST], plan_of(SMALLEST, misplaced))
    assert judge(done, reference) == [UNREACHED]


def test_a_fault_after_the_last_step_is_given_its_time_to_rest(reference: SweepRun) -> None:
    late = default_fault("C8", Point(plane="home", verb="update", kind="Lease", nth=60))
    done = play(catalogue()[SMALLEST], plan_of(SMALLEST, late))
    assert judge(done, reference) == []


BAD_PLANS: list[tuple[str | JsonObject, str]] = [
    ("{", "reading plan"),
    ({"schema": "compute.faults/v2"}, "schema"),
    ({"scenario": "dance"}, "scenario: 'dance' is not known"),
    ({"faults": [{"id": "Z9", "at": {}}]}, "faults: 'Z9'"),
    ({"faults": [{"id": "A1", "at": {"plain": "hub"}}]}, "plain: is not known"),
    ({"faults": []}, "faults: there is none"),
    (
        {"faults": [{"id": "A1", "at": {"plane": "hub", "verb": "create", "kind": "Nothing"}}]},
        "faults[0].at: delete-1x1x1 has no create Nothing on hub number 1",
    ),
]


@pytest.mark.parametrize(("document", "expected"), BAD_PLANS)
def test_a_bad_plan_file_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], document: str | JsonObject, expected: str
) -> None:
    known = json.loads(print_plan(plan_of(SMALLEST)))
    text = document if isinstance(document, str) else json.dumps({**known, **document})
    path = tmp_path / "plan.json"
    path.write_text(text, "utf-8")
    assert main(["--plan", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert expected in line


def test_a_plan_file_whose_fault_never_happens_in_its_run_fails(
    reference: SweepRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorder = reference.recorder
    faults = derive_faults(recorder.points, reference.backend.history, reference.begun)
    struck = faults[0].fault
    late = replace(struck, at=replace(struck.at, after=timedelta(hours=1)))
    path = tmp_path / "plan.json"
    path.write_text(print_plan(plan_of(SMALLEST, late)), "utf-8")
    assert main(["--plan", str(path)]) == 1
    assert UNREACHED in capsys.readouterr().out


def test_the_large_size_adds_the_classes_that_the_small_one_lacks(reference: SweepRun) -> None:
    recorder, history = reference.recorder, reference.backend.history
    faults = derive_faults(recorder.points, history, reference.begun)
    assert without_known(faults, faults) == []
    alone = without_known(faults, ())
    assert 0 < len(alone) < len(faults)
    assert without_known(faults, alone) == []


def test_a_whole_run_with_too_few_plans_does_not_hold() -> None:
    report = ScenarioReport(SMALLEST, derived=9, plans=2999)
    rows = {
        str(one["measure"]): one for one in report_rows({SMALLEST: report}, 1.0, "all", least=3000)
    }
    assert rows["all: run"]["holds"] is False
    assert rows[f"all: {SMALLEST}: violations"]["holds"] is True


def test_an_unknown_scenario_or_file_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--scenario", "dance"]) == 2
    assert main(["--plan", "/nowhere/plan.json"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_random_histories_end_as_their_last_accepted_edits_ask() -> None:
    tally = run_histories(2, seed=3)
    assert tally.histories >= 1
    assert tally.acts > tally.histories


def test_a_history_that_fails_is_seen() -> None:
    with pytest.raises(LookupError):
        run_history([Act("dance")])


def test_shares_are_disjoint_and_make_the_whole() -> None:
    jobs = plan_jobs([SMALLEST, "roll-2x2x3"], Share(2, 3), pairs=0, seed=1)
    assert jobs[0].scenario == "roll-2x2x3"
    assert {job.share for job in jobs} == {Share(2, 3)}
    parts = [list(range(100))[part - 1 :: 3] for part in (1, 2, 3)]
    assert sorted(number for part in parts for number in part) == list(range(100))
