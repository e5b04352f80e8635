"""S3: every verb on every resource that a plane serves, tried by somebody who must not.

What is tried comes from the planes' own discovery, so that a kind that is added tomorrow is tried
tomorrow. Here are the requests and the table of their answers; who tries, and on what, is said by
the test. Answers are judged by their code alone: 403, or the right is there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from compute_api_types.wire import JsonObject
from e2e.backends.port import ADMIN, Backend, Call
from e2e.kinds import Kind
from e2e.objects import name_of, objects_at, text_at, texts_at
from e2e.rights import SWEEP

PROBE: Final = "sweep-probe"  # no object has this name: whoever may ask is answered 404
READS: Final = frozenset({"get", "list", "watch"})
VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
MERGE: Final = "application/merge-patch+json"
DENIED: Final = 403


@dataclass(frozen=True, slots=True, order=True)
class Served:
    """A resource, or a subresource of one, that a plane serves."""

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
class Target:
    """What of a resource is aimed at: an object that is there, and one to be made."""

    found: JsonObject
    wanted: JsonObject


@dataclass(frozen=True, slots=True)
class Tried:
    """One request of the sweep and how it was answered."""

    who: str
    plane: str
    served: Served
    verb: str
    status: int

    @property
    def is_denied(self) -> bool:
        return self.status == DENIED

    @property
    def right(self) -> tuple[str, str]:
        return self.served.title, self.verb


# --- what is there --------------------------------------------------------------------------------


async def discover(backend: Backend, plane: str) -> list[Served]:
    """All that a plane serves, by its own word."""
    groups = await _read(backend, plane, "/apis")
    roots = ["/api/v1"]
    for group in objects_at(groups, "groups"):
        roots += [f"/apis/{text_at(one, 'groupVersion')}" for one in objects_at(group, "versions")]
    documents = [await _read(backend, plane, root) for root in roots]
    return sorted(served for document in documents for served in parse_resources(document))


async def _read(backend: Backend, plane: str, path: str) -> JsonObject:
    reply = await backend.send(plane, ADMIN, Call("GET", path))
    if reply.status != 200:
        raise AssertionError(f"discovering {plane} at {path}: {reply.status}")
    return reply.body


def parse_resources(document: JsonObject) -> Iterator[Served]:
    """The resources of an `APIResourceList`."""
    group, _, version = text_at(document, "groupVersion").rpartition("/")
    for one in objects_at(document, "resources"):
        resource, _, subresource = text_at(one, "name").partition("/")
        yield Served(
            group=group,
            version=version,
            resource=resource,
            subresource=subresource,
            kind=text_at(one, "kind"),
            is_namespaced=one.get("namespaced") is True,
            verbs=tuple(verb for verb in VERBS if verb in texts_at(one, "verbs")),
        )


# --- trying ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sweep:
    """Somebody who must not, a plane, a namespace of another there, and what to aim at."""

    who: str
    plane: str
    namespace: str
    targets: dict[tuple[str, str], Target]  # by group and resource
    only_targets: bool = False  # another object of a resource that was swept already

    async def run(self, backend: Backend) -> list[Tried]:
        return [
            Tried(self.who, self.plane, served, verb, await self._try(backend, served, verb))
            for served in await discover(backend, self.plane)
            if not self.only_targets or (served.group, served.resource) in self.targets
            for verb in served.verbs
        ]

    async def _try(self, backend: Backend, served: Served, verb: str) -> int:
        call = self.call(served, verb)
        return (await backend.send(self.plane, self.who, call)).status

    def call(self, served: Served, verb: str) -> Call:
        """The request; it is valid where there is an object to aim at."""
        aim = self.targets.get((served.group, served.resource)) or self._at_nothing(served)
        collection = served.path(self.namespace)
        target = served.path(self.namespace, name_of(aim.found))
        match verb:
            case "get":
                return Call("GET", target)
            case "list":
                return Call("GET", collection)
            case "watch":
                # Of an object that is not there: whoever may watch gets an empty stream.
                only = f"fieldSelector=metadata.name%3D{PROBE}"
                return Call("GET", f"{collection}?watch=1&timeoutSeconds=1&{only}")
            case "create":
                return Call("POST", target if served.subresource else collection, aim.wanted)
            case "update":
                return Call("PUT", target, aim.found)
            case "patch":
                change: JsonObject = {"metadata": {"annotations": {"example.net/was": "here"}}}
                return Call("PATCH", target, change, MERGE)
            case "delete":
                return Call("DELETE", target)
            case "deletecollection":
                return Call("DELETE", collection)
            case _:
                raise LookupError(f"sweeping {served.title}: no request for the verb {verb!r}")

    def _at_nothing(self, served: Served) -> Target:
        metadata: JsonObject = {"name": PROBE}
        if served.is_namespaced:
            metadata["namespace"] = self.namespace
        document: JsonObject = {
            "apiVersion": served.api_version,
            "kind": served.kind,
            "metadata": metadata,
        }
        return Target(document, document)


# --- telling --------------------------------------------------------------------------------------


def render(tried: Iterable[Tried]) -> str:
    """The table: a block per person and plane, a line per resource, a column per verb."""
    blocks: dict[tuple[str, str], list[Tried]] = defaultdict(list)
    for one in tried:
        blocks[one.who, one.plane].append(one)
    return "\n".join(line for key in blocks for line in _block(*key, blocks[key]))


def summarise(tried: Iterable[Tried]) -> list[str]:
    """A line per person and plane, and what was let through by name."""
    by_place: dict[tuple[str, str], list[Tried]] = defaultdict(list)
    for one in tried:
        by_place[one.who, one.plane].append(one)
    return [_summary(who, plane, found) for (who, plane), found in by_place.items()]


def _summary(who: str, plane: str, found: list[Tried]) -> str:
    passed = sorted({f"{one.verb} {one.served.title}" for one in found if not one.is_denied})
    resources = len({one.served.title for one in found})
    told = f"{who} on {plane}: {len(found)} requests over {resources} resources, "
    return told + (f"let through: {', '.join(passed)}" if passed else "all denied")


def _block(who: str, plane: str, found: list[Tried]) -> Iterator[str]:
    yield _summary(who, plane, found)
    yield f"  {'':66} {' '.join(f'{verb[:6]:6}' for verb in VERBS)}"
    by_resource: dict[str, dict[str, int]] = defaultdict(dict)
    for one in found:
        by_resource[one.served.title][one.verb] = one.status
    for title, answers in by_resource.items():
        cells = " ".join(f"{answers.get(verb, '-'):<6}" for verb in VERBS)
        yield f"  {title:66} {cells}".rstrip()


def publish(tried: Iterable[Tried]) -> None:
    """Leaves the table for the report of the suite (`python -m e2e.rights`)."""
    known = [*tried]
    SWEEP.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join([*summarise(known), "", render(known)])
    SWEEP.write_text(text + "\n", "utf-8")
