"""Open histories: random acts of users, quota, links and operators, judged by all oracles.

A rule-based state machine chooses the acts, so that a failing history shrinks to a short one. The
acts are data: the run interprets them in virtual time, restores every link and operator at the end,
and waits until each Workload is exactly what its last accepted edit asks for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Final

import hypothesis
from hypothesis import HealthCheck, strategies
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from typing_extensions import override

from compute_api_types import labels
from compute_api_types.wire import JsonObject, JsonValue
from e2e.backends.sim.backend import SimBackend
from e2e.sweep.plans import plan_of
from e2e.sweep.running import SweepRun, judge_history, play
from e2e.sweep.scenarios import SweptScenario
from e2e.world.documents import a_bare_deployment, a_placement, a_template, a_workload
from e2e.world.handles import RefusedError, within
from e2e.world.kinds import CLAIM, DEPLOYMENT, INSTANCE, WORKLOAD
from e2e.world.objects import condition_of, gates_of, name_of
from e2e.world.port import DFW, HUB, MANAGEMENT, ORD, Backend, Needs
from e2e.world.scenario import World

NEEDS: Final = Needs(cells=(DFW, ORD), has_quota=True)
OPERATORS: Final = (MANAGEMENT, DFW.name, ORD.name)
WORKLOADS: Final = ("web", "api")
BARE: Final = "bare"
AMPLE: Final = 40  # Instances: more than all Workloads ask for
INSISTS: Final = timedelta(seconds=60)  # how long a user repeats what is refused
END: Final = within(1800)  # denied claims are requested again after up to ten minutes
STEPS: Final = 10  # acts of a history at most


@dataclass(frozen=True, slots=True)
class Act:
    """One act, and how long the run waits after it."""

    verb: str
    target: str = ""
    value: str = ""
    number: int = 0
    pause: float = 0.0


@dataclass(slots=True)
class Wanted:
    """What a Workload, or the bare deployment, is to be."""

    cities: tuple[str, ...]
    replicas: int
    tag: str = "1.0"
    restarted: str = ""

    def document(self, name: str) -> JsonObject:
        annotations = {labels.RESTARTED_AT: self.restarted} if self.restarted else None
        template = a_template(self.tag, annotations=annotations)
        if name == BARE:
            return a_bare_deployment(
                name, self.cities[0], replicas=self.replicas, template=template
            )
        placed = a_placement("default", *self.cities, replicas=self.replicas)
        return a_workload(name, placed, template=template)

    def instances(self, name: str) -> list[str]:
        stems = [name] if name == BARE else [f"{name}-default-{c.lower()}" for c in self.cities]
        return [f"{stem}-{ordinal}" for stem in stems for ordinal in range(self.replicas)]


class Interpreter:
    """Carries out the acts of one history in a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.backend = world.backend
        self.wanted: dict[str, Wanted] = {}
        self.cuts: set[tuple[str, str]] = set()

    async def perform(self, acts: Sequence[Act]) -> None:
        for act in acts:
            await self._perform(act)
            await self.backend.sleep(timedelta(seconds=act.pause))
        await self._restore()
        await self.world.eventually(self._is_as_wanted, END)

    async def _perform(self, act: Act) -> None:
        match act.verb:
            case "create" | "edit" | "scale" | "restart" | "move" | "delete":
                await self._change(act)
            case "grant":
                await self.world.grant(act.number)
            case "cut" | "heal":
                await self._set_link(act)
            case "kill":
                await self.backend.kill(act.target)
                await self.backend.sleep(timedelta(seconds=act.number))
                await self.backend.start(act.target)
            case "pause":
                await self._pause(act)
            case _:
                raise LookupError(f"performing {act.verb!r}: no such act")

    async def _change(self, act: Act) -> None:
        """A request of a user; the change counts from when it is accepted."""
        project, kind = self.world.project, DEPLOYMENT if act.target == BARE else WORKLOAD
        before = self.wanted.get(act.target)
        if act.verb == "delete":
            if before and await self._insist(partial(project.delete, kind, act.target)):
                del self.wanted[act.target]
            return
        after = _changed(before, act)
        if after is None:
            return
        document = after.document(act.target)
        if before is None:
            # A deletion may still hold the name.
            is_accepted = await self._insist(partial(project.create, document))
        else:
            spec: JsonObject = {"spec": document["spec"]}
            is_accepted = await self._insist(partial(project.patch, kind, act.target, spec))
        if is_accepted:
            self.wanted[act.target] = after

    async def _insist(self, request: Callable[[], Awaitable[object]]) -> bool:
        end = self.backend.now() + INSISTS
        while True:
            try:
                await request()
            except RefusedError:
                if self.backend.now() >= end:
                    return False
                await self.backend.sleep(timedelta(seconds=1))
            else:
                return True

    async def _set_link(self, act: Act) -> None:
        plane = HUB if act.value == "hub" else self.world.project.name
        if act.verb == "cut":
            self.cuts.add((act.target, plane))
            await self.backend.cut(act.target, plane)
        else:
            self.cuts.discard((act.target, plane))
            await self.backend.heal(act.target, plane)

    async def _pause(self, act: Act) -> None:
        """As SIGSTOP and SIGCONT; an operator that does not lead at that moment is left alone."""
        try:
            await self.backend.freeze_leader(act.target)
        except AssertionError:
            return
        await self.backend.sleep(timedelta(seconds=act.number))
        await self.backend.thaw(act.target)

    async def _restore(self) -> None:
        for operator, plane in sorted(self.cuts):
            await self.backend.heal(operator, plane)
        await self.world.grant(AMPLE)

    async def _is_as_wanted(self) -> None:
        project = self.world.project
        names = sorted(n for name, one in self.wanted.items() for n in one.instances(name))
        assert await project.names(INSTANCE) == names, await project.names(INSTANCE)
        assert await project.names(CLAIM) == [f"instance-{name}" for name in names]
        hub = await self.world.hub_of(project)
        assert await hub.names(INSTANCE) == names
        tags = {n: one.tag for name, one in self.wanted.items() for n in one.instances(name)}
        for one in await project.list(INSTANCE):
            assert gates_of(one) == [], name_of(one)
            assert condition_of(one, "Ready").status == "True", name_of(one)
            assert f":{tags[name_of(one)]}'" in str(one), name_of(one)


def _changed(before: Wanted | None, act: Act) -> Wanted | None:
    """What is wanted after an act; None where it does not apply."""
    if act.verb == "create":
        return None if before else Wanted(tuple(act.value.split()), act.number)
    if before is None:
        return None
    after = Wanted(before.cities, before.replicas, before.tag, before.restarted)
    match act.verb:
        case "edit":
            after.tag = f"{act.number}.0"
        case "scale":
            after.replicas = act.number
        case "restart":
            after.restarted = f"2026-03-01T00:00:{act.number:02}Z"
        case _:
            after.cities = tuple(act.value.split())
    return after


# --- one history ----------------------------------------------------------------------------------


def run_history(acts: Sequence[Act]) -> list[str]:
    """The violations of one history."""

    async def body(backend: Backend, on_change: Callable[[], None]) -> None:
        del on_change
        await Interpreter(World(backend, NEEDS)).perform(acts)

    done: SweepRun = play(SweptScenario("history", NEEDS, body), plan_of("history"))
    assert isinstance(done.backend, SimBackend)
    return judge_history(done)


@dataclass(slots=True)
class Tally:
    """How many histories a run of the machine has tried."""

    histories: int = 0
    acts: int = 0
    counted: list[int] = field(default_factory=list[int])


PAUSES: Final = strategies.sampled_from([0.0, 0.05, 0.5, 2.0, 10.0, 45.0])
CITIES: Final = strategies.sampled_from(["DFW", "ORD", "DFW ORD"])
NAMES: Final = strategies.sampled_from([*WORKLOADS, BARE])
HOW_MANY: Final = strategies.integers(min_value=1, max_value=2)
OPERATOR: Final = strategies.sampled_from(OPERATORS)
LINK: Final = strategies.sampled_from(["hub", "project"])


class HistoryMachine(RuleBasedStateMachine):
    """Chooses acts; the history is run and judged when it is complete."""

    tally = Tally()

    def __init__(self) -> None:
        super().__init__()
        self.acts: list[Act] = []

    def _add(self, verb: str, target: str = "", **rest: JsonValue) -> None:
        value, number, pause = rest.get("value", ""), rest.get("number", 0), rest.get("pause", 0.0)
        assert isinstance(value, str)
        assert isinstance(number, int)
        assert isinstance(pause, float)
        self.acts.append(Act(verb, target, value, number, pause))

    @rule(name=NAMES, cities=CITIES, number=HOW_MANY, pause=PAUSES)
    def create(self, name: str, cities: str, number: int, pause: float) -> None:
        self._add("create", name, value=_of(name, cities), number=number, pause=pause)

    @rule(name=NAMES, number=strategies.integers(2, 4), pause=PAUSES)
    def edit(self, name: str, number: int, pause: float) -> None:
        self._add("edit", name, number=number, pause=pause)

    @rule(name=NAMES, number=strategies.integers(0, 3), pause=PAUSES)
    def scale(self, name: str, number: int, pause: float) -> None:
        self._add("scale", name, number=number, pause=pause)

    @rule(name=NAMES, number=strategies.integers(1, 59), pause=PAUSES)
    def restart(self, name: str, number: int, pause: float) -> None:
        self._add("restart", name, number=number, pause=pause)

    @rule(name=NAMES, cities=CITIES, pause=PAUSES)
    def move(self, name: str, cities: str, pause: float) -> None:
        """The cities of a Workload, or that of the bare deployment, edited in place."""
        self._add("move", name, value=_of(name, cities), pause=pause)

    @rule(name=NAMES, pause=PAUSES)
    def delete(self, name: str, pause: float) -> None:
        self._add("delete", name, pause=pause)

    @rule(number=strategies.sampled_from([0, 1, 3, AMPLE]), pause=PAUSES)
    def grant(self, number: int, pause: float) -> None:
        """Raised or lowered; below what is used, later claims are denied."""
        self._add("grant", number=number, pause=pause)

    @rule(operator=OPERATOR, link=LINK, pause=PAUSES)
    def cut(self, operator: str, link: str, pause: float) -> None:
        self._add("cut", operator, value=link, pause=pause)

    @rule(operator=OPERATOR, link=LINK, pause=PAUSES)
    def heal(self, operator: str, link: str, pause: float) -> None:
        self._add("heal", operator, value=link, pause=pause)

    @rule(operator=OPERATOR, number=strategies.integers(0, 20), pause=PAUSES)
    def kill(self, operator: str, number: int, pause: float) -> None:
        self._add("kill", operator, number=number, pause=pause)

    @rule(operator=OPERATOR, number=strategies.integers(1, 40), pause=PAUSES)
    def pause(self, operator: str, number: int, pause: float) -> None:
        self._add("pause", operator, number=number, pause=pause)

    @override
    def teardown(self) -> None:
        if not self.acts:
            return
        self.tally.histories += 1
        self.tally.acts += len(self.acts)
        violations = run_history(self.acts)
        assert not violations, "\n".join(violations[:5])


def _of(name: str, cities: str) -> str:
    """A bare deployment has one city."""
    return cities.partition(" ")[0] if name == BARE else cities


def run_histories(count: int, seed: int) -> Tally:
    """So many histories; raises AssertionError with the shortest one that fails."""
    HistoryMachine.tally = Tally()
    settings = hypothesis.settings(
        max_examples=count,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        # A history takes seconds, and rules that do not apply are filtered.
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    seeded = hypothesis.seed(seed)(HistoryMachine)
    run_state_machine_as_test(seeded, settings=settings)
    return HistoryMachine.tally
