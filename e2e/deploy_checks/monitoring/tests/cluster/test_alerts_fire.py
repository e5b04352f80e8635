"""promtool confirms that each alert fires during its incident, resolves after it, and no other
fires.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from e2e.deploy_checks.monitoring.alert_cases import (
    ALERT_CASES,
    OF_PROVIDER,
    case_of,
    record_a_pod_that_does_not_end,
)
from e2e.deploy_checks.monitoring.alert_runs import AlertCase, fired, record
from e2e.deploy_checks.monitoring.incidents import (
    a_cell_does_not_hear_that_its_project_is_suspended,
    the_hub_is_away,
    two_cells_serve_one_city,
)
from e2e.deploy_checks.monitoring.recording import ScrapeRecording
from e2e.deploy_checks.monitoring.rule_tests import Expected, write_test
from e2e.deploy_checks.monitoring.rules import load_scrape_interval
from e2e.harness.programs.binaries import CHECKERS
from e2e.harness.programs.build import find_programs
from e2e.harness.programs.store import Store


def run_promtool(
    folder: Path, recordings: Mapping[str, ScrapeRecording], expected: Mapping[str, Expected]
) -> subprocess.CompletedProcess[str]:
    promtool = find_programs(CHECKERS, Store.of_user())["promtool"]
    path = write_test(folder, recordings, expected, load_scrape_interval())
    command = [str(promtool), "test", "rules", str(path)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def check(story: AlertCase, folder: Path) -> None:
    done = run_promtool(folder, record(story), story.expected)
    assert done.returncode == 0, done.stdout + done.stderr


OF_SCENARIOS = (  # of statements that require the alert
    the_hub_is_away,
    two_cells_serve_one_city,
    a_cell_does_not_hear_that_its_project_is_suspended,
)
OTHERS = [story for story in ALERT_CASES if story.body not in OF_SCENARIOS]


@pytest.mark.parametrize("story", OTHERS, ids=lambda story: story.name)
def test_an_alert_fires_in_its_trouble_and_no_other_does(story: AlertCase, tmp_path: Path) -> None:
    check(story, tmp_path)


@pytest.mark.spec("E-35")
def test_a_hub_that_is_away_is_alerted_on_both_sides(tmp_path: Path) -> None:
    check(case_of(the_hub_is_away), tmp_path)


@pytest.mark.spec("E-48")
def test_two_cells_in_one_city_are_alerted(tmp_path: Path) -> None:
    check(case_of(two_cells_serve_one_city), tmp_path)


@pytest.mark.spec("SU-13")
def test_a_cell_that_did_not_hear_a_suspension_is_alerted(tmp_path: Path) -> None:
    check(case_of(a_cell_does_not_hear_that_its_project_is_suspended), tmp_path)


@pytest.mark.spec("PP-29")
def test_a_pod_that_does_not_end_is_alerted(tmp_path: Path) -> None:
    recorded = {"provider": record_a_pod_that_does_not_end()}
    done = run_promtool(tmp_path, recorded, {"provider": OF_PROVIDER})
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_judge_would_notice_an_alert_that_does_not_fire(tmp_path: Path) -> None:
    recording = ScrapeRecording()
    for _ in range(30):
        recording.add({})
    expected = {"management": fired("ComputeHubDown critical")}
    done = run_promtool(tmp_path, {"management": recording}, expected)
    assert done.returncode != 0
    assert "ComputeHubDown" in done.stdout + done.stderr
