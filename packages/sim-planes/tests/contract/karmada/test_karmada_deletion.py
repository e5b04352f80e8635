"""`docs/spec/neighbours.md` 1.5: deletion."""

from __future__ import annotations

from datetime import timedelta

from karmada_builders.documents import GADGETS
from karmada_builders.fixture import WEB, StackFixture, has_size, is_applied, size_of

from compute_sim_planes.json_types import JsonObject, objects_at, string_at
from compute_sim_planes.karmada.kinds import (
    NAMESPACES,
    NOT_READY_TAINT,
    POLICIES,
    POLICY_FINALIZER,
    POLICY_ID,
)
from compute_sim_planes.karmada.metadata import finalizers_of, is_terminating, labels_of, uid_of

FINALIZER = "contract.example.com/held"


async def deliver(karmada: StackFixture, member: str = "dfw-1") -> None:
    await karmada.place(member)
    await karmada.make(karmada.policy(), karmada.gadget())
    await karmada.arrives(lambda: karmada.copy(member))
    await karmada.arrives(lambda: karmada.work(member), is_applied)


async def hold(karmada: StackFixture, finalizers: list[str] | None) -> None:
    """Set finalizers of the copy, as a cell does."""
    patch: JsonObject = {"metadata": {"finalizers": [*finalizers] if finalizers else None}}
    await karmada.members["dfw-1"].patch(GADGETS, WEB, patch, namespace=karmada.namespace)


async def remove(karmada: StackFixture) -> None:
    await karmada.hub.delete(GADGETS, WEB, namespace=karmada.namespace)


async def test_absence_on_the_hub_does_not_imply_absence_in_the_member(
    karmada: StackFixture,
) -> None:
    await deliver(karmada)
    await hold(karmada, [FINALIZER])
    await remove(karmada)
    assert await karmada.hub.get(GADGETS, WEB, karmada.namespace) is None
    await karmada.gone(karmada.binding)
    await karmada.gone(lambda: karmada.work("dfw-1"))
    existing = await karmada.arrives(lambda: karmada.copy("dfw-1"))
    assert is_terminating(existing)
    await hold(karmada, None)
    await karmada.gone(lambda: karmada.copy("dfw-1"))


async def test_a_work_of_a_cluster_that_is_not_ready_is_deleted_when_it_is(
    karmada: StackFixture,
) -> None:
    await deliver(karmada)
    await karmada.take_away("dfw-1")
    await remove(karmada)
    await karmada.gone(karmada.binding)
    await karmada.stays(
        lambda: karmada.work("dfw-1"),
        lambda existing: existing is not None and is_terminating(existing),
    )
    assert await karmada.copy("dfw-1") is not None
    await karmada.bring_back("dfw-1")
    await karmada.gone(lambda: karmada.work("dfw-1"))
    await karmada.gone(lambda: karmada.copy("dfw-1"))


async def test_copies_stay_when_their_policy_is_deleted_and_nothing_flows_any_more(
    karmada: StackFixture,
) -> None:
    await deliver(karmada)
    policy = await karmada.hub.get(POLICIES, "policy", karmada.namespace)
    assert policy is not None
    assert finalizers_of(policy) == [POLICY_FINALIZER]
    await karmada.hub.delete(POLICIES, "policy", namespace=karmada.namespace)
    await karmada.gone(lambda: karmada.hub.get(POLICIES, "policy", karmada.namespace))
    assert POLICY_ID not in labels_of(await karmada.template())
    await karmada.edit({"spec": {"size": 2}})
    await karmada.stays(
        lambda: karmada.copy("dfw-1"),
        lambda existing: existing is not None and size_of(existing) == 1,
    )
    assert await karmada.binding() is not None
    assert await karmada.work("dfw-1") is not None
    # The next policy can claim the object.
    await karmada.make(karmada.policy("again"))
    await karmada.arrives(lambda: karmada.copy("dfw-1"), has_size(2))


async def test_an_object_recreated_under_its_name_gets_a_binding_of_its_own(
    karmada: StackFixture,
) -> None:
    await deliver(karmada)
    await remove(karmada)
    await karmada.make(karmada.gadget(size=5))
    owner = uid_of(await karmada.template())
    await karmada.arrives(
        karmada.binding,
        lambda existing: (
            string_at(objects_at(existing, "metadata", "ownerReferences")[0], "uid") == owner
        ),
    )
    await karmada.arrives(lambda: karmada.copy("dfw-1"), has_size(5))


async def test_an_object_recreated_while_its_copy_terminates_is_written_onto_that_copy(
    karmada: StackFixture,
) -> None:
    await deliver(karmada)
    await hold(karmada, [FINALIZER])
    await remove(karmada)
    await karmada.arrives(lambda: karmada.copy("dfw-1"), is_terminating)
    await karmada.gone(lambda: karmada.work("dfw-1"))
    await karmada.make(karmada.gadget(size=5))
    existing = await karmada.arrives(lambda: karmada.copy("dfw-1"), has_size(5))
    assert is_terminating(existing)
    await karmada.arrives(lambda: karmada.work("dfw-1"), is_applied)
    # After its deletion a new one is created.
    await hold(karmada, None)
    await karmada.arrives(
        lambda: karmada.copy("dfw-1"), lambda existing: not is_terminating(existing)
    )


async def test_a_cluster_that_is_not_ready_is_tainted_and_keeps_its_copies(
    karmada: StackFixture,
) -> None:
    await deliver(karmada)
    await karmada.take_away("dfw-1")
    cluster = await karmada.arrives(
        lambda: karmada.cluster("dfw-1"),
        lambda existing: bool(objects_at(existing, "spec", "taints")),
    )
    taint = objects_at(cluster, "spec", "taints")[0]
    shown = (string_at(taint, "key"), string_at(taint, "effect"))
    assert shown == (NOT_READY_TAINT, "NoSchedule")
    await karmada.stays(lambda: karmada.copy("dfw-1"), lambda existing: existing is not None)
    await karmada.bring_back("dfw-1")
    await karmada.arrives(
        lambda: karmada.cluster("dfw-1"),
        lambda existing: not objects_at(existing, "spec", "taints"),
    )


async def test_a_reachable_member_that_is_unjoined_loses_copies_and_namespaces(
    karmada: StackFixture,
) -> None:
    await deliver(karmada, "ord-1")
    await karmada.unjoin("ord-1")
    await karmada.gone(lambda: karmada.copy("ord-1"))
    await karmada.gone(lambda: karmada.members["ord-1"].get(NAMESPACES, karmada.namespace))
    await karmada.join("ord-1")


async def test_a_dead_member_that_is_unjoined_keeps_copies_and_namespaces(
    karmada: StackFixture,
) -> None:
    await deliver(karmada, "ord-1")
    await karmada.take_away("ord-1")
    await karmada.unjoin("ord-1")
    await karmada.stays(lambda: karmada.copy("ord-1"), lambda existing: existing is not None)
    existing = await karmada.members["ord-1"].get(NAMESPACES, karmada.namespace)
    assert existing is not None
    assert not is_terminating(existing)
    await karmada.join("ord-1")
    # Karmada manages the kept copy again, and deletes it with the hub's object.
    await remove(karmada)
    await karmada.place("ord-1")
    await karmada.make(karmada.gadget(size=3))
    await karmada.eventually(
        lambda: karmada.copy("ord-1"),
        lambda existing: existing is not None and size_of(existing) == 3,
        timedelta(seconds=60),
    )
