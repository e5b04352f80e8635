"""A cell in memory, for stories about rollouts: Instances by slot, and time that passes in rounds.

In each round the planner looks once, its steps are carried out, and the provider gets on with
whatever it is doing, in an order that depends on the seed. What must hold in every round is checked
here; what happened is written down as text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from cell_builders.candidates import DEPLOYMENT, UID, a_candidate
from compute_api_types.template_hash import HashVerdict
from compute_cell_operator.deployment.plan import Demand, Step, plan_instances
from compute_cell_operator.deployment.plan.steps import Create, Hold, Purpose, Remove, Wait
from compute_cell_operator.deployment.slots import Candidate, Slots, derive_slots


@dataclass(slots=True)
class Running:
    """One Instance."""

    uid: str
    template: str
    is_ready: bool = False
    is_terminating: bool = False


@dataclass(slots=True)
class RolloutWorld:
    """See the module's text. Templates whose name begins with `bad` never become ready."""

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
            steps = plan_instances(self._slots(), Demand(self.desired))
            self._round += 1
            told = " · ".join(_told(step) for step in steps) or "nothing to do"
            self.lines.append(f"{self._round:>2}  {told:<44} {before}".rstrip())
            for step in steps:
                self._carry_out(step)
            self._pass_time()
            if self._picture() == before:
                return
        raise AssertionError("the story does not end")

    def play_one(self) -> None:
        """One round."""
        steps = plan_instances(self._slots(), Demand(self.desired))
        self._round += 1
        told = " · ".join(_told(step) for step in steps) or "nothing to do"
        self.lines.append(f"{self._round:>2}  {told:<44} {self._picture()}".rstrip())
        for step in steps:
            self._carry_out(step)
        self._pass_time()

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    # --- the cell ---------------------------------------------------------------------------------

    def _slots(self) -> Slots:
        return derive_slots(DEPLOYMENT, UID, map(self._candidate, self.instances))

    def _candidate(self, ordinal: int) -> Candidate:
        found = self.instances[ordinal]
        is_current = found.template == self.template
        return a_candidate(
            f"{DEPLOYMENT}-{ordinal}",
            ready=found.is_ready,
            revision=HashVerdict.CURRENT if is_current else HashVerdict.STALE,
            terminating=found.is_terminating,
            uid=found.uid,
        )

    def _carry_out(self, step: Step) -> None:
        match step:
            case Create(ordinal):
                assert ordinal not in self.instances, f"two instances in slot {ordinal}"
                self._born += 1
                self.instances[ordinal] = Running(f"uid-{self._born}", self.template)
            case Remove(candidate, _):
                ordinal = int(candidate.name.rpartition("-")[2])
                assert self.instances[ordinal].uid == candidate.metadata.uid
                self.instances[ordinal].is_terminating = True
            case Wait() | Hold():
                return

    def _pass_time(self) -> None:
        """One thing of the provider's happens per round and Instance, now or a round later."""
        chance = Random(f"{self.seed}/{self._round}")  # noqa: S311 -- nothing secret
        for ordinal in sorted(self.instances, key=lambda _: chance.random()):
            found = self.instances[ordinal]
            if found.is_terminating:
                del self.instances[ordinal]
            elif not found.template.startswith("bad"):
                found.is_ready = True
        self._check()

    def _check(self) -> None:
        bad = [o for o, found in self.instances.items() if found.template.startswith("bad")]
        assert len(bad) <= 1, "a bad template spread"

    def _picture(self) -> str:
        return " ".join(
            f"{ordinal}:{found.template}{_mark(found)}"
            for ordinal, found in sorted(self.instances.items())
        )


def _mark(found: Running) -> str:
    if found.is_terminating:
        return "†"
    return "✓" if found.is_ready else "…"


def _told(step: Step) -> str:
    match step:
        case Create(ordinal):
            return f"create {ordinal}"
        case Remove(candidate, Purpose.RECREATE):
            return f"delete {candidate.name[-1]} to recreate"
        case Remove(candidate, _):
            return f"delete {candidate.name[-1]}"
        case Wait(ordinal, _):
            return f"wait for {ordinal}"
        case Hold(ordinal):
            return f"hold {ordinal}"
