"""Mapping and fairness functions that several hub controllers share. Pure.

A Cluster sends a heartbeat every few seconds, and one tenant may own most of the hub's objects:
without these functions each heartbeat would enqueue every deployment of a city, and the keys of a
large tenant would delay all others.
"""

from __future__ import annotations

from typing import Final

from compute_management_operator.hub import indexes
from compute_management_operator.hub.identity import read_project
from compute_management_operator.planes import HUB, NAMESPACE
from compute_operator_kit.cache.store import Caches, Change
from compute_operator_kit.core.keys import ObjectKey, Role

NO_PROJECT: Final = "@nobody"  # fairness key of hub namespaces that name no project


def changed_cities(change: Change) -> tuple[str, ...]:
    """The cities that a Cluster began or ceased to carry."""
    before = "" if change.before is None else indexes.read_routing(change.before.metadata)
    after = "" if change.after is None else indexes.read_routing(change.after.metadata)
    return () if before == after else tuple(sorted({before, after} - {""}))


def enqueue_nothing(_: Change, __: Caches) -> tuple[ObjectKey, ...]:
    """Of a kind that reconciles read and that enqueues no key."""
    return ()


def fairness_by_project(key: ObjectKey, caches: Caches) -> str:
    """A key on the hub takes turns with the project that its hub namespace names."""
    return key.plane if key.plane != HUB else _project_of(key.namespace, caches)


def fairness_of_namespace(key: ObjectKey, caches: Caches) -> str:
    """A hub namespace takes turns with the project that it names."""
    return _project_of(key.name, caches) if HUB in caches.planes(Role.HUB) else NO_PROJECT


def _project_of(hub_namespace: str, caches: Caches) -> str:
    entry = caches.lister(HUB, NAMESPACE).entry("", hub_namespace)
    return (entry and read_project(entry.metadata)) or NO_PROJECT
