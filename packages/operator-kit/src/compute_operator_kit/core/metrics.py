"""The metrics port: counters, gauges and histograms, with the metric names of the runtime.

Names are those of `operations.md` 6. Labels are controller, plane role, kind, verb and reason,
never the name of an object or a project: tenants must not grow the number of series.
`telemetry/opentelemetry.py` implements the port. It never raises.
"""

from __future__ import annotations

from typing import Final, Protocol

RECONCILE_TOTAL: Final = "controller_runtime_reconcile_total"
RECONCILE_ERRORS: Final = "controller_runtime_reconcile_errors_total"
RECONCILE_TERMINAL_ERRORS: Final = "controller_runtime_terminal_reconcile_errors_total"
RECONCILE_PANICS: Final = "controller_runtime_reconcile_panics_total"
RECONCILE_SECONDS: Final = "controller_runtime_reconcile_time_seconds"
MAX_CONCURRENT: Final = "controller_runtime_max_concurrent_reconciles"
ACTIVE_WORKERS: Final = "controller_runtime_active_workers"
QUEUE_DEPTH: Final = "workqueue_depth"
QUEUE_ADDS: Final = "workqueue_adds_total"
QUEUE_SECONDS: Final = "workqueue_queue_duration_seconds"
QUEUE_WORK_SECONDS: Final = "workqueue_work_duration_seconds"
QUEUE_UNFINISHED_SECONDS: Final = "workqueue_unfinished_work_seconds"
QUEUE_LONGEST_SECONDS: Final = "workqueue_longest_running_processor_seconds"
QUEUE_RETRIES: Final = "workqueue_retries_total"
REST_REQUESTS: Final = "rest_client_requests_total"
PLANE_UP: Final = "compute_plane_up"
PLANES: Final = "compute_planes"
STALE_SKIPS: Final = "compute_stale_sync_skips_total"
WATCH_RESTARTS: Final = "compute_watch_restarts_total"
WRITES: Final = "compute_writes_total"
UNREADABLE_OBJECTS: Final = "compute_unreadable_objects_total"


class MetricsPort(Protocol):
    """Records metrics. Labels are keywords, and each metric has the same set of labels in all
    calls.
    """

    def count(self, name: str, amount: int = 1, /, **labels: str) -> None:
        """Adds to a counter."""
        ...

    def gauge(self, name: str, value: float, /, **labels: str) -> None:
        """Sets a gauge."""
        ...

    def observe(self, name: str, value: float, /, **labels: str) -> None:
        """Records a value of a histogram; durations are in seconds."""
        ...


class NoMetrics:
    """Drops all metrics; for tests and tools."""

    def count(self, name: str, amount: int = 1, /, **labels: str) -> None:
        pass

    def gauge(self, name: str, value: float, /, **labels: str) -> None:
        pass

    def observe(self, name: str, value: float, /, **labels: str) -> None:
        pass
