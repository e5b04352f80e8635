"""The shipped alerting rules, and the metrics they read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import promql_parser
import yaml

from compute_api_types.wire import JsonObject
from e2e.harness.deploy.manifests import DEPLOY
from e2e.world.objects import objects_at, text_at

FOLDER: Final = DEPLOY / "components" / "monitoring"
_UNITS: Final = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True, slots=True)
class Rule:
    """One alert with one severity."""

    alert: str
    severity: str
    expr: str

    @property
    def metrics(self) -> frozenset[str]:
        return frozenset(find_metrics(self.expr))


def load_groups() -> JsonObject:
    """The rules in the format of a Prometheus rule file."""
    document: JsonObject = yaml.safe_load((FOLDER / "alerts.yaml").read_text("utf-8"))
    spec = document["spec"]
    if not isinstance(spec, dict):
        raise TypeError("reading alerts.yaml: its spec is no object")
    return spec


def load_rules() -> tuple[Rule, ...]:
    return tuple(
        Rule(text_at(rule, "alert"), text_at(rule, "labels", "severity"), text_at(rule, "expr"))
        for group in objects_at(load_groups(), "groups")
        for rule in objects_at(group, "rules")
    )


def load_scrape_interval() -> timedelta:
    """The scrape interval of the shipped ServiceMonitor."""
    document: JsonObject = yaml.safe_load((FOLDER / "service-monitor.yaml").read_text("utf-8"))
    (endpoint,) = objects_at(document, "spec", "endpoints")
    match = re.fullmatch(r"(\d+)([smh])", text_at(endpoint, "interval"))
    if match is None:
        raise ValueError("reading service-monitor.yaml: its interval is no duration")
    return timedelta(seconds=int(match[1]) * _UNITS[match[2]])


def find_metrics(expression: str) -> Iterator[str]:
    metrics: list[str] = []

    def visit(part: object) -> bool:
        if isinstance(part, promql_parser.VectorSelector) and part.name is not None:
            metrics.append(part.name)
        return True

    promql_parser.walk(promql_parser.parse(expression), visit)
    yield from metrics
