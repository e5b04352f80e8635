"""A terminal is redrawn in place; everything else gets plain lines that stay."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path

import pytest

from compute_api_types.wire import JsonObject
from e2e.demo.backend import DemoError, row_of
from e2e.demo.command import parse
from e2e.demo.picture import CityRow, Progress
from e2e.demo.recording import normalise, read_recording, record
from e2e.demo.screen import Screen

PROGRESS = Progress(1, 2, "something", timedelta(seconds=1))
ROW = CityRow("DFW", 2, 1, 1, "InstancesProvisioning", is_ready=False)


def test_without_a_terminal_nothing_is_drawn_over() -> None:
    out = io.StringIO()
    screen = Screen(out)
    screen.draw([ROW], PROGRESS)
    screen.say("It is so.")
    assert out.getvalue() == "  It is so.\n"


def test_on_a_terminal_the_last_picture_is_taken_away_first() -> None:
    out = io.StringIO()
    screen = Screen(out, is_live=True)
    screen.draw([ROW], PROGRESS)
    before = len(out.getvalue())
    screen.draw([ROW], PROGRESS)
    assert out.getvalue()[before:].startswith("\x1b[3F\x1b[J")  # heading, one city, the bar


def test_text_after_a_picture_replaces_it() -> None:
    out = io.StringIO()
    screen = Screen(out, is_live=True)
    screen.draw([], PROGRESS)
    screen.say("It is so.")
    assert out.getvalue().endswith("\x1b[1F\x1b[J  It is so.\n")


def test_colours_are_left_out_with_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    out = io.StringIO()
    Screen(out, is_live=True).title("A title")
    assert out.getvalue() == "\nA title\n"


def test_a_narrow_screen_wraps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    out = io.StringIO()
    screen = Screen(out)
    screen.say("word " * 40)
    screen.table([ROW])
    assert max(len(line) for line in out.getvalue().splitlines()) < 40


def test_a_deployment_with_a_status_of_an_older_spec_is_not_ready() -> None:
    condition: JsonObject = {"type": "Ready", "status": "True", "reason": "ReplicasAvailable"}
    status: JsonObject = {"observedGeneration": 1, "readyReplicas": 2, "conditions": [condition]}
    spec: JsonObject = {"cityCode": "DFW", "scaleSettings": {"minReplicas": 2}}
    row = row_of({"metadata": {"generation": 2}, "spec": spec, "status": status})
    assert (row.ready, row.reason, row.is_ready) == (2, "ReplicasAvailable", False)


def test_an_unknown_option_is_refused_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        parse(["--fast"])
    assert refused.value.code == 2
    assert "unrecognized arguments: --fast" in capsys.readouterr().err


def test_unknown_planes_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--planes", "paper"])
    assert "invalid choice: 'paper'" in capsys.readouterr().err


def test_a_recording_is_put_where_the_command_is_and_read_again(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("before\n```console\n$ ./dev demo\nold\n```\nafter\n", "utf-8")
    record(["", "A title", "  took 4.1 s"], page)
    assert read_recording(page) == ["A title", "  took 4.1 s"]
    assert page.read_text("utf-8").startswith("before\n")
    assert page.read_text("utf-8").endswith("```\nafter\n")


def test_a_page_without_the_command_is_not_touched(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("nothing to see\n", "utf-8")
    with pytest.raises(DemoError, match="no block there shows the command"):
        record(["A title"], page)
    assert page.read_text("utf-8") == "nothing to see\n"


def test_two_recordings_differ_only_in_times() -> None:
    assert normalise(["  took 4.1 s and", "  went on"]) == normalise(
        ["  took 12 s", "  and went on"]
    )
    assert normalise(["  took 4.1 s"]) != normalise(["  took 4.1 s too"])
