"""Prometheus' own tool judges: each alert fires in its trouble, ends with it, and no other does."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from e2e.monitoring.playing import Story, fired, record
from e2e.monitoring.recording import Recording
from e2e.monitoring.rule_tests import Expected, write_test
from e2e.monitoring.rules import load_scrape_interval
from e2e.monitoring.stories import STORIES, story_of
from e2e.monitoring.troubles import the_hub_is_away, two_cells_serve_one_city
from e2e.planes.binaries import JUDGES
from e2e.planes.build import find_programs
from e2e.planes.store import Store


def judge(
    folder: Path, recordings: Mapping[str, Recording], expected: Mapping[str, Expected]
) -> subprocess.CompletedProcess[str]:
    promtool = find_programs(JUDGES, Store.of_user())["promtool"]
    path = write_test(folder, recordings, expected, load_scrape_interval())
    command = [str(promtool), "test", "rules", str(path)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def check(story: Story, folder: Path) -> None:
    done = judge(folder, record(story), story.expected)
    assert done.returncode == 0, done.stdout + done.stderr


OF_SCENARIOS = (the_hub_is_away, two_cells_serve_one_city)  # their pages ask for the alert
OTHERS = [story for story in STORIES if story.body not in OF_SCENARIOS]


@pytest.mark.parametrize("story", OTHERS, ids=lambda story: story.name)
def test_an_alert_fires_in_its_trouble_and_no_other_does(story: Story, tmp_path: Path) -> None:
    check(story, tmp_path)


@pytest.mark.spec("E-35")
def test_a_hub_that_is_away_is_alerted_on_both_sides(tmp_path: Path) -> None:
    check(story_of(the_hub_is_away), tmp_path)


@pytest.mark.spec("E-48")
def test_two_cells_in_one_city_are_alerted(tmp_path: Path) -> None:
    check(story_of(two_cells_serve_one_city), tmp_path)


def test_the_judge_would_notice_an_alert_that_does_not_fire(tmp_path: Path) -> None:
    recording = Recording()
    for _ in range(30):
        recording.add({})
    expected = {"management": fired("ComputeHubDown critical")}
    done = judge(tmp_path, {"management": recording}, expected)
    assert done.returncode != 0
    assert "ComputeHubDown" in done.stdout + done.stderr
