"""A cell in memory, for stories about rollouts: Instances by slot, and time that passes in rounds.

In each round the planner runs once, its steps are carried out, and the provider continues its work,
in an order that depends on the seed. Invariants are checked in every round, and every round is
recorded as a line of text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from cell_builders.candidates import DEPLOYMENT, UID, a_candidate
from compute_api_types.template_hash import HashVerdict
from compute_cell_operator.deployment.plan.rollout import InstanceDemand, plan_instances
from compute_cell_operator.deployment.plan.steps import (
    CreateStep,
    HoldStep,
    Purpose,
    RemoveStep,
    Step,
    WaitStep,
)
from compute_cell_operator.deployment.slots import SlotInstance, Slots, derive_slots


@dataclass(slots=True)
class Running:
    """One Instance."""

    uid: str
    template: str
    is_ready: bool = False
    is_terminating: bool = False


@dataclass(slots=True)
class RolloutWorld:
    """See the module's text. A template with a name like `bad…` never becomes ready."""

    seed: int
    desired: int = 0
    template: str = "v1"
    instances: dict[int, Running] = field(default_factory=dict[int, Running])
    lines: list[str] = field(default_factory=list[str])
    _born: int = 0
    _round: int = 0

    def say(self, what: str) -> None:
        self.lines.append(f"-- {what}")

    def play(self, rounds: int = 60) -> None:
        """Until nothing changes any more."""
        for _ in range(rounds):
            before = self._picture()
            steps = plan_instances(self._slots(), InstanceDemand(self.desired))
            self._round += 1
            words = " · ".join(_describe(step) for step in steps) or "nothing to do"
            self.lines.append(f"{self._round:>2}  {words:<44} {before}".rstrip())
            for step in steps:
                self._carry_out(step)
            self._pass_time()
            if self._picture() == before:
                return
        raise AssertionError("the story does not end")

    def play_one(self) -> None:
        """One round."""
        steps = plan_instances(self._slots(), InstanceDemand(self.desired))
        self._round += 1
        words = " · ".join(_describe(step) for step in steps) or "nothing to do"
        self.lines.append(f"{self._round:>2}  {words:<44} {self._picture()}".rstrip())
        for step in steps:
            self._carry_out(step)
        self._pass_time()

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    # --- the cell ---------------------------------------------------------------------------------

    def _slots(self) -> Slots:
        return derive_slots(DEPLOYMENT, UID, map(self._candidate, self.instances))

    def _candidate(self, ordinal: int) -> SlotInstance:
        running = self.instances[ordinal]
        is_current = running.template == self.template
        return a_candidate(
            f"{DEPLOYMENT}-{ordinal}",
            ready=running.is_ready,
            revision=HashVerdict.CURRENT if is_current else HashVerdict.STALE,
            terminating=running.is_terminating,
            uid=running.uid,
        )

    def _carry_out(self, step: Step) -> None:
        match step:
            case CreateStep(ordinal):
                assert ordinal not in self.instances, f"two instances in slot {ordinal}"
                self._born += 1
                self.instances[ordinal] = Running(f"uid-{self._born}", self.template)
            case RemoveStep(candidate, _):
                ordinal = int(candidate.name.rpartition("-")[2])
                assert self.instances[ordinal].uid == candidate.metadata.uid
                self.instances[ordinal].is_terminating = True
            case WaitStep() | HoldStep():
                return

    def _pass_time(self) -> None:
        """One change by the provider per round and Instance, now or a round later."""
        chance = Random(f"{self.seed}/{self._round}")  # noqa: S311 -- nothing secret
        for ordinal in sorted(self.instances, key=lambda _: chance.random()):
            running = self.instances[ordinal]
            if running.is_terminating:
                del self.instances[ordinal]
            elif not running.template.startswith("bad"):
                running.is_ready = True
        self._check()

    def _check(self) -> None:
        bad = [o for o, running in self.instances.items() if running.template.startswith("bad")]
        assert len(bad) <= 1, "a bad template spread"

    def _picture(self) -> str:
        return " ".join(
            f"{ordinal}:{running.template}{_mark(running)}"
            for ordinal, running in sorted(self.instances.items())
        )


def _mark(running: Running) -> str:
    if running.is_terminating:
        return "†"
    return "✓" if running.is_ready else "…"


def _describe(step: Step) -> str:
    match step:
        case CreateStep(ordinal):
            return f"create {ordinal}"
        case RemoveStep(candidate, Purpose.RECREATE):
            return f"delete {candidate.name[-1]} to recreate"
        case RemoveStep(candidate, _):
            return f"delete {candidate.name[-1]}"
        case WaitStep(ordinal, _):
            return f"wait for {ordinal}"
        case HoldStep(ordinal):
            return f"hold {ordinal}"
