"""Simulated network services (NSO): networks become ready in a cell (`docs/spec/cell.md` 16).

```
NetworkBinding ─ensures─► NetworkContext ─Programmed after a delay─► Ready
      ▲ networkContextRef, Ready ◄───────────────────────────────────┘
SubnetClaim ─creates─► Subnet, allocated ─► subnetRef, Ready
```

It assumes nothing about the operators: every object is reconciled by itself, and again after a
delay.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from compute_sim_planes.client.errors import AlreadyExistsError
from compute_sim_planes.client.reflector import list_and_watch
from compute_sim_planes.client.rest import Client, Resource
from compute_sim_planes.client.workqueue import NamespacedName, WorkQueue, namespaced_name
from compute_sim_planes.conditions import (
    Condition,
    derive_conditions,
    find_condition,
    is_condition_true,
)
from compute_sim_planes.json_copies import copy_object
from compute_sim_planes.json_types import (
    JsonObject,
    ensure_object,
    integer_at,
    object_at,
    string_at,
    value_at,
)
from compute_sim_planes.time.sources import Clock

_GROUP: Final = "networking.datumapis.com"


def _resource(plural: str, kind: str, *, is_namespaced: bool = True) -> Resource:
    return Resource(_GROUP, "v1alpha", plural, kind, is_namespaced)


LOCATIONS: Final = _resource("locations", "Location", is_namespaced=False)
NETWORKS: Final = _resource("networks", "Network")
BINDINGS: Final = _resource("networkbindings", "NetworkBinding")
CONTEXTS: Final = _resource("networkcontexts", "NetworkContext")
CLAIMS: Final = _resource("subnetclaims", "SubnetClaim")
SUBNETS: Final = _resource("subnets", "Subnet")

CITY: Final = "topology.datum.net/city-code"
BLOCKS: Final = {"DFW": "10.128.0.0", "DLS": "10.130.0.0", "LHR": "10.132.0.0"}
PREFIX_LENGTH: Final = 20
FAILED: Final = "NetworkFailedToCreate"


@dataclass(slots=True)
class NsoOptions:
    """Delays and failures; may be changed while it runs."""

    context_delay: timedelta = timedelta(seconds=1)
    binding_retry: timedelta = timedelta(seconds=5)
    is_context_never_ready: bool = False
    failure: str = ""  # message of NetworkFailedToCreate; "" for none
    omits_context_ref: bool = False  # Ready without networkContextRef
    omits_subnet_ref: bool = False  # Ready without subnetRef


class NetworkServices:
    """The network services of one cell."""

    def __init__(self, client: Client, clock: Clock, options: NsoOptions | None = None) -> None:
        self.options = options or NsoOptions()
        self._client = client
        self._clock = clock
        self._first_seen: dict[str, datetime] = {}

    async def run(self) -> None:
        """Run until cancelled; kinds that are not served are waited for."""
        async with asyncio.TaskGroup() as tasks:
            claims = WorkQueue(self._reconcile_claim, tasks, "claim")
            bindings = WorkQueue(self._reconcile_binding, tasks, "binding")
            contexts = WorkQueue(self._reconcile_context, tasks, "context")
            subnets = WorkQueue(self._reconcile_subnet, tasks, "subnet")
            for resource, queues in (
                (BINDINGS, (bindings,)),
                (CONTEXTS, (contexts,)),
                (CLAIMS, (claims,)),
                (SUBNETS, (subnets, claims)),  # a claim and its subnet have the same name
            ):
                tasks.create_task(self._watch(resource, queues), name=f"nso {resource.plural}")

    async def _watch(self, resource: Resource, queues: tuple[WorkQueue, ...]) -> None:
        async with aclosing(list_and_watch(self._client, resource)) as changes:
            async for seen in changes:
                for work in queues:
                    work.add(namespaced_name(seen.object))

    # bindings ------------------------------------------------------------------------------------

    async def _reconcile_binding(self, key: NamespacedName) -> timedelta | None:
        existing = await self._find(BINDINGS, key)
        if existing is None or is_condition_true(existing, "Ready"):
            return None  # a ready binding is not reconciled again
        network = NamespacedName(
            string_at(existing, "spec", "network", "namespace") or key.namespace,
            string_at(existing, "spec", "network", "name"),
        )
        owner = await self._client.get(NETWORKS, network.name, network.namespace)
        if owner is None:
            message = f'Network "{network.name}" not found'
            await self._set_ready(BINDINGS, existing, ("False", "NetworkNotFound", message))
            return self.options.binding_retry
        context = await self._ensure_context(owner, object_at(existing, "spec", "location"))
        return await self._update_binding(existing, context)

    async def _update_binding(self, existing: JsonObject, context: JsonObject) -> timedelta | None:
        programmed = find_condition(context, "Programmed")
        if string_at(programmed, "reason") == FAILED:
            await self._set_ready(
                BINDINGS, existing, ("False", FAILED, string_at(programmed, "message"))
            )
            return self.options.binding_retry
        if not is_condition_true(context, "Ready"):
            name = string_at(context, "metadata", "name")
            condition = ("False", "NetworkContextNotReady", f'NetworkContext "{name}" is not ready')
            await self._set_ready(BINDINGS, existing, condition)
            return self.options.binding_retry
        reference: JsonObject = {
            name: string_at(context, "metadata", name) for name in ("namespace", "name")
        }
        more: JsonObject = (
            {} if self.options.omits_context_ref else {"networkContextRef": reference}
        )
        await self._set_ready(
            BINDINGS, existing, ("True", "NetworkContextReady", "Network context is ready"), more
        )
        return None

    async def _ensure_context(self, network: JsonObject, location: JsonObject) -> JsonObject:
        name = f"{string_at(network, 'metadata', 'name')}-{string_at(location, 'name')}"
        namespace = string_at(network, "metadata", "namespace")
        existing = await self._client.get(CONTEXTS, name, namespace)
        if existing is not None:
            return existing
        desired = _document(CONTEXTS, namespace, name, owner=(NETWORKS, network))
        reference: JsonObject = {"name": string_at(network, "metadata", "name")}
        desired["spec"] = {"network": reference, "location": {**location}}
        return await self._client.create(CONTEXTS, desired)

    # contexts ------------------------------------------------------------------------------------

    async def _reconcile_context(self, key: NamespacedName) -> timedelta | None:
        existing = await self._find(CONTEXTS, key)
        if existing is None or is_condition_true(existing, "Ready"):
            return None
        if self.options.failure:
            condition = Condition(
                "Programmed", "False", FAILED, self.options.failure, _generation(existing)
            )
            await self._write(CONTEXTS, existing, (condition,))
            return self.options.binding_retry
        if self.options.is_context_never_ready:
            return self.options.binding_retry
        left = self._age_left(existing)
        if left > timedelta():
            return left
        generation = _generation(existing)
        await self._write(
            CONTEXTS,
            existing,
            (
                Condition("Programmed", "True", "Programmed", "Programmed", generation),
                Condition("Ready", "True", "Ready", "Network context is ready", generation),
            ),
        )
        return None

    def _age_left(self, existing: JsonObject) -> timedelta:
        uid, now = string_at(existing, "metadata", "uid"), self._clock.now()
        return self._first_seen.setdefault(uid, now) + self.options.context_delay - now

    # claims and subnets --------------------------------------------------------------------------

    async def _reconcile_claim(self, key: NamespacedName) -> timedelta | None:
        existing = await self._find(CLAIMS, key)
        if existing is None or is_condition_true(existing, "Ready"):
            return None
        subnet = await self._ensure_subnet(existing)
        if subnet is None or not is_condition_true(subnet, "Ready"):
            condition = ("False", "SubnetNotReady", f'Subnet "{key.name}" is not ready')
            await self._set_ready(CLAIMS, existing, condition)
            return self.options.binding_retry
        more: JsonObject = {
            name: value_at(subnet, "status", name) for name in ("startAddress", "prefixLength")
        }
        if not self.options.omits_subnet_ref:
            more["subnetRef"] = {"name": key.name}
        await self._set_ready(CLAIMS, existing, ("True", "SubnetReady", "Subnet is ready"), more)
        return None

    async def _ensure_subnet(self, claim: JsonObject) -> JsonObject | None:
        key = namespaced_name(claim)
        existing = await self._client.get(SUBNETS, key.name, key.namespace)
        context = string_at(claim, "spec", "networkContext", "name")
        owner = await self._client.get(CONTEXTS, context, key.namespace)
        if existing is not None or owner is None:
            return existing
        desired = _document(SUBNETS, key.namespace, key.name, owner=(CONTEXTS, owner))
        start = await self._start_address(string_at(claim, "spec", "location", "name"))
        kept = ("subnetClass", "networkContext", "location", "ipFamily")
        spec: JsonObject = {name: value_at(claim, "spec", name) for name in kept}
        desired["spec"] = {**spec, "startAddress": start, "prefixLength": PREFIX_LENGTH}
        with suppress(AlreadyExistsError):
            return await self._client.create(SUBNETS, desired)
        return await self._client.get(SUBNETS, key.name, key.namespace)

    async def _start_address(self, location: str) -> str:
        existing = await self._client.get(LOCATIONS, location)
        return BLOCKS.get(string_at(existing, "spec", "topology", CITY), "")

    async def _reconcile_subnet(self, key: NamespacedName) -> timedelta | None:
        existing = await self._find(SUBNETS, key)
        if existing is None or is_condition_true(existing, "Ready"):
            return None
        generation = _generation(existing)
        conditions = (
            Condition("Allocated", "True", "PrefixAllocated", "Prefix is allocated", generation),
            Condition("Programmed", "True", "Programmed", "Programmed", generation),
            Condition("Ready", "True", "Ready", "Subnet is ready", generation),
        )
        block: JsonObject = {
            name: value_at(existing, "spec", name) for name in ("startAddress", "prefixLength")
        }
        await self._write(SUBNETS, existing, conditions, block)
        return None

    # reading and writing -------------------------------------------------------------------------

    async def _find(self, resource: Resource, key: NamespacedName) -> JsonObject | None:
        """The object, unless it is being deleted."""
        existing = await self._client.get(resource, key.name, key.namespace)
        is_going = bool(string_at(existing, "metadata", "deletionTimestamp"))
        return None if is_going else existing

    async def _set_ready(
        self,
        resource: Resource,
        existing: JsonObject,
        condition: tuple[str, str, str],
        more: JsonObject | None = None,
    ) -> None:
        ready = Condition("Ready", *condition, generation=_generation(existing))
        await self._write(resource, existing, (ready,), more)

    async def _write(
        self,
        resource: Resource,
        existing: JsonObject,
        conditions: tuple[Condition, ...],
        more: JsonObject | None = None,
    ) -> None:
        """Update the status with these conditions and fields if it differs."""
        updated = copy_object(existing)
        for condition in conditions:
            entries = derive_conditions(updated, condition, self._clock.now())
            ensure_object(updated, "status")["conditions"] = entries
        status = {**object_at(updated, "status"), **(more or {})}
        if status != object_at(existing, "status"):
            await self._client.update_status(resource, {**updated, "status": status})


def _generation(existing: JsonObject) -> int | None:
    return integer_at(existing, "metadata", "generation")


def _document(
    resource: Resource, namespace: str, name: str, *, owner: tuple[Resource, JsonObject]
) -> JsonObject:
    kind, owner_object = owner
    reference: JsonObject = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": string_at(owner_object, "metadata", "name"),
        "uid": string_at(owner_object, "metadata", "uid"),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata: JsonObject = {"namespace": namespace, "name": name, "ownerReferences": [reference]}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
