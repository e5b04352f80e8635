"""`docs/spec/neighbours.md` 1.3: scheduling."""

from __future__ import annotations

import asyncio

from karmada_builders.fixture import COUNTING, QUIET, StackFixture, clusters_of

from compute_sim_planes.conditions import find_condition
from compute_sim_planes.json_types import JsonObject, integer_at, object_at, string_at

FAILED = "ScheduleBindingFailed"


def why_unscheduled(binding: JsonObject) -> str:
    condition = find_condition(binding, "Scheduled")
    is_false = string_at(condition, "status") == "False"
    return string_at(condition, "reason") if is_false else ""


async def test_no_cluster_fits_is_reported_on_the_binding_and_in_events(
    karmada: StackFixture,
) -> None:
    await karmada.make(karmada.policy(), karmada.gadget())
    binding = await karmada.arrives(
        karmada.binding, lambda existing: why_unscheduled(existing) == "NoClusterFit"
    )
    assert clusters_of(binding) == []
    warnings = await karmada.eventually(
        lambda: karmada.warnings(FAILED),
        lambda events: {"ResourceBinding", "Gadget"} <= set(events),
    )
    assert "2 cluster(s) did not match" in string_at(warnings["Gadget"], "message")
    # The hub object itself does not show it.
    assert "status" not in await karmada.template()


async def test_a_binding_that_fits_nowhere_any_more_is_emptied(karmada: StackFixture) -> None:
    await karmada.place("dfw-1")
    await karmada.make(karmada.policy(), karmada.gadget())
    await karmada.arrives(lambda: karmada.copy("dfw-1"))
    await karmada.displace("dfw-1")
    await karmada.gone(lambda: karmada.copy("dfw-1"))
    binding = await karmada.arrives(
        karmada.binding, lambda existing: why_unscheduled(existing) == "NoClusterFit"
    )
    assert clusters_of(binding) == []


async def test_a_binding_that_fits_nowhere_is_not_tried_again_by_time(
    karmada: StackFixture,
) -> None:
    await karmada.make(karmada.policy(), karmada.gadget())
    await karmada.eventually(
        lambda: karmada.warnings(FAILED), lambda events: "ResourceBinding" in events
    )
    await asyncio.sleep(QUIET.total_seconds())
    before = (await karmada.warnings(FAILED))["ResourceBinding"]
    await asyncio.sleep(2 * QUIET.total_seconds())
    after = (await karmada.warnings(FAILED))["ResourceBinding"]
    assert integer_at(after, "count") == integer_at(before, "count")
    # A change of a member's labels triggers scheduling.
    await karmada.place("ord-1")
    await karmada.arrives(lambda: karmada.copy("ord-1"))


async def test_a_label_taken_off_a_cluster_deletes_the_copy_and_aggregates_no_items(
    karmada: StackFixture,
) -> None:
    await karmada.interpret(statusAggregation=COUNTING)
    await karmada.place("dfw-1")
    await karmada.make(karmada.policy(), karmada.gadget())
    await karmada.arrives(
        karmada.template, lambda existing: object_at(existing, "status").get("items") == 1
    )
    await karmada.displace("dfw-1")
    await karmada.gone(lambda: karmada.copy("dfw-1"))
    # The list is nil, which a script can distinguish from an empty one.
    await karmada.arrives(
        karmada.template, lambda existing: object_at(existing, "status").get("items") == -1
    )


async def test_a_label_put_on_a_cluster_delivers(karmada: StackFixture) -> None:
    await karmada.place("dfw-1")
    await karmada.make(karmada.policy(), karmada.gadget())
    await karmada.arrives(lambda: karmada.copy("dfw-1"))
    await karmada.place("ord-1")
    await karmada.arrives(lambda: karmada.copy("ord-1"))
    # The whole object is sent to every cluster that fits.
    binding = await karmada.arrives(
        karmada.binding, lambda existing: len(clusters_of(existing)) == 2
    )
    assert clusters_of(binding) == ["dfw-1", "ord-1"]
    assert await karmada.copy("dfw-1") is not None


async def test_an_object_that_never_had_a_work_is_never_aggregated(karmada: StackFixture) -> None:
    await karmada.interpret(statusAggregation=COUNTING)
    await karmada.make(karmada.policy(), karmada.gadget())
    await karmada.arrives(karmada.binding, lambda existing: bool(why_unscheduled(existing)))
    await karmada.edit({"spec": {"size": 2}})
    await karmada.stays(karmada.template, lambda existing: "status" not in existing)
