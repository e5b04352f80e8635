"""Handles of a scenario: a plane as one user reaches it, one operator, and a time limit.

Scenarios get them from `e2e.world.scenario`. A handle only translates calls into requests of the
`Backend` protocol. It waits in one case: a server answers 429.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, TypeAlias

from compute_api_types.wire import JsonObject, JsonValue
from e2e.world.kinds import EVENT, Kind, kind_of
from e2e.world.objects import name_of, namespace_of, object_at, objects_at, text_at, uid_of
from e2e.world.port import ADMIN, Backend, ObjectVersion, PlaneRequest, PlaneResponse

MERGE: Final = "application/merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"
FIELD_MANAGER: Final = "scenario"
TRIES: Final = 20  # of a request that a server throttles, or that loses a write conflict


# The class has a method called `list`, which would shadow the built-in type in annotations.
Objects: TypeAlias = list[JsonObject]
Names: TypeAlias = list[str]
Versions: TypeAlias = list[ObjectVersion]


class RefusedError(AssertionError):
    """A plane refused a request of a scenario. Scenarios about refusals read its fields."""

    def __init__(self, doing: str, reply: PlaneResponse) -> None:
        self.status = reply.status
        self.reason = text_at(reply.body, "reason")
        self.message = text_at(reply.body, "message")
        self.fields = tuple(
            text_at(cause, "field") for cause in objects_at(reply.body, "details", "causes")
        )
        super().__init__(f"{doing}: {reply.status} {self.reason}: {self.message}")


@dataclass(frozen=True, slots=True)
class Limit:
    """How long something may take, on simulated planes and on real ones."""

    sim: timedelta
    real: timedelta

    def on(self, backend: str) -> timedelta:
        return self.sim if backend == "sim" else self.real


def within(seconds: float, *, real: float | None = None) -> Limit:
    """The limit of a step; the same on real planes unless `real` is given."""
    return Limit(timedelta(seconds=seconds), timedelta(seconds=seconds if real is None else real))


@dataclass(frozen=True, slots=True)
class Plane:
    """One plane as one user reaches it. Objects without a namespace go to `namespace`."""

    backend: Backend
    name: str
    user: str = ADMIN
    namespace: str = ""

    def as_user(self, user: str) -> Plane:
        return replace(self, user=user)

    def in_namespace(self, namespace: str) -> Plane:
        return replace(self, namespace=namespace)

    # reading -------------------------------------------------------------------------------------

    async def find(self, kind: Kind, name: str) -> JsonObject | None:
        reply = await self._send(PlaneRequest("GET", kind.path(self.namespace, name)))
        if reply.status == 404:
            return None
        return self._checked("reading", kind, name, reply)

    async def get(self, kind: Kind, name: str) -> JsonObject:
        document = await self.find(kind, name)
        if document is None:
            raise AssertionError(f"no {kind.name} {self._key(name)} on {self.name}")
        return document

    async def expect_gone(self, kind: Kind, *names: str) -> None:
        for name in names:
            document = await self.find(kind, name)
            if document is not None:
                raise AssertionError(f"{kind.name} {self._key(name)} is still on {self.name}")

    async def list(self, kind: Kind, *, everywhere: bool = False) -> Objects:
        reply = await self._send(
            PlaneRequest("GET", kind.path("" if everywhere else self.namespace))
        )
        if reply.status == 404:
            return []  # the kind is not served here
        return objects_at(self._checked("listing", kind, "", reply), "items")

    async def names(self, kind: Kind, *, everywhere: bool = False) -> Names:
        return sorted(name_of(one) for one in await self.list(kind, everywhere=everywhere))

    def versions(self, kind: Kind, name: str = "") -> Versions:
        """Every version of one object, or of all objects, since the start of the scenario."""
        versions = self.backend.versions(self.name, kind, self.namespace)
        return [one for one in versions if name in {"", name_of(one.object)}]

    async def events(self, about: str, reason: str = "") -> Objects:
        """Events about objects of that name."""
        return [
            event
            for event in await self.list(EVENT)
            if text_at(event, "involvedObject", "name") == about
            and reason in {"", text_at(event, "reason")}
        ]

    # writing -------------------------------------------------------------------------------------

    async def create(self, document: JsonObject, *, dry_run: bool = False) -> JsonObject:
        kind, wanted = self._placed(document)
        target = kind.path(namespace_of(wanted)) + ("?dryRun=All" if dry_run else "")
        return self._checked(
            "creating",
            kind,
            name_of(wanted),
            await self._send(PlaneRequest("POST", target, wanted)),
        )

    async def apply(self, document: JsonObject) -> JsonObject:
        """Server-side apply, as `kubectl apply --server-side --force-conflicts`."""
        kind, wanted = self._placed(document)
        query = f"?fieldManager={FIELD_MANAGER}&force=true"
        target = kind.path(namespace_of(wanted), name_of(wanted)) + query
        reply = await self._send(PlaneRequest("PATCH", target, wanted, APPLY))
        return self._checked("applying", kind, name_of(wanted), reply)

    async def patch(
        self, kind: Kind, name: str, change: JsonObject, *, subresource: str = ""
    ) -> JsonObject:
        """A merge patch."""
        target = kind.path(self.namespace, name, subresource)
        return self._checked(
            "patching", kind, name, await self._send(PlaneRequest("PATCH", target, change, MERGE))
        )

    async def post(self, kind: Kind, name: str, subresource: str, body: JsonObject) -> JsonObject:
        """A POST to a subresource, such as the eviction of a Pod."""
        target = kind.path(self.namespace, name, subresource)
        reply = await self._send(PlaneRequest("POST", target, body))
        return self._checked(f"posting {subresource} of", kind, name, reply)

    async def edit(self, kind: Kind, name: str, change: Callable[[JsonObject], None]) -> JsonObject:
        """Reads, changes and replaces, as `kubectl edit` does; repeats on a write conflict."""
        for _ in range(TRIES):
            wanted = deepcopy(await self.get(kind, name))
            change(wanted)
            reply = await self._send(PlaneRequest("PUT", kind.path(self.namespace, name), wanted))
            if reply.status != 409:
                return self._checked("editing", kind, name, reply)
        raise AssertionError(f"editing {kind.name} {self._key(name)}: others are always first")

    async def set_status(self, kind: Kind, name: str, status: JsonObject) -> JsonObject:
        return await self.patch(kind, name, {"status": status}, subresource="status")

    async def delete(self, kind: Kind, name: str) -> None:
        uid = uid_of(await self.get(kind, name))
        body: JsonObject = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
            "propagationPolicy": "Background",
        }
        reply = await self._send(PlaneRequest("DELETE", kind.path(self.namespace, name), body))
        if reply.status != 404:
            self._checked("deleting", kind, name, reply)

    # --- the request -----------------------------------------------------------------------------

    def _placed(self, document: JsonObject) -> tuple[Kind, JsonObject]:
        kind = kind_of(text_at(document, "apiVersion"), text_at(document, "kind"))
        metadata = object_at(document, "metadata")
        if kind.is_namespaced and self.namespace:
            metadata = {"namespace": self.namespace, **metadata}
        return kind, {**document, "metadata": metadata}

    async def _send(self, call: PlaneRequest) -> PlaneResponse:
        """One request. It is repeated after Retry-After, as standard Kubernetes clients do."""
        for _ in range(TRIES):
            reply = await self.backend.send(self.name, self.user, call)
            if reply.status != 429:
                return reply
            await self.backend.sleep(reply.retry_after or timedelta(seconds=1))
        raise AssertionError(f"{call.method} {call.target} on {self.name}: put off {TRIES} times")

    def _checked(self, doing: str, kind: Kind, name: str, reply: PlaneResponse) -> JsonObject:
        if reply.status >= 400:
            what = f"{doing} {kind.name} {self._key(name)} on {self.name} as {self.user!r}"
            raise RefusedError(what, reply)
        return reply.body

    def _key(self, name: str) -> str:
        return f"{self.namespace}/{name}" if self.namespace else name


@dataclass(frozen=True, slots=True)
class Operator:
    """All replicas of one operator."""

    backend: Backend
    name: str

    async def start(self, settings: JsonObject | None = None) -> None:
        await self.backend.start(self.name, settings)

    async def stop(self) -> None:
        await self.backend.stop(self.name)

    async def kill(self) -> None:
        await self.backend.kill(self.name)

    async def cut(self, *planes: str) -> None:
        """Drops all traffic between the operator and these planes; both keep running."""
        for plane in planes:
            await self.backend.cut(self.name, plane)

    async def heal(self, *planes: str) -> None:
        for plane in planes:
            await self.backend.heal(self.name, plane)

    def metric(self, name: str, **labels: str) -> float:
        return self.backend.metric(self.name, name, labels)

    def writes(self, *, since: int = 0) -> Sequence[str]:
        """Mutating requests of the operator except Lease renewals; `since` skips the first ones."""
        return [
            f"{one.verb} {one.resource}{'/' if one.subresource else ''}{one.subresource} "
            f"{one.namespace}/{one.name} on {one.plane} ({one.status})"
            for one in self.backend.audit()
            if one.user == self.name and one.is_write and one.resource != "leases"
        ][since:]


def merge_of(**members: JsonValue) -> JsonObject:
    """A merge patch of metadata: `merge_of(labels={…})`."""
    return {"metadata": {**members}}
