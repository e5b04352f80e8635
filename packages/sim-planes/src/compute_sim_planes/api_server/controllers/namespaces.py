"""The namespace controller of one plane: empties a deleted namespace, then finalizes it.

While objects remain, because finalizers hold them, conditions of the namespace list them in the
words of a real controller: that is where users look for the cause.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Final

from compute_sim_planes.api_server.controllers.deferred import DeferredQueue
from compute_sim_planes.api_server.kinds.catalog import Catalog
from compute_sim_planes.api_server.kinds.kind import GroupResource
from compute_sim_planes.api_server.storage.deletion import delete_stored
from compute_sim_planes.api_server.storage.records import Change, ChangeType, StoredObject, encode
from compute_sim_planes.api_server.storage.store import Store
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    array_at,
    ensure_object,
    objects_at,
    string_at,
)
from compute_sim_planes.time.sources import Clock, render_time

ACTOR: Final = "system:serviceaccount:kube-system:namespace-controller"
NAMESPACES: Final = GroupResource("", "namespaces")


class NamespaceController:
    """Reconciles terminating namespaces when objects in them are removed."""

    def __init__(self, store: Store, catalog: Catalog, clock: Clock, delay: timedelta) -> None:
        self._store = store
        self._catalog = catalog
        self._clock = clock
        self._queue: DeferredQueue[str] = DeferredQueue(self._reconcile, delay)
        store.listen(self._on_change)

    def close(self) -> None:
        self._queue.close()

    def _on_change(self, change: Change) -> None:
        after = change.after
        if change.resource == NAMESPACES:
            if (
                after.terminating
                and change.type is not ChangeType.DELETED
                and change.actor != ACTOR
            ):
                self._queue.add(after.name)
        elif (
            after.namespace
            and change.type is ChangeType.DELETED
            and self._is_terminating(after.namespace)
        ):
            self._queue.add(after.namespace)

    def _is_terminating(self, name: str) -> bool:
        existing = self._store.get(NAMESPACES, "", name)
        return existing is not None and existing.terminating

    def _reconcile(self, name: str) -> None:
        existing = self._store.get(NAMESPACES, "", name)
        if existing is None or not existing.terminating:
            return
        self._delete_content(name)
        remaining = list(self._content(name))
        existing = self._store.get(NAMESPACES, "", name)
        if existing is None:
            return
        if remaining:
            self._report(existing, remaining)
        elif not existing.finalizers:
            self._store.remove(existing, ACTOR)
        else:
            self._finalize(existing)

    def _content(self, namespace: str) -> list[StoredObject]:
        return [
            stored
            for kind in self._catalog.stored_kinds()
            if kind.namespaced
            for stored in self._store.bucket(kind.group_resource).listed(f"{namespace}/")
        ]

    def _delete_content(self, namespace: str) -> None:
        for stored in self._content(namespace):
            # Background whatever the kind's default: in a terminating namespace no owner waits.
            current = self._store.get(stored.kind.group_resource, namespace, stored.name)
            if current is not None and not current.terminating:
                delete_stored(
                    self._store, current, "Background", now=self._clock.now(), actor=ACTOR
                )

    def _finalize(self, existing: StoredObject) -> None:
        """Remove the namespace's own finalizer, the last one."""
        desired = existing.decode()
        spec = ensure_object(desired, "spec")
        spec["finalizers"] = [name for name in array_at(spec, "finalizers") if name != "kubernetes"]
        if encode(desired) != existing.raw:
            self._store.replace(existing, existing.kind, desired, ACTOR)

    def _report(self, existing: StoredObject, remaining: list[StoredObject]) -> None:
        desired = existing.decode()
        status = ensure_object(desired, "status")
        before = {string_at(entry, "type"): entry for entry in objects_at(status, "conditions")}
        conditions: list[JsonValue] = []
        for condition in _conditions(remaining):
            earlier = before.get(string_at(condition, "type"), {})
            moved = earlier.get("status") != condition["status"]
            since = render_time(self._clock.now()) if moved else earlier.get("lastTransitionTime")
            conditions.append({**condition, "lastTransitionTime": since})
        status["conditions"] = conditions
        if encode(desired) != existing.raw:
            self._store.replace(existing, existing.kind, desired, ACTOR)


def _conditions(remaining: list[StoredObject]) -> list[JsonObject]:
    kinds = Counter(str(stored.kind.group_resource) for stored in remaining)
    finalizers = Counter(name for stored in remaining for name in stored.finalizers)
    content = ", ".join(
        f"{kind} has {count} resource instances" for kind, count in sorted(kinds.items())
    )
    holding = ", ".join(
        f"{name} in {count} resource instances" for name, count in sorted(finalizers.items())
    )
    return [
        *_FAILURES,
        _condition(
            "NamespaceContentRemaining",
            "True",
            "SomeResourcesRemain",
            f"Some resources are remaining: {content}",
        ),
        _condition(
            "NamespaceFinalizersRemaining",
            "True",
            "SomeFinalizersRemain",
            f"Some content in the namespace has finalizers remaining: {holding}",
        ),
    ]


def _condition(condition_type: str, status: str, reason: str, message: str) -> JsonObject:
    return {"type": condition_type, "status": status, "reason": reason, "message": message}


# Failures that cannot occur here; a real controller reports them as False.
_FAILURES: Final = (
    _condition(
        "NamespaceDeletionDiscoveryFailure",
        "False",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    _condition(
        "NamespaceDeletionGroupVersionParsingFailure",
        "False",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    _condition(
        "NamespaceDeletionContentFailure",
        "False",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
)
