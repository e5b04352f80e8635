"""Writes recordings and expected alerts as a file for `promtool test rules`.

The expectation is exact: the alerts that fired at any time are those of the case, with their
severities; at the end, after a quiet time, only those listed as staying still fire.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

import yaml

from compute_api_types.wire import JsonObject, JsonValue
from e2e.deploy_checks.monitoring.recording import ScrapeRecording
from e2e.deploy_checks.monitoring.rules import load_groups, load_rules

RULES: Final = "rules.yaml"
TESTS: Final = "tests.yaml"
EVER_FIRED: Final = "group by (alertname, severity) (count_over_time(ALERTS{%s}[%s]))"
FIRES_NOW: Final = "group by (alertname, severity) (ALERTS{%s})"
FIRING: Final = 'alertstate="firing"'


@dataclass(frozen=True, slots=True)
class Fired:
    """An alert with a severity."""

    alert: str
    severity: str


@dataclass(frozen=True, slots=True)
class Expected:
    """The alerts of a case on one cluster."""

    fires: frozenset[Fired] = frozenset()
    stays: frozenset[Fired] = frozenset()


def write_test(
    folder: Path,
    recordings: Mapping[str, ScrapeRecording],
    expected: Mapping[str, Expected],
    every: timedelta,
) -> Path:
    """Writes the rules and a test with one part per cluster; returns the path of the test."""
    (folder / RULES).write_text(yaml.safe_dump(load_groups()), "utf-8")
    tests: list[JsonValue] = [
        _test_of(cluster, recording, expected.get(cluster, Expected()), every)
        for cluster, recording in sorted(recordings.items())
    ]
    document: JsonObject = {
        "rule_files": [RULES],
        "evaluation_interval": _seconds(every),
        "tests": tests,
    }
    path = folder / TESTS
    path.write_text(yaml.safe_dump(document, width=10**9), "utf-8")
    return path


def _test_of(
    cluster: str, recording: ScrapeRecording, expected: Expected, every: timedelta
) -> JsonObject:
    end = every * (recording.scrapes - 1)
    ever = EVER_FIRED % (FIRING, _seconds(end + every))
    read = find_series(rule.metrics for rule in load_rules())
    return {
        "name": cluster,
        "interval": _seconds(every),
        "input_series": [{**row} for row in recording.print_rows(lambda name: name in read)],
        "promql_expr_test": [
            _ask(ever, end, expected.fires),
            _ask(FIRES_NOW % FIRING, end, expected.stays),
        ],
    }


def _ask(expression: str, at: timedelta, answer: Collection[Fired]) -> JsonObject:
    samples: list[JsonValue] = [
        {"labels": f'{{alertname="{one.alert}", severity="{one.severity}"}}', "value": 1}
        for one in sorted(answer, key=lambda one: (one.alert, one.severity))
    ]
    return {"expr": expression, "eval_time": _seconds(at), "exp_samples": samples}


def find_series(read: Iterable[frozenset[str]]) -> frozenset[str]:
    """All metric names that expressions read."""
    return frozenset[str]().union(*read)


def _seconds(duration: timedelta) -> str:
    return f"{int(duration.total_seconds())}s"
