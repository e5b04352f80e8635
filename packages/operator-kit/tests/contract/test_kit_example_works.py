"""The example operator without faults: its requests, and that it sends none at rest."""

from __future__ import annotations

import pytest
from example_operator.mirror.observe import copy_key
from example_operator.oracles import find_violations
from example_operator.scenario import live_and_rest
from example_operator.world import World, a_note, play

from compute_operator_kit.core.keys import ObjectKey


async def live_once(world: World) -> None:
    """One Note from create to delete."""
    world.process().start("alpha", "beta")
    await world.create(a_note())
    await world.eventually(lambda: world.is_mirrored(a_note()))
    await world.sleep(1)
    await world.set_phase(copy_key(a_note()), "Ready")
    await world.eventually(lambda: world.is_mirrored(a_note()))
    await world.edit(a_note(), "changed")
    await world.sleep(1)
    assert await world.is_mirrored(a_note())
    await world.delete(a_note())
    await world.eventually(lambda: world.is_gone(a_note()))


def test_the_life_of_a_note_costs_the_requests_it_needs_and_no_more() -> None:
    done = play(live_once)
    assert [(sent.address.verb, sent.address.subresource) for sent in done.world.writes()] == [
        ("patch", ""),  # our finalizer
        ("create", ""),  # the copy
        ("update", "status"),  # Pending, after the deferral
        ("update", "status"),  # Ready
        ("patch", ""),  # the edit
        ("update", "status"),  # observedGeneration
        ("delete", ""),  # the copy
        ("patch", ""),  # our finalizer
    ]


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_run_without_faults_satisfies_every_oracle(seed: int) -> None:
    done = play(live_and_rest, seed=seed)
    assert find_violations(done, is_reference=True) == ""


def test_the_same_seed_gives_the_same_history_and_another_seed_another() -> None:
    first, again, other = (play(live_and_rest, seed=seed).history.dump() for seed in (7, 7, 8))
    assert first == again
    assert first != other


def test_a_quick_answer_is_one_transition_and_a_slow_one_is_shown_on_the_way() -> None:
    async def answer_at_once(world: World) -> None:
        world.process().start("alpha", "beta")
        await world.sleep(1)
        await world.create(a_note())
        await world.eventually(lambda: _exists(world, copy_key(a_note())))
        await world.set_phase(copy_key(a_note()), "Ready")
        await world.sleep(5)
        assert await world.is_mirrored(a_note())

    done = play(answer_at_once)
    status_writes = [sent for sent in done.world.writes() if sent.address.subresource == "status"]
    assert len(status_writes) == 1


async def _exists(world: World, key: ObjectKey) -> bool:
    return await world.find(key) is not None


def test_an_event_is_recorded_once_for_one_transition() -> None:
    done = play(live_and_rest)
    emitted = [(emit.key.name, emit.reason) for emit in done.world.processes[0].recorder.emitted]
    assert sorted(emitted) == [
        ("bystander", "Mirrored"),
        ("edited", "Mirrored"),
        ("gone", "Mirrored"),
        ("kept", "Mirrored"),
    ]


def test_metrics_of_a_queue_are_right_after_a_few_seconds() -> None:
    async def work_and_rest(world: World) -> None:
        process = world.process()
        process.start("alpha", "beta")
        for number in range(5):
            await world.create(a_note(f"note-{number}"))
        await world.sleep(6)
        labels = (("controller", "mirror"), ("name", "mirror"))
        assert process.measures.gauges["workqueue_depth", labels] == 0
        assert process.measures.gauges["workqueue_unfinished_work_seconds", labels] == 0
        assert process.measures.gauges["controller_runtime_active_workers", labels[:1]] == 0
        reconciles = process.measures.total("controller_runtime_reconcile_total")
        assert 5 <= process.measures.total("workqueue_adds_total") <= reconciles

    play(work_and_rest)


def test_every_write_names_its_controller() -> None:
    done = play(live_once)
    assert {sent.caller.user_agent for sent in done.world.writes()} == {"operator (mirror)"}


def test_a_restart_with_nothing_changed_writes_nothing() -> None:
    async def restart(world: World) -> None:
        world.start_acting()
        first = world.process("first")
        first.start("alpha", "beta")
        await world.create(a_note())
        await world.sleep(5)
        await first.stop()
        world.process("second").start("alpha", "beta")
        await world.sleep(700)
        assert await world.is_mirrored(a_note())

    done = play(restart)
    assert done.world.writes("first") != []
    assert done.world.writes("second") == []
