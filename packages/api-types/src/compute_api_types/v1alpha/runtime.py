"""How an instance runs: as a sandbox of containers or as a virtual machine (`docs/spec/api.md`
2.1).

Schema only. That exactly one of the two is set, and every other rule between fields, is for
admission.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import ConfigDict, Field

from compute_api_types.model import Model
from compute_api_types.scalars import (
    FilledBySchema,
    FilledKeyedList,
    FilledList,
    Integer,
    KeyedList,
    PlainList,
    QuantityText,
    ReadOnlyMap,
)

PortNumber: TypeAlias = Annotated[int, Integer(32, minimum=1, maximum=65535)]


class InstanceResources(Model):
    """The size of the whole instance."""

    instance_type: str = Field(
        description="A name of the catalogue, such as datumcloud/d1-standard-2."
    )
    requests: ReadOnlyMap[QuantityText] | None = Field(
        default=None, description="A size of one's own; not allowed for now."
    )


class ContainerResources(Model):
    """What one container gets; not allowed for now."""

    limits: ReadOnlyMap[QuantityText] | None = Field(default=None, description="At most this.")
    requests: ReadOnlyMap[QuantityText] | None = Field(default=None, description="At least this.")


class ConfigMapKeyRef(Model):
    """One key of a ConfigMap."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})

    key: str = Field(description="The key.")
    name: Annotated[str, FilledBySchema("")] | None = Field(
        default=None, description="The ConfigMap, in the namespace of the Workload."
    )
    optional: bool | None = Field(
        default=None, description="Whether the ConfigMap or its key may be missing."
    )


class SecretKeyRef(Model):
    """One key of a Secret."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})

    key: str = Field(description="The key.")
    name: Annotated[str, FilledBySchema("")] | None = Field(
        default=None, description="The Secret, in the namespace of the Workload."
    )
    optional: bool | None = Field(
        default=None, description="Whether the Secret or its key may be missing."
    )


class FieldRef(Model):
    """One field of the instance itself."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})

    field_path: str = Field(description="The path of the field.")
    api_version: str | None = Field(
        default=None, description="The version in which the path is written."
    )


class ResourceFieldRef(Model):
    """One resource of a container."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})

    resource: str = Field(description="The resource, such as limits.cpu.")
    container_name: str | None = Field(default=None, description="The container.")
    divisor: QuantityText | None = Field(
        default=None, description="The unit in which the value is given."
    )


class EnvSource(Model):
    """Where the value of a variable comes from; one source is set."""

    config_map_key_ref: ConfigMapKeyRef | None = Field(
        default=None, description="A key of a ConfigMap."
    )
    secret_key_ref: SecretKeyRef | None = Field(default=None, description="A key of a Secret.")
    field_ref: FieldRef | None = Field(default=None, description="A field of the instance.")
    resource_field_ref: ResourceFieldRef | None = Field(
        default=None, description="A resource of a container."
    )


class EnvVar(Model):
    """One environment variable."""

    name: str = Field(description="Its name.")
    value: str | None = Field(default=None, description="Its value.")
    value_from: EnvSource | None = Field(
        default=None, description="Where its value comes from instead."
    )


class ConfigMapEnvSource(Model):
    """All keys of a ConfigMap as variables."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})

    name: Annotated[str, FilledBySchema("")] | None = Field(
        default=None, description="The ConfigMap, in the namespace of the Workload."
    )
    optional: bool | None = Field(default=None, description="Whether the ConfigMap may be missing.")


class SecretEnvSource(Model):
    """All keys of a Secret as variables."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})

    name: Annotated[str, FilledBySchema("")] | None = Field(
        default=None, description="The Secret, in the namespace of the Workload."
    )
    optional: bool | None = Field(default=None, description="Whether the Secret may be missing.")


class EnvFromSource(Model):
    """A source of several variables; one of the two is set."""

    prefix: str | None = Field(
        default=None, description="What each key gets in front to become a variable."
    )
    config_map_ref: ConfigMapEnvSource | None = Field(
        default=None, description="All keys of a ConfigMap."
    )
    secret_ref: SecretEnvSource | None = Field(default=None, description="All keys of a Secret.")


class VolumeAttachment(Model):
    """A volume in use."""

    name: str = Field(description="The volume, an entry of volumes.")
    mount_path: str | None = Field(
        default=None, description="Where it is mounted; absent means as a raw device."
    )


class NamedPort(Model):
    """A port that others may refer to by name."""

    name: str = Field(description="Its name, at most 15 characters.")
    port: PortNumber = Field(description="Its number.")
    protocol: str | None = Field(default=None, description="Its protocol; absent means TCP.")


class Container(Model):
    """One container of a sandbox."""

    name: str = Field(description="A DNS label.")
    image: str = Field(description="The image reference.")
    command: PlainList[str] | None = Field(
        default=None, description="Replaces the image's entrypoint; tokens, no shell."
    )
    args: PlainList[str] | None = Field(
        default=None, description="Replaces the image's arguments; tokens, no shell."
    )
    env: KeyedList[EnvVar] | None = Field(default=None, description="Environment variables.")
    env_from: PlainList[EnvFromSource] | None = Field(
        default=None, description="ConfigMaps and Secrets whose keys become variables."
    )
    resources: ContainerResources | None = Field(
        default=None, description="What the container gets; not allowed for now."
    )
    volume_attachments: PlainList[VolumeAttachment] | None = Field(
        default=None, description="Volumes in use."
    )
    ports: KeyedList[NamedPort] | None = Field(default=None, description="Ports it serves.")


class ImagePullSecret(Model):
    """A Secret to pull images with."""

    name: str = Field(description="The Secret, in the namespace of the Workload.")


class SandboxRuntime(Model):
    """Containers that run together."""

    containers: FilledKeyedList[Container] = Field(description="The containers.")
    image_pull_secrets: PlainList[ImagePullSecret] | None = Field(
        default=None, description="Secrets to pull images with."
    )


class VirtualMachineRuntime(Model):
    """A virtual machine that boots an image of the user."""

    volume_attachments: FilledList[VolumeAttachment] = Field(
        description="Volumes in use; the first one is the boot volume."
    )
    ports: KeyedList[NamedPort] | None = Field(default=None, description="Ports it serves.")


class InstanceRuntime(Model):
    """How an instance runs; exactly one of sandbox and virtualMachine is set."""

    resources: InstanceResources = Field(description="The size of the whole instance.")
    sandbox: SandboxRuntime | None = Field(default=None, description="Runs as containers.")
    virtual_machine: VirtualMachineRuntime | None = Field(
        default=None, description="Runs as a virtual machine."
    )
