"""The chain of one interface, link by link (cell.md 6)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cell_builders.candidates import OTHER, UID, an_owner
from cell_builders.deployments import KEY

from compute_cell_operator.conditions import ReportedCondition
from compute_cell_operator.network.observe import (
    NetworkReference,
    ObservedBinding,
    ObservedContext,
    ObservedNetwork,
    SubnetClaimState,
)
from compute_cell_operator.network.plan import (
    NetworkDemand,
    NetworkPlan,
    NetworkReady,
    NetworkRefused,
    NetworkWaiting,
    plan_network,
)
from compute_cell_operator.planes import NETWORK_BINDING, NETWORK_CONTEXT, SUBNET_CLAIM
from compute_operator_kit.core.keys import Kind, ObjectKey, Uid
from compute_operator_kit.core.objects import Metadata
from compute_operator_kit.intents.intents import Delete, Ensure, RequireExists, build_new

YES = ReportedCondition("Ready", "True", "Ready", "")
NO = ReportedCondition("Ready", "False", "NetworkContextNotReady", "")
DEFAULT = NetworkReference("", "default")
CONTEXT = NetworkReference("ns-1", "default-dfw")
DEMAND = NetworkDemand(KEY, an_owner(), "dfw")


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


def a_binding(index: int = 0) -> ObservedBinding:
    name = f"web-net-{index}"
    return ObservedBinding(
        a_key(NETWORK_BINDING, name),
        a_metadata(name),
        NetworkReference("ns-1", "default"),
        "dfw",
        YES,
        CONTEXT,
    )


A_CONTEXT = ObservedContext(
    a_key(NETWORK_CONTEXT, CONTEXT.name), a_metadata(CONTEXT.name, None), YES
)
A_CLAIM = SubnetClaimState(
    a_key(SUBNET_CLAIM, "default-dfw-0"), "private", "IPv4", "dfw", YES, "default-dfw-0", YES
)


def a_chain(
    binding: ObservedBinding | None = None,
    *,
    context: ObservedContext | None = A_CONTEXT,
    claims: tuple[SubnetClaimState, ...] = (A_CLAIM,),
) -> ObservedNetwork:
    return ObservedNetwork(
        (DEFAULT,),
        {0: binding or a_binding()},
        {} if context is None else {CONTEXT: context},
        {} if context is None else {CONTEXT: claims},
    )


@pytest.mark.spec("FS-01")
def test_what_is_asked_for_is_made_only_under_a_live_owner() -> None:
    (binding,) = plan_network(ObservedNetwork((DEFAULT,)), DEMAND).intents
    assert isinstance(binding, Ensure)
    assert binding.requires == RequireExists(KEY, lock=KEY, uid=UID)
    (claim,) = plan_network(a_chain(claims=()), DEMAND).intents
    assert isinstance(claim, Ensure)
    context = A_CONTEXT.key
    assert claim.requires == RequireExists(context, lock=context, uid=A_CONTEXT.metadata.uid)


def waits_for(seen: ObservedNetwork) -> str:
    readiness = plan_network(seen, DEMAND).readiness
    assert isinstance(readiness, NetworkWaiting), readiness
    return readiness.what


@pytest.mark.spec("C-30")
def test_a_whole_chain_is_ready_and_asks_for_nothing() -> None:
    assert plan_network(a_chain(), DEMAND) == NetworkPlan((), NetworkReady())


def test_no_interface_is_ready() -> None:
    assert plan_network(ObservedNetwork(()), DEMAND) == NetworkPlan((), NetworkReady())


@pytest.mark.spec("C-30")
def test_all_bindings_are_asked_for_at_once_with_their_exact_spec() -> None:
    interfaces = (DEFAULT, NetworkReference("x", "back"))
    planned = plan_network(ObservedNetwork(interfaces), DEMAND)
    made = [build_new(intent) for intent in planned.intents if isinstance(intent, Ensure)]
    assert [body["spec"] for body in made] == [
        {"network": {"name": "default"}, "location": {"name": "dfw"}},
        {
            "network": {"namespace": "x", "name": "back"},
            "location": {"name": "dfw"},
        },
    ]
    assert planned.readiness == NetworkWaiting('NetworkBinding "web-net-0"')


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
def test_the_first_link_that_is_not_ready_is_named(seen: ObservedNetwork, what: str) -> None:
    assert waits_for(seen) == what


@pytest.mark.spec("C-34")
def test_a_foreign_binding_is_left_alone_and_named() -> None:
    for owner in (OTHER, None):
        foreign = replace(a_binding(), metadata=a_metadata("web-net-0", owner), location="else")
        planned = plan_network(a_chain(foreign), DEMAND)
        assert planned.intents == ()
        what = 'NetworkBinding "web-net-0", which belongs to somebody else'
        assert planned.readiness == NetworkWaiting(what)


@pytest.mark.spec("C-34")
@pytest.mark.parametrize(
    "changed",
    [
        replace(a_binding(), location="else"),
        replace(a_binding(), network=NetworkReference("ns-1", "other")),
        replace(a_binding(), network=NetworkReference("ns-2", "default")),
    ],
)
def test_a_binding_that_does_not_fit_goes_and_is_made_again_when_gone(
    changed: ObservedBinding,
) -> None:
    planned = plan_network(a_chain(changed), DEMAND)
    assert planned.intents == (Delete(changed.key, Uid("uid-of-web-net-0"), "Drifted"),)
    assert planned.readiness == NetworkWaiting('NetworkBinding "web-net-0"')
    going = replace(changed, metadata=a_metadata("web-net-0", deleting=True))
    assert plan_network(a_chain(going), DEMAND).intents == ()


@pytest.mark.spec("C-38")
def test_a_reference_with_the_own_namespace_is_the_same_as_without() -> None:
    seen = replace(a_chain(), interfaces=(NetworkReference("ns-1", "default"),))
    assert plan_network(seen, DEMAND).readiness == NetworkReady()


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
    seen = ObservedNetwork(
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
    assert plan_network(a_chain(claims=(other,)), DEMAND) == NetworkPlan((), NetworkReady())
    for taken in (
        replace(A_CLAIM, subnet_class="public"),
        replace(A_CLAIM, ip_family="IPv6"),
        replace(A_CLAIM, location="else"),
    ):
        planned = plan_network(a_chain(claims=(taken,)), DEMAND)
        assert planned == NetworkPlan((), NetworkWaiting('SubnetClaim "default-dfw-0"'))


def test_of_several_matching_claims_a_ready_one_counts() -> None:
    unready = replace(A_CLAIM, key=a_key(SUBNET_CLAIM, "a"), ready=NO)
    assert plan_network(a_chain(claims=(unready, A_CLAIM)), DEMAND).readiness == NetworkReady()


@pytest.mark.spec("C-35")
def test_refusals_come_before_waiting_and_failure_before_absence() -> None:
    failed = ReportedCondition("Ready", "False", "NetworkFailedToCreate", "no space")
    missing = ReportedCondition("Ready", "False", "NetworkNotFound", "no network")
    bindings = {0: a_binding(), 1: a_binding(1), 2: a_binding(2)}

    def readiness_of(*conditions: ReportedCondition) -> object:
        by_index = {n: replace(bindings[n], ready=one) for n, one in enumerate(conditions)}
        return plan_network(
            ObservedNetwork((DEFAULT,) * len(conditions), by_index), DEMAND
        ).readiness

    assert readiness_of(NO, missing, failed) == NetworkRefused("NetworkFailedToCreate", "no space")
    assert readiness_of(NO, missing) == NetworkRefused("NetworkNotFound", "no network")
    assert readiness_of(replace(failed, status="Unknown")) == NetworkWaiting(
        'NetworkBinding "web-net-0"'
    )
