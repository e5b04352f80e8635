"""Puts recorded objects onto the planes of a world whose operators are stopped.

Neighbours that run take what is theirs as their own, so each step waits for them:

```
project   Workloads, deployments, claims          Milo judges the claims, the denied one last
hub       namespace, policy, deployments          Karmada claims and delivers them
cell      finalizers of deployments, Instances    the provider runs what is ungated
hub       Instances      project   Instances      statuses last: all UIDs are known by then
```

What the provider reports stays its own; every other condition is the recorded one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from compute_api_types.wire import JsonObject, JsonValue
from e2e.kinds import CLAIM, DEPLOYMENT, INSTANCE, NAMESPACE, POLICY, WORKLOAD, Kind
from e2e.objects import (
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
from e2e.recorded.reading import CELL_PLANE, HUB_PLANE, PROJECT_PLANE, Recording
from e2e.recorded.renaming import Renaming

# Of the provider: it writes them itself once it runs an Instance.
PROVIDERS: Final = ("Available", "Programmed")
Check: TypeAlias = Callable[[], Awaitable[None]]
Eventually: TypeAlias = Callable[[Check], Awaitable[None]]


class Reached(Protocol):
    """A plane as its administrator reaches it; objects that name no namespace are in its own."""

    async def get(self, kind: Kind, name: str) -> JsonObject: ...

    async def create(self, document: JsonObject) -> JsonObject: ...

    async def patch(
        self, kind: Kind, name: str, change: JsonObject, *, subresource: str = ""
    ) -> JsonObject: ...

    async def delete(self, kind: Kind, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Places:
    """Where a recording goes: a project's namespace, and what stands for it elsewhere."""

    project: Reached
    hub: Reached
    cell: Reached


@dataclass(frozen=True, slots=True)
class Loader:
    """One recording on its way to one world."""

    recording: Recording
    places: Places
    renaming: Renaming
    eventually: Eventually

    async def load_workloads(self) -> None:
        """Apart from the rest: whoever calls sees to it that admission lets them pass."""
        for recorded in self.recording.of(PROJECT_PLANE, WORKLOAD):
            await self._create(self.places.project, recorded)

    async def load(self) -> None:
        """Everything but the Workloads, which are there."""
        await self._load_all(PROJECT_PLANE, DEPLOYMENT)
        await self._load_claims()
        for kind in (NAMESPACE, POLICY, DEPLOYMENT):
            await self._load_all(HUB_PLANE, kind)
        await self._take_delivered()
        await self._load_all(CELL_PLANE, INSTANCE)
        await self._load_all(HUB_PLANE, INSTANCE)
        await self._load_all(PROJECT_PLANE, INSTANCE)
        await self._tell()
        for plane, reached in self._planes():
            for recorded in self.recording.objects[plane]:
                if is_deleting(recorded):
                    await reached.delete(_kind_of(recorded), name_of(recorded))

    # --- objects ---------------------------------------------------------------------------------

    def _planes(self) -> Iterator[tuple[str, Reached]]:
        yield PROJECT_PLANE, self.places.project
        yield HUB_PLANE, self.places.hub
        yield CELL_PLANE, self.places.cell

    async def _load_all(self, plane: str, kind: Kind) -> None:
        reached = dict(self._planes())[plane]
        for recorded in self.recording.of(plane, kind):
            await self._create(reached, recorded)

    async def _create(self, reached: Reached, recorded: JsonObject) -> None:
        self.renaming.learn(recorded, await reached.create(self.renaming.to_create(recorded)))

    async def _load_claims(self) -> None:
        """The denied one when the others are granted, so that it is the one again."""
        claims = self.recording.of(PROJECT_PLANE, CLAIM)
        for verdict in ("True", "False"):
            loaded = [one for one in claims if condition_of(one, "Granted").status == verdict]
            for recorded in loaded:
                await self._create(self.places.project, recorded)

            async def are_judged(loaded: list[JsonObject] = loaded) -> None:
                for recorded in loaded:
                    found = await self.places.project.get(CLAIM, name_of(recorded))
                    judged = condition_of(found, "Granted").verdict
                    if judged != condition_of(recorded, "Granted").verdict:
                        raise AssertionError(f"claim {name_of(recorded)} is judged {judged}")

            await self.eventually(are_judged)

    async def _take_delivered(self) -> None:
        """Deployments of the cell as Karmada made them, with the finalizers of the recording."""
        for recorded in self.recording.of(CELL_PLANE, DEPLOYMENT):

            async def is_delivered(recorded: JsonObject = recorded) -> None:
                made = await self.places.cell.get(DEPLOYMENT, name_of(recorded))
                self.renaming.learn(recorded, made)

            await self.eventually(is_delivered)
            held: JsonObject = {"finalizers": list[JsonValue](finalizers_of(recorded))}
            await self.places.cell.patch(DEPLOYMENT, name_of(recorded), {"metadata": held})

    # --- statuses --------------------------------------------------------------------------------

    async def _tell(self) -> None:
        for recorded in self.recording.of(CELL_PLANE, INSTANCE):
            await self._tell_of_instance(recorded)
        await self._tell_all(self.places.cell, CELL_PLANE, DEPLOYMENT)
        await self.eventually(self._is_gathered)
        await self._tell_all(self.places.hub, HUB_PLANE, DEPLOYMENT)
        for kind in (DEPLOYMENT, WORKLOAD):
            await self._tell_all(self.places.project, PROJECT_PLANE, kind)

    async def _tell_all(self, reached: Reached, plane: str, kind: Kind) -> None:
        for recorded in self.recording.of(plane, kind):
            made = await reached.get(kind, name_of(recorded))
            status = self.renaming.to_status(recorded, made)
            await _set_status(reached, kind, name_of(recorded), status)

    async def _tell_of_instance(self, recorded: JsonObject) -> None:
        """On the cell beside what its provider reports, and the same on hub and project."""
        name = name_of(recorded)
        is_run = not gates_of(recorded)

        async def is_reported() -> None:
            found = await self.places.cell.get(INSTANCE, name)
            if is_run and condition_of(found, "Available").status != "True":
                raise AssertionError(f"the provider does not run {name}")

        await self.eventually(is_reported)
        found = await self.places.cell.get(INSTANCE, name)
        wanted = self.renaming.to_status(recorded, found)
        if is_run:
            wanted = _beside_provider(wanted, object_at(found, "status"))
        await _set_status(self.places.cell, INSTANCE, name, wanted)
        for reached in (self.places.hub, self.places.project):
            await _set_status(reached, INSTANCE, name, wanted)

    async def _is_gathered(self) -> None:
        """Karmada has brought the counters of the cell to the hub."""
        for recorded in self.recording.of(HUB_PLANE, DEPLOYMENT):
            found = await self.places.hub.get(DEPLOYMENT, name_of(recorded))
            told = number_at(found, "status", "readyReplicas")
            if told != number_at(recorded, "status", "readyReplicas"):
                raise AssertionError(f"the hub reports {told} ready of {name_of(recorded)}")


def _beside_provider(wanted: JsonObject, reported: JsonObject) -> JsonObject:
    own = [one for one in objects_at(reported, "conditions") if text_at(one, "type") in PROVIDERS]
    others = [
        one for one in objects_at(wanted, "conditions") if text_at(one, "type") not in PROVIDERS
    ]
    return {**reported, "conditions": list[JsonValue]([*own, *others])}


async def _set_status(reached: Reached, kind: Kind, name: str, status: JsonObject) -> None:
    await reached.patch(kind, name, {"status": status}, subresource="status")


def _kind_of(recorded: JsonObject) -> Kind:
    kinds = (WORKLOAD, DEPLOYMENT, INSTANCE, CLAIM)
    return next(one for one in kinds if one.name == text_at(recorded, "kind"))
