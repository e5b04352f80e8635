"""`docs/spec/neighbours.md` 1.7: latency. `nox -s bench -- planes` measures exact values."""

from __future__ import annotations

import time

from karmada_builders.documents import GADGETS
from karmada_builders.fixture import COUNTING, StackFixture, has_size

from compute_sim_planes.client.rest import ListOptions
from compute_sim_planes.json_types import object_at, string_at

# Many times the latency at rest, and below the discovery interval: no timer is involved.
PROMPT = 20.0
BURST = 20


async def test_everything_at_rest_is_driven_by_watches(karmada: StackFixture) -> None:
    await karmada.interpret(statusAggregation=COUNTING)
    await karmada.place("dfw-1")
    began = time.monotonic()
    await karmada.make(karmada.policy(), karmada.gadget())
    await karmada.arrives(lambda: karmada.copy("dfw-1"))
    await karmada.edit({"spec": {"size": 2}})
    await karmada.arrives(lambda: karmada.copy("dfw-1"), has_size(2))
    await karmada.report("dfw-1", {"phase": "Told"})
    await karmada.arrives(
        karmada.template, lambda existing: object_at(existing, "status").get("phase") == "Told"
    )
    await karmada.hub.delete(GADGETS, "web", namespace=karmada.namespace)
    await karmada.gone(lambda: karmada.copy("dfw-1"))
    assert time.monotonic() - began < PROMPT


async def test_a_burst_arrives_whole(karmada: StackFixture) -> None:
    await karmada.place("dfw-1")
    await karmada.make(karmada.policy())
    names = {f"web-{number}" for number in range(BURST)}
    await karmada.make(*(karmada.gadget(name) for name in sorted(names)))
    within = ListOptions(namespace=karmada.namespace)

    async def arrived() -> set[str]:
        listing = await karmada.members["dfw-1"].list(GADGETS, within)
        return {string_at(one, "metadata", "name") for one in listing.items}

    await karmada.eventually(arrived, lambda value: value == names)
