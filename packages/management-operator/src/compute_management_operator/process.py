"""The process of the management operator: its credentials, its probes and the admission webhook.

All else of a process is the kit's `operator_process`, the same for both operators.
"""

from __future__ import annotations

from collections.abc import Mapping

from compute_management_operator.admission.webhook import build_host
from compute_management_operator.settings import ManagementSettings
from compute_management_operator.wiring import ManagementOperator
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.keys import Role
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


async def run(settings: ManagementSettings, info: ProcessInfo, lifecycle: Lifecycle) -> None:
    """Runs the process until a stop is requested, or its Lease is lost."""
    setup_process(settings)
    clock = SystemClock()
    credentials = load_credentials(settings, info.environ, clock)
    process = OperatorProcess(
        info, settings, credentials, clock, build=lambda process: build(settings, process)
    )
    await run_operator_process(process, lifecycle)


def build(settings: ManagementSettings, process: OperatorProcess) -> BuiltOperator:
    """Discovery and admission run on every replica, all else on the leader."""
    operator = ManagementOperator(settings, process.ports)
    ready = {"home-synced": operator.find_unsynced}
    if not settings.is_single:
        ready["discovery-synced"] = operator.find_projects_unlisted
    if settings.webhook_server is None:
        return BuiltOperator(operator=operator, ready=ready)
    admission = operator.admission
    host = build_host(
        process,
        settings.webhook_server,
        admission.review,
        admission.review_deployment if settings.delivers_data else None,
    )
    return BuiltOperator(
        operator=operator,
        healthy={"front-door": host.find_unhealthy},
        ready={**ready, "webhook": host.find_unready},
        background_tasks={"admission": host.run},
    )


def load_credentials(
    settings: ManagementSettings, environ: Mapping[str, str], clock: Clock
) -> OperatorCredentials:
    """Projects are reached as the Milo root is, and that as home, where no kubeconfig is named."""
    discovery, hub = settings.discovery, settings.hub
    kubeconfigs = {
        Role.ROOT: KubeconfigFile(discovery.discovery_kubeconfig_path),
        Role.PROJECT: KubeconfigFile(discovery.project_kubeconfig),
        Role.HUB: KubeconfigFile(hub.kubeconfig_path, hub.context),
    }
    return load_operator_credentials(
        kubeconfigs, environ, clock, allow_exec=settings.clients.allow_exec
    )
