"""The namespace controller of one plane: empties a namespace that is deleted, then lets it go.

While something remains (finalizers hold it) the namespace's conditions say what, in the words of a
real one, because people find out there why it does not end.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Final

from compute_sim_planes.api_server.catalog import Catalog
from compute_sim_planes.api_server.controllers.deferred import DeferredQueue
from compute_sim_planes.api_server.deletion import delete_stored
from compute_sim_planes.api_server.kinds import GroupResource
from compute_sim_planes.api_server.sources import Clock, render_time
from compute_sim_planes.api_server.storage.records import Change, ChangeType, Stored, encode
from compute_sim_planes.api_server.storage.store import Store
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    array_at,
    ensure_object,
    objects_at,
    string_at,
)

ACTOR: Final = "system:serviceaccount:kube-system:namespace-controller"
NAMESPACES: Final = GroupResource("", "namespaces")


class NamespaceController:
    """Looks at namespaces that are going, whenever something in them went."""

    def __init__(self, store: Store, catalog: Catalog, clock: Clock, delay: timedelta) -> None:
        self._store = store
        self._catalog = catalog
        self._clock = clock
        self._queue: DeferredQueue[str] = DeferredQueue(self._look, delay)
        store.listen(self._notice)

    def close(self) -> None:
        self._queue.close()

    def _notice(self, change: Change) -> None:
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
            and self._is_going(after.namespace)
        ):
            self._queue.add(after.namespace)

    def _is_going(self, name: str) -> bool:
        found = self._store.get(NAMESPACES, "", name)
        return found is not None and found.terminating

    def _look(self, name: str) -> None:
        found = self._store.get(NAMESPACES, "", name)
        if found is None or not found.terminating:
            return
        self._delete_content(name)
        remaining = list(self._content(name))
        found = self._store.get(NAMESPACES, "", name)
        if found is None:
            return
        if remaining:
            self._report(found, remaining)
        elif not found.finalizers:
            self._store.remove(found, ACTOR)
        else:
            self._finalize(found)

    def _content(self, namespace: str) -> list[Stored]:
        return [
            stored
            for kind in self._catalog.stored_kinds()
            if kind.namespaced
            for stored in self._store.bucket(kind.group_resource).listed(f"{namespace}/")
        ]

    def _delete_content(self, namespace: str) -> None:
        for stored in self._content(namespace):
            # Background, whatever else would be the default: nobody is left to wait for dependents.
            current = self._store.get(stored.kind.group_resource, namespace, stored.name)
            if current is not None and not current.terminating:
                delete_stored(
                    self._store, current, "Background", now=self._clock.now(), actor=ACTOR
                )

    def _finalize(self, found: Stored) -> None:
        """Its own finalizers are the last thing it waits for."""
        wanted = found.decode()
        spec = ensure_object(wanted, "spec")
        spec["finalizers"] = [name for name in array_at(spec, "finalizers") if name != "kubernetes"]
        if encode(wanted) != found.raw:
            self._store.replace(found, found.kind, wanted, ACTOR)

    def _report(self, found: Stored, remaining: list[Stored]) -> None:
        wanted = found.decode()
        status = ensure_object(wanted, "status")
        before = {string_at(entry, "type"): entry for entry in objects_at(status, "conditions")}
        conditions: list[JsonValue] = []
        for condition in _conditions(remaining):
            earlier = before.get(string_at(condition, "type"), {})
            moved = earlier.get("status") != condition["status"]
            since = render_time(self._clock.now()) if moved else earlier.get("lastTransitionTime")
            conditions.append({**condition, "lastTransitionTime": since})
        status["conditions"] = conditions
        if encode(wanted) != found.raw:
            self._store.replace(found, found.kind, wanted, ACTOR)


def _conditions(remaining: list[Stored]) -> list[JsonObject]:
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


# Nothing of the kind happens here, and a real controller says so.
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
