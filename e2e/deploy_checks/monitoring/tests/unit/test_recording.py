"""A scrape becomes a row in promtool's notation."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import yaml

from compute_operator_kit.telemetry.metrics_catalogue import EVERY_METRIC
from e2e.deploy_checks.monitoring.alert_cases import ALERT_CASES, OF_PROVIDER
from e2e.deploy_checks.monitoring.alert_runs import fired
from e2e.deploy_checks.monitoring.recording import ScrapeRecording, Series
from e2e.deploy_checks.monitoring.rule_tests import write_test
from e2e.deploy_checks.monitoring.rules import load_rules, load_scrape_interval
from e2e.deploy_checks.monitoring.scraping import ExposedMeasures, parse_exposition

UP = Series("up", (("instance", "a"),))
ODD = Series("odd", (("reason", 'a "b" \\ c'),))


def test_a_series_that_is_gone_is_stale_once_and_absent_then() -> None:
    recording = ScrapeRecording()
    for value in (None, None, 1.0, 1.0, 0.5, None, None, None, 2.0):
        recording.add({} if value is None else {UP: value})
    rows = recording.print_rows(lambda name: name == "up")
    assert rows == [{"series": 'up{instance="a"}', "values": "_x2 1x1 0.5 stale _x2 2"}]


def test_label_values_are_escaped_and_unread_metrics_left_out() -> None:
    recording = ScrapeRecording()
    recording.add({UP: 1, ODD: 2})
    rows = recording.print_rows(lambda name: name == "odd")
    assert rows == [{"series": 'odd{reason="a \\"b\\" \\\\ c"}', "values": "2"}]


def test_what_a_process_counts_is_scraped_from_its_own_exposition() -> None:
    measures = ExposedMeasures("compute-cell-operator")
    measures.gauge("compute_plane_up", 0, plane="hub")
    measures.observe("compute_writeback_lag_seconds", 7)
    samples = dict(parse_exposition(measures.metrics.render().decode(), "dfw-1-1"))
    measures.metrics.shut_down()
    by_name = {series.metric: value for series, value in samples.items() if value}
    assert by_name["compute_writeback_lag_seconds_sum"] == 7
    (up,) = [series for series in samples if series.metric == "compute_plane_up"]
    assert dict(up.labels).items() >= {"plane": "hub", "instance": "dfw-1-1"}.items()
    assert measures.gauges == {("compute_plane_up", (("plane", "hub"),)): 0}


def test_a_test_asks_for_exactly_what_fires_and_what_stays(tmp_path: Path) -> None:
    recording = ScrapeRecording()
    for _ in range(3):
        recording.add({Series("compute_plane_up", (("plane", "hub"),)): 0, UP: 1})
    expected = {"management": fired("ComputeHubDown critical")}
    path = write_test(tmp_path, {"management": recording}, expected, timedelta(seconds=30))
    (test,) = yaml.safe_load(path.read_text("utf-8"))["tests"]
    assert [one["series"] for one in test["input_series"]] == ['compute_plane_up{plane="hub"}']
    ever, now = test["promql_expr_test"]
    assert "[90s]" in ever["expr"]
    assert ever["eval_time"] == "60s"
    labels = '{alertname="ComputeHubDown", severity="critical"}'
    assert ever["exp_samples"] == [{"labels": labels, "value": 1}]
    assert now["exp_samples"] == []


def test_every_alert_has_a_story_and_one_story_has_no_alert() -> None:
    raised = [one.fires for story in ALERT_CASES for one in story.expected.values()]
    raised.append(OF_PROVIDER.fires)
    alerts = {(one.alert, one.severity) for fires in raised for one in fires}
    assert alerts == {(rule.alert, rule.severity) for rule in load_rules()}
    assert [story.name for story in ALERT_CASES if not story.expected] == ["a_day_without_trouble"]


def test_rules_are_read_with_the_metrics_they_name() -> None:
    known = {metric.name for metric in EVERY_METRIC}
    for rule in load_rules():
        plain = {name.removesuffix("_bucket") for name in rule.metrics}
        assert plain
        assert plain <= known
    assert load_scrape_interval() == timedelta(seconds=30)
