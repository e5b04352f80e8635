"""The hub as Karmada's controllers see it: one client, and the kinds they hold in memory."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from compute_sim_planes.api_server.sources import Clock, Identities
from compute_sim_planes.client import Client, Selection
from compute_sim_planes.json_types import JsonObject, JsonValue
from compute_sim_planes.karmada.claims import find_claim
from compute_sim_planes.karmada.events import Events
from compute_sim_planes.karmada.informer import Informer
from compute_sim_planes.karmada.kinds import (
    BINDING_ID,
    BINDINGS,
    CLUSTER_NAMESPACE,
    CLUSTER_POLICIES,
    CLUSTERS,
    CUSTOMIZATIONS,
    NAMESPACES,
    POLICIES,
    SECRETS,
    WORKS,
)
from compute_sim_planes.karmada.knobs import Knobs
from compute_sim_planes.karmada.metadata import labels_of, name_of, namespace_of
from compute_sim_planes.milo.conditions import Finding, derive_conditions, holds


@dataclass(frozen=True, slots=True)
class Sources:
    """Where time and identity come from, and how long things take."""

    clock: Clock
    identities: Identities
    knobs: Knobs


class Hub:
    """What every controller is given."""

    def __init__(self, client: Client, sources: Sources) -> None:
        self.client = client
        self.clock = sources.clock
        self.identities = sources.identities
        self.knobs = sources.knobs
        self.events = Events(client, sources.clock, sources.identities, sources.knobs)
        self.policies = Informer(client, POLICIES)
        self.cluster_policies = Informer(client, CLUSTER_POLICIES)
        self.bindings = Informer(client, BINDINGS)
        self.works = Informer(client, WORKS)
        self.clusters = Informer(client, CLUSTERS)
        self.namespaces = Informer(client, NAMESPACES)
        self.customizations = Informer(client, CUSTOMIZATIONS)
        self.secrets = Informer(client, SECRETS, Selection(namespace=CLUSTER_NAMESPACE))
        self.policies.index(namespace_of)
        self.bindings.index(claim_id_of)
        self.works.index(binding_id_of)

    async def sync(self, tasks: asyncio.TaskGroup) -> None:
        """Starts to follow all of it, and waits until all that exists is known."""
        informers = (
            self.policies,
            self.cluster_policies,
            self.bindings,
            self.works,
            self.clusters,
            self.namespaces,
            self.customizations,
            self.secrets,
        )
        for informer in informers:
            tasks.create_task(informer.run(), name=f"karmada hub {informer.resource.plural}")
        for informer in informers:
            await informer.synced.wait()

    def works_of(self, binding: JsonObject) -> list[JsonObject]:
        """The Works of a binding; of one without an id there are none."""
        return self.works.find(binding_id_of, binding_id_of(binding))

    async def set_work_status(
        self, work: JsonObject, finding: Finding | None = None, **fields: JsonValue
    ) -> JsonObject:
        """The Work with a condition and fields of its status as wanted; written if that is new."""
        status: dict[str, JsonValue] = {}
        found = work.get("status")
        if isinstance(found, dict):
            status.update(found)
        status.update(fields)
        if finding is not None:
            status["conditions"] = derive_conditions(work, finding, self.clock.now())
        if status == found:
            return work
        return await self.client.update_status(WORKS, {**work, "status": status})

    async def read_work(self, work: JsonObject) -> JsonObject:
        """A Work as it is now: several controllers write its status one after the other."""
        found = await self.client.get(WORKS, name_of(work), namespace_of(work))
        return work if found is None else found

    def is_ready(self, cluster: JsonObject) -> bool:
        return holds(cluster, "Ready")


def claim_id_of(found: JsonObject) -> str:
    """The id of the policy that has an object; empty when nobody has."""
    claim = find_claim(found)
    return claim.permanent_id if claim is not None else ""


def binding_id_of(found: JsonObject) -> str:
    """The id of a binding, as it and its Works carry it."""
    return labels_of(found).get(BINDING_ID, "")
