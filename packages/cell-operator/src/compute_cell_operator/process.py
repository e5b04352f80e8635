"""The process of the cell operator: its credentials, its quota client and its probes.

All else of a process is the kit's `operator_process`, the same for both operators.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from compute_cell_operator.planes import DEPLOYMENT, INSTANCE
from compute_cell_operator.quota.project_client import open_client
from compute_cell_operator.settings import CellSettings
from compute_cell_operator.wiring import CellOperator
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.keys import Kind, Role
from compute_operator_kit.core.system_clock import SystemClock
from compute_operator_kit.planes.endpoints import (
    KubeconfigFile,
    OperatorCredentials,
    load_operator_credentials,
)
from compute_operator_kit.process.lifecycle import Lifecycle
from compute_operator_kit.process.operator_process import (
    BuiltOperator,
    OperatorProcess,
    ProcessInfo,
    run_operator_process,
    setup_process,
)

# `reportingComponent` of events about Instances and deployments (cell.md 14).
EVENT_SOURCES: Final[Mapping[Kind, str]] = {
    INSTANCE: "instance-controller",
    DEPLOYMENT: "workloaddeployment-controller",
}

logger = logging.getLogger(__name__)


async def run(settings: CellSettings, info: ProcessInfo, lifecycle: Lifecycle) -> None:
    """Runs the process until a stop is requested, or its Lease is lost."""
    setup_process(settings)
    clock = SystemClock()
    credentials = load_credentials(settings, info.environ, clock)
    process = OperatorProcess(
        info,
        settings,
        credentials,
        clock,
        build=lambda process: build(settings, process),
        event_sources=EVENT_SOURCES,
    )
    await run_operator_process(process, lifecycle)


def build(settings: CellSettings, process: OperatorProcess) -> BuiltOperator:
    quota = None
    if settings.is_quota_enforced:
        quota = open_client(settings, process.user_agent, process.clock, process.random)
        process.on_close(quota.aclose)
    else:
        # Disabled quota is never a fallback, so it is logged (operations.md 2).
        logger.warning("Quota is disabled: every Instance starts")
    operator = CellOperator(settings, process.ports, quota)
    return BuiltOperator(operator=operator, ready={"home-synced": operator.find_unsynced})


def load_credentials(
    settings: CellSettings, environ: Mapping[str, str], clock: Clock
) -> OperatorCredentials:
    """Of the cell, which is home, and of the hub; the quota client reads its own kubeconfig."""
    hub = settings.federation
    kubeconfigs = {Role.HUB: KubeconfigFile(hub.kubeconfig_path, hub.context)}
    return load_operator_credentials(
        kubeconfigs, environ, clock, allow_exec=settings.clients.allow_exec
    )
