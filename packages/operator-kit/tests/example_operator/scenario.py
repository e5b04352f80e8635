"""The scenario of the fault tests: two tenants, edits, a delete, and a long time at rest."""

from __future__ import annotations

from compute_operator_kit.core.json import member_object
from example_operator.world import World, a_note

KEPT = a_note("kept", "alpha")
EDITED = a_note("edited", "alpha")
GONE = a_note("gone", "alpha")
BYSTANDER = a_note("bystander", "beta")


async def live(world: World) -> None:
    """Runs one process and the users."""
    world.start_acting()
    world.process().start("alpha", "beta")
    await use(world)


async def use(world: World) -> None:
    """The writes of users, at fixed times."""
    await world.sleep_until(1)
    for key in (KEPT, EDITED, GONE, BYSTANDER):
        await world.create(key)
    await world.sleep_until(10)
    await world.edit(EDITED, "edited once")
    await world.sleep_until(20)
    await world.delete(GONE)
    await world.sleep_until(30)
    await world.edit(EDITED, "edited twice")
    await world.sleep_until(40)


async def check_end(world: World) -> None:
    """Checks the end state, derived from the writes of users and not from the operator."""
    for key, text in ((KEPT, "hello"), (EDITED, "edited twice"), (BYSTANDER, "hello")):
        note = await world.find(key)
        assert note is not None
        assert note["spec"] == {"text": text}, key
        generation = member_object(note, "metadata")["generation"]
        assert note["status"] == {"phase": "Ready", "observedGeneration": generation}, key
        assert await world.is_mirrored(key), key
    assert await world.is_gone(GONE)
    assert len(await world.notes("hub")) == 3


async def live_and_rest(world: World) -> None:
    """Runs the scenario and then ten minutes at rest."""
    await live(world)
    await world.sleep(12 * 60)
    await check_end(world)
