"""Decoders of the kinds of Karmada, Milo and the network services, and of Pods.

Of each only the fields that a stage or a contradiction uses; a Pod is decoded without its spec.
"""

from __future__ import annotations

from collections.abc import Iterator

from compute_api_types import labels, names
from compute_api_types.wire import JsonObject
from compute_kubectl.snapshot.decode_metadata import (
    decode_conditions,
    decode_meta,
    find_unreadable,
)
from compute_kubectl.snapshot.json_reads import (
    flag_at,
    number_at,
    object_at,
    objects_at,
    text_at,
)
from compute_kubectl.snapshot.objects import (
    Amount,
    AppliedStatus,
    SeenBinding,
    SeenBucket,
    SeenClaim,
    SeenCluster,
    SeenLocation,
    SeenNetworkObject,
    SeenPod,
    SeenPolicy,
)

_CITY = ("clusterAffinity", "labelSelector", "matchLabels", labels.TOPOLOGY_CITY_CODE)


def decode_policy(document: JsonObject) -> SeenPolicy:
    return SeenPolicy(
        meta=decode_meta(document),
        conditions=decode_conditions(document.get("status")),
        unreadable=find_unreadable(document),
        city=text_at(document, "spec", "placement", *_CITY),
    )


def decode_binding(document: JsonObject) -> SeenBinding:
    spec, status = object_at(document, "spec"), object_at(document, "status")
    return SeenBinding(
        meta=decode_meta(document),
        conditions=decode_conditions(status),
        unreadable=find_unreadable(document),
        resource_kind=text_at(spec, "resource", "kind"),
        resource_name=text_at(spec, "resource", "name"),
        resource_uid=text_at(spec, "resource", "uid"),
        clusters=tuple(text_at(cluster, "name") for cluster in objects_at(spec, "clusters")),
        applied=tuple(_applied(entry) for entry in objects_at(status, "aggregatedStatus")),
        scheduler_observed_generation=number_at(status, "schedulerObservedGeneration") or 0,
    )


def _applied(entry: JsonObject) -> AppliedStatus:
    return AppliedStatus(
        cluster=text_at(entry, "clusterName"),
        is_applied=flag_at(entry, "applied") is True,
        message=text_at(entry, "appliedMessage"),
        observed_template_generation=number_at(entry, "status", "observedTemplateGeneration"),
    )


def decode_cluster(document: JsonObject) -> SeenCluster:
    meta = decode_meta(document)
    return SeenCluster(
        meta=meta,
        conditions=decode_conditions(document.get("status")),
        unreadable=find_unreadable(document, needs_spec=False),
        city=meta.labels.get(labels.TOPOLOGY_CITY_CODE, ""),
        sync_mode=text_at(document, "spec", "syncMode"),
    )


def decode_claim(document: JsonObject) -> SeenClaim:
    meta, spec = decode_meta(document), object_at(document, "spec")
    return SeenClaim(
        meta=meta,
        conditions=decode_conditions(document.get("status")),
        unreadable=find_unreadable(document),
        instance=names.parse_claim_name(meta.name) or "",
        instance_uid=meta.annotations.get(labels.INSTANCE_UID, ""),
        requests=tuple(_amounts(spec, "requests", "amount")),
        allocations=tuple(
            _amounts(object_at(document, "status"), "allocations", "allocatedAmount")
        ),
        project=text_at(spec, "consumerRef", "name"),
    )


def _amounts(parent: JsonObject, member: str, amount: str) -> Iterator[Amount]:
    for entry in objects_at(parent, member):
        resource_type, number = text_at(entry, "resourceType"), number_at(entry, amount)
        if resource_type:
            yield Amount(resource_type, number or 0, text_at(entry, "status"))


def decode_bucket(document: JsonObject) -> SeenBucket:
    spec, status = object_at(document, "spec"), object_at(document, "status")
    return SeenBucket(
        meta=decode_meta(document),
        conditions=decode_conditions(status),
        unreadable=find_unreadable(document),
        resource_type=text_at(spec, "resourceType"),
        project=text_at(spec, "consumerRef", "name"),
        limit=number_at(status, "limit") or 0,
        allocated=number_at(status, "allocated") or 0,
        available=number_at(status, "available") or 0,
    )


def decode_network_object(document: JsonObject) -> SeenNetworkObject:
    spec, status = object_at(document, "spec"), object_at(document, "status")
    context = text_at(status, "networkContextRef", "name")
    return SeenNetworkObject(
        meta=decode_meta(document),
        conditions=decode_conditions(status),
        unreadable=find_unreadable(document, needs_spec=False),
        context=context or text_at(spec, "networkContext", "name"),
        subnet=text_at(status, "subnetRef", "name"),
        network=text_at(spec, "network", "name"),
    )


def decode_location(document: JsonObject) -> SeenLocation:
    return SeenLocation(
        meta=decode_meta(document),
        conditions=decode_conditions(document.get("status")),
        unreadable=find_unreadable(document),
        city=text_at(document, "spec", "topology", labels.TOPOLOGY_CITY_CODE),
    )


def decode_pod(document: JsonObject) -> SeenPod:
    meta, status = decode_meta(document), object_at(document, "status")
    states = tuple(objects_at(status, "containerStatuses"))
    waiting = (text_at(state, "state", "waiting", "reason") for state in states)
    exits = (number_at(state, "lastState", "terminated", "exitCode") for state in states)
    return SeenPod(
        meta=meta,
        conditions=decode_conditions(status),
        unreadable=find_unreadable(document, needs_spec=False),
        instance=meta.name,  # a provider gives a Pod the name of its Instance
        phase=text_at(status, "phase"),
        waiting=next((reason for reason in waiting if reason), ""),
        restarts=sum(number_at(state, "restartCount") or 0 for state in states),
        last_exit=next((code for code in exits if code is not None), None),
    )
