"""NSO, simulated: networks become ready in the cities they are wanted in (`docs/spec/cell.md` 16).

```
NetworkBinding ─ensures─► NetworkContext ─Programmed after a while─► Ready
      ▲ networkContextRef, Ready ◄────────────────────────────────────┘
SubnetClaim ─makes─► Subnet, allocated ─► subnetRef, Ready
```

Neither the operators' code nor their order of things is assumed: every object is looked at by
itself, and again when time has passed. It stands on the neighbours' client port.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from compute_sim_planes.api_server.sources import Clock
from compute_sim_planes.client import Client, Resource
from compute_sim_planes.client_errors import AlreadyExistsError
from compute_sim_planes.following import follow
from compute_sim_planes.json_copies import copy_object
from compute_sim_planes.json_types import (
    JsonObject,
    ensure_object,
    integer_at,
    object_at,
    string_at,
    value_at,
)
from compute_sim_planes.keyed_work import Key, KeyedWork, key_of
from compute_sim_planes.milo.conditions import Finding, derive_conditions, find_condition, holds

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
class NsoKnobs:
    """What goes wrong, and how long things take; may be turned while it runs."""

    context_delay: timedelta = timedelta(seconds=1)
    binding_retry: timedelta = timedelta(seconds=5)
    is_context_never_ready: bool = False
    failure: str = ""  # message of NetworkFailedToCreate; "" is none
    omits_context_ref: bool = False  # Ready without networkContextRef
    omits_subnet_ref: bool = False  # Ready without subnetRef


class NetworkServices:
    """NSO in one cell."""

    def __init__(self, client: Client, clock: Clock, knobs: NsoKnobs | None = None) -> None:
        self.knobs = knobs or NsoKnobs()
        self._client = client
        self._clock = clock
        self._first_seen: dict[str, datetime] = {}

    async def run(self) -> None:
        """Works until it is cancelled; kinds that are not served are waited for."""
        async with asyncio.TaskGroup() as tasks:
            claims = KeyedWork(self._look_at_claim, tasks, "claim")
            bindings = KeyedWork(self._look_at_binding, tasks, "binding")
            contexts = KeyedWork(self._look_at_context, tasks, "context")
            subnets = KeyedWork(self._look_at_subnet, tasks, "subnet")
            for resource, woken in (
                (BINDINGS, (bindings,)),
                (CONTEXTS, (contexts,)),
                (CLAIMS, (claims,)),
                (SUBNETS, (subnets, claims)),  # a claim and its subnet have one name
            ):
                tasks.create_task(self._follow(resource, woken), name=f"nso {resource.plural}")

    async def _follow(self, resource: Resource, woken: tuple[KeyedWork, ...]) -> None:
        async with aclosing(follow(self._client, resource)) as changes:
            async for seen in changes:
                for work in woken:
                    work.wake(key_of(seen.object))

    # bindings ------------------------------------------------------------------------------------

    async def _look_at_binding(self, key: Key) -> timedelta | None:
        found = await self._find(BINDINGS, key)
        if found is None or holds(found, "Ready"):
            return None  # a binding that is ready is no longer looked at
        network = Key(
            string_at(found, "spec", "network", "namespace") or key.namespace,
            string_at(found, "spec", "network", "name"),
        )
        owner = await self._client.get(NETWORKS, network.name, network.namespace)
        if owner is None:
            message = f'Network "{network.name}" not found'
            await self._say(BINDINGS, found, ("False", "NetworkNotFound", message))
            return self.knobs.binding_retry
        context = await self._ensure_context(owner, object_at(found, "spec", "location"))
        return await self._judge(found, context)

    async def _judge(self, found: JsonObject, context: JsonObject) -> timedelta | None:
        programmed = find_condition(context, "Programmed")
        if string_at(programmed, "reason") == FAILED:
            await self._say(BINDINGS, found, ("False", FAILED, string_at(programmed, "message")))
            return self.knobs.binding_retry
        if not holds(context, "Ready"):
            name = string_at(context, "metadata", "name")
            said = ("False", "NetworkContextNotReady", f'NetworkContext "{name}" is not ready')
            await self._say(BINDINGS, found, said)
            return self.knobs.binding_retry
        reference: JsonObject = {
            name: string_at(context, "metadata", name) for name in ("namespace", "name")
        }
        more: JsonObject = {} if self.knobs.omits_context_ref else {"networkContextRef": reference}
        await self._say(
            BINDINGS, found, ("True", "NetworkContextReady", "Network context is ready"), more
        )
        return None

    async def _ensure_context(self, network: JsonObject, location: JsonObject) -> JsonObject:
        name = f"{string_at(network, 'metadata', 'name')}-{string_at(location, 'name')}"
        namespace = string_at(network, "metadata", "namespace")
        found = await self._client.get(CONTEXTS, name, namespace)
        if found is not None:
            return found
        wanted = _document(CONTEXTS, namespace, name, owner=(NETWORKS, network))
        reference: JsonObject = {"name": string_at(network, "metadata", "name")}
        wanted["spec"] = {"network": reference, "location": {**location}}
        return await self._client.create(CONTEXTS, wanted)

    # contexts ------------------------------------------------------------------------------------

    async def _look_at_context(self, key: Key) -> timedelta | None:
        found = await self._find(CONTEXTS, key)
        if found is None or holds(found, "Ready"):
            return None
        if self.knobs.failure:
            said = Finding("Programmed", "False", FAILED, self.knobs.failure, _generation(found))
            await self._write(CONTEXTS, found, (said,))
            return self.knobs.binding_retry
        if self.knobs.is_context_never_ready:
            return self.knobs.binding_retry
        left = self._age_left(found)
        if left > timedelta():
            return left
        generation = _generation(found)
        await self._write(
            CONTEXTS,
            found,
            (
                Finding("Programmed", "True", "Programmed", "Programmed", generation),
                Finding("Ready", "True", "Ready", "Network context is ready", generation),
            ),
        )
        return None

    def _age_left(self, found: JsonObject) -> timedelta:
        uid, now = string_at(found, "metadata", "uid"), self._clock.now()
        return self._first_seen.setdefault(uid, now) + self.knobs.context_delay - now

    # claims and subnets --------------------------------------------------------------------------

    async def _look_at_claim(self, key: Key) -> timedelta | None:
        found = await self._find(CLAIMS, key)
        if found is None or holds(found, "Ready"):
            return None
        subnet = await self._ensure_subnet(found)
        if subnet is None or not holds(subnet, "Ready"):
            said = ("False", "SubnetNotReady", f'Subnet "{key.name}" is not ready')
            await self._say(CLAIMS, found, said)
            return self.knobs.binding_retry
        more: JsonObject = {
            name: value_at(subnet, "status", name) for name in ("startAddress", "prefixLength")
        }
        if not self.knobs.omits_subnet_ref:
            more["subnetRef"] = {"name": key.name}
        await self._say(CLAIMS, found, ("True", "SubnetReady", "Subnet is ready"), more)
        return None

    async def _ensure_subnet(self, claim: JsonObject) -> JsonObject | None:
        key = key_of(claim)
        found = await self._client.get(SUBNETS, key.name, key.namespace)
        context = string_at(claim, "spec", "networkContext", "name")
        owner = await self._client.get(CONTEXTS, context, key.namespace)
        if found is not None or owner is None:
            return found
        wanted = _document(SUBNETS, key.namespace, key.name, owner=(CONTEXTS, owner))
        start = await self._start_address(string_at(claim, "spec", "location", "name"))
        kept = ("subnetClass", "networkContext", "location", "ipFamily")
        spec: JsonObject = {name: value_at(claim, "spec", name) for name in kept}
        wanted["spec"] = {**spec, "startAddress": start, "prefixLength": PREFIX_LENGTH}
        with suppress(AlreadyExistsError):
            return await self._client.create(SUBNETS, wanted)
        return await self._client.get(SUBNETS, key.name, key.namespace)

    async def _start_address(self, location: str) -> str:
        found = await self._client.get(LOCATIONS, location)
        return BLOCKS.get(string_at(found, "spec", "topology", CITY), "")

    async def _look_at_subnet(self, key: Key) -> timedelta | None:
        found = await self._find(SUBNETS, key)
        if found is None or holds(found, "Ready"):
            return None
        generation = _generation(found)
        findings = (
            Finding("Allocated", "True", "PrefixAllocated", "Prefix is allocated", generation),
            Finding("Programmed", "True", "Programmed", "Programmed", generation),
            Finding("Ready", "True", "Ready", "Subnet is ready", generation),
        )
        block: JsonObject = {
            name: value_at(found, "spec", name) for name in ("startAddress", "prefixLength")
        }
        await self._write(SUBNETS, found, findings, block)
        return None

    # reading and writing -------------------------------------------------------------------------

    async def _find(self, resource: Resource, key: Key) -> JsonObject | None:
        """What is not on its way out."""
        found = await self._client.get(resource, key.name, key.namespace)
        is_going = bool(string_at(found, "metadata", "deletionTimestamp"))
        return None if is_going else found

    async def _say(
        self,
        resource: Resource,
        found: JsonObject,
        said: tuple[str, str, str],
        more: JsonObject | None = None,
    ) -> None:
        finding = Finding("Ready", *said, generation=_generation(found))
        await self._write(resource, found, (finding,), more)

    async def _write(
        self,
        resource: Resource,
        found: JsonObject,
        findings: tuple[Finding, ...],
        more: JsonObject | None = None,
    ) -> None:
        """The status with these findings, if that is anything new."""
        told = copy_object(found)
        for finding in findings:
            entries = derive_conditions(told, finding, self._clock.now())
            ensure_object(told, "status")["conditions"] = entries
        status = {**object_at(told, "status"), **(more or {})}
        if status != object_at(found, "status"):
            await self._client.update_status(resource, {**told, "status": status})


def _generation(found: JsonObject) -> int | None:
    return integer_at(found, "metadata", "generation")


def _document(
    resource: Resource, namespace: str, name: str, *, owner: tuple[Resource, JsonObject]
) -> JsonObject:
    kind, found = owner
    reference: JsonObject = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": string_at(found, "metadata", "name"),
        "uid": string_at(found, "metadata", "uid"),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata: JsonObject = {"namespace": namespace, "name": name, "ownerReferences": [reference]}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
