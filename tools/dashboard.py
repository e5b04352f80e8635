"""Writes the Grafana dashboard, `deploy/components/monitoring/dashboard.yaml`, from a table.

A panel is a title, a unit and its expressions; where it stands on the page follows from the order.
Nothing in the file is written by hand, so that a metric is renamed in one place.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tools.workspace import ROOT

FILE: Final = ROOT / "deploy" / "components" / "monitoring" / "dashboard.yaml"
COLUMNS: Final = 24
HEIGHT: Final = 8
INSTANCE_WRITES: Final = (
    'compute_writes_total{controller="deployment",kind="Instance",verb=~"create|delete"}'
)


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture; each query is an expression and the words of its legend."""

    title: str
    tells: str
    unit: str
    queries: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Row:
    """Panels that answer one question."""

    title: str
    panels: tuple[Panel, ...]


def p99(metric: str, by: str = "") -> str:
    return quantile(0.99, metric, by)


def quantile(share: float, metric: str, by: str = "", over: str = "5m") -> str:
    kept = f"{by}, le" if by else "le"
    return f"histogram_quantile({share}, sum by ({kept}) (rate({metric}_bucket[{over}])))"


def rate(metric: str, by: str) -> str:
    return f"sum by ({by}) (rate({metric}[5m]))"


ROWS: Final = (
    Row(
        "Is everything there?",
        (
            Panel(
                "Planes up",
                "1 while the last exchange succeeded. A plane that is away delays what needs it.",
                "bool_on_off",
                (("min by (plane, instance) (compute_plane_up)", "{{plane}} from {{instance}}"),),
            ),
            Panel(
                "Project and quota planes by state",
                "Down planes hold up their own project only.",
                "short",
                (("sum by (plane, state) (compute_planes)", "{{plane}} {{state}}"),),
            ),
            Panel(
                "Leaders",
                "Exactly one per operator.",
                "short",
                (("sum by (namespace, name) (leader_election_master_status)", "{{name}}"),),
            ),
            Panel(
                "Projects",
                "Ready ones that are served, and that are not.",
                "short",
                (
                    ("compute_projects_engaged", "engaged"),
                    ("compute_projects_failing", "failing"),
                ),
            ),
        ),
    ),
    Row(
        "How late are we?",
        (
            Panel(
                "Lag by stage, p99",
                "From a change seen to its effect on the next plane.",
                "s",
                (
                    (p99("compute_federation_latency_seconds"), "project to hub"),
                    (p99("compute_writeback_lag_seconds"), "cell to hub"),
                    (p99("compute_projection_lag_seconds"), "hub to project"),
                    (p99("compute_federation_mirror_latency_seconds"), "status to project"),
                ),
            ),
            Panel(
                "Oldest change not acknowledged",
                "0 when nothing waits for a far plane.",
                "s",
                (
                    (
                        "max by (controller) (compute_oldest_pending_seconds)",
                        "{{controller}}",
                    ),
                ),
            ),
            Panel(
                "Keys waiting",
                "Depth of the work queues.",
                "short",
                (("sum by (controller) (workqueue_depth)", "{{controller}}"),),
            ),
            Panel(
                "Time in the queue, p99",
                "How long a key waits for a worker.",
                "s",
                ((p99("workqueue_queue_duration_seconds", "controller"), "{{controller}}"),),
            ),
        ),
    ),
    Row(
        "Who waits for quota, or for data?",
        (
            Panel(
                "Instances waiting",
                "Gated Instances by the reason of QuotaGranted.",
                "short",
                (("sum by (reason) (compute_quota_waiting_instances)", "{{reason}}"),),
            ),
            Panel(
                "Quota wait, p50 and p99",
                "Instance created to gate gone; and our share, grant seen to gate gone.",
                "s",
                (
                    (quantile(0.5, "compute_quota_wait_seconds", over="15m"), "p50"),
                    (quantile(0.99, "compute_quota_wait_seconds", over="15m"), "p99"),
                    (p99("compute_quota_grant_to_ungate_seconds"), "our share, p99"),
                ),
            ),
            Panel(
                "Instances waiting for data",
                "Instances behind the ReferencedData gate by the reason of ReferencedDataReady.",
                "short",
                (("sum by (reason) (compute_referenced_data_waiting_instances)", "{{reason}}"),),
            ),
            Panel(
                "Claims without a verdict",
                "Why quota could not be asked.",
                "cps",
                (
                    (
                        rate("compute_quota_eval_failures_total", "reason"),
                        "{{reason}}",
                    ),
                ),
            ),
        ),
    ),
    Row(
        "What do we do?",
        (
            Panel(
                "Rollouts",
                "Instances made and removed by the cells.",
                "cps",
                (
                    (
                        rate(INSTANCE_WRITES, "verb"),
                        "{{verb}}",
                    ),
                ),
            ),
            Panel(
                "Writes",
                "Mutating requests; flat at rest.",
                "cps",
                (
                    (
                        rate("compute_writes_total", "plane, controller"),
                        "{{controller}} to {{plane}}",
                    ),
                ),
            ),
            Panel(
                "Passes by result",
                "Errors are tried again with back-off.",
                "cps",
                (
                    (
                        rate("controller_runtime_reconcile_total", "controller, result"),
                        "{{controller}} {{result}}",
                    ),
                ),
            ),
            Panel(
                "Admission verdicts",
                "Workloads let in and refused.",
                "cps",
                (
                    (
                        rate("compute_admission_requests_total", "result, reason"),
                        "{{result}} {{reason}}",
                    ),
                ),
            ),
        ),
    ),
    Row(
        "What is kept apart?",
        (
            Panel(
                "Quarantine",
                "Hub objects that no user is shown.",
                "short",
                (
                    (
                        "sum by (reason) (compute_federation_quarantined_objects)",
                        "{{reason}}",
                    ),
                ),
            ),
            Panel(
                "Copies not written",
                "Instances that a cell may not write back.",
                "cps",
                (
                    (
                        rate("compute_writeback_refusals_total", "reason"),
                        "{{reason}}",
                    ),
                ),
            ),
            Panel(
                "Deletions held",
                "Deployments that cannot go yet.",
                "short",
                (("sum by (reason) (compute_federation_finalizers_held)", "{{reason}}"),),
            ),
            Panel(
                "Cities with more than one cell",
                "Outside the launch scope: each runs every replica.",
                "short",
                (("compute_federation_ambiguous_cities", "cities"),),
            ),
            Panel(
                "Suspended",
                "Projects and deployments that the platform has stopped.",
                "short",
                (
                    ("compute_suspended_projects", "projects"),
                    ("compute_suspended_deployments", "deployments"),
                ),
            ),
            Panel(
                "Suspensions not confirmed",
                "A cell may still run what is to be stopped, or not yet what resumed.",
                "short",
                (("sum by (cause) (compute_suspension_unconfirmed)", "{{cause}}"),),
            ),
            Panel(
                "Cells by what is heard of them",
                "Dark: neither the cell's Lease nor Karmada; users read CellUnreachable.",
                "short",
                (("max by (state) (compute_federation_cells)", "{{state}}"),),
            ),
            Panel(
                "Age of the cells' Leases",
                "Since each Lease was seen to change.",
                "s",
                (("max by (cell) (compute_federation_cell_lease_age_seconds)", "{{cell}}"),),
            ),
            Panel(
                "Objects that state CellUnreachable",
                "Deployments and Instances of projects.",
                "short",
                (("max by (kind) (compute_federation_dark_objects)", "{{kind}}"),),
            ),
            Panel(
                "Cells that became unreachable or returned",
                "Verdicts that changed, per hour.",
                "short",
                (
                    (
                        "sum by (cell) (increase(compute_federation_dark_transitions_total[1h]))",
                        "{{cell}}",
                    ),
                ),
            ),
            Panel(
                "Claims that nothing backs",
                "Quota claims in the name of a cell that runs nothing for them.",
                "short",
                (("sum by (cell) (compute_unbacked_claims)", "{{cell}}"),),
            ),
            Panel(
                "Claims of other cities removed",
                "Quota claims that took the place of a slot of another city.",
                "short",
                (
                    (
                        "sum by (cell) (increase(compute_misplaced_claims_removed_total[15m]))",
                        "{{cell}}",
                    ),
                ),
            ),
        ),
    ),
    Row(
        "Do containers run?",
        (
            Panel(
                "Instances of the pod provider by state",
                "Where each Instance that runs as a Pod stands; `stopping` should pass.",
                "short",
                (("sum by (state) (compute_pod_provider_instances)", "{{state}}"),),
            ),
            Panel(
                "Seconds to available",
                "From the last gate to Available, images pulled included.",
                "s",
                (
                    (
                        (
                            "histogram_quantile(0.99, sum by (le) "
                            "(rate(compute_pod_provider_available_seconds_bucket[15m])))"
                        ),
                        "p99",
                    ),
                ),
            ),
            Panel(
                "Pods made again",
                "Pods that were lost, by the cause; many evictions: nodes are too small.",
                "short",
                (
                    (
                        (
                            "sum by (reason) "
                            "(increase(compute_pod_provider_pods_recreated_total[15m]))"
                        ),
                        "{{reason}}",
                    ),
                ),
            ),
            Panel(
                "Pods that do not end",
                "Teardowns that took over five minutes more than their grace period.",
                "short",
                (
                    (
                        (
                            "sum by (instance) "
                            "(increase(compute_pod_provider_stuck_teardowns_total[15m]))"
                        ),
                        "{{instance}}",
                    ),
                ),
            ),
        ),
    ),
)


def build() -> dict[str, object]:
    return {
        "uid": "compute-federation",
        "title": "Compute federation",
        "tags": ["compute"],
        "timezone": "utc",
        "schemaVersion": 39,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {"name": "source", "label": "Source", "type": "datasource", "query": "prometheus"}
            ]
        },
        "panels": list(_place(ROWS)),
    }


def _place(rows: Sequence[Row]) -> Iterator[dict[str, object]]:
    """Rows below each other, the panels of one side by side."""
    number = 0
    for line, row in enumerate(rows):
        number += 1
        top = line * (HEIGHT + 1)
        where = {"h": 1, "w": COLUMNS, "x": 0, "y": top}
        yield {"id": number, "type": "row", "title": row.title, "gridPos": where, "panels": []}
        width = COLUMNS // len(row.panels)
        for column, panel in enumerate(row.panels):
            number += 1
            place = {"h": HEIGHT, "w": width, "x": column * width, "y": top + 1}
            yield _draw(number, panel, place)


def _draw(number: int, panel: Panel, place: dict[str, int]) -> dict[str, object]:
    source = {"type": "prometheus", "uid": "${source}"}
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.tells,
        "datasource": source,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + place),
                "datasource": source,
                "expr": expr,
                "legendFormat": name,
            }
            for place, (expr, name) in enumerate(panel.queries)
        ],
    }


def render() -> str:
    body = json.dumps(build(), indent=2)
    indented = "\n".join(f"    {line}" for line in body.splitlines())
    return f"""\
# Generated by `./dev generate` from tools/dashboard.py.
apiVersion: v1
kind: ConfigMap
metadata:
  name: compute-dashboard
  namespace: compute-system
  labels:
    app.kubernetes.io/name: compute-dashboard
    app.kubernetes.io/component: monitoring
    app.kubernetes.io/part-of: compute
    grafana_dashboard: "1"
data:
  compute-federation.json: |
{indented}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the dashboard.")
    parser.add_argument("--check", action="store_true", help="only say whether it is out of date")
    check: bool = parser.parse_args().check
    wanted = render()
    is_stale = not FILE.exists() or FILE.read_text("utf-8") != wanted
    if is_stale and check:
        print(f"dashboard: {FILE.relative_to(ROOT)} is out of date; run `./dev generate`")
    elif is_stale:
        FILE.write_text(wanted, "utf-8")
    return 1 if check and is_stale else 0


if __name__ == "__main__":
    sys.exit(main())
