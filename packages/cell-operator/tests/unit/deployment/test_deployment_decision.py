"""The plan of a deployment besides creates and deletes: Location, repairs, gates."""

from __future__ import annotations

import pytest
from cell_builders.candidates import OTHER, UID
from cell_builders.deployments import (
    KEY,
    a_foreign_instance,
    a_seen,
    a_spec,
    an_instance,
)

from compute_api_types.labels import RETIRED_DEPLOYMENT_FINALIZERS
from compute_api_types.template_hash import HashVerdict, derive_template_hash
from compute_cell_operator.delays import RETRY_UNREADABLE
from compute_cell_operator.deployment.observe import ObservedDeployment
from compute_cell_operator.deployment.plan import decide
from compute_cell_operator.deployment.plan.location import (
    Located,
    LocationUndecided,
    NoLocation,
    NotNeeded,
    Resolution,
    WrongCity,
    location_name,
    resolve,
)
from compute_cell_operator.network.observe import NetworkReference, ObservedBinding, ObservedNetwork
from compute_cell_operator.network.plan import NetworkReady, NetworkWaiting
from compute_cell_operator.network.state import NetworkingState
from compute_operator_kit.core.json import JsonObject, decode_json_object, encode, member_object
from compute_operator_kit.core.objects import Unreadable
from compute_operator_kit.intents.intents import (
    Delete,
    Ensure,
    RecordEvent,
    RemoveFinalizer,
    RemoveGate,
    RequeueAfter,
    RequireExists,
)

NOT_READ = Unreadable("NotSynced")


def creates(seen: ObservedDeployment) -> list[Ensure]:
    return [
        intent
        for intent in decide(seen).plan
        if isinstance(intent, Ensure) and intent.uid is None and intent.key.kind.kind == "Instance"
    ]


def patches(seen: ObservedDeployment) -> list[Ensure]:
    return [
        intent
        for intent in decide(seen).plan
        if isinstance(intent, Ensure) and intent.uid is not None
    ]


def gates(seen: ObservedDeployment) -> list[str]:
    return [i.key.name for i in decide(seen).plan if isinstance(i, RemoveGate)]


def born_spec(intent: Ensure) -> JsonObject:
    return member_object(decode_json_object(encode(intent.initial)), "spec")


def born(intent: Ensure, name: str) -> JsonObject:
    """Labels or annotations of a new Instance."""
    metadata = member_object(decode_json_object(encode(intent.initial)), "metadata")
    return member_object(metadata, name)


# --- owner ----------------------------------------------------------------------------------------


@pytest.mark.spec("FS-01")
def test_a_new_instance_is_made_only_under_the_very_deployment_that_was_seen() -> None:
    (made,) = creates(a_seen())
    assert made.requires == RequireExists(KEY, lock=KEY, uid=UID)


# --- location -------------------------------------------------------------------------------------


@pytest.mark.spec("C-26", "C-28", "C-29")
@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (a_seen(networking=NetworkingState.ON, cell_city="LHR"), WrongCity()),
        (a_seen(networking=NetworkingState.OFF, cell_city="LHR"), WrongCity()),
        (a_seen(networking=NetworkingState.OFF, cell_city="DFW"), NotNeeded()),
        (a_seen(networking=NetworkingState.UNKNOWN), LocationUndecided("")),
        (a_seen(networking=NetworkingState.ON, locations=NOT_READ), LocationUndecided("")),
        (
            a_seen(
                networking=NetworkingState.ON,
                locations=NOT_READ,
                status={"location": {"name": "old"}},
            ),
            LocationUndecided("old"),
        ),
        (a_seen(networking=NetworkingState.ON, locations=()), NoLocation()),
        (a_seen(networking=NetworkingState.ON), Located("dfw", ("dfw",))),
        (a_seen(networking=NetworkingState.ON, locations=("b", "a")), Located("a", ("a", "b"))),
        (
            a_seen(
                networking=NetworkingState.ON,
                locations=("b", "a"),
                status={"location": {"name": "b"}},
            ),
            Located("b", ("a", "b")),
        ),
        (
            a_seen(
                networking=NetworkingState.ON,
                locations=("a",),
                status={"location": {"name": "gone"}},
            ),
            Located("a", ("a",)),
        ),
    ],
)
def test_every_row_of_the_location_table(seen: ObservedDeployment, expected: Resolution) -> None:
    assert resolve(seen) == expected


def test_new_instances_get_the_resolved_or_the_last_known_location() -> None:
    assert location_name(Located("a", ("a",))) == "a"
    assert location_name(LocationUndecided("old")) == "old"
    assert location_name(NoLocation()) == ""


# --- creating -------------------------------------------------------------------------------------


@pytest.mark.spec("C-19", "C-25")
@pytest.mark.parametrize(
    ("networking", "expected"),
    [(NetworkingState.ON, ["Network", "Quota"]), (NetworkingState.OFF, ["Quota"])],
)
def test_gates_follow_networking_and_never_the_template(
    networking: NetworkingState, expected: list[str]
) -> None:
    template: JsonObject = {
        "spec": {
            "controller": {"schedulingGates": []},
            "location": {"name": "forged", "namespace": ""},
            "networkInterfaces": [],
        }
    }
    (made,) = creates(a_seen(spec=a_spec(1, template=template), networking=networking))
    controller = born_spec(made)["controller"]
    assert controller == {
        "templateHash": derive_template_hash(template),
        "schedulingGates": [{"name": gate} for gate in expected],
    }
    location = {"name": "dfw", "namespace": ""} if networking is NetworkingState.ON else None
    assert born_spec(made).get("location") == location


def test_before_networking_is_known_nothing_is_created_and_surplus_still_goes() -> None:
    seen = a_seen(an_instance(3), networking=NetworkingState.UNKNOWN, desired=1)
    assert creates(seen) == []
    plan = decide(seen).plan
    assert [i.key.name for i in plan if isinstance(i, Delete)] == ["web-3"]
    assert RequeueAfter(KEY, "CacheNotSynced", RETRY_UNREADABLE) in plan.intents


@pytest.mark.spec("C-15")
def test_maps_are_neither_shared_nor_changed() -> None:
    template: JsonObject = {"metadata": {"labels": {"app": "web"}}, "spec": {"volumes": []}}
    spec = a_spec(2, template=template)
    before = derive_template_hash(template)
    (first,) = creates(a_seen(spec=spec))
    (second,) = creates(a_seen(an_instance(0), spec=spec))
    indexes = [
        born(made, "labels")["compute.datumapis.com/instance-index"] for made in (first, second)
    ]
    assert indexes == ["0", "1"]
    assert derive_template_hash(template) == before
    assert template == {"metadata": {"labels": {"app": "web"}}, "spec": {"volumes": []}}


def test_a_name_that_is_too_long_for_a_label_is_kept_whole_in_an_annotation() -> None:
    name = "a-very-long-workload-name-that-nobody-should-choose-but-the-api-server-accepts-it"
    spec = a_spec(1)
    spec["workloadRef"] = {"name": name, "uid": "w-1"}
    (made,) = creates(a_seen(spec=spec))
    key = "compute.datumapis.com/workload-name"
    short = "a-very-long-workload-name-that-nobody-shou-17a842b1a62774ebd394"
    assert born(made, "labels")[key] == short
    assert born(made, "annotations") == {key: name}
    links = {key: short, "compute.datumapis.com/instance-index": "0"}
    settled = an_instance(0, labels=links, annotations={key: name})
    assert not decide(a_seen(settled, spec=spec)).plan.writes


# --- removing -------------------------------------------------------------------------------------


@pytest.mark.spec("C-10", "C-83")
def test_a_removal_names_the_uid_and_a_replacement_is_recorded() -> None:
    seen = a_seen(an_instance(0, revision=HashVerdict.STALE))
    removal = next(i for i in decide(seen).plan if isinstance(i, Delete))
    assert removal.uid == "uid-of-web-0"
    (event,) = [i for i in decide(seen).plan if isinstance(i, RecordEvent)]
    assert (event.reason, event.after) == ("InstanceReplaced", removal)
    surplus = decide(a_seen(an_instance(0), an_instance(1))).plan
    assert not [i for i in surplus if isinstance(i, RecordEvent)]


@pytest.mark.spec("C-09", "C-99")
@pytest.mark.parametrize("seen_of", ["deleting", "namespace_deleting"])
def test_a_deployment_that_goes_only_deletes(seen_of: str) -> None:
    gated = an_instance(0, gates=("Network",), labels={"compute.datumapis.com/city-code": "X"})
    seen = a_seen(
        gated,
        an_instance(1, terminating=True),
        a_foreign_instance(2),
        desired=3,
        networking=NetworkingState.ON,
        deleting=seen_of == "deleting",
        namespace_deleting=seen_of == "namespace_deleting",
    )
    plan = decide(seen).plan
    assert [type(intent) for intent in plan] == [Delete]
    assert seen.desired == 0


def test_a_retired_finalizer_goes_with_the_last_instance_and_a_foreign_one_stays() -> None:
    held = ("theirs/cleanup", *RETIRED_DEPLOYMENT_FINALIZERS)
    last = an_instance(0, terminating=True)
    assert not decide(a_seen(last, deleting=True, finalizers=held)).plan.intents
    assert decide(a_seen(deleting=True, finalizers=held)).plan.intents == tuple(
        RemoveFinalizer(KEY, UID, finalizer, "RetiredFinalizer")
        for finalizer in RETIRED_DEPLOYMENT_FINALIZERS
    )
    # A deployment in a deleted namespace, but not deleted itself, keeps its finalizers.
    assert not decide(a_seen(namespace_deleting=True, finalizers=held)).plan.intents


# --- repairing ------------------------------------------------------------------------------------


@pytest.mark.spec("C-13", "C-14")
@pytest.mark.parametrize("index", ["", "foo", "-1", "7"])
def test_a_wrong_index_is_repaired_and_nothing_is_deleted(index: str) -> None:
    key = "compute.datumapis.com/instance-index"
    seen = a_seen(an_instance(0, labels={key: index}, ready=False))
    (patch,) = patches(seen)
    assert dict(patch.desired.labels) == {key: "0"}
    assert patch.uid == "uid-of-web-0"
    assert len(decide(seen).plan.writes) == 1


@pytest.mark.spec("C-17")
def test_a_lost_owner_comes_back() -> None:
    (patch,) = patches(a_seen(an_instance(0, owner=None)))
    (owner,) = patch.desired.owners
    assert (owner.uid, owner.controller, owner.block_owner_deletion) == (UID, True, True)


def test_what_terminates_is_not_mended() -> None:
    seen = a_seen(an_instance(0, terminating=True, gates=("Network",), owner=UID, labels={"x": ""}))
    assert patches(seen) == []
    assert gates(seen) == []


@pytest.mark.spec("C-26")
def test_a_location_is_filled_in_behind_the_gate_and_nowhere_else() -> None:
    gated = an_instance(0, location="", gates=("Network", "Quota"), ready=False)
    free = an_instance(1, location="")
    seen = a_seen(gated, free, desired=2, networking=NetworkingState.ON)
    (patch,) = patches(seen)
    assert patch.key.name == "web-0"
    assert patch.desired.merge == {"spec": {"location": {"name": "dfw", "namespace": ""}}}
    assert patches(a_seen(gated, networking=NetworkingState.ON, locations=())) == []


@pytest.mark.spec("C-21")
def test_a_settled_deployment_gives_an_empty_plan() -> None:
    assert not decide(a_seen(an_instance(0))).plan.intents
    assert not decide(a_seen(an_instance(0), a_foreign_instance(7))).plan.intents


# --- gates ----------------------------------------------------------------------------------------


def a_network(*, ready: bool) -> ObservedNetwork:
    return ObservedNetwork(()) if ready else ObservedNetwork((NetworkReference("", "default"),))


@pytest.mark.spec("C-33")
def test_ready_networks_open_the_gate_of_current_instances_only() -> None:
    current = an_instance(0, gates=("Network", "Quota"), ready=False)
    stale = an_instance(1, gates=("Network",), revision=HashVerdict.STALE, ready=False)
    unjudged = an_instance(2, gates=("Network",), revision=HashVerdict.NOT_JUDGED, ready=False)
    seen = a_seen(
        current,
        stale,
        unjudged,
        desired=3,
        networking=NetworkingState.ON,
        network=a_network(ready=True),
    )
    assert gates(seen) == ["web-0"]
    assert decide(seen).readiness == NetworkReady()
    waiting = a_seen(current, networking=NetworkingState.ON, network=a_network(ready=False))
    assert gates(waiting) == []
    assert decide(waiting).readiness == NetworkWaiting('NetworkBinding "web-net-0"')


@pytest.mark.spec("C-37")
def test_networking_off_opens_every_gate_but_not_in_the_wrong_city() -> None:
    gated = an_instance(0, gates=("Network",), revision=HashVerdict.STALE, ready=False)
    assert gates(a_seen(gated)) == ["web-0"]
    assert gates(a_seen(gated, cell_city="LHR")) == []


@pytest.mark.spec("C-28")
def test_what_cannot_be_read_opens_no_gate_and_asks_for_nothing() -> None:
    gated = an_instance(0, gates=("Network",), ready=False)
    for unreadable in (
        a_seen(gated, networking=NetworkingState.ON, locations=NOT_READ, network=NOT_READ),
        a_seen(gated, networking=NetworkingState.ON, network=NOT_READ),
    ):
        decision = decide(unreadable)
        assert not decision.plan.writes
        assert decision.readiness is None
        assert [type(intent) for intent in decision.plan] == [RequeueAfter]


def test_bindings_of_interfaces_that_instances_still_have_are_kept() -> None:
    binding = ObservedBinding(
        key=KEY,
        metadata=an_instance(0).metadata,
        network=NetworkReference("ns-1", "default"),
        location="dfw",
        ready=None,
        context=None,
    )
    network = ObservedNetwork((), {1: binding})
    kept = a_seen(an_instance(0, interfaces=2), networking=NetworkingState.ON, network=network)
    assert not [i for i in decide(kept).plan if isinstance(i, Delete)]
    gone = a_seen(an_instance(0, interfaces=1), networking=NetworkingState.ON, network=network)
    assert [i.uid for i in decide(gone).plan if isinstance(i, Delete)] == ["uid-of-web-0"]
    assert OTHER != UID
