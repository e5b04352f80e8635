"""The three kinds of `compute.datumapis.com/v1alpha`, and every model they are made of.

    from compute_api_types.v1alpha import Container, Placement, Workload

A field never changes its meaning inside `v1alpha`. There is one kind per module, and a module for
each group of parts; a name is imported when it is first used, so that a program that needs one kind
does not load the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from compute_api_types.conditions import Condition
    from compute_api_types.meta import ObjectMeta, OwnerReference, TemplateMeta
    from compute_api_types.v1alpha.instance import (
        Instance,
        InstanceController,
        InstanceControllerStatus,
        InstanceSpec,
        InstanceStatus,
        InstanceTemplate,
        InterfaceAssignments,
        InterfaceStatus,
        LocationReference,
        SchedulingGate,
    )
    from compute_api_types.v1alpha.network_interfaces import (
        IPBlock,
        NetworkInterface,
        NetworkPolicy,
        NetworkPolicyIngressRule,
        NetworkPolicyPeer,
        NetworkPolicyPort,
        NetworkReference,
    )
    from compute_api_types.v1alpha.runtime import (
        ConfigMapEnvSource,
        ConfigMapKeyRef,
        Container,
        ContainerResources,
        EnvFromSource,
        EnvSource,
        EnvVar,
        FieldRef,
        ImagePullSecret,
        InstanceResources,
        InstanceRuntime,
        NamedPort,
        ResourceFieldRef,
        SandboxRuntime,
        SecretEnvSource,
        SecretKeyRef,
        VirtualMachineRuntime,
        VolumeAttachment,
    )
    from compute_api_types.v1alpha.scale_settings import (
        Metric,
        MetricTarget,
        ResourceMetric,
        ScaleSettings,
    )
    from compute_api_types.v1alpha.volumes import (
        ConfigMapSource,
        DiskPopulator,
        DiskResources,
        DiskSource,
        DiskSpec,
        DiskTemplate,
        FilesystemPopulator,
        ImagePopulator,
        KeyToPath,
        SecretSource,
        Volume,
    )
    from compute_api_types.v1alpha.workload import (
        Placement,
        PlacementStatus,
        Workload,
        WorkloadSpec,
        WorkloadStatus,
    )
    from compute_api_types.v1alpha.workload_deployment import (
        WorkloadDeployment,
        WorkloadDeploymentSpec,
        WorkloadDeploymentStatus,
        WorkloadReference,
    )

__all__ = [
    "Condition",
    "ConfigMapEnvSource",
    "ConfigMapKeyRef",
    "ConfigMapSource",
    "Container",
    "ContainerResources",
    "DiskPopulator",
    "DiskResources",
    "DiskSource",
    "DiskSpec",
    "DiskTemplate",
    "EnvFromSource",
    "EnvSource",
    "EnvVar",
    "FieldRef",
    "FilesystemPopulator",
    "IPBlock",
    "ImagePopulator",
    "ImagePullSecret",
    "Instance",
    "InstanceController",
    "InstanceControllerStatus",
    "InstanceResources",
    "InstanceRuntime",
    "InstanceSpec",
    "InstanceStatus",
    "InstanceTemplate",
    "InterfaceAssignments",
    "InterfaceStatus",
    "KeyToPath",
    "LocationReference",
    "Metric",
    "MetricTarget",
    "NamedPort",
    "NetworkInterface",
    "NetworkPolicy",
    "NetworkPolicyIngressRule",
    "NetworkPolicyPeer",
    "NetworkPolicyPort",
    "NetworkReference",
    "ObjectMeta",
    "OwnerReference",
    "Placement",
    "PlacementStatus",
    "ResourceFieldRef",
    "ResourceMetric",
    "SandboxRuntime",
    "ScaleSettings",
    "SchedulingGate",
    "SecretEnvSource",
    "SecretKeyRef",
    "SecretSource",
    "TemplateMeta",
    "VirtualMachineRuntime",
    "Volume",
    "VolumeAttachment",
    "Workload",
    "WorkloadDeployment",
    "WorkloadDeploymentSpec",
    "WorkloadDeploymentStatus",
    "WorkloadReference",
    "WorkloadSpec",
    "WorkloadStatus",
]

_HOMES: Final = {
    "conditions": ("Condition",),
    "meta": (
        "ObjectMeta",
        "OwnerReference",
        "TemplateMeta",
    ),
    "v1alpha.instance": (
        "Instance",
        "InstanceController",
        "InstanceControllerStatus",
        "InstanceSpec",
        "InstanceStatus",
        "InstanceTemplate",
        "InterfaceAssignments",
        "InterfaceStatus",
        "LocationReference",
        "SchedulingGate",
    ),
    "v1alpha.network_interfaces": (
        "IPBlock",
        "NetworkInterface",
        "NetworkPolicy",
        "NetworkPolicyIngressRule",
        "NetworkPolicyPeer",
        "NetworkPolicyPort",
        "NetworkReference",
    ),
    "v1alpha.runtime": (
        "ConfigMapEnvSource",
        "ConfigMapKeyRef",
        "Container",
        "ContainerResources",
        "EnvFromSource",
        "EnvSource",
        "EnvVar",
        "FieldRef",
        "ImagePullSecret",
        "InstanceResources",
        "InstanceRuntime",
        "NamedPort",
        "ResourceFieldRef",
        "SandboxRuntime",
        "SecretEnvSource",
        "SecretKeyRef",
        "VirtualMachineRuntime",
        "VolumeAttachment",
    ),
    "v1alpha.scale_settings": (
        "Metric",
        "MetricTarget",
        "ResourceMetric",
        "ScaleSettings",
    ),
    "v1alpha.volumes": (
        "ConfigMapSource",
        "DiskPopulator",
        "DiskResources",
        "DiskSource",
        "DiskSpec",
        "DiskTemplate",
        "FilesystemPopulator",
        "ImagePopulator",
        "KeyToPath",
        "SecretSource",
        "Volume",
    ),
    "v1alpha.workload": (
        "Placement",
        "PlacementStatus",
        "Workload",
        "WorkloadSpec",
        "WorkloadStatus",
    ),
    "v1alpha.workload_deployment": (
        "WorkloadDeployment",
        "WorkloadDeploymentSpec",
        "WorkloadDeploymentStatus",
        "WorkloadReference",
    ),
}
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"compute_api_types.{home}"), name)
    # Kept, so that the next access does not come here.
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
