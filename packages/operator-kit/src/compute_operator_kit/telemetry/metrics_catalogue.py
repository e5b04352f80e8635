"""The catalogue of all metrics: name, type, labels and help, as in `operations.md` 6 (tested).

Dashboards and alerts depend on the names. No label has the name of a project, namespace, workload
or instance, so that tenants cannot grow the number of series.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

LATENCY_BUCKETS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
# An Instance may wait for quota until a limit is raised the next day.
QUOTA_WAIT_BUCKETS: Final = (*LATENCY_BUCKETS, 900, 3600, 14400, 43200, 86400)


class MetricType(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric as it is scraped."""

    name: str
    type: MetricType
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()


def _counter(name: str, help_text: str, *labels: str) -> Metric:
    return Metric(name, MetricType.COUNTER, labels, help_text)


def _gauge(name: str, help_text: str, *labels: str) -> Metric:
    return Metric(name, MetricType.GAUGE, labels, help_text)


def _histogram(
    name: str, help_text: str, *labels: str, buckets: tuple[float, ...] = LATENCY_BUCKETS
) -> Metric:
    return Metric(name, MetricType.HISTOGRAM, labels, help_text, buckets)


# Compatible with the dashboards and alerts of controller-runtime.
CONTROLLER_RUNTIME: Final = (
    _counter("controller_runtime_reconcile_total", "Passes by result", "controller", "result"),
    _counter("controller_runtime_reconcile_errors_total", "Passes that failed", "controller"),
    _counter(
        "controller_runtime_terminal_reconcile_errors_total",
        "Passes that failed and are not tried again until something changes",
        "controller",
    ),
    _counter("controller_runtime_reconcile_panics_total", "Passes ended by a bug", "controller"),
    _histogram("controller_runtime_reconcile_time_seconds", "Duration of a pass", "controller"),
    _gauge("controller_runtime_max_concurrent_reconciles", "Workers", "controller"),
    _gauge("controller_runtime_active_workers", "Workers in a pass now", "controller"),
    _gauge("workqueue_depth", "Keys waiting", "name", "controller"),
    _counter("workqueue_adds_total", "Keys added", "name", "controller"),
    _histogram("workqueue_queue_duration_seconds", "How long a key waits", "name", "controller"),
    _histogram("workqueue_work_duration_seconds", "How long a key takes", "name", "controller"),
    _gauge(
        "workqueue_unfinished_work_seconds", "Sum of ages of running passes", "name", "controller"
    ),
    _gauge(
        "workqueue_longest_running_processor_seconds",
        "Age of the longest running pass",
        "name",
        "controller",
    ),
    _counter("workqueue_retries_total", "Keys tried again", "name", "controller"),
    _counter("controller_runtime_webhook_requests_total", "Admission requests", "webhook"),
    _histogram("controller_runtime_webhook_latency_seconds", "Time to answer one", "webhook"),
    _gauge("controller_runtime_webhook_requests_in_flight", "Unanswered ones", "webhook"),
    _gauge("leader_election_master_status", "1 while this process leads", "name"),
    _counter("certwatcher_read_certificate_total", "Serving certificates read"),
    _counter("certwatcher_read_certificate_errors_total", "Serving certificates unreadable"),
    _counter("rest_client_requests_total", "Requests to planes", "code", "method", "host"),
)

RUNTIME: Final = (
    _gauge("compute_build_info", "Always 1", "component", "version"),
    _gauge("compute_plane_up", "Whether the last exchange with a plane succeeded", "plane"),
    _gauge("compute_planes", "Project or quota planes by state", "plane", "state"),
    _gauge(
        "compute_oldest_pending_seconds",
        "Age of the oldest change the far plane has not acknowledged",
        "controller",
    ),
    _counter(
        "compute_stale_sync_skips_total",
        "Passes held back until the cache has seen our last write",
        "controller",
    ),
    _counter("compute_watch_restarts_total", "Watch streams started again", "plane", "code"),
    _counter(
        "compute_writes_total",
        "Mutating requests; flat at rest",
        "plane",
        "kind",
        "verb",
        "controller",
    ),
    _counter("compute_unreadable_objects_total", "Objects that did not parse", "plane", "kind"),
    _counter("compute_sweep_deletions_total", "Leftovers removed", "kind"),
    _counter("compute_sweep_refusals_total", "Removals held by the mass-delete guard", "kind"),
    _gauge("compute_serving_certificate_expiry_seconds", "Life left in a certificate", "server"),
)

MANAGEMENT: Final = (
    _gauge(
        "compute_caches_limited",
        "Project planes, and shares of the hub, of which less than all is cached",
        "plane",
        "reason",
    ),
    _gauge("compute_projects_engaged", "Project planes with synced caches"),
    _gauge("compute_projects_failing", "Projects that are Ready but not engaged"),
    _histogram("compute_project_engage_seconds", "Time to engage a project plane", "outcome"),
    _histogram("compute_federation_latency_seconds", "Project WD change seen to hub WD written"),
    _histogram(
        "compute_federation_mirror_latency_seconds",
        "Hub WD status seen to project WD status written",
    ),
    _gauge("compute_referenced_data_companions", "Companions on the hub"),
    _gauge("compute_referenced_data_errors", "WDs with data that stays away, by cause", "reason"),
    _gauge("compute_referenced_data_undistributed", "Hub WDs with data that Karmada ignores"),
    _counter("compute_referenced_data_writes_total", "Writes of companions", "operation"),
    _histogram("compute_referenced_data_lag_seconds", "Source change seen to companion written"),
    _histogram("compute_projection_lag_seconds", "Hub Instance change seen to projected"),
    _counter("compute_federation_writes_total", "Writes to the hub", "object", "operation"),
    _counter(
        "compute_federation_hub_errors_total",
        "Requests to the hub that failed",
        "controller",
        "operation",
        "code",
    ),
    _gauge("compute_federation_policies", "PropagationPolicies of ours"),
    _counter("compute_federation_policy_writes_total", "Writes to them", "operation"),
    _gauge("compute_federation_finalizers_held", "Deleting WDs we hold, by cause", "reason"),
    _counter("compute_federation_identity_conflicts_total", "Hub objects of others", "controller"),
    _gauge("compute_federation_orphaned_hub_objects", "Hub objects without a root"),
    _counter("compute_projection_writes_total", "Writes of projections", "operation"),
    _counter("compute_admission_requests_total", "Admission verdicts", "result", "reason"),
    _gauge(
        "compute_federation_deployments_reporting_cells",
        "Hub WDs by number of cells that report (0, 1, many)",
        "cells",
    ),
    _gauge("compute_suspended_projects", "Projects whose condition Suspended is True"),
    _gauge("compute_suspended_deployments", "Hub deployments that are suspended"),
    _gauge(
        "compute_suspension_unconfirmed",
        "Hub deployments that no cell has confirmed to be suspended or resumed for a minute",
        "cause",
    ),
    _gauge("compute_federation_cells", "Cells by whether they are heard", "state"),
    _gauge(
        "compute_federation_cell_lease_age_seconds",
        "Time since the Lease of a cell was seen to change",
        "cell",
    ),
    _counter(
        "compute_federation_dark_transitions_total",
        "Cells that became unreachable, or are heard again",
        "cell",
        "direction",
    ),
    _gauge(
        "compute_federation_dark_objects", "Objects of projects with CellUnreachable now", "kind"
    ),
    _gauge("compute_federation_ambiguous_cities", "City codes that more than one Cluster carries"),
    _counter(
        "compute_misplaced_claims_removed_total",
        "Claims that named a cell of another city than their slot's, removed",
        "cell",
    ),
    _gauge(
        "compute_unbacked_claims", "Claims that no deployment in the city of the cell backs", "cell"
    ),
    _gauge("compute_federation_quarantined_objects", "Objects not projected, by cause", "reason"),
    _counter(
        "compute_federation_dropped_events_total",
        "Watch events that lead to no key",
        "controller",
        "reason",
    ),
)

CELL: Final = (
    _gauge("compute_quota_enforcement_enabled", "0 when quota is disabled"),
    _histogram(
        "compute_writeback_lag_seconds", "Cell Instance change seen to hub copy acknowledged"
    ),
    _counter(
        "compute_cell_dropped_events_total",
        "Watch events that lead to no key",
        "controller",
        "reason",
    ),
    _histogram(
        "compute_quota_wait_seconds",
        "Instance created to Quota gate gone",
        buckets=QUOTA_WAIT_BUCKETS,
    ),
    _histogram("compute_quota_grant_to_ungate_seconds", "Grant seen to Quota gate gone"),
    _gauge("compute_quota_waiting_instances", "Gated Instances by cause", "reason"),
    _counter("compute_quota_eval_failures_total", "Claims without a verdict", "reason"),
    _counter("compute_quota_claims_recreated_total", "Claims made again", "reason"),
    _counter("compute_quota_claim_orphaned_total", "Claims given up"),
    _counter("compute_quota_claims_adopted_total", "Claims handed on in their slot"),
    _gauge("compute_quota_adoptions_pending", "Gates opened on a held grant, claim not patched"),
    _counter("compute_writeback_refusals_total", "Instances without a hub copy", "reason"),
    _gauge(
        "compute_referenced_data_waiting_instances",
        "Instances behind the ReferencedData gate by cause",
        "reason",
    ),
    _histogram(
        "compute_referenced_data_gate_wait_seconds",
        "Instance created to ReferencedData gate gone",
        buckets=QUOTA_WAIT_BUCKETS,
    ),
    _gauge("compute_autoscaled_deployments", "Autoscaled deployments by state", "state"),
    _counter("compute_autoscaling_steps_total", "Changes of their number", "direction"),
    _counter("compute_cell_heartbeats_total", "Renewals of the cell's Lease", "result"),
)

POD_PROVIDER: Final = (
    _gauge("compute_pod_provider_instances", "Instances by where they stand", "state"),
    _histogram("compute_pod_provider_start_seconds", "Ungated Instance seen to Pod created"),
    _histogram("compute_pod_provider_available_seconds", "Ungated Instance seen to Available"),
    _histogram("compute_pod_provider_stop_seconds", "Deleted Instance seen to Pod gone"),
    _counter("compute_pod_provider_pods_recreated_total", "Pods made again", "reason"),
    _counter(
        "compute_pod_provider_refusals_total",
        "Instances without a Pod, refused here or by the cluster",
        "reason",
    ),
    _counter("compute_pod_provider_stuck_teardowns_total", "Pods that did not end in time"),
)

EVERY_METRIC: Final = CONTROLLER_RUNTIME + RUNTIME + MANAGEMENT + CELL + POD_PROVIDER
