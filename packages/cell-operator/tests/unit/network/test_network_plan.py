"""The chain of one interface, link by link (cell.md 6)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cell_builders.candidates import OTHER, UID, an_owner
from cell_builders.deployments import KEY

from compute_cell_operator.kinds import NETWORK_BINDING, NETWORK_CONTEXT, SUBNET_CLAIM
from compute_cell_operator.network.observe import (
    Binding,
    Claim,
    Context,
    NetworkSeen,
    Reference,
)
from compute_cell_operator.network.plan import (
    Demand,
    NetworkPlan,
    Ready,
    Refused,
    Waiting,
    plan_network,
)
from compute_cell_operator.told import Told
from compute_operator_kit.intents import Delete, Ensure, OnlyUnder, build_new
from compute_operator_kit.keys import Kind, ObjectKey, Uid
from compute_operator_kit.objects import Metadata
from compute_operator_kit.wire import JsonObject

YES = Told("Ready", "True", "Ready", "")
NO = Told("Ready", "False", "NetworkContextNotReady", "")
DEFAULT: JsonObject = {"name": "default"}
CONTEXT = Reference("ns-1", "default-dfw")
DEMAND = Demand(KEY, an_owner(), "dfw")


def a_key(kind: Kind, name: str) -> ObjectKey:
    return ObjectKey(KEY.plane, kind, KEY.namespace, name)


def a_metadata(name: str, owner: Uid | None = UID, *, deleting: bool = False) -> Metadata:
    return Metadata(
        name=name,
        namespace=KEY.namespace,
        uid=Uid(f"uid-of-{name}"),
        resource_version="1",
        deletion_timestamp="2026-06-20T08:00:00Z" if deleting else "",
        owners=(an_owner(owner),) if owner is not None else (),
    )


def a_binding(index: int = 0) -> Binding:
    name = f"web-net-{index}"
    return Binding(
        a_key(NETWORK_BINDING, name),
        a_metadata(name),
        Reference("ns-1", "default"),
        "dfw",
        YES,
        CONTEXT,
    )


A_CONTEXT = Context(a_key(NETWORK_CONTEXT, CONTEXT.name), a_metadata(CONTEXT.name, None), YES)
A_CLAIM = Claim(
    a_key(SUBNET_CLAIM, "default-dfw-0"), "private", "IPv4", "dfw", YES, "default-dfw-0", YES
)


def a_chain(
    binding: Binding | None = None,
    *,
    context: Context | None = A_CONTEXT,
    claims: tuple[Claim, ...] = (A_CLAIM,),
) -> NetworkSeen:
    return NetworkSeen(
        (DEFAULT,),
        {0: binding or a_binding()},
        {} if context is None else {CONTEXT: context},
        {} if context is None else {CONTEXT: claims},
    )


@pytest.mark.spec("FS-01")
def test_what_is_asked_for_is_made_only_under_a_live_owner() -> None:
    (binding,) = plan_network(NetworkSeen((DEFAULT,)), DEMAND).intents
    assert isinstance(binding, Ensure)
    assert binding.only_under == OnlyUnder(KEY, lock=KEY, uid=UID)
    (claim,) = plan_network(a_chain(claims=()), DEMAND).intents
    assert isinstance(claim, Ensure)
    context = A_CONTEXT.key
    assert claim.only_under == OnlyUnder(context, lock=context, uid=A_CONTEXT.metadata.uid)


def waits_for(seen: NetworkSeen) -> str:
    found = plan_network(seen, DEMAND).readiness
    assert isinstance(found, Waiting), found
    return found.what


@pytest.mark.spec("C-30")
def test_a_whole_chain_is_ready_and_asks_for_nothing() -> None:
    assert plan_network(a_chain(), DEMAND) == NetworkPlan((), Ready())


def test_no_interface_is_ready() -> None:
    assert plan_network(NetworkSeen(()), DEMAND) == NetworkPlan((), Ready())


@pytest.mark.spec("C-30")
def test_all_bindings_are_asked_for_at_once_with_their_exact_spec() -> None:
    interfaces: tuple[JsonObject, ...] = (DEFAULT, {"name": "back", "namespace": "x"})
    planned = plan_network(NetworkSeen(interfaces), DEMAND)
    made = [build_new(intent) for intent in planned.intents if isinstance(intent, Ensure)]
    assert [body["spec"] for body in made] == [
        {"network": {"name": "default"}, "location": {"name": "dfw"}},
        {
            "network": {"namespace": "x", "name": "back"},
            "location": {"name": "dfw"},
        },
    ]
    assert planned.readiness == Waiting('NetworkBinding "web-net-0"')


@pytest.mark.spec("C-31")
@pytest.mark.parametrize(
    ("seen", "what"),
    [
        (a_chain(replace(a_binding(), ready=None)), 'NetworkBinding "web-net-0"'),
        (a_chain(replace(a_binding(), ready=NO)), 'NetworkBinding "web-net-0"'),
        (a_chain(replace(a_binding(), context=None)), 'NetworkBinding "web-net-0"'),
        (
            a_chain(replace(a_binding(), metadata=a_metadata("web-net-0", deleting=True))),
            'NetworkBinding "web-net-0"',
        ),
        (a_chain(context=None), 'NetworkContext "default-dfw"'),
        (a_chain(context=replace(A_CONTEXT, ready=None)), 'NetworkContext "default-dfw"'),
        (a_chain(context=replace(A_CONTEXT, ready=NO)), 'NetworkContext "default-dfw"'),
        (a_chain(claims=()), 'SubnetClaim "default-dfw-0"'),
        (a_chain(claims=(replace(A_CLAIM, ready=None),)), 'SubnetClaim "default-dfw-0"'),
        (a_chain(claims=(replace(A_CLAIM, ready=NO),)), 'SubnetClaim "default-dfw-0"'),
        (a_chain(claims=(replace(A_CLAIM, subnet=""),)), 'SubnetClaim "default-dfw-0"'),
        (a_chain(claims=(replace(A_CLAIM, subnet_ready=None),)), 'Subnet "default-dfw-0"'),
        (a_chain(claims=(replace(A_CLAIM, subnet_ready=NO),)), 'Subnet "default-dfw-0"'),
    ],
)
def test_the_first_link_that_is_not_ready_is_named(seen: NetworkSeen, what: str) -> None:
    assert waits_for(seen) == what


@pytest.mark.spec("C-34")
def test_a_foreign_binding_is_left_alone_and_named() -> None:
    for owner in (OTHER, None):
        foreign = replace(a_binding(), metadata=a_metadata("web-net-0", owner), location="else")
        planned = plan_network(a_chain(foreign), DEMAND)
        assert planned.intents == ()
        what = 'NetworkBinding "web-net-0", which belongs to somebody else'
        assert planned.readiness == Waiting(what)


@pytest.mark.spec("C-34")
@pytest.mark.parametrize(
    "changed",
    [
        replace(a_binding(), location="else"),
        replace(a_binding(), network=Reference("ns-1", "other")),
        replace(a_binding(), network=Reference("ns-2", "default")),
    ],
)
def test_a_binding_that_does_not_fit_goes_and_is_made_again_when_gone(changed: Binding) -> None:
    planned = plan_network(a_chain(changed), DEMAND)
    assert planned.intents == (Delete(changed.key, Uid("uid-of-web-net-0"), "Drifted"),)
    assert planned.readiness == Waiting('NetworkBinding "web-net-0"')
    going = replace(changed, metadata=a_metadata("web-net-0", deleting=True))
    assert plan_network(a_chain(going), DEMAND).intents == ()


@pytest.mark.spec("C-38")
def test_a_reference_with_the_own_namespace_is_the_same_as_without() -> None:
    seen = replace(a_chain(), interfaces=({"name": "default", "namespace": "ns-1"},))
    assert plan_network(seen, DEMAND).readiness == Ready()


def test_a_binding_of_a_removed_interface_goes_when_no_instance_has_it() -> None:
    seen = replace(a_chain(), bindings={0: a_binding(), 2: a_binding(2)})
    assert plan_network(seen, replace(DEMAND, most_interfaces=3)).intents == ()
    removal = Delete(a_binding(2).key, Uid("uid-of-web-net-2"), "NotWanted")
    assert plan_network(seen, DEMAND).intents == (removal,)
    foreign = replace(a_binding(2), metadata=a_metadata("web-net-2", OTHER))
    seen = replace(seen, bindings={0: a_binding(), 2: foreign})
    assert plan_network(seen, DEMAND).intents == ()


@pytest.mark.spec("C-32")
def test_a_claim_is_made_once_per_context_and_owned_plainly() -> None:
    seen = NetworkSeen(
        (DEFAULT, DEFAULT),
        {0: a_binding(), 1: a_binding(1)},
        {CONTEXT: A_CONTEXT},
        {CONTEXT: ()},
    )
    (intent,) = plan_network(seen, DEMAND).intents
    assert isinstance(intent, Ensure)
    assert build_new(intent) == {
        "apiVersion": SUBNET_CLAIM.api_version,
        "kind": SUBNET_CLAIM.kind,
        "metadata": {
            "name": "default-dfw-0",
            "namespace": "ns-1",
            "ownerReferences": [
                {
                    "apiVersion": NETWORK_CONTEXT.api_version,
                    "kind": NETWORK_CONTEXT.kind,
                    "name": "default-dfw",
                    "uid": "uid-of-default-dfw",
                }
            ],
        },
        "spec": {
            "subnetClass": "private",
            "ipFamily": "IPv4",
            "networkContext": {"name": "default-dfw"},
            "location": {"name": "dfw"},
        },
    }


@pytest.mark.spec("C-32")
def test_a_matching_claim_of_any_name_is_used_and_a_taken_name_is_waited_for() -> None:
    other = replace(A_CLAIM, key=a_key(SUBNET_CLAIM, "theirs"))
    assert plan_network(a_chain(claims=(other,)), DEMAND) == NetworkPlan((), Ready())
    for taken in (
        replace(A_CLAIM, subnet_class="public"),
        replace(A_CLAIM, ip_family="IPv6"),
        replace(A_CLAIM, location="else"),
    ):
        planned = plan_network(a_chain(claims=(taken,)), DEMAND)
        assert planned == NetworkPlan((), Waiting('SubnetClaim "default-dfw-0"'))


def test_of_several_matching_claims_a_ready_one_counts() -> None:
    unready = replace(A_CLAIM, key=a_key(SUBNET_CLAIM, "a"), ready=NO)
    assert plan_network(a_chain(claims=(unready, A_CLAIM)), DEMAND).readiness == Ready()


@pytest.mark.spec("C-35")
def test_refusals_come_before_waiting_and_failure_before_absence() -> None:
    failed = Told("Ready", "False", "NetworkFailedToCreate", "no space")
    missing = Told("Ready", "False", "NetworkNotFound", "no network")
    bindings = {0: a_binding(), 1: a_binding(1), 2: a_binding(2)}

    def judged(*told: Told) -> object:
        found = {n: replace(bindings[n], ready=one) for n, one in enumerate(told)}
        return plan_network(NetworkSeen((DEFAULT,) * len(told), found), DEMAND).readiness

    assert judged(NO, missing, failed) == Refused("NetworkFailedToCreate", "no space")
    assert judged(NO, missing) == Refused("NetworkNotFound", "no network")
    assert judged(replace(failed, status="Unknown")) == Waiting('NetworkBinding "web-net-0"')
