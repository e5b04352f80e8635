"""The Pod of an Instance, or the Refusal where this cell cannot run it. Pure (pod-provider.md 2).

Whatever an Instance contains, its Pod has no host setting, no added capability, no service account
token and no volume but ConfigMaps, Secrets and empty directories: a tenant must not reach the node.
Equal input gives equal bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from compute_api_types import labels, names
from compute_api_types.meta import API_VERSION, ObjectMeta
from compute_api_types.v1alpha.instance import Instance, InstanceSpec
from compute_api_types.v1alpha.runtime import (
    Container,
    EnvVar,
    NamedPort,
    SandboxRuntime,
)
from compute_api_types.v1alpha.volumes import DiskSource, Volume
from compute_api_types.wire import JsonObject, JsonValue
from compute_pod_provider.instance_facts import ObservedInstance, Unreadable
from compute_pod_provider.options import PodOptions
from compute_pod_provider.render import refusal
from compute_pod_provider.render.limits import divide_size
from compute_pod_provider.render.network_policy import render_network_policy
from compute_pod_provider.render.refusal import Refusal

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
COMPONENT: Final = "compute-pod-provider"
TEMPLATE_HASH: Final = "compute.datumapis.com/template-hash"
LONGEST_HOSTNAME: Final = 63
# Node and host address are not for tenants.
_READABLE: Final = re.compile(
    r"metadata\.(name|namespace|uid|(labels|annotations)\['[^']+'\])|status\.podIPs?"
)
_SECURITY: Final[JsonObject] = {
    "allowPrivilegeEscalation": False,
    "privileged": False,
    "capabilities": {"drop": ["ALL"]},
}


def render(observed: ObservedInstance, options: PodOptions) -> JsonObject | Refusal:
    """The Pod document of an Instance, as it is sent."""
    instance = observed.parsed
    if isinstance(instance, Unreadable):
        return refusal.refuse_unreadable(instance.path)
    if instance.spec is None:
        return refusal.refuse_unreadable("spec")
    sandbox = instance.spec.runtime.sandbox
    if sandbox is None:
        return refusal.VIRTUAL_MACHINE
    refused = next(_refusals(instance.spec, sandbox, options), None)
    if refused is not None:
        return refused
    containers = _containers(instance.spec, sandbox, options)
    if isinstance(containers, Refusal):
        return containers
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(instance.metadata, instance.spec, options),
        "spec": _pod_spec(instance, sandbox, containers, options),
    }


def render_policy(observed: ObservedInstance, options: PodOptions) -> JsonObject | None:
    """The NetworkPolicy of an Instance that renders to a Pod; None where there is none."""
    instance = observed.parsed
    if not options.has_network_policies or isinstance(instance, Unreadable) or not instance.spec:
        return None
    metadata = _metadata(instance.metadata, instance.spec, options)
    return render_network_policy(
        metadata, instance.spec, instance.metadata.uid or "", options.denied_egress
    )


def _refusals(
    spec: InstanceSpec, sandbox: SandboxRuntime, options: PodOptions
) -> Iterator[Refusal]:
    for place, volume in enumerate(spec.volumes or ()):
        if not (volume.disk or volume.config_map or volume.secret):
            yield refusal.refuse_unreadable(f"spec.volumes[{place}]")
        is_ephemeral = volume.disk and options.has_ephemeral_disks and _has_filesystem(volume.disk)
        if volume.disk and not is_ephemeral:
            yield refusal.refuse_disk(volume.name)
    if spec.runtime.resources.instance_type not in options.sizes:
        yield refusal.refuse_type(spec.runtime.resources.instance_type)
    for container in sandbox.containers:
        for variable in container.env or ():
            reference = variable.value_from.field_ref if variable.value_from else None
            if reference and not _READABLE.fullmatch(reference.field_path):
                yield refusal.refuse_field(variable.name, container.name, reference.field_path)


def _has_filesystem(disk: DiskSource) -> bool:
    populator = disk.template.spec.populator
    return populator is not None and populator.filesystem is not None


def _metadata(metadata: ObjectMeta, spec: InstanceSpec, options: PodOptions) -> JsonObject:
    linking = {key: metadata.label(key) for key in labels.LINKING_LABELS}
    pod_labels: JsonObject = {MANAGED_BY: COMPONENT}
    pod_labels |= {key: value for key, value in linking.items() if value is not None}
    if options.has_network_policies:  # what its NetworkPolicy selects it by
        pod_labels[labels.INSTANCE_UID] = metadata.uid or ""
    annotations: JsonObject = {labels.INSTANCE_UID: metadata.uid or ""}
    if spec.controller is not None:
        annotations[TEMPLATE_HASH] = spec.controller.template_hash
    owner: JsonObject = {
        "apiVersion": API_VERSION,
        "kind": "Instance",
        "name": metadata.name,
        "uid": metadata.uid or "",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "name": metadata.name,
        "namespace": metadata.namespace or "",
        "labels": pod_labels,
        "annotations": annotations,
        "ownerReferences": [owner],
    }


def _pod_spec(
    instance: Instance,
    sandbox: SandboxRuntime,
    containers: list[JsonValue],
    options: PodOptions,
) -> JsonObject:
    spec: JsonObject = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": int(options.grace.total_seconds()),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": containers,
    }
    name = instance.metadata.name
    if len(name) <= LONGEST_HOSTNAME and names.is_dns_label(name):
        spec["hostname"] = name
    if options.is_restricted:
        spec["securityContext"] = {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
    else:
        spec["hostUsers"] = False
    secrets: list[JsonValue] = [{"name": one.name} for one in sandbox.image_pull_secrets or ()]
    volumes = instance.spec.volumes if instance.spec else None
    optional: JsonObject = {
        "imagePullSecrets": secrets,
        "volumes": [_volume(volume) for volume in volumes or ()],
        "nodeSelector": dict[str, JsonValue](options.node_selector),
        "tolerations": list[JsonValue](options.tolerations),
        "priorityClassName": options.priority_class,
        "runtimeClassName": options.runtime_class,
    }
    return spec | {key: value for key, value in optional.items() if value}


def _volume(volume: Volume) -> JsonObject:
    if volume.config_map is not None:
        return {"name": volume.name, "configMap": volume.config_map.to_document()}
    if volume.secret is not None:
        return {"name": volume.name, "secret": volume.secret.to_document()}
    resources = volume.disk.template.spec.resources if volume.disk else None
    storage = (resources.requests or {}).get("storage") if resources else None
    return {"name": volume.name, "emptyDir": {} if storage is None else {"sizeLimit": storage}}


def _containers(
    spec: InstanceSpec, sandbox: SandboxRuntime, options: PodOptions
) -> list[JsonValue] | Refusal:
    resources = spec.runtime.resources
    limits = divide_size(
        options.sizes[resources.instance_type], resources, tuple(sandbox.containers)
    )
    if limits is None:
        return refusal.refuse_size(resources.instance_type)
    read_only = {volume.name for volume in spec.volumes or () if volume.disk is None}
    return [
        _container(container, limit, read_only)
        for container, limit in zip(sandbox.containers, limits, strict=True)
    ]


def _container(container: Container, limits: dict[str, str], read_only: set[str]) -> JsonObject:
    rendered: JsonObject = {
        "name": container.name,
        "image": container.image,
        "resources": {
            "limits": dict[str, JsonValue](limits),
            "requests": dict[str, JsonValue](limits),
        },
        "securityContext": dict(_SECURITY),
    }
    mounts: list[JsonValue] = []
    for one in container.volume_attachments or ():
        if one.mount_path:
            mount: JsonObject = {"name": one.name, "mountPath": one.mount_path}
            mounts.append(mount | {"readOnly": True} if one.name in read_only else mount)
    optional: JsonObject = {
        "command": list[JsonValue](container.command or ()),
        "args": list[JsonValue](container.args or ()),
        "env": [_variable(variable) for variable in container.env or ()],
        "envFrom": [source.to_document() for source in container.env_from or ()],
        "ports": [_port(port) for port in container.ports or ()],
        "volumeMounts": mounts,
    }
    return rendered | {key: value for key, value in optional.items() if value}


def _variable(variable: EnvVar) -> JsonObject:
    if variable.value_from is not None:
        return {"name": variable.name, "valueFrom": variable.value_from.to_document()}
    rendered: JsonObject = {"name": variable.name}
    return rendered if variable.value is None else rendered | {"value": variable.value}


def _port(port: NamedPort) -> JsonObject:
    return {
        "name": port.name,
        "containerPort": port.port,
        "protocol": (port.protocol or "TCP").upper(),
    }
