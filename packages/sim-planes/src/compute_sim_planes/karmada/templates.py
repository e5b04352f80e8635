"""The kinds that can be propagated, and informers for those that policies select.

Karmada watches every kind it discovers. Here a kind is watched once a policy selects it; other
kinds cannot be propagated, so only time is saved. Kinds are discovered at the start and every half
minute; a new kind is unknown until then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeAlias

from compute_sim_planes.client.errors import ApiError
from compute_sim_planes.client.informer import Informer
from compute_sim_planes.client.rest import Resource
from compute_sim_planes.client.workqueue import NamespacedName
from compute_sim_planes.json_types import JsonObject, objects_at, string_at
from compute_sim_planes.karmada.hub import Hub, claim_id_of
from compute_sim_planes.karmada.kinds import DEFINITIONS, NAMESPACES

# The built-in kinds that tests propagate.
_BUILT_IN: Final = (
    NAMESPACES,
    Resource("", "v1", "configmaps", "ConfigMap"),
    Resource("", "v1", "secrets", "Secret"),
    Resource("", "v1", "services", "Service"),
    Resource("", "v1", "serviceaccounts", "ServiceAccount"),
)
_GROUP_SUFFIX: Final = ".karmada.io"


@dataclass(frozen=True, slots=True)
class TemplateKey:
    """One object that can be propagated."""

    resource: Resource
    key: NamespacedName


# Called with the new informer of a kind.
InformerStarted: TypeAlias = Callable[[Informer], None]


class Templates:
    """Kinds known to the detector, and informers of those that policies select."""

    def __init__(self, hub: Hub, tasks: asyncio.TaskGroup) -> None:
        self._hub = hub
        self._tasks = tasks
        self._known: dict[tuple[str, str], Resource] = {}
        self._named: set[tuple[str, str]] = set()
        self._informers: dict[Resource, Informer] = {}
        self._callbacks: list[InformerStarted] = []

    def on_informer_started(self, callback: InformerStarted) -> None:
        self._callbacks.append(callback)

    def find_kind(self, api_version: str, kind: str) -> Resource | None:
        return self._known.get((api_version, kind))

    def name_kinds(self, policy: JsonObject) -> None:
        """Record the kinds that a policy selects, and start their informers."""
        for selector in objects_at(policy, "spec", "resourceSelectors"):
            self._named.add((string_at(selector, "apiVersion"), string_at(selector, "kind")))
        self._start_named()

    def watch_kind(self, api_version: str, kind: str) -> None:
        """Start the informer of a kind that propagated objects depend on."""
        self._named.add((api_version, kind))
        self._start_named()

    def get(self, template: TemplateKey) -> JsonObject | None:
        informer = self._informers.get(template.resource)
        return informer.get(template.key.name, template.key.namespace) if informer else None

    def find(self, resource: Resource, permanent_id: str) -> list[JsonObject]:
        """The objects of a kind that a policy has claimed."""
        informer = self._informers.get(resource)
        return informer.find(claim_id_of, permanent_id) if informer else []

    async def run(self) -> None:
        """Discover kinds periodically until cancelled."""
        while True:
            with suppress(ApiError, OSError):
                await self.discover()
            await asyncio.sleep(self._hub.options.discovery_interval.total_seconds())

    async def discover(self) -> None:
        listing = await self._hub.client.list(DEFINITIONS)
        discovered = [*_BUILT_IN, *_served(listing.items)]
        self._known = {(one.api_version, one.kind): one for one in discovered}
        self._start_named()

    def _start_named(self) -> None:
        for named in sorted(self._named):
            resource = self._known.get(named)
            if resource is not None and resource not in self._informers:
                self._start_informer(resource)

    def _start_informer(self, resource: Resource) -> None:
        informer = self._informers[resource] = Informer(self._hub.client, resource)
        informer.index(claim_id_of)
        self._tasks.create_task(informer.run(), name=f"karmada templates {resource.plural}")
        for begun in self._callbacks:
            begun(informer)


def _served(definitions: Iterable[JsonObject]) -> Iterable[Resource]:
    """Every served version of every kind except Karmada's own."""
    for definition in definitions:
        group = string_at(definition, "spec", "group")
        if group.endswith(_GROUP_SUFFIX):
            continue
        for version in objects_at(definition, "spec", "versions"):
            if version.get("served") is True:
                yield Resource(
                    group,
                    string_at(version, "name"),
                    string_at(definition, "spec", "names", "plural"),
                    string_at(definition, "spec", "names", "kind"),
                    is_namespaced=string_at(definition, "spec", "scope") == "Namespaced",
                )
