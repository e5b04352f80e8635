"""The configuration file of the cell operator (operations.md 1.1), as strict models.

Sections that only this operator has, and the rules over several fields; the shared sections are the
kit's. A file that breaks a rule is refused with exit code 2, before anything starts.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import ClassVar, Final, Literal

from typing_extensions import override

from compute_api_types import names
from compute_operator_kit.config.settings import (
    FederatedRoot,
    FederationSettings,
    Heartbeat,
    Root,
    Rule,
    Section,
    Stabilization,
    SweepInterval,
    Switch,
    WorkersSettings,
)

RESERVED_CELL_NAME: Final = "single"


class CellIdentitySettings(Section):
    """The name and city of this cell."""

    name: str = ""  # required; the name of its Karmada Cluster
    city_code: str = ""  # to detect deployments of another city; "" is not known


class CellFederationSettings(FederationSettings):
    sweep_interval: SweepInterval = timedelta(minutes=10)
    heartbeat: Heartbeat = timedelta(seconds=15)  # of the cell's Lease on the hub; 0s is none


class QuotaSettings(Section):
    mode: Literal["enforce", "disabled"] = "enforce"
    kubeconfig_path: str = ""
    sweep_interval: SweepInterval = timedelta(minutes=10)


class AutoscalingSettings(Section):
    """Whether deployments are scaled by load in this cell."""

    mode: Switch = "off"
    # How long a lower number must hold before an autoscaler takes it.
    scale_down_stabilization: Stabilization = timedelta(seconds=60)


class CellSettings(FederatedRoot):
    """The whole file."""

    KIND: ClassVar[str] = "CellOperator"

    cell: CellIdentitySettings = CellIdentitySettings()
    federation: CellFederationSettings = CellFederationSettings()
    quota: QuotaSettings = QuotaSettings()
    autoscaling: AutoscalingSettings = AutoscalingSettings()
    workers: WorkersSettings = WorkersSettings()

    @property
    @override
    def hub(self) -> FederationSettings:
        return self.federation

    @property
    def is_federated(self) -> bool:
        return self.federation.mode == "karmada"

    @property
    def is_quota_enforced(self) -> bool:
        return self.quota.mode == "enforce"

    @property
    def is_autoscaling(self) -> bool:
        return self.autoscaling.mode == "on"

    @override
    def enabled(self) -> Iterable[str]:
        city = f", city {self.cell.city_code}" if self.cell.city_code else ""
        yield f"cell: {self.cell.name}{city}"
        yield from super().enabled()
        if self.is_autoscaling:
            yield "autoscaling: on"
        source = self.quota.kubeconfig_path or "the pod's own cluster"
        is_on = self.is_quota_enforced
        yield f"quota: {f'enforced, Milo of {source}' if is_on else 'disabled, nothing is claimed'}"

    def is_in_scope(self, namespace: str) -> bool:
        """Whether deployments and Instances of a namespace are reconciled here (cell.md 1)."""
        return not self.is_federated or names.parse_hub_namespace(namespace) is not None

    @classmethod
    @override
    def rules(cls) -> Iterable[Rule]:
        return (*super().rules(), *CELL_RULES)

    @override
    def configured_files(self) -> Iterable[tuple[str, Path]]:
        yield from super().configured_files()
        if self.quota.kubeconfig_path:
            yield "quota.kubeconfigPath", Path(self.quota.kubeconfig_path)


def _cell_has_a_name(root: Root) -> str | None:
    if not isinstance(root, CellSettings):
        return None
    if not root.cell.name:
        return "is required"
    if not names.is_dns_label(root.cell.name):
        return "expected a DNS label: the name of the cell's Karmada Cluster"
    return None


def _federated_cell_is_not_single(root: Root) -> str | None:
    # Labels name the plane of mode `single` so; a cell of a federation must not have that name.
    if not isinstance(root, CellSettings) or not root.is_federated:
        return None
    return "must not be single with federation on" if root.cell.name == RESERVED_CELL_NAME else None


def _city_can_be_a_label(root: Root) -> str | None:
    if not isinstance(root, CellSettings) or not root.cell.city_code:
        return None
    return None if names.is_label_value(root.cell.city_code) else "expected a legal label value"


def _quota_is_configured(root: Root) -> str | None:
    if not isinstance(root, CellSettings):
        return None
    if root.is_quota_enforced and not root.quota.kubeconfig_path:
        return "is required with quota.mode enforce"
    return None


def _quota_needs_federation(root: Root) -> str | None:
    """Without a hub no label names the project of a namespace, so that no claim has a project."""
    if not isinstance(root, CellSettings) or root.is_federated or not root.is_quota_enforced:
        return None
    return "none is refused with quota.mode enforce"


CELL_RULES: Final = (
    Rule(("cell.name",), _cell_has_a_name),
    Rule(("cell.name", "federation.mode"), _federated_cell_is_not_single),
    Rule(("cell.cityCode",), _city_can_be_a_label),
    Rule(("quota.kubeconfigPath", "quota.mode"), _quota_is_configured),
    Rule(("federation.mode", "quota.mode"), _quota_needs_federation),
)
