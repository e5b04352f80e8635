"""`docs/spec/neighbours.md` 1.2: matching and the claim."""

from __future__ import annotations

from karmada_builders.documents import CITY, GADGETS
from karmada_builders.fixture import WEB, StackFixture, annotation_of, has_size, size_of

from compute_sim_planes.json_types import JsonObject, string_at
from compute_sim_planes.karmada.kinds import POLICIES, POLICY_ID, POLICY_NAME, POLICY_NAMESPACE


def to(cluster: str) -> JsonObject:
    return {"clusterAffinity": {"clusterNames": [cluster]}}


def claim_of(existing: JsonObject) -> tuple[str, str, bool]:
    return (
        annotation_of(existing, POLICY_NAMESPACE),
        annotation_of(existing, POLICY_NAME),
        bool(string_at(existing, "metadata", "labels", POLICY_ID)),
    )


async def test_order_of_creation_does_not_matter(karmada: StackFixture) -> None:
    await karmada.make(karmada.gadget())
    await karmada.stays(lambda: karmada.copy("dfw-1"), lambda existing: existing is None)
    await karmada.make(karmada.policy(placement=to("dfw-1")))
    await karmada.arrives(lambda: karmada.copy("dfw-1"))


async def test_the_claim_is_written_onto_the_object_and_its_binding(karmada: StackFixture) -> None:
    await karmada.make(karmada.policy(placement=to("dfw-1")), karmada.gadget())
    await karmada.arrives(lambda: karmada.copy("dfw-1"))
    desired = (karmada.namespace, "policy", True)
    assert claim_of(await karmada.template()) == desired
    assert claim_of(await karmada.arrives(karmada.binding)) == desired


async def test_one_object_has_one_policy(karmada: StackFixture) -> None:
    await karmada.make(
        karmada.policy("b-second", placement=to("ord-1")),
        karmada.policy("a-first", placement=to("dfw-1")),
    )
    await karmada.take_in()
    await karmada.make(karmada.gadget())
    await karmada.arrives(lambda: karmada.copy("dfw-1"))
    await karmada.stays(lambda: karmada.copy("ord-1"), lambda existing: existing is None)
    assert claim_of(await karmada.template()) == (karmada.namespace, "a-first", True)


async def test_priority_counts_more_than_a_name_and_a_name_more_than_labels(
    karmada: StackFixture,
) -> None:
    selector: JsonObject = {"apiVersion": GADGETS.api_version, "kind": GADGETS.kind}
    await karmada.make(
        karmada.policy("a-labels", placement=to("ord-1")),
        karmada.policy(
            "b-name", placement=to("ord-1"), resourceSelectors=[{**selector, "name": "named"}]
        ),
        karmada.policy("c-priority", placement=to("dfw-1"), priority=1),
    )
    await karmada.take_in()
    await karmada.make(karmada.gadget(WEB))
    await karmada.arrives(lambda: karmada.copy("dfw-1"))
    assert claim_of(await karmada.template())[1] == "c-priority"
    await karmada.hub.delete(POLICIES, "c-priority", namespace=karmada.namespace)
    await karmada.gone(lambda: karmada.hub.get(POLICIES, "c-priority", karmada.namespace))
    await karmada.make(karmada.gadget("named"))
    await karmada.arrives(lambda: karmada.copy("ord-1", "named"))
    assert claim_of(await karmada.template("named"))[1] == "b-name"


async def test_a_claimed_object_with_labels_that_stop_matching_freezes(
    karmada: StackFixture,
) -> None:
    selector: JsonObject = {"apiVersion": GADGETS.api_version, "kind": GADGETS.kind}
    other: JsonObject = {**selector, "labelSelector": {"matchLabels": {CITY: "ORD"}}}
    await karmada.make(
        karmada.policy("dfw", placement=to("dfw-1")),
        karmada.policy("ord", placement=to("ord-1"), resourceSelectors=[other]),
        karmada.gadget(),
    )
    await karmada.arrives(lambda: karmada.copy("dfw-1"))
    await karmada.edit({"metadata": {"labels": {CITY: "ORD"}}, "spec": {"size": 2}})
    # No newer version is sent, and no other policy claims it.
    await karmada.stays(
        lambda: karmada.copy("dfw-1"),
        lambda existing: existing is not None and size_of(existing) == 1,
    )
    assert claim_of(await karmada.template())[1] == "dfw"
    assert await karmada.copy("ord-1") is None
    # Until the policy changes.
    patch: JsonObject = {"spec": {"priority": 1}}
    await karmada.hub.patch(POLICIES, "dfw", patch, namespace=karmada.namespace)
    await karmada.arrives(lambda: karmada.copy("ord-1"), has_size(2))
    assert claim_of(await karmada.template())[1] == "ord"
