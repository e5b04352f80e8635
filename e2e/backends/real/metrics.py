"""Reads single values from an operator's Prometheus metrics."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families


def sum_of(text: str, name: str, labels: Mapping[str, str]) -> float:
    """The sum of a metric's series with these labels; histograms count observations."""
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name in {name, f"{name}_count"} and labels.items() <= sample.labels.items()
    )
