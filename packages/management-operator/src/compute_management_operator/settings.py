"""The configuration file of the management operator (operations.md 1.1), as strict models.

Sections that only this operator has, and the rules over several fields; the shared sections are the
kit's. A file that breaks a rule is refused with exit code 2, before anything starts.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from compute_operator_kit.config.settings import (
    FederatedRoot,
    FederationSettings,
    Root,
    Rule,
    Section,
    UnreachableAfter,
    WebhookServerSettings,
    WorkersSettings,
)


class DiscoverySettings(Section):
    """How project planes are discovered."""

    mode: Literal["milo", "single"] = "milo"
    discovery_kubeconfig_path: str = ""  # Milo's root; "" is the pod's own cluster
    project_kubeconfig_path: str = ""  # base of project planes; "" is the one above

    @property
    def project_kubeconfig(self) -> str:
        return self.project_kubeconfig_path or self.discovery_kubeconfig_path


class ProjectionSettings(Section):
    require_cell_label: bool = True


class CellHealthSettings(Section):
    """When a cell counts as unreachable."""

    # Without a renewal of its Lease; below 30s for trials only, 0s: no cell is ever unreachable.
    unreachable_after: UnreachableAfter = timedelta(seconds=60)


class CachesSettings(Section):
    """Cache budgets of one project, and of one cell on the hub.

    By default eight projects at their limit, on their planes and on the hub, fit into the shipped
    memory limit beside the process at rest.
    """

    bytes_per_project: Annotated[int, Field(ge=1024**2, le=1024**3)] = 8 * 1024**2
    objects_per_project: Annotated[int, Field(ge=100, le=1_000_000)] = 5_000
    bytes_per_cell: Annotated[int, Field(ge=1024**2, le=1024**3)] = 16 * 1024**2
    objects_per_cell: Annotated[int, Field(ge=100, le=1_000_000)] = 10_000


class ManagementWorkersSettings(WorkersSettings):
    total: Annotated[int, Field(ge=1, le=1024)] = 32
    per_project: Annotated[int, Field(ge=1, le=1024)] = 4


class ManagementSettings(FederatedRoot):
    """The whole file."""

    KIND: ClassVar[str] = "ManagementOperator"

    discovery: DiscoverySettings = DiscoverySettings()
    federation: FederationSettings = FederationSettings()
    webhook_server: WebhookServerSettings | None = None
    projection: ProjectionSettings = ProjectionSettings()
    cell_health: CellHealthSettings = CellHealthSettings()
    workers: ManagementWorkersSettings = ManagementWorkersSettings()
    caches: CachesSettings = CachesSettings()

    @property
    @override
    def hub(self) -> FederationSettings:
        return self.federation

    @property
    def is_federated(self) -> bool:
        return self.federation.mode == "karmada"

    @property
    def is_single(self) -> bool:
        return self.discovery.mode == "single"

    @classmethod
    @override
    def rules(cls) -> Iterable[Rule]:
        return (*super().rules(), *MANAGEMENT_RULES)

    @override
    def enabled(self) -> Iterable[str]:
        source = self.discovery.discovery_kubeconfig_path or "the pod's own cluster"
        what = "this cluster alone" if self.is_single else f"the projects of {source}"
        yield f"discovery: {self.discovery.mode}, {what}"
        yield from super().enabled()
        server = self.webhook_server
        yield f"admission webhook: {f'on port {server.port}' if server else 'off'}"

    @override
    def configured_files(self) -> Iterable[tuple[str, Path]]:
        yield from super().configured_files()
        section = self.discovery
        if section.discovery_kubeconfig_path:
            yield "discovery.discoveryKubeconfigPath", Path(section.discovery_kubeconfig_path)
        if section.project_kubeconfig_path:
            yield "discovery.projectKubeconfigPath", Path(section.project_kubeconfig_path)
        if self.webhook_server is not None:
            yield "webhookServer.tls", self.webhook_server.tls.certificate
            yield "webhookServer.tls", self.webhook_server.tls.key


def _many_projects_need_a_hub(root: Root) -> str | None:
    if not isinstance(root, ManagementSettings) or root.is_federated or root.is_single:
        return None
    return "none is refused with discovery.mode milo"


def _single_needs_no_root(root: Root) -> str | None:
    """The one project is the home plane, so that a kubeconfig here would have no effect."""
    if not isinstance(root, ManagementSettings) or not root.is_single:
        return None
    return "is refused with discovery.mode single" if _names_kubeconfig(root.discovery) else None


def _names_kubeconfig(section: DiscoverySettings) -> bool:
    return bool(section.discovery_kubeconfig_path or section.project_kubeconfig_path)


def _projects_fit_the_pool(root: Root) -> str | None:
    if not isinstance(root, ManagementSettings) or root.workers.per_project <= root.workers.total:
        return None
    return "must not be more than workers.total"


def _webhook_has_its_port(root: Root) -> str | None:
    if not isinstance(root, ManagementSettings) or root.webhook_server is None:
        return None
    taken = (root.health.bind, root.metrics_server.bind)
    if root.webhook_server.port in {bind.port for bind in taken if bind is not None}:
        return "is taken by health.bindAddress or metricsServer.bindAddress"
    return None


MANAGEMENT_RULES = (
    Rule(("federation.mode", "discovery.mode"), _many_projects_need_a_hub),
    Rule(("discovery", "discovery.mode"), _single_needs_no_root),
    Rule(("workers.perProject", "workers.total"), _projects_fit_the_pool),
    Rule(
        ("webhookServer.port", "health.bindAddress", "metricsServer.bindAddress"),
        _webhook_has_its_port,
    ),
)
