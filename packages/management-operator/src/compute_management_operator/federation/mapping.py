"""Says which project deployments a change on a project or on the hub concerns. Pure.

A hub object names its project by labels; where its own are missing, those of its namespace count. A
change that leads nowhere is counted, never an error: engagement lists everything again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from compute_management_operator import hub_indexes
from compute_management_operator.identities import read_namespace, read_project
from compute_management_operator.kinds import DEPLOYMENT, NAMESPACE
from compute_management_operator.plane_names import HUB
from compute_operator_kit.cache import Caches, Change, Entry
from compute_operator_kit.keys import ObjectKey, PlaneName, Role
from compute_operator_kit.mapping import Dropped

NO_NAMESPACE: Final = Dropped("no_namespace")
NO_PROJECT: Final = Dropped("no_project")
NOT_ENGAGED: Final = Dropped("not_engaged")


def map_copy(change: Change, caches: Caches) -> Iterable[ObjectKey | Dropped]:
    """A copy → the deployment it was made from."""
    return dict.fromkeys(_source_of(entry, caches) for entry in change.entries)


def is_news_for_hub(change: Change) -> bool:
    """Whether a project deployment may say something that its copy does not: no status does."""
    before, after = change.before, change.after
    if before is None or after is None:
        return True
    was, now = before.metadata, after.metadata
    return (was.generation, was.is_deleting, was.annotations) != (
        now.generation,
        now.is_deleting,
        now.annotations,
    )


def map_hub_namespace(change: Change, caches: Caches) -> Iterator[ObjectKey]:
    """A hub namespace → the deployments that recorded it, by what its labels said and say."""
    for plane in _named_projects(change.entries, caches):
        view = caches.view(plane, DEPLOYMENT)
        for entry in view.entries_by_index(hub_indexes.RECORDED, change.key.name):
            yield entry.key


def map_policy(change: Change, caches: Caches) -> Iterator[ObjectKey]:
    """A policy → the deployments of its city whose copies live beside it."""
    if not is_news_of_policy(change):
        return
    codes = {hub_indexes.find_value(entry, hub_indexes.CODE) for entry in change.entries}
    around = caches.view(HUB, NAMESPACE).entry("", change.key.namespace)
    for plane in _named_projects(() if around is None else (around,), caches):
        view = caches.view(plane, DEPLOYMENT)
        for entry in view.entries_by_index(hub_indexes.RECORDED, change.key.namespace):
            if hub_indexes.find_value(entry, hub_indexes.CITY) in codes:
                yield entry.key


def is_news_of_policy(change: Change) -> bool:
    """Whether a policy came, went, began to go, or names another city."""
    before, after = change.before, change.after
    if before is None or after is None:
        return True
    if before.metadata.is_deleting != after.metadata.is_deleting:
        return True
    return hub_indexes.find_value(before, hub_indexes.CODE) != hub_indexes.find_value(
        after, hub_indexes.CODE
    )


def map_cluster(change: Change, caches: Caches) -> Iterator[ObjectKey]:
    """A Cluster → the deployments of its city, before and after; its heartbeats concern nobody."""
    for code in changed_cities(change):
        for plane in caches.planes(Role.PROJECT):
            view = caches.view(plane, DEPLOYMENT)
            for entry in view.entries_by_index(hub_indexes.CITY, code):
                yield entry.key


def changed_cities(change: Change) -> tuple[str, ...]:
    """The cities a Cluster began or ceased to carry."""
    before = "" if change.before is None else hub_indexes.read_routing(change.before.metadata)
    after = "" if change.after is None else hub_indexes.read_routing(change.after.metadata)
    return () if before == after else tuple(sorted({before, after} - {""}))


def wake_deployments(plane: PlaneName, caches: Caches) -> Iterator[ObjectKey]:
    """Everything of a project, copies whose deployment went unseen among it."""
    if plane not in caches.planes(Role.PROJECT):
        return
    deployments = caches.view(plane, DEPLOYMENT)
    for namespace in deployments.index_values(hub_indexes.NAMESPACE_OF):
        for entry in deployments.entries_by_index(hub_indexes.NAMESPACE_OF, namespace):
            yield entry.key
    if HUB in caches.planes(Role.HUB):
        yield from _wake_copies(plane, caches)


def _wake_copies(plane: PlaneName, caches: Caches) -> Iterator[ObjectKey]:
    copies = caches.view(HUB, DEPLOYMENT)
    for namespace in caches.view(HUB, NAMESPACE).entries_by_index(hub_indexes.PROJECT, plane):
        for entry in copies.entries_by_index(hub_indexes.NAMESPACE_OF, namespace.key.name):
            source = _source_of(entry, caches)
            if isinstance(source, ObjectKey) and source.plane == plane:
                yield source


def _named_projects(found: Iterable[Entry], caches: Caches) -> tuple[PlaneName, ...]:
    """The projects that hub namespaces name; all of them where one names none.

    One that names another project than its own is a conflict, and who has it looks again by itself.
    """
    engaged = caches.planes(Role.PROJECT)
    named = {read_project(entry.metadata) for entry in found}
    if not named or None in named:
        return engaged
    return tuple(plane for plane in engaged if plane in named)


def _source_of(entry: Entry, caches: Caches) -> ObjectKey | Dropped:
    """By its own labels, each falling back to its namespace's."""
    around = caches.view(HUB, NAMESPACE).entry("", entry.key.namespace)
    beside = None if around is None else around.metadata
    project = read_project(entry.metadata) or (beside and read_project(beside))
    namespace = read_namespace(entry.metadata) or (read_namespace(beside) if beside else "")
    if not project:
        return NO_PROJECT
    if not namespace:
        return NO_NAMESPACE
    if project not in caches.planes(Role.PROJECT):
        return NOT_ENGAGED
    return ObjectKey(project, DEPLOYMENT, namespace, entry.key.name)
