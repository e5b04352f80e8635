"""Optional extras of the kit: whether the OTLP exporters that a configuration names are installed.

Without this check a process that has an endpoint and no exporter ends at its start although
`check-config` passed.
"""

from __future__ import annotations

import importlib
from typing import Final

TRACE_EXPORTER: Final = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
METRIC_EXPORTER: Final = "opentelemetry.exporter.otlp.proto.http.metric_exporter"
MISSING: Final = "needs the extra `otlp` of datum-compute-operator-kit"


def find_missing_exporter() -> str:
    """The remedy where the exporter cannot be imported; empty where it can."""
    try:
        importlib.import_module(TRACE_EXPORTER)
        importlib.import_module(METRIC_EXPORTER)
    except ImportError:
        return MISSING
    return ""
