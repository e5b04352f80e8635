"""`tree`, `timeline`, `cities` and `quota` as JSON; texts are cleaned as in `documents`."""

from __future__ import annotations

from compute_api_types.wire import JsonObject, JsonValue
from compute_kubectl.render.documents import (
    API_VERSION,
    moment_text,
    object_document,
    plane_document,
    seconds_of,
    unread_document,
)
from compute_kubectl.render.layout import clean
from compute_kubectl.views.cities import Cities, City
from compute_kubectl.views.quota import QuotaView, ResourceQuota
from compute_kubectl.views.timeline import Moment, Timeline
from compute_kubectl.views.tree import Node, Tree


def tree_document(tree: Tree) -> JsonObject:
    return {
        "apiVersion": API_VERSION,
        "kind": "Tree",
        "workload": {"namespace": clean(tree.namespace), "name": clean(tree.name)},
        "at": moment_text(tree.at),
        "root": None if tree.root is None else _node(tree.root),
    }


def _node(node: Node) -> JsonObject:
    children: list[JsonValue] = [_node(one) for one in node.children]
    return {
        **(object_document(node.object) or {}),
        "age": seconds_of(node.age),
        "conditionType": clean(node.condition_type),
        "status": clean(node.status),
        "reason": clean(node.reason),
        "children": children,
    }


def timeline_document(timeline: Timeline) -> JsonObject:
    moments: list[JsonValue] = [_moment(one) for one in timeline.moments]
    return {
        "apiVersion": API_VERSION,
        "kind": "Timeline",
        "workload": {"namespace": clean(timeline.namespace), "name": clean(timeline.name)},
        "at": moment_text(timeline.at),
        "moments": moments,
        "missing": [clean(one) for one in timeline.missing],
    }


def _moment(one: Moment) -> JsonObject:
    return {
        "at": moment_text(one.at),
        "delta": seconds_of(one.delta),
        "plane": clean(one.plane),
        "object": object_document(one.object),
        "what": clean(one.what),
        "by": clean(one.by),
        "count": one.count,
        "slowest": one.is_slowest,
    }


def cities_document(cities: Cities) -> JsonObject:
    listed: list[JsonValue] = [_city(cities, one) for one in cities.cities]
    return {
        "apiVersion": API_VERSION,
        "kind": "Cities",
        "at": moment_text(cities.at),
        "knowsClusters": cities.knows_clusters,
        "planes": [plane_document(one) for one in cities.planes],
        "unread": [unread_document(one) for one in cities.unread],
        "cities": listed,
    }


def _city(cities: Cities, city: City) -> JsonObject:
    clusters: list[JsonValue] = [
        {
            "name": clean(one.name),
            "status": clean(one.status),
            "reason": clean(one.reason),
            "since": moment_text(one.since),
        }
        for one in city.clusters
    ]
    return {
        "cityCode": clean(city.code),
        "clusters": clusters,
        "reporting": [clean(one) for one in city.reporting],
        "deployments": city.deployments,
        "instances": {"desired": city.desired, "ready": city.ready},
        "waiting": {clean(name): number for name, number in city.waiting.items()},
        "oldestWaiting": moment_text(city.oldest),
        "oldestWaitingFor": seconds_of(cities.waited(city)),
    }


def quota_document(view: QuotaView) -> JsonObject:
    resources: list[JsonValue] = [_resource(one) for one in view.resources]
    return {
        "apiVersion": API_VERSION,
        "kind": "Quota",
        "namespace": clean(view.namespace),
        "at": moment_text(view.at),
        "state": view.access.value,
        "planes": [plane_document(one) for one in view.planes],
        "unread": [unread_document(one) for one in view.unread],
        "resources": resources,
    }


def _resource(one: ResourceQuota) -> JsonObject:
    waiting: list[JsonValue] = [
        {
            "instance": clean(claim.instance),
            "amount": claim.amount,
            "reason": clean(claim.reason),
            "since": moment_text(claim.since),
        }
        for claim in one.waiting
    ]
    return {
        "resourceType": clean(one.resource_type),
        "bucket": clean(one.bucket),
        "project": clean(one.project),
        "limit": one.limit,
        "allocated": one.allocated,
        "available": one.available,
        "usedBy": {clean(name): amount for name, amount in one.used_by.items()},
        "waiting": waiting,
        "nextReplica": {clean(name): amount for name, amount in one.next_replica.items()},
    }
