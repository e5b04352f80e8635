"""Samples of a kubelet become rates of CPU, by which an autoscaler scales."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Final

from e2e.backends.pod_metrics.kubelet import (
    ContainerKey,
    ContainerSample,
    derive_rate,
    parse_samples,
)

TEXT: Final = """\
# HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the container
# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{container="web",namespace="ns",pod="web-0"} 1.5 1772323200250
container_cpu_usage_seconds_total{container="web",namespace="ns",pod="web-1"} 2 1772323205000
# TYPE container_memory_working_set_bytes gauge
container_memory_working_set_bytes{container="web",namespace="ns",pod="web-0"} 1.2e+07 1772323200250
node_cpu_usage_seconds_total 123.4 1772323200250
pod_cpu_usage_seconds_total{namespace="ns",pod="web-0"} 1.6 1772323200250
scrape_error 0
"""
AT: Final = datetime(2026, 3, 1, 0, 0, 0, 250_000, tzinfo=UTC)
FIRST: Final = ContainerSample(Fraction(3, 2), Fraction(12_000_000), AT)


def test_samples_of_containers_are_read_and_others_are_left_out() -> None:
    samples = parse_samples(TEXT)
    assert samples[ContainerKey("ns", "web-0", "web")] == FIRST
    assert samples[ContainerKey("ns", "web-1", "web")].cpu == 2
    assert len(samples) == 2


def test_a_rate_is_the_cpu_used_between_two_samples() -> None:
    after = replace(FIRST, cpu=Fraction(2), at=AT + timedelta(seconds=10))
    assert derive_rate(FIRST, after) == {"cpu": "50000000n", "memory": "12000000"}


def test_a_repeated_sample_and_one_of_a_restarted_container_tell_nothing() -> None:
    assert derive_rate(FIRST, FIRST) is None
    assert derive_rate(FIRST, replace(FIRST, cpu=Fraction(), at=AT + timedelta(seconds=9))) is None
