"""Stands in for the `instance` controller where a test is about deployments alone.

It says Ready when the provider says Programmed and Available, and takes the Quota gate off, unless
the test denies quota. What the real one does beyond that is tested with the real one.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import timedelta

from compute_sim_planes.api_server.sources import Clock
from compute_sim_planes.client import Client
from compute_sim_planes.following import follow
from compute_sim_planes.json_copies import copy_object
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    ensure_object,
    integer_at,
    objects_at,
    string_at,
)
from compute_sim_planes.keyed_work import Key, KeyedWork, key_of
from compute_sim_planes.milo.conditions import Finding, derive_conditions, find_condition, holds
from compute_sim_planes.provider import INSTANCES


class InstanceStandIn:
    """Ready and the Quota gate, the short way."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self.denied = ""  # a reason: quota is not granted to anybody who waits for it
        self._client = client
        self._clock = clock

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            work = KeyedWork(self._look, tasks, "stand-in")
            async with aclosing(follow(self._client, INSTANCES)) as changes:
                async for seen in changes:
                    work.wake(key_of(seen.object))

    async def _look(self, key: Key) -> timedelta | None:
        found = await self._client.get(INSTANCES, key.name, key.namespace)
        if found is None:
            return None
        told = copy_object(found)
        for finding in self._findings(found):
            entries = derive_conditions(told, finding, self._clock.now())
            ensure_object(told, "status")["conditions"] = entries
        if told != found:
            found = await self._client.update_status(INSTANCES, told)
        await self._open_gate(found, key)
        return timedelta(seconds=1) if self.denied else None

    def _findings(self, found: JsonObject) -> list[Finding]:
        generation = integer_at(found, "metadata", "generation")
        gates = [string_at(gate, "name") for gate in _gates(found)]
        quota = Finding("QuotaGranted", "True", "QuotaAvailable", "Quota is granted", generation)
        if self.denied and "Quota" in gates:
            quota = Finding("QuotaGranted", "False", self.denied, "No quota left", generation)
        return [quota, self._ready(found, gates, generation)]

    def _ready(self, found: JsonObject, gates: list[str], generation: int | None) -> Finding:
        if string_at(found, "metadata", "deletionTimestamp"):
            said = ("False", "Terminating", "Instance is being deleted")
        elif gates:
            listed = ", ".join(gates)
            said = ("False", "SchedulingGatesPresent", f"Scheduling gates present: {listed}")
        elif holds(found, "Programmed") and holds(found, "Available"):
            said = ("True", "Available", "Instance is ready")
        else:
            available = find_condition(found, "Available")
            reason = string_at(available, "reason") or "Pending"
            said = ("False", reason, string_at(available, "message"))
        return Finding("Ready", *said, generation=generation)

    async def _open_gate(self, found: JsonObject, key: Key) -> None:
        names = [string_at(gate, "name") for gate in _gates(found)]
        is_going = bool(string_at(found, "metadata", "deletionTimestamp"))
        if "Quota" not in names or self.denied or is_going:
            return
        path = f"/spec/controller/schedulingGates/{names.index('Quota')}"
        steps: list[JsonValue] = [
            {"op": "test", "path": f"{path}/name", "value": "Quota"},
            {"op": "remove", "path": path},
        ]
        await self._client.patch(INSTANCES, key.name, steps, namespace=key.namespace)


def _gates(found: JsonObject) -> list[JsonObject]:
    return objects_at(found, "spec", "controller", "schedulingGates")
