"""The configuration file of the pod provider (pod-provider.md 8), as strict models.

A wrong size or an unknown word is refused with exit code 2 before anything starts, so that no
Instance runs with a size that a typo chose.
"""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_network
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal, TypeAlias, cast

from pydantic import AfterValidator, BeforeValidator, Field

from compute_api_types.quantity import MEBI, MILLI, QuantityError, parse_quantity, round_up
from compute_api_types.sizes import CATALOGUE, Size
from compute_operator_kit.config.settings import Duration, Root, Section
from compute_pod_provider.options import PodOptions


def _check_quantity(text: str) -> str:
    try:
        amount = parse_quantity(text)
    except QuantityError as refused:
        raise ValueError(refused.detail) from None
    if amount <= 0:
        raise ValueError("must be above zero")
    return text


def _whole_seconds(value: timedelta) -> timedelta:
    if value % timedelta(seconds=1):
        raise ValueError("must be whole seconds")
    return value


Amount: TypeAlias = Annotated[str, AfterValidator(_check_quantity)]
GracePeriod: TypeAlias = Annotated[Duration, AfterValidator(_whole_seconds)]


def _check_range(text: str) -> str:
    try:
        return str(ip_network(text))
    except ValueError as refused:
        raise ValueError(f"is no range of addresses: {refused}") from None


Range: TypeAlias = Annotated[str, AfterValidator(_check_range)]


def _as_tuple(value: object) -> object:
    return tuple(cast("list[object]", value)) if isinstance(value, list) else value


class SizeSettings(Section):
    """What an instance type is given in this cell."""

    cpu: Amount = "1"
    memory: Amount = "2Gi"


class TolerationSettings(Section):
    """A toleration of every Pod, as Kubernetes has it."""

    key: str = ""
    operator: Literal["Exists", "Equal"] = "Equal"
    value: str = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""


class PodsSettings(Section):
    """Times and placing of every Pod."""

    termination_grace_period: GracePeriod = timedelta(seconds=30)
    available_after: Duration = timedelta(seconds=2)
    available_after_restart: Duration = timedelta(seconds=10)
    provisioning_after: Duration = timedelta(seconds=4)
    node_selector: dict[str, str] = Field(default_factory=dict[str, str])
    tolerations: Annotated[tuple[TolerationSettings, ...], BeforeValidator(_as_tuple)] = ()
    priority_class_name: str = ""
    runtime_class_name: str = ""


class NetworkSettings(Section):
    """What Pods may not connect to, where NetworkPolicies are on."""

    deny_egress: Annotated[tuple[Range, ...], BeforeValidator(_as_tuple)] = ("169.254.0.0/16",)


class PodProviderSettings(Root):
    """The whole file."""

    KIND: ClassVar[str] = "PodProvider"

    scope: Literal["federated", "all"] = "federated"
    security: Literal["restricted", "baseline"] = "restricted"
    virtual_machine: Literal["refuse", "ignore"] = "refuse"
    disks: Literal["refuse", "ephemeral"] = "refuse"
    network_policy: Literal["off", "on"] = "off"
    network: NetworkSettings = NetworkSettings()
    sizes: dict[str, SizeSettings] = Field(default_factory=dict[str, SizeSettings])
    pods: PodsSettings = PodsSettings()

    def options(self, own_namespace: str) -> PodOptions:
        """The settings as decisions take them."""
        pods = self.pods
        given = {name: _size(size) for name, size in self.sizes.items()}
        return PodOptions(
            is_federated=self.scope == "federated",
            own_namespace=own_namespace,
            is_restricted=self.security == "restricted",
            ignores_virtual_machines=self.virtual_machine == "ignore",
            has_ephemeral_disks=self.disks == "ephemeral",
            has_network_policies=self.network_policy == "on",
            denied_egress=self.network.deny_egress,
            sizes=MappingProxyType({**CATALOGUE, **given}),
            grace=pods.termination_grace_period,
            available_after=pods.available_after,
            available_after_restart=pods.available_after_restart,
            provisioning_after=pods.provisioning_after,
            node_selector=pods.node_selector,
            tolerations=tuple(
                one.model_dump(by_alias=True, exclude_defaults=True) for one in pods.tolerations
            ),
            priority_class=pods.priority_class_name,
            runtime_class=pods.runtime_class_name,
        )


def _size(size: SizeSettings) -> Size:
    cpu, memory = parse_quantity(size.cpu), parse_quantity(size.memory)
    return Size(round_up(cpu, MILLI), round_up(memory, MEBI))
