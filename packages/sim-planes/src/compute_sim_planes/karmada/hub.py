"""The hub as Karmada's controllers see it: one client, and informers of the kinds they read."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from compute_sim_planes.client.informer import Informer
from compute_sim_planes.client.rest import Client, ListOptions
from compute_sim_planes.conditions import Condition, derive_conditions, is_condition_true
from compute_sim_planes.json_types import JsonObject, JsonValue
from compute_sim_planes.karmada.claims import find_claim
from compute_sim_planes.karmada.event_recorder import EventRecorder
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
from compute_sim_planes.karmada.metadata import labels_of, name_of, namespace_of
from compute_sim_planes.karmada.options import KarmadaOptions
from compute_sim_planes.time.sources import Clock, Identities


@dataclass(frozen=True, slots=True)
class HubSources:
    """Clock, identities and delays of a hub."""

    clock: Clock
    identities: Identities
    options: KarmadaOptions


class Hub:
    """The shared dependencies of all controllers."""

    def __init__(self, client: Client, sources: HubSources) -> None:
        self.client = client
        self.clock = sources.clock
        self.identities = sources.identities
        self.options = sources.options
        self.events = EventRecorder(client, sources.clock, sources.identities, sources.options)
        self.policies = Informer(client, POLICIES)
        self.cluster_policies = Informer(client, CLUSTER_POLICIES)
        self.bindings = Informer(client, BINDINGS)
        self.works = Informer(client, WORKS)
        self.clusters = Informer(client, CLUSTERS)
        self.namespaces = Informer(client, NAMESPACES)
        self.customizations = Informer(client, CUSTOMIZATIONS)
        self.secrets = Informer(client, SECRETS, ListOptions(namespace=CLUSTER_NAMESPACE))
        self.policies.index(namespace_of)
        self.bindings.index(claim_id_of)
        self.works.index(binding_id_of)

    async def sync(self, tasks: asyncio.TaskGroup) -> None:
        """Start all informers and wait for their first lists."""
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
        """The Works of a binding; none for one without an id."""
        return self.works.find(binding_id_of, binding_id_of(binding))

    async def set_work_status(
        self, work: JsonObject, condition: Condition | None = None, **fields: JsonValue
    ) -> JsonObject:
        """Set a condition and fields of a Work's status; written only if they changed."""
        status: dict[str, JsonValue] = {}
        existing = work.get("status")
        if isinstance(existing, dict):
            status.update(existing)
        status.update(fields)
        if condition is not None:
            status["conditions"] = derive_conditions(work, condition, self.clock.now())
        if status == existing:
            return work
        return await self.client.update_status(WORKS, {**work, "status": status})

    async def read_work(self, work: JsonObject) -> JsonObject:
        """A live read of a Work: several controllers write its status."""
        existing = await self.client.get(WORKS, name_of(work), namespace_of(work))
        return work if existing is None else existing

    def is_ready(self, cluster: JsonObject) -> bool:
        return is_condition_true(cluster, "Ready")


def claim_id_of(existing: JsonObject) -> str:
    """The id of the policy that claims an object; empty when it is unclaimed."""
    claim = find_claim(existing)
    return claim.permanent_id if claim is not None else ""


def binding_id_of(existing: JsonObject) -> str:
    """The id of a binding, from itself or from one of its Works."""
    return labels_of(existing).get(BINDING_ID, "")
