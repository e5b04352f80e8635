"""Alerts, dashboard and runbooks use metrics that the operators have, and agree with each other.

Read without Prometheus: whether an alert really fires is judged by its own tool, on the planes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import promql_parser
import pytest
import yaml

from compute_operator_kit.telemetry.metrics_catalogue import EVERY_METRIC, Metric, MetricType
from tools import dashboard
from tools.workspace import ROOT

FOLDER = ROOT / "deploy" / "components" / "monitoring"
REPOSITORY = "https://github.com/datum-cloud/compute-federation"
RUNBOOKS = ROOT / "docs" / "howto" / "runbooks"
OPERATIONS = ROOT / "docs" / "spec" / "operations.md"
# Not of one alert: operations.md 8.1.
BY_HAND = {"decommission-cell"}
SECTIONS = [
    "What it means",
    "Who is affected",
    "How to confirm",
    "What to do",
    "How to know it is over",
]
# Of the scrape, not of the metric.
TARGET_LABELS = {"instance", "namespace", "pod", "job", "le"}


@dataclass(frozen=True)
class Alert:
    name: str
    expr: str
    waits: str
    severity: str
    annotations: Mapping[str, str]


def alerts() -> list[Alert]:
    document = yaml.safe_load((FOLDER / "alerts.yaml").read_text("utf-8"))
    return [
        Alert(
            rule["alert"],
            rule["expr"],
            rule["for"],
            rule["labels"]["severity"],
            rule["annotations"],
        )
        for group in document["spec"]["groups"]
        for rule in group["rules"]
    ]


def told_by_the_page() -> dict[str, tuple[str, set[str]]]:
    """Alert to how long it waits and its severities, out of the table of operations.md 8."""
    text = OPERATIONS.read_text("utf-8")
    table = text[text.index("## 8. Alerts") : text.index("Each alert has `docs/howto")]
    found: dict[str, tuple[str, set[str]]] = {}
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        names = re.findall(r"`(Compute\w+)`", cells[0])
        severities = [part.strip() for part in cells[-1].split("/")]
        for place, name in enumerate(names):
            severity = severities[place] if len(severities) == len(names) else severities[0]
            found[name] = (cells[-2], {severity})
    # Its cell has: critical for two reasons.
    found["ComputeObjectsQuarantined"][1].add("critical")
    return found


def selectors(expression: promql_parser.Expr) -> Iterator[promql_parser.VectorSelector]:
    found: list[promql_parser.VectorSelector] = []

    def visit(part: object) -> bool:
        if isinstance(part, promql_parser.VectorSelector):
            found.append(part)
        return True

    promql_parser.walk(expression, visit)
    yield from found


def metric_of(series: str) -> Metric | None:
    by_name = {metric.name: metric for metric in EVERY_METRIC}
    plain = re.sub(r"_(bucket|count|sum)$", "", series)
    histogram = by_name.get(plain)
    if histogram is not None and histogram.type is MetricType.HISTOGRAM:
        return histogram if plain != series else None
    return by_name.get(series)


def expressions() -> list[str]:
    drawn = [expr for row in dashboard.ROWS for panel in row.panels for expr, _ in panel.queries]
    return [*(alert.expr for alert in alerts()), *drawn]


def test_alerts_are_those_of_the_page_with_its_waits_and_severities() -> None:
    found: dict[str, tuple[str, set[str]]] = {}
    for alert in alerts():
        _, severities = found.setdefault(alert.name, (alert.waits, set[str]()))
        severities.add(alert.severity)
    assert found == told_by_the_page()


@pytest.mark.parametrize("expression", expressions())
def test_an_expression_names_only_what_the_operators_expose(expression: str) -> None:
    asked_for = list(selectors(promql_parser.parse(expression)))
    assert asked_for
    for selector in asked_for:
        assert selector.name is not None
        metric = metric_of(selector.name)
        assert metric is not None, f"{selector.name} is no series of ours"
        asked = {matcher.name for matcher in selector.matchers.matchers}
        assert asked <= {*metric.labels, "le"}, f"{selector.name} has no such label"


@pytest.mark.parametrize("expression", expressions())
def test_what_is_grouped_by_is_a_label_of_something_in_it(expression: str) -> None:
    parsed = promql_parser.parse(expression)
    metrics = [metric_of(one.name or "") for one in selectors(parsed)]
    known = {label for metric in metrics if metric for label in metric.labels} | TARGET_LABELS
    grouped = re.findall(r"(?:by|on) \(([^)]*)\)", expression)
    assert {label.strip() for labels in grouped for label in labels.split(",")} <= known


def test_every_alert_has_its_runbook_and_every_runbook_its_alert() -> None:
    names = {alert.name for alert in alerts()}
    pages = {path.stem for path in RUNBOOKS.glob("*.md")}
    assert pages == names | BY_HAND
    for alert in alerts():
        page = f"docs/howto/runbooks/{alert.name}.md"
        assert alert.annotations["runbook"] == page
        # What an alert manager links to; a relative path is no link outside of this tree.
        assert alert.annotations["runbook_url"] == f"{REPOSITORY}/blob/main/{page}"


@pytest.mark.parametrize("alert", sorted({alert.name for alert in alerts()}))
def test_a_runbook_answers_the_five_questions(alert: str) -> None:
    text = (RUNBOOKS / f"{alert}.md").read_text("utf-8")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS
    confirm = text[text.index("## How to confirm") : text.index("## What to do")]
    assert "```" in confirm, "an exact query or command is missing"


@pytest.mark.parametrize("page", sorted(RUNBOOKS.glob("*.md")), ids=lambda path: path.stem)
def test_queries_in_runbooks_are_valid_and_name_what_is_exposed(page: object) -> None:
    text = (RUNBOOKS / str(page).rsplit("/", 1)[-1]).read_text("utf-8")
    for query in re.findall(r"```promql\n(.*?)```", text, re.DOTALL):
        for line in filter(None, (line.strip() for line in query.splitlines())):
            for selector in selectors(promql_parser.parse(line)):
                assert metric_of(selector.name or "") is not None, line


def test_the_dashboard_is_the_one_that_the_table_makes() -> None:
    document = yaml.safe_load((FOLDER / "dashboard.yaml").read_text("utf-8"))
    drawn = json.loads(document["data"]["compute-federation.json"])
    assert drawn == dashboard.build()


def test_panels_have_numbers_of_their_own_words_units_and_room() -> None:
    drawn = json.loads(json.dumps(dashboard.build()))["panels"]
    assert len({panel["id"] for panel in drawn}) == len(drawn)
    for panel in (one for one in drawn if one["type"] != "row"):
        assert panel["title"]
        assert panel["description"]
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= dashboard.COLUMNS
