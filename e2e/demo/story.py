"""The story of the demo, step by step; each step shows what it claims or fails.

```
quota       a project asks for more than it may run: denied, with a reason, and granted more
arrival     a Workload comes up in both cities
restart     it rolls, one instance of a city at a time
outage      a city is cut off: it runs on, the other goes on, then it catches up
deletion    nothing of the Workload is left on any plane
cure        what was denied at the beginning runs now
```

The denial comes first because its retry is due half a minute later: the rest goes on meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from compute_api_types import labels
from compute_api_types.wire import JsonObject, JsonValue
from e2e.backends.port import HUB, ORD
from e2e.demo.picture import Progress, Row
from e2e.demo.scene import CELLS, DemoError, Hands, Scene, read_rows
from e2e.demo.screen import Screen
from e2e.documents import a_placement, a_workload
from e2e.kinds import BINDING, CLAIM, DEPLOYMENT, INSTANCE, NAMESPACE, POLICY, WORKLOAD
from e2e.objects import Said, condition_of, labels_of, name_of, uid_of

WEB: Final = "web"
API: Final = "api"
REPLICAS: Final = 2
SCALED: Final = 3
POLL: Final = timedelta(milliseconds=200)
PATIENCE: Final = timedelta(seconds=60)
# How long a city is watched while it is cut off, beside what is waited for elsewhere.
ALONE: Final = timedelta(seconds=3)


@dataclass(frozen=True, slots=True)
class Look:
    """What is seen at one moment of a wait."""

    rows: Sequence[Row]
    done: int
    total: int

    @property
    def is_over(self) -> bool:
        return self.done >= self.total


Looking: TypeAlias = Callable[[], Awaitable[Look]]


class Story:
    """One telling."""

    def __init__(self, scene: Scene, screen: Screen) -> None:
        self._scene = scene
        self._screen = screen
        first, second = scene.places[:2]
        self._first = Hands(scene, first.project, first.namespace)
        self._second = Hands(scene, second.project, second.namespace)
        self.step = "beginning"

    async def tell(self) -> None:
        for step in (
            self._deny,
            self._arrive,
            self._restart,
            self._cut_off,
            self._delete,
            self._cure,
        ):
            await step()

    # --- quota, first half -----------------------------------------------------------------------

    async def _deny(self) -> None:
        project = self._second.plane
        self._title(f"Quota: project {project} may run 1 instance and asks for 2")
        await self._scene.set_grant(project, 1)
        # The other project's grant is ample from the start: nothing here is about it.
        await self._scene.set_grant(self._first.plane, 100)
        await self._second.create(a_workload(API, a_placement("south", "DFW", replicas=REPLICAS)))
        denied = await self._await_denied()
        await self._wait("the city's report", self._second, self._look_denied)
        self._screen.table(await read_rows(self._second, API))
        self._screen.say(f"{denied.reason}: {denied.message}")
        await self._scene.set_grant(project, REPLICAS)
        self._screen.say(
            "The cure is more quota: the grant is 2 now. The denied claim is tried again half a "
            "minute after the denial, so we go on and come back."
        )

    async def _await_denied(self) -> Said:
        found = Said()

        async def look() -> Look:
            nonlocal found
            for instance in await self._second.list(INSTANCE):
                said = condition_of(instance, "QuotaGranted")
                if said.status == "False" and said.reason == "QuotaExceeded":
                    found = said
            rows = await read_rows(self._second, API)
            return Look(rows, int(bool(found.reason)), 1)

        await self._wait("the verdict on the second instance", self._second, look)
        return found

    async def _look_denied(self) -> Look:
        """The first instance runs, and the deployment names what holds the second."""
        rows = await read_rows(self._second, API)
        is_told = [row for row in rows if row.ready == 1 and row.reason == "QuotaNotGranted"]
        return Look(rows, len(is_told), 1)

    async def _cure(self) -> None:
        self._title(f"Quota again: project {self._second.plane} got more, and nobody did anything")
        await self._await_settled(self._second, API, 1)
        self._screen.table(await read_rows(self._second, API))
        self._screen.say("The second instance was granted and runs.")

    # --- arrival and restart ---------------------------------------------------------------------

    async def _arrive(self) -> None:
        self._title(f"A Workload in project {self._first.plane}: {REPLICAS} instances in each city")
        await self._first.create(a_workload(WEB, *_placements(REPLICAS)))
        took = await self._await_settled(self._first, WEB, len(CELLS))
        self._screen.table(await read_rows(self._first, WEB))
        self._screen.say(f"Ready in both cities after {_seconds(took)}.")

    async def _restart(self) -> None:
        self._title("A restart: every instance is replaced, one of a city at a time")
        before, claims = await self._uids(), await self._claims()
        at = datetime.now(UTC).isoformat(timespec="seconds")
        template: JsonObject = {"metadata": {"annotations": {labels.RESTARTED_AT: at}}}
        await self._first.patch(WORKLOAD, WEB, {"spec": {"template": template}})
        fewest = {cell.city: REPLICAS for cell in CELLS}

        async def look() -> Look:
            rows = await read_rows(self._first, WEB)
            for row in rows:
                fewest[row.city] = min(fewest[row.city], row.ready)
            fresh = len((await self._uids()) - before)
            is_settled = len(rows) == len(CELLS) and all(row.is_settled for row in rows)
            # The last step of the bar is the report, not the last instance.
            return Look(rows, fresh + int(is_settled), REPLICAS * len(CELLS) + 1)

        took = await self._wait("new instances", self._first, look)
        if min(fewest.values()) < REPLICAS - 1:
            raise DemoError(f"restarting {WEB}: fewer ready than allowed, {fewest}")
        if await self._claims() != claims:
            raise DemoError(f"restarting {WEB}: quota was given back and claimed again")
        self._screen.table(await read_rows(self._first, WEB))
        self._screen.say(
            f"{REPLICAS * len(CELLS)} replaced in {_seconds(took)}; no city ever had fewer than "
            f"{REPLICAS - 1} of {REPLICAS} ready, and quota was never given back."
        )

    async def _claims(self) -> set[str]:
        return {uid_of(one) for one in await self._first.list(CLAIM)}

    async def _uids(self) -> set[str]:
        """Which Instances run, by what their cells call them; a projection keeps its own UID."""
        found: set[str] = set()
        for cell in CELLS:
            instances = await Hands(self._scene, cell.name).list(INSTANCE)
            found |= {uid_of(one) for one in instances if _is_of(one, WEB)}
        return found

    # --- outage ----------------------------------------------------------------------------------

    async def _cut_off(self) -> None:
        city = ORD.city
        self._title(f"An outage: {city} loses hub, Milo and Karmada, and is asked for a third")
        running = await self._ready_in(ORD.name)
        await self._scene.cut_off(ORD)
        placements: list[JsonValue] = [*_placements(SCALED)]
        await self._first.patch(WORKLOAD, WEB, {"spec": {"placements": placements}})
        await self._await_settled(self._first, WEB, 1, besides=city)
        await self._stay_alone(running)
        self._screen.table(await read_rows(self._first, WEB))
        self._screen.say(
            f"DFW has its third instance. {city} cannot hear of it, and its {len(running)} "
            "instances run on as if nothing had happened."
        )
        await self._scene.bring_back(ORD)
        took = await self._await_settled(self._first, WEB, len(CELLS))
        if not running <= await self._ready_in(ORD.name):
            raise DemoError(f"bringing {city} back: an instance that ran was replaced")
        self._screen.table(await read_rows(self._first, WEB))
        self._screen.say(f"{city} is back and caught up in {_seconds(took)}; nothing was replaced.")

    async def _stay_alone(self, running: set[str]) -> None:
        end = time.monotonic() + ALONE.total_seconds()
        while time.monotonic() < end:
            if await self._ready_in(ORD.name) != running:
                raise DemoError(f"cutting {ORD.city} off: what ran there changed")
            await asyncio.sleep(POLL.total_seconds())

    async def _ready_in(self, cell: str) -> set[str]:
        instances = await Hands(self._scene, cell).list(INSTANCE)
        return {
            uid_of(one)
            for one in instances
            if _is_of(one, WEB) and condition_of(one, "Ready").status == "True"
        }

    # --- deletion --------------------------------------------------------------------------------

    async def _delete(self) -> None:
        self._title("A deletion, and what is left of it on project, hub and cells")
        federated = await self._federated_namespace()
        most = len(await self._left(federated))
        await self._first.delete(WORKLOAD, WEB)
        left: list[str] = []

        async def look() -> Look:
            nonlocal left
            left = await self._left(federated)
            return Look([], most - len(left), most)

        try:
            took = await self._wait("objects to go", self._first, look)
        except DemoError as failure:
            raise DemoError(f"{failure}; still there: {', '.join(left)}") from failure
        self._screen.say(
            f"{most} objects went in {_seconds(took)}: deployments, instances, copies, network "
            "bindings, policies, quota claims. Nothing of it is left."
        )

    async def _federated_namespace(self) -> str:
        """Under which name hub and cells have this project's namespace."""
        namespaces = await Hands(self._scene, self._first.plane).list(NAMESPACE)
        own = [uid_of(one) for one in namespaces if name_of(one) == self._first.namespace]
        return f"ns-{own[0]}"

    async def _left(self, federated: str) -> list[str]:
        """Every object that stands for the Workload, wherever it is."""
        cells = [(Hands(self._scene, cell.name, federated), IN_CELL) for cell in CELLS]
        hub = Hands(self._scene, HUB, federated)
        found: list[str] = []
        for hands, kinds in ((self._first, IN_PROJECT), (hub, ON_HUB), *cells):
            for kind in kinds:
                listed = await hands.list(kind)
                found += [f"{kind.name} {name_of(one)} on {hands.plane}" for one in listed]
        return found

    # --- waiting ---------------------------------------------------------------------------------

    def _title(self, text: str) -> None:
        self.step = text
        self._screen.title(text)

    async def _await_settled(
        self, hands: Hands, workload: str, cities: int, besides: str = ""
    ) -> timedelta:
        """Until so many cities have what is desired; `besides` is not waited for."""

        async def look() -> Look:
            rows = await read_rows(hands, workload)
            counted = [row for row in rows if row.city != besides]
            settled = [row for row in counted if row.is_settled]
            # A city counts with its instances, and once more when its deployment says so.
            done = sum(min(row.ready, row.desired) for row in counted) + len(settled)
            wanted = sum(row.desired for row in counted) + cities
            return Look(rows, done, wanted if len(counted) == cities else wanted + 1)

        return await self._wait("all instances to be ready", hands, look)

    async def _wait(self, what: str, hands: Hands, look: Looking) -> timedelta:
        """Looks until it is so, and shows what is seen meanwhile; how long it took."""
        patience = PATIENCE * self._scene.pace
        began = time.monotonic()
        while True:
            self._scene.check()
            seen = await look()
            elapsed = timedelta(seconds=time.monotonic() - began)
            self._screen.draw(seen.rows, Progress(seen.done, seen.total, what, elapsed))
            if seen.is_over:
                self._screen.clear()
                return elapsed
            if elapsed > patience:
                self._screen.clear()
                self._screen.table(seen.rows)
                raise DemoError(
                    f"waiting for {what} in project {hands.plane}: {seen.done} of {seen.total} "
                    f"after {_seconds(elapsed)}"
                )
            await asyncio.sleep(POLL.total_seconds())


IN_PROJECT: Final = (WORKLOAD, DEPLOYMENT, INSTANCE, CLAIM)
ON_HUB: Final = (DEPLOYMENT, INSTANCE, POLICY)
IN_CELL: Final = (DEPLOYMENT, INSTANCE, BINDING)


def _placements(replicas: int) -> list[JsonObject]:
    return [a_placement(cell.city.lower(), cell.city, replicas=replicas) for cell in CELLS]


def _is_of(instance: JsonObject, workload: str) -> bool:
    return labels_of(instance).get(labels.WORKLOAD_NAME) == workload


def _seconds(took: timedelta) -> str:
    return f"{took.total_seconds():.1f} s"
