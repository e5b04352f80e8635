"""Names of the metrics of the provider. Data; the kit's catalogue has types and labels."""

from __future__ import annotations

from typing import Final

INSTANCES: Final = "compute_pod_provider_instances"
START_SECONDS: Final = "compute_pod_provider_start_seconds"
AVAILABLE_SECONDS: Final = "compute_pod_provider_available_seconds"
STOP_SECONDS: Final = "compute_pod_provider_stop_seconds"
PODS_RECREATED: Final = "compute_pod_provider_pods_recreated_total"
REFUSALS: Final = "compute_pod_provider_refusals_total"
STUCK_TEARDOWNS: Final = "compute_pod_provider_stuck_teardowns_total"
