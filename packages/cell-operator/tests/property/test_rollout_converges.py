"""From any start the planner reaches the desired set, and never harms an Instance on the way.

The world below carries plans out as a cell would: creates take a while to become ready, deletes a
while to end. The desired set is derived from the demand alone: derived from the plan, a wrong
planner would pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import hypothesis.strategies as st
from cell_builders.candidates import DEPLOYMENT, OTHER, READY, UID, a_candidate
from hypothesis import given

from compute_api_types.template_hash import HashVerdict
from compute_cell_operator.deployment.plan.rollout import InstanceDemand, plan_instances
from compute_cell_operator.deployment.plan.steps import CreateStep, RemoveStep
from compute_cell_operator.deployment.slots import SlotInstance, derive_slots

ORDINALS = range(6)


@dataclass(slots=True)
class World:
    """Instances by name, as the cell's API server would hold them."""

    present: dict[str, SlotInstance]
    born: int = 0

    def carry_out(self, step: object) -> None:
        match step:
            case CreateStep(ordinal):
                name = f"{DEPLOYMENT}-{ordinal}"
                assert name not in self.present, f"two instances in slot {ordinal}"
                self.born += 1
                self.present[name] = a_candidate(name, ready=False, uid=f"born-{self.born}")
            case RemoveStep(candidate, _):
                existing = self.present[candidate.name]
                assert existing.metadata.uid == candidate.metadata.uid
                assert existing.metadata.controller is not None
                assert existing.metadata.controller.uid == UID, "deleted what is not ours"
                self.present[candidate.name] = a_candidate(
                    existing.name,
                    ready=existing.is_ready,
                    revision=existing.revision,
                    terminating=True,
                    uid=existing.metadata.uid,
                )
            case _:
                return

    def pass_time(self) -> None:
        """Terminating and foreign Instances end, fresh ones become ready, stale ones stay."""
        for name, instance in list(self.present.items()):
            owner = instance.metadata.controller
            if instance.is_terminating or (owner is not None and owner.uid == OTHER):
                del self.present[name]
            elif instance.revision is not HashVerdict.STALE:
                self.present[name] = replace(instance, conditions=(READY,))


@st.composite
def candidates(draw: st.DrawFn) -> dict[str, SlotInstance]:
    names = draw(
        st.sets(st.sampled_from([*(f"{DEPLOYMENT}-{n}" for n in ORDINALS), "web-x", "web-07"]))
    )
    return {
        name: a_candidate(
            name,
            ready=draw(st.booleans()),
            revision=draw(st.sampled_from(HashVerdict)),
            terminating=draw(st.booleans()),
            owner=draw(st.sampled_from([UID, UID, UID, OTHER])),
            label_uid=draw(st.sampled_from([UID, OTHER, ""])),
        )
        for name in names
    }


@given(candidates(), st.integers(0, 6))
def test_every_start_converges_to_the_desired_set(
    start: dict[str, SlotInstance], desired: int
) -> None:
    world = World(dict(start))
    # Each Instance is deleted at most once and each slot created at most once after it, and every
    # step takes a round to plan and one to come to rest; foreign ones take one more.
    for _ in range(4 * (len(start) + desired) + 4):
        steps = plan_instances(
            derive_slots(DEPLOYMENT, UID, world.present.values()), InstanceDemand(desired)
        )
        writes = [step for step in steps if isinstance(step, CreateStep | RemoveStep)]
        assert len(writes) <= 2, "each track lets one through"
        for step in steps:
            world.carry_out(step)
        world.pass_time()
    desired_names = {f"{DEPLOYMENT}-{n}" for n in range(desired)}
    assert set(world.present) == desired_names
    assert all(
        instance.is_ready and not instance.is_terminating for instance in world.present.values()
    )
    assert all(instance.revision is not HashVerdict.STALE for instance in world.present.values())
    settled = derive_slots(DEPLOYMENT, UID, world.present.values())
    assert plan_instances(settled, InstanceDemand(desired)) == ()


@given(candidates(), st.integers(0, 6))
def test_never_more_than_one_healthy_instance_is_taken_down_at_a_time(
    start: dict[str, SlotInstance], desired: int
) -> None:
    slots = derive_slots(DEPLOYMENT, UID, start.values())
    steps = plan_instances(slots, InstanceDemand(desired))
    desired_names = {f"{DEPLOYMENT}-{n}" for n in range(desired)}
    taken = [
        step.instance.name
        for step in steps
        if isinstance(step, RemoveStep)
        and step.instance.name in desired_names
        and step.instance.is_ready
    ]
    down = [
        n
        for n in range(desired)
        if not slots.state(n).is_ready and slots.state(n) != "stale-unready"
    ]
    assert len(taken) <= 1
    if taken:
        assert not down, "a healthy instance was taken down while another slot was not up"
