"""Says more about the pass that is under way: attributes on its span, which only the pass knows.

Depends on the OpenTelemetry API alone. Where nothing is traced, nothing happens; it never raises.
"""

from __future__ import annotations

from opentelemetry import trace

PREFIX = "compute."


def annotate_pass(**attributes: str) -> None:
    """Sets `compute.<name>` on the current span; what is empty says nothing and is left out."""
    span = trace.get_current_span()
    for name, value in attributes.items():
        if value:
            span.set_attribute(f"{PREFIX}{name}", value)
