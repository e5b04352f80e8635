"""`docs/spec/neighbours.md` 1.8: joining a member manually."""

from __future__ import annotations

from karmada_builders.fixture import COUNTING, StackFixture, has_size

from compute_sim_planes.json_types import object_at
from compute_sim_planes.karmada.kinds import NAMESPACES


async def test_a_secret_and_a_cluster_make_a_member(karmada: StackFixture) -> None:
    await karmada.unjoin("ord-1")
    await karmada.join("ord-1")
    assert await karmada.hub.get(NAMESPACES, "karmada-es-ord-1") is not None
    await karmada.place("ord-1")
    await karmada.make(karmada.policy(), karmada.gadget())
    await karmada.arrives(lambda: karmada.copy("ord-1"))


async def test_after_a_change_of_the_token_status_stops_until_karmada_starts_anew(
    karmada: StackFixture,
) -> None:
    old = await karmada.stack.issue_token("ord-1")
    await karmada.set_token("ord-1", old)
    await karmada.take_in()
    await karmada.stack.restart_karmada()
    await karmada.interpret(statusAggregation=COUNTING)
    await karmada.place("ord-1")
    await karmada.make(karmada.policy(), karmada.gadget())
    await karmada.arrives(lambda: karmada.copy("ord-1"))
    await karmada.report("ord-1", {"phase": "Before"})
    await karmada.arrives(
        karmada.template, lambda existing: object_at(existing, "status").get("phase") == "Before"
    )
    await karmada.set_token("ord-1", karmada.stack.member("ord-1").token)
    await karmada.stack.revoke_token("ord-1", old)
    try:
        # Writes use the new token, informers the old one.
        await karmada.edit({"spec": {"size": 2}})
        await karmada.arrives(lambda: karmada.copy("ord-1"), has_size(2))
        await karmada.report("ord-1", {"phase": "After"})
        await karmada.stays(
            karmada.template,
            lambda existing: object_at(existing, "status").get("phase") == "Before",
        )
    finally:
        await karmada.stack.restart_karmada()
    await karmada.arrives(
        karmada.template, lambda existing: object_at(existing, "status").get("phase") == "After"
    )
