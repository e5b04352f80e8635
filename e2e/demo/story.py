"""The steps of the demo; each step verifies what it shows, or fails.

```
quota       a project requests more than its quota: denied with a reason, then granted more
arrival     a Workload becomes Ready in both cities
restart     it rolls, one instance of a city at a time
outage      a city is cut off: it keeps running, the other continues, then it catches up
deletion    no object of the Workload is left on any plane
quota again the claim that was denied is granted, and its instance runs
```

The denial comes first because its retry is due half a minute later, during the other steps.
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
from e2e.demo.backend import CELLS, DemoBackend, DemoError, UserClient, read_rows
from e2e.demo.picture import CityRow, Progress
from e2e.demo.screen import Screen
from e2e.world.documents import a_placement, a_workload
from e2e.world.kinds import BINDING, CLAIM, DEPLOYMENT, INSTANCE, NAMESPACE, POLICY, WORKLOAD
from e2e.world.objects import ConditionView, condition_of, labels_of, name_of, uid_of
from e2e.world.port import HUB, ORD

WEB: Final = "web"
API: Final = "api"
REPLICAS: Final = 2
SCALED: Final = 3
POLL: Final = timedelta(milliseconds=200)
PATIENCE: Final = timedelta(seconds=60)
# How long a disconnected city is observed, in addition to the wait for the other.
ALONE: Final = timedelta(seconds=3)
# The longest time until a city that died is stated (dark-sites.md), and as much again.
UNHEARD: Final = timedelta(seconds=180)


@dataclass(frozen=True, slots=True)
class WaitSnapshot:
    """The state at one moment of a wait."""

    rows: Sequence[CityRow]
    done: int
    total: int

    @property
    def is_over(self) -> bool:
        return self.done >= self.total


TakeSnapshot: TypeAlias = Callable[[], Awaitable[WaitSnapshot]]


class Story:
    """One run of the demo's steps."""

    def __init__(
        self, environment: DemoBackend, screen: Screen, *, holds_outage: bool = False
    ) -> None:
        self._environment = environment
        self._holds_outage = holds_outage
        self._screen = screen
        first, second = environment.project_namespaces[:2]
        self._first = UserClient(environment, first.project, first.namespace)
        self._second = UserClient(environment, second.project, second.namespace)
        self.step = "beginning"

    async def run(self) -> None:
        for step in (
            self._deny,
            self._arrive,
            self._restart,
            self._cut_off,
            self._delete,
            self._run_granted,
        ):
            await step()

    # --- quota, first half -----------------------------------------------------------------------

    async def _deny(self) -> None:
        project = self._second.plane
        self._title(f"Quota: project {project} may run 1 instance and asks for 2")
        await self._environment.set_grant(project, 1)
        # The first project has an ample grant from the start.
        await self._environment.set_grant(self._first.plane, 100)
        await self._second.create(a_workload(API, a_placement("south", "DFW", replicas=REPLICAS)))
        denied = await self._await_denied()
        await self._wait("the city's report", self._second, self._denied_snapshot)
        self._screen.table(await read_rows(self._second, API))
        self._screen.say(f"{denied.reason}: {denied.message}")
        await self._environment.set_grant(project, REPLICAS)
        self._screen.say(
            f"The grant is now {REPLICAS}. The cell operator requests the denied claim again half "
            "a minute after the denial; the demo continues meanwhile."
        )

    async def _await_denied(self) -> ConditionView:
        denied = ConditionView()

        async def take_snapshot() -> WaitSnapshot:
            nonlocal denied
            for instance in await self._second.list(INSTANCE):
                condition = condition_of(instance, "QuotaGranted")
                if condition.status == "False" and condition.reason == "QuotaExceeded":
                    denied = condition
            rows = await read_rows(self._second, API)
            return WaitSnapshot(rows, int(bool(denied.reason)), 1)

        await self._wait("the decision on the second claim", self._second, take_snapshot)
        return denied

    async def _denied_snapshot(self) -> WaitSnapshot:
        """Done when the first instance runs and the deployment reports why the second does not."""
        rows = await read_rows(self._second, API)
        reporting = [row for row in rows if row.ready == 1 and row.reason == "QuotaNotGranted"]
        return WaitSnapshot(rows, len(reporting), 1)

    async def _run_granted(self) -> None:
        self._title(
            f"Quota again: project {self._second.plane} gets its second instance without any action"
        )
        await self._await_settled(self._second, API, 1)
        self._screen.table(await read_rows(self._second, API))
        self._screen.say("The claim of the second instance was granted, and the instance runs.")

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

        async def take_snapshot() -> WaitSnapshot:
            rows = await read_rows(self._first, WEB)
            for row in rows:
                fewest[row.city] = min(fewest[row.city], row.ready)
            fresh = len((await self._uids()) - before)
            is_settled = len(rows) == len(CELLS) and all(row.is_settled for row in rows)
            # The last step of the bar is the reported status, not the last instance.
            return WaitSnapshot(rows, fresh + int(is_settled), REPLICAS * len(CELLS) + 1)

        took = await self._wait("new instances", self._first, take_snapshot)
        if min(fewest.values()) < REPLICAS - 1:
            raise DemoError(f"restarting {WEB}: fewer ready than allowed, {fewest}")
        if await self._claims() != claims:
            raise DemoError(f"restarting {WEB}: quota was given back and claimed again")
        self._screen.table(await read_rows(self._first, WEB))
        self._screen.say(
            f"{REPLICAS * len(CELLS)} replaced in {_seconds(took)}; no city had fewer than "
            f"{REPLICAS - 1} of {REPLICAS} ready, and every quota claim was kept."
        )

    async def _claims(self) -> set[str]:
        return {uid_of(one) for one in await self._first.list(CLAIM)}

    async def _uids(self) -> set[str]:
        """UIDs of the Instances in the cells; a projection keeps its own UID."""
        uids: set[str] = set()
        for cell in CELLS:
            instances = await UserClient(self._environment, cell.name).list(INSTANCE)
            uids |= {uid_of(one) for one in instances if _is_of(one, WEB)}
        return uids

    # --- outage ----------------------------------------------------------------------------------

    async def _cut_off(self) -> None:
        city = ORD.city
        self._title(
            f"An outage: {city} is cut off from hub, Milo and Karmada; {SCALED} are desired"
        )
        running = await self._ready_in(ORD.name)
        await self._environment.cut_off(ORD)
        placements: list[JsonValue] = [*_placements(SCALED)]
        await self._first.patch(WORKLOAD, WEB, {"spec": {"placements": placements}})
        await self._await_settled(self._first, WEB, 1, besides=city)
        await self._stay_alone(running)
        self._screen.table(await read_rows(self._first, WEB))
        self._screen.say(
            f"DFW has its third instance. {city} has not received the change, and its "
            f"{len(running)} instances keep running."
        )
        if self._holds_outage:
            await self._await_unreachable(running)
        await self._environment.bring_back(ORD)
        took = await self._await_settled(self._first, WEB, len(CELLS))
        if not running <= await self._ready_in(ORD.name):
            raise DemoError(f"bringing {city} back: an instance that ran was replaced")
        self._screen.table(await read_rows(self._first, WEB))
        self._screen.say(
            f"{city} is connected again and complete after {_seconds(took)}; none was replaced."
        )

    async def _await_unreachable(self, running: set[str]) -> None:
        """Holds the outage until the project states it, and the city as long as it runs on."""
        city = ORD.city

        async def take_snapshot() -> WaitSnapshot:
            rows = await read_rows(self._first, WEB)
            told = [row for row in rows if row.city == city and row.reason == "CellUnreachable"]
            return WaitSnapshot(rows, len(told), 1)

        what = f"the project to state that {city} is not heard"
        took = await self._wait(what, self._first, take_snapshot, UNHEARD)
        await self._stay_alone(running)
        self._screen.table(await read_rows(self._first, WEB))
        workloads = await self._first.list(WORKLOAD)
        (shown,) = (condition_of(one, "Ready") for one in workloads if name_of(one) == WEB)
        self._screen.say(
            f"After {_seconds(took)} more: the Workload is Ready {shown.status}, {shown.reason}. "
            f"{shown.message}. Nothing was moved or deleted."
        )

    async def _stay_alone(self, running: set[str]) -> None:
        end = time.monotonic() + ALONE.total_seconds()
        while time.monotonic() < end:
            if await self._ready_in(ORD.name) != running:
                raise DemoError(f"cutting {ORD.city} off: what ran there changed")
            await asyncio.sleep(POLL.total_seconds())

    async def _ready_in(self, cell: str) -> set[str]:
        instances = await UserClient(self._environment, cell).list(INSTANCE)
        return {
            uid_of(one)
            for one in instances
            if _is_of(one, WEB) and condition_of(one, "Ready").status == "True"
        }

    # --- deletion --------------------------------------------------------------------------------

    async def _delete(self) -> None:
        self._title("A deletion: all objects on project, hub and cells are removed")
        federated = await self._federated_namespace()
        most = len(await self._left(federated))
        await self._first.delete(WORKLOAD, WEB)
        left: list[str] = []

        async def take_snapshot() -> WaitSnapshot:
            nonlocal left
            left = await self._left(federated)
            return WaitSnapshot([], most - len(left), most)

        try:
            took = await self._wait("objects to be deleted", self._first, take_snapshot)
        except DemoError as failure:
            raise DemoError(f"{failure}; still there: {', '.join(left)}") from failure
        self._screen.say(
            f"{most} objects were deleted in {_seconds(took)}: deployments, instances, copies, "
            "network bindings, policies, quota claims. None is left."
        )

    async def _federated_namespace(self) -> str:
        """The name of this project's namespace on hub and cells."""
        namespaces = await UserClient(self._environment, self._first.plane).list(NAMESPACE)
        own = [uid_of(one) for one in namespaces if name_of(one) == self._first.namespace]
        return f"ns-{own[0]}"

    async def _left(self, federated: str) -> list[str]:
        """Every object of the Workload on every plane."""
        cells = [(UserClient(self._environment, cell.name, federated), IN_CELL) for cell in CELLS]
        hub = UserClient(self._environment, HUB, federated)
        left: list[str] = []
        for client, kinds in ((self._first, IN_PROJECT), (hub, ON_HUB), *cells):
            for kind in kinds:
                listed = await client.list(kind)
                left += [f"{kind.name} {name_of(one)} on {client.plane}" for one in listed]
        return left

    # --- waiting ---------------------------------------------------------------------------------

    def _title(self, text: str) -> None:
        self.step = text
        self._screen.title(text)

    async def _await_settled(
        self, client: UserClient, workload: str, cities: int, besides: str = ""
    ) -> timedelta:
        """Waits until so many cities have the desired instances; `besides` is ignored."""

        async def take_snapshot() -> WaitSnapshot:
            rows = await read_rows(client, workload)
            counted = [row for row in rows if row.city != besides]
            settled = [row for row in counted if row.is_settled]
            # A city counts with its instances, and once more when its deployment reports them.
            done = sum(min(row.ready, row.desired) for row in counted) + len(settled)
            wanted = sum(row.desired for row in counted) + cities
            return WaitSnapshot(rows, done, wanted if len(counted) == cities else wanted + 1)

        return await self._wait("all instances to be ready", client, take_snapshot)

    async def _wait(
        self,
        what: str,
        client: UserClient,
        take_snapshot: TakeSnapshot,
        longest: timedelta = PATIENCE,
    ) -> timedelta:
        """Polls until the snapshot is complete, draws each one, and returns the elapsed time."""
        patience = longest * self._environment.pace
        began = time.monotonic()
        while True:
            self._environment.check()
            seen = await take_snapshot()
            elapsed = timedelta(seconds=time.monotonic() - began)
            self._screen.draw(seen.rows, Progress(seen.done, seen.total, what, elapsed))
            if seen.is_over:
                self._screen.clear()
                return elapsed
            if elapsed > patience:
                self._screen.clear()
                self._screen.table(seen.rows)
                raise DemoError(
                    f"waiting for {what} in project {client.plane}: {seen.done} of {seen.total} "
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
