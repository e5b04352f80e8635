"""Volumes of an instance: disks, ConfigMaps and Secrets (`docs/spec/api.md` 2.1).

Schema only. That a volume has exactly one source, and which sizes are allowed, is for admission.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from compute_api_types.meta import TemplateMeta
from compute_api_types.model import Model
from compute_api_types.scalars import (
    AtomicList,
    FilledBySchema,
    Int32,
    QuantityText,
    ReadOnlyMap,
)


class DiskResources(Model):
    """How large a disk is."""

    requests: ReadOnlyMap[QuantityText] | None = Field(
        default=None, description="What is asked for; only the key storage counts."
    )


class ImagePopulator(Model):
    """Fills a disk from an image."""

    name: str = Field(description="The image, such as datumcloud/ubuntu-2204-lts.")


class FilesystemPopulator(Model):
    """Makes an empty filesystem on a disk."""

    type: Literal["ext4"] = Field(description="The kind of filesystem.")


class DiskPopulator(Model):
    """What a new disk holds."""

    image: ImagePopulator | None = Field(default=None, description="An image to fill it from.")
    filesystem: FilesystemPopulator | None = Field(
        default=None, description="An empty filesystem to make on it."
    )


class DiskSpec(Model):
    """What a disk is like."""

    type: Annotated[str, FilledBySchema("pd-standard")] | None = Field(
        default=None, description="The kind of disk; pd-standard is the only one."
    )
    resources: DiskResources | None = Field(
        default=None, description="Its size; without it the size of the image."
    )
    populator: DiskPopulator | None = Field(
        default=None, description="What it holds at first; without it nothing, a raw device."
    )


class DiskTemplate(Model):
    """The disk that is made for each instance."""

    metadata: TemplateMeta | None = Field(default=None, description="Metadata of the disk.")
    spec: DiskSpec = Field(description="What the disk is like.")


class DiskSource(Model):
    """A disk of the instance's own."""

    device_name: str | None = Field(
        default=None, description="Its device name; persistent-disk-<index> when absent."
    )
    template: DiskTemplate = Field(description="The disk to make.")


class KeyToPath(Model):
    """One key of a ConfigMap or Secret as a file."""

    key: str = Field(description="The key.")
    path: str = Field(description="The file, relative to the mount.")
    mode: Int32 | None = Field(default=None, description="Its permission bits.")


class ConfigMapSource(Model):
    """The keys of a ConfigMap as files."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})

    name: Annotated[str, FilledBySchema("")] | None = Field(
        default=None, description="The ConfigMap, in the namespace of the Workload."
    )
    default_mode: Int32 | None = Field(
        default=None, description="Permission bits of files that state none."
    )
    optional: bool | None = Field(
        default=None, description="Whether the ConfigMap or its keys may be missing."
    )
    items: AtomicList[KeyToPath] | None = Field(
        default=None, description="Which keys, and where; absent means all under their names."
    )


class SecretSource(Model):
    """The keys of a Secret as files."""

    secret_name: str | None = Field(
        default=None, description="The Secret, in the namespace of the Workload."
    )
    default_mode: Int32 | None = Field(
        default=None, description="Permission bits of files that state none."
    )
    optional: bool | None = Field(
        default=None, description="Whether the Secret or its keys may be missing."
    )
    items: AtomicList[KeyToPath] | None = Field(
        default=None, description="Which keys, and where; absent means all under their names."
    )


class Volume(Model):
    """Something to attach to an instance; exactly one source is set."""

    name: str = Field(description="A DNS label; attachments refer to it.")
    disk: DiskSource | None = Field(default=None, description="A disk of the instance's own.")
    config_map: ConfigMapSource | None = Field(
        default=None, description="The keys of a ConfigMap as files."
    )
    secret: SecretSource | None = Field(default=None, description="The keys of a Secret as files.")
