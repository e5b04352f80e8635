"""S3: sends every verb on every served resource as a user without rights.

The resources come from the planes' discovery, so a kind added later is covered too. This module has
the requests and the table of results; tests choose user and objects. Only the code counts: any
answer but 403 means that the right exists.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from compute_api_types.wire import JsonObject
from e2e.harness.deploy.rights_report import SWEEP
from e2e.world.kinds import Kind
from e2e.world.objects import name_of, objects_at, text_at, texts_at
from e2e.world.port import ADMIN, Backend, PlaneRequest

PROBE: Final = "sweep-probe"  # no object has this name: with the right, the answer is 404
READS: Final = frozenset({"get", "list", "watch"})
VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
MERGE: Final = "application/merge-patch+json"
DENIED: Final = 403


@dataclass(frozen=True, slots=True, order=True)
class ServedResource:
    """A resource or subresource that a plane serves."""

    group: str
    version: str
    resource: str
    subresource: str
    kind: str
    is_namespaced: bool
    verbs: tuple[str, ...]

    @property
    def title(self) -> str:
        name = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        return f"{name}.{self.group or 'core'}"

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str, name: str = "") -> str:
        at = Kind(self.group, self.version, self.resource, self.kind, self.is_namespaced)
        return at.path(namespace, name, self.subresource if name else "")


@dataclass(frozen=True, slots=True)
class SweepTarget:
    """Objects of a resource for the requests: an existing one, and one to create."""

    existing: JsonObject
    to_create: JsonObject


@dataclass(frozen=True, slots=True)
class SweepResult:
    """One request of the sweep and its status."""

    user: str
    plane: str
    served: ServedResource
    verb: str
    status: int

    @property
    def is_denied(self) -> bool:
        return self.status == DENIED

    @property
    def right(self) -> tuple[str, str]:
        return self.served.title, self.verb


# --- discovery ------------------------------------------------------------------------------------


async def discover(backend: Backend, plane: str) -> list[ServedResource]:
    """All resources in the plane's discovery documents."""
    groups = await _read(backend, plane, "/apis")
    roots = ["/api/v1"]
    for group in objects_at(groups, "groups"):
        roots += [f"/apis/{text_at(one, 'groupVersion')}" for one in objects_at(group, "versions")]
    documents = [await _read(backend, plane, root) for root in roots]
    return sorted(served for document in documents for served in parse_resources(document))


async def _read(backend: Backend, plane: str, path: str) -> JsonObject:
    reply = await backend.send(plane, ADMIN, PlaneRequest("GET", path))
    if reply.status != 200:
        raise AssertionError(f"discovering {plane} at {path}: {reply.status}")
    return reply.body


def parse_resources(document: JsonObject) -> Iterator[ServedResource]:
    """The resources of an `APIResourceList`."""
    group, _, version = text_at(document, "groupVersion").rpartition("/")
    for one in objects_at(document, "resources"):
        resource, _, subresource = text_at(one, "name").partition("/")
        yield ServedResource(
            group=group,
            version=version,
            resource=resource,
            subresource=subresource,
            kind=text_at(one, "kind"),
            is_namespaced=one.get("namespaced") is True,
            verbs=tuple(verb for verb in VERBS if verb in texts_at(one, "verbs")),
        )


# --- requests -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sweep:
    """A user without rights, a plane, another user's namespace on it, and the objects to
    request.
    """

    user: str
    plane: str
    namespace: str
    targets: dict[tuple[str, str], SweepTarget]  # by group and resource
    only_targets: bool = False  # a second object of a resource that was swept already

    async def run(self, backend: Backend) -> list[SweepResult]:
        return [
            SweepResult(self.user, self.plane, served, verb, await self._try(backend, served, verb))
            for served in await discover(backend, self.plane)
            if not self.only_targets or (served.group, served.resource) in self.targets
            for verb in served.verbs
        ]

    async def _try(self, backend: Backend, served: ServedResource, verb: str) -> int:
        call = self.call(served, verb)
        return (await backend.send(self.plane, self.user, call)).status

    def call(self, served: ServedResource, verb: str) -> PlaneRequest:
        """The request; it is valid if there is an object for it."""
        swept = self.targets.get((served.group, served.resource)) or self._at_nothing(served)
        collection = served.path(self.namespace)
        target = served.path(self.namespace, name_of(swept.existing))
        match verb:
            case "get":
                return PlaneRequest("GET", target)
            case "list":
                return PlaneRequest("GET", collection)
            case "watch":
                # For an object that does not exist: with the right, the stream is empty.
                only = f"fieldSelector=metadata.name%3D{PROBE}"
                return PlaneRequest("GET", f"{collection}?watch=1&timeoutSeconds=1&{only}")
            case "create":
                return PlaneRequest(
                    "POST", target if served.subresource else collection, swept.to_create
                )
            case "update":
                return PlaneRequest("PUT", target, swept.existing)
            case "patch":
                change: JsonObject = {"metadata": {"annotations": {"example.net/was": "here"}}}
                return PlaneRequest("PATCH", target, change, MERGE)
            case "delete":
                return PlaneRequest("DELETE", target)
            case "deletecollection":
                return PlaneRequest("DELETE", collection)
            case _:
                raise LookupError(f"sweeping {served.title}: no request for the verb {verb!r}")

    def _at_nothing(self, served: ServedResource) -> SweepTarget:
        metadata: JsonObject = {"name": PROBE}
        if served.is_namespaced:
            metadata["namespace"] = self.namespace
        document: JsonObject = {
            "apiVersion": served.api_version,
            "kind": served.kind,
            "metadata": metadata,
        }
        return SweepTarget(document, document)


# --- report ---------------------------------------------------------------------------------------


def render(tried: Iterable[SweepResult]) -> str:
    """The table: a block per user and plane, a line per resource, a column per verb."""
    blocks: dict[tuple[str, str], list[SweepResult]] = defaultdict(list)
    for one in tried:
        blocks[one.user, one.plane].append(one)
    return "\n".join(line for key in blocks for line in _block(*key, blocks[key]))


def summarise(tried: Iterable[SweepResult]) -> list[str]:
    """A line per user and plane, with the rights that exist."""
    by_place: dict[tuple[str, str], list[SweepResult]] = defaultdict(list)
    for one in tried:
        by_place[one.user, one.plane].append(one)
    return [_summary(user, plane, results) for (user, plane), results in by_place.items()]


def _summary(user: str, plane: str, results: list[SweepResult]) -> str:
    passed = sorted({f"{one.verb} {one.served.title}" for one in results if not one.is_denied})
    resources = len({one.served.title for one in results})
    line = f"{user} on {plane}: {len(results)} requests over {resources} resources, "
    return line + (f"let through: {', '.join(passed)}" if passed else "all denied")


def _block(user: str, plane: str, results: list[SweepResult]) -> Iterator[str]:
    yield _summary(user, plane, results)
    yield f"  {'':66} {' '.join(f'{verb[:6]:6}' for verb in VERBS)}"
    by_resource: dict[str, dict[str, int]] = defaultdict(dict)
    for one in results:
        by_resource[one.served.title][one.verb] = one.status
    for title, answers in by_resource.items():
        cells = " ".join(f"{answers.get(verb, '-'):<6}" for verb in VERBS)
        yield f"  {title:66} {cells}".rstrip()


def publish(tried: Iterable[SweepResult]) -> None:
    """Writes the table for `python -m e2e.harness.deploy.rights_report`."""
    known = [*tried]
    SWEEP.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join([*summarise(known), "", render(known)])
    SWEEP.write_text(text + "\n", "utf-8")
