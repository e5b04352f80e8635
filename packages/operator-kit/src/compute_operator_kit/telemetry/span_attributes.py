"""Attributes on the span of the current reconcile, for values that only the reconcile knows.

It needs only the OpenTelemetry API, does nothing without tracing, and never raises.
"""

from __future__ import annotations

from opentelemetry import trace

PREFIX = "compute."


def annotate_reconcile(**attributes: str) -> None:
    """Sets `compute.<name>` on the current span; empty values are left out."""
    span = trace.get_current_span()
    for name, value in attributes.items():
        if value:
            span.set_attribute(f"{PREFIX}{name}", value)
