"""Loads recorded objects onto the planes of a scenario while its operators are stopped.

Milo, Karmada and the provider run and act on the objects, so each step waits for them. Otherwise a
status would be written before the UIDs that it refers to exist:

```
project   Workloads, deployments, claims          Milo grants the claims, the denied one last
hub       namespace, policy, deployments          Karmada claims and delivers them
cell      finalizers of deployments, Instances    the provider runs what is ungated
hub       Instances      project   Instances      statuses last: all UIDs are known by then
```

Conditions of the provider are its own; all others are the recorded ones.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from compute_api_types.wire import JsonObject, JsonValue
from e2e.world.kinds import CLAIM, DEPLOYMENT, INSTANCE, NAMESPACE, POLICY, WORKLOAD, Kind
from e2e.world.objects import (
    condition_of,
    finalizers_of,
    gates_of,
    is_deleting,
    name_of,
    number_at,
    object_at,
    objects_at,
    text_at,
)
from e2e.world.recorded.reading import CELL_PLANE, HUB_PLANE, PROJECT_PLANE, RecordedObjects
from e2e.world.recorded.renaming import Renaming

# Conditions that the provider writes itself once it runs an Instance.
PROVIDERS: Final = ("Available", "Programmed")
Check: TypeAlias = Callable[[], Awaitable[None]]
Eventually: TypeAlias = Callable[[Check], Awaitable[None]]


class PlaneAccess(Protocol):
    """A plane with administrator rights; objects without a namespace go to its own."""

    async def get(self, kind: Kind, name: str) -> JsonObject: ...

    async def create(self, document: JsonObject) -> JsonObject: ...

    async def patch(
        self, kind: Kind, name: str, change: JsonObject, *, subresource: str = ""
    ) -> JsonObject: ...

    async def delete(self, kind: Kind, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class RecordingTargets:
    """The namespaces a recording is loaded into: in the project, on the hub, in the cell."""

    project: PlaneAccess
    hub: PlaneAccess
    cell: PlaneAccess


@dataclass(frozen=True, slots=True)
class RecordingLoader:
    """Loads one recording into one scenario."""

    recording: RecordedObjects
    targets: RecordingTargets
    renaming: Renaming
    eventually: Eventually

    async def load_workloads(self) -> None:
        """Apart from `load`, because the caller must see to it that admission accepts them."""
        for recorded in self.recording.of(PROJECT_PLANE, WORKLOAD):
            await self._create(self.targets.project, recorded)

    async def load(self) -> None:
        """Everything except the Workloads."""
        await self._load_all(PROJECT_PLANE, DEPLOYMENT)
        await self._load_claims()
        for kind in (NAMESPACE, POLICY, DEPLOYMENT):
            await self._load_all(HUB_PLANE, kind)
        await self._take_delivered()
        await self._load_all(CELL_PLANE, INSTANCE)
        await self._load_all(HUB_PLANE, INSTANCE)
        await self._load_all(PROJECT_PLANE, INSTANCE)
        await self._write_statuses()
        for plane, reached in self._planes():
            for recorded in self.recording.objects[plane]:
                if is_deleting(recorded):
                    await reached.delete(_kind_of(recorded), name_of(recorded))

    # --- objects ---------------------------------------------------------------------------------

    def _planes(self) -> Iterator[tuple[str, PlaneAccess]]:
        yield PROJECT_PLANE, self.targets.project
        yield HUB_PLANE, self.targets.hub
        yield CELL_PLANE, self.targets.cell

    async def _load_all(self, plane: str, kind: Kind) -> None:
        reached = dict(self._planes())[plane]
        for recorded in self.recording.of(plane, kind):
            await self._create(reached, recorded)

    async def _create(self, reached: PlaneAccess, recorded: JsonObject) -> None:
        self.renaming.learn(recorded, await reached.create(self.renaming.to_create(recorded)))

    async def _load_claims(self) -> None:
        """The denied claim comes after the others are granted, so that it is denied again."""
        claims = self.recording.of(PROJECT_PLANE, CLAIM)
        for verdict in ("True", "False"):
            loaded = [one for one in claims if condition_of(one, "Granted").status == verdict]
            for recorded in loaded:
                await self._create(self.targets.project, recorded)

            async def are_judged(loaded: list[JsonObject] = loaded) -> None:
                for recorded in loaded:
                    claim = await self.targets.project.get(CLAIM, name_of(recorded))
                    decided = condition_of(claim, "Granted").status_and_reason
                    if decided != condition_of(recorded, "Granted").status_and_reason:
                        raise AssertionError(f"claim {name_of(recorded)} is decided {decided}")

            await self.eventually(are_judged)

    async def _take_delivered(self) -> None:
        """Adds the recorded finalizers to the deployments that Karmada delivered to the cell."""
        for recorded in self.recording.of(CELL_PLANE, DEPLOYMENT):

            async def is_delivered(recorded: JsonObject = recorded) -> None:
                made = await self.targets.cell.get(DEPLOYMENT, name_of(recorded))
                self.renaming.learn(recorded, made)

            await self.eventually(is_delivered)
            held: JsonObject = {"finalizers": list[JsonValue](finalizers_of(recorded))}
            await self.targets.cell.patch(DEPLOYMENT, name_of(recorded), {"metadata": held})

    # --- statuses --------------------------------------------------------------------------------

    async def _write_statuses(self) -> None:
        for recorded in self.recording.of(CELL_PLANE, INSTANCE):
            await self._write_instance_status(recorded)
        await self._write_all_statuses(self.targets.cell, CELL_PLANE, DEPLOYMENT)
        await self.eventually(self._is_gathered)
        await self._write_all_statuses(self.targets.hub, HUB_PLANE, DEPLOYMENT)
        for kind in (DEPLOYMENT, WORKLOAD):
            await self._write_all_statuses(self.targets.project, PROJECT_PLANE, kind)

    async def _write_all_statuses(self, reached: PlaneAccess, plane: str, kind: Kind) -> None:
        for recorded in self.recording.of(plane, kind):
            made = await reached.get(kind, name_of(recorded))
            status = self.renaming.to_status(recorded, made)
            await _set_status(reached, kind, name_of(recorded), status)

    async def _write_instance_status(self, recorded: JsonObject) -> None:
        """Writes it on the cell beside the provider's conditions, then on hub and project."""
        name = name_of(recorded)
        is_run = not gates_of(recorded)

        async def is_reported() -> None:
            instance = await self.targets.cell.get(INSTANCE, name)
            if is_run and condition_of(instance, "Available").status != "True":
                raise AssertionError(f"the provider does not run {name}")

        await self.eventually(is_reported)
        instance = await self.targets.cell.get(INSTANCE, name)
        wanted = self.renaming.to_status(recorded, instance)
        if is_run:
            wanted = _beside_provider(wanted, object_at(instance, "status"))
        await _set_status(self.targets.cell, INSTANCE, name, wanted)
        for reached in (self.targets.hub, self.targets.project):
            await _set_status(reached, INSTANCE, name, wanted)

    async def _is_gathered(self) -> None:
        """Asserts that Karmada has aggregated the cell's counters on the hub."""
        for recorded in self.recording.of(HUB_PLANE, DEPLOYMENT):
            deployment = await self.targets.hub.get(DEPLOYMENT, name_of(recorded))
            reported = number_at(deployment, "status", "readyReplicas")
            if reported != number_at(recorded, "status", "readyReplicas"):
                raise AssertionError(f"the hub reports {reported} ready of {name_of(recorded)}")


def _beside_provider(wanted: JsonObject, reported: JsonObject) -> JsonObject:
    own = [one for one in objects_at(reported, "conditions") if text_at(one, "type") in PROVIDERS]
    others = [
        one for one in objects_at(wanted, "conditions") if text_at(one, "type") not in PROVIDERS
    ]
    return {**reported, "conditions": list[JsonValue]([*own, *others])}


async def _set_status(reached: PlaneAccess, kind: Kind, name: str, status: JsonObject) -> None:
    await reached.patch(kind, name, {"status": status}, subresource="status")


def _kind_of(recorded: JsonObject) -> Kind:
    kinds = (WORKLOAD, DEPLOYMENT, INSTANCE, CLAIM)
    return next(one for one in kinds if one.name == text_at(recorded, "kind"))
