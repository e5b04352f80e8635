"""Reads of one Instance and its Pod: from kopf's indexes, or live from the API server.

An index is one moment without a request. It misses what vanished in a watch gap and lags behind our
own writes; a live read answers where that matters.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from compute_api_types.wire import JsonObject, JsonValue
from compute_pod_provider.cluster.client import ClusterClient
from compute_pod_provider.instance_facts import object_at, read_instance, text_at
from compute_pod_provider.plan import Observed
from compute_pod_provider.pod_facts import (
    NO_POD,
    NoPod,
    ObservedPod,
    derive_controller_uid,
    read_pod,
)

Document: TypeAlias = Mapping[str, JsonValue]
InstanceIndex: TypeAlias = Mapping[tuple[str, str], Collection[Document]]
PodIndex: TypeAlias = Mapping[str, Collection[Document]]


@dataclass(frozen=True, slots=True)
class InstanceKey:
    """Namespace and name of an Instance."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Indexes:
    """Instances by key, Pods by the UID of their controller; kept by kopf."""

    instances: InstanceIndex
    pods: PodIndex

    def find_instance(self, key: InstanceKey) -> Document | None:
        return next(iter(self.instances.get((key.namespace, key.name), ())), None)

    def find_pod(self, instance_uid: str) -> Document | None:
        return next(iter(self.pods.get(instance_uid, ())), None)

    def list_keys(self) -> tuple[InstanceKey, ...]:
        return tuple(InstanceKey(*key) for key in self.instances)


def observe(key: InstanceKey, indexes: Indexes, now: datetime) -> Observed | None:
    """The Instance with its Pod as the indexes have them; None: no such Instance."""
    document = indexes.find_instance(key)
    if document is None:
        return None
    instance = read_instance(document)
    pod = indexes.find_pod(instance.uid)
    return Observed(instance, NO_POD if pod is None else read_pod(pod), now)


async def observe_live(key: InstanceKey, client: ClusterClient, now: datetime) -> Observed | None:
    """The same from the API server; a Pod of another controller is none of ours."""
    document = await client.read_instance(key.namespace, key.name)
    if document is None:
        return None
    instance = read_instance(document)
    return Observed(instance, await read_own_pod(key, client, instance.uid), now)


async def read_own_pod(
    key: InstanceKey, client: ClusterClient, instance_uid: str
) -> ObservedPod | NoPod:
    document = await client.read_pod(key.namespace, key.name)
    if document is None or derive_controller_uid(document) != instance_uid:
        return NO_POD
    return read_pod(document)


def derive_key(document: Document) -> InstanceKey:
    metadata = object_at(document, "metadata")
    return InstanceKey(text_at(metadata, "namespace"), text_at(metadata, "name"))


def derive_version(document: JsonObject | Document) -> str:
    return text_at(object_at(document, "metadata"), "resourceVersion")
