"""Which policies of one base name exist, and their events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest
from management_builders.federation import HUB_NAMESPACE

from compute_api_types import labels, names, reasons
from compute_management_operator.hub.delays import STEP
from compute_management_operator.hub.policy.observe import (
    HubPolicy,
    ObservedPolicies,
    read_scope,
)
from compute_management_operator.hub.policy.plan import (
    choose_names,
    derive_spec,
    find_ambiguous,
    plan,
)
from compute_management_operator.planes import DEPLOYMENT, HUB, POLICY
from compute_operator_kit.core.json import Json, JsonObject, decode_json_object, encode
from compute_operator_kit.core.keys import ObjectKey, Uid
from compute_operator_kit.core.objects import Metadata, Unreadable
from compute_operator_kit.intents.compare import compare
from compute_operator_kit.intents.intents import (
    Delete,
    Ensure,
    OwnedFields,
    Plan,
    RecordEvent,
    RequeueAfter,
    RequireNone,
)

KEY = ObjectKey(HUB, POLICY, HUB_NAMESPACE, "city-lax")
SECOND_OF_LOWER = names.derive_policy_names("lax")[1]


TOLERATED: list[Json] = [
    {"key": "cluster.karmada.io/not-ready", "operator": "Exists"},
    {"key": "cluster.karmada.io/unreachable", "operator": "Exists"},
]


def a_spec(code: str, **members: Json) -> JsonObject:
    """A policy as Karmada stores it: with what the API server fills in."""
    matched: JsonObject = {"matchLabels": {labels.TOPOLOGY_CITY_CODE: code}}
    selector: JsonObject = {
        "apiVersion": DEPLOYMENT.api_version,
        "kind": DEPLOYMENT.kind,
        "labelSelector": matched,
        "namespace": HUB_NAMESPACE,
    }
    return {
        "resourceSelectors": [selector],
        "placement": {
            "clusterAffinity": {"labelSelector": matched},
            "clusterTolerations": TOLERATED,
        },
        "conflictResolution": "Overwrite",
        "preemption": "Never",
        "priority": 0,
        "schedulerName": "default-scheduler",
        **members,
    }


@dataclass(frozen=True, slots=True)
class StoredPolicy:
    """A policy as the plan reads it, and its spec as the hub stores it."""

    policy: HubPolicy
    spec: JsonObject


def a_policy(
    code: str = "LAX",
    name: str = "city-lax",
    *,
    is_deleting: bool = False,
    spec: JsonObject | None = None,
) -> StoredPolicy:
    metadata = Metadata(
        name=name,
        namespace=HUB_NAMESPACE,
        uid=Uid(f"uid-of-{name}"),
        resource_version="7",
        deletion_timestamp="2026-06-20T08:00:00Z" if is_deleting else "",
    )
    key = ObjectKey(KEY.plane, KEY.kind, KEY.namespace, name)
    spec = a_spec(code) if spec is None else spec
    return StoredPolicy(HubPolicy(key, metadata, code, read_scope(spec, HUB_NAMESPACE)), spec)


@dataclass(frozen=True, slots=True)
class Moment:
    """One moment, of which a test changes parts."""

    routed: frozenset[str] = frozenset()
    asked: frozenset[str] | Unreadable = frozenset()
    policies: tuple[StoredPolicy, ...] = ()
    clusters: Mapping[str, tuple[str, ...]] | Unreadable = field(
        default_factory=dict[str, tuple[str, ...]]
    )
    reported: Mapping[ObjectKey, tuple[str, ...]] = field(
        default_factory=dict[ObjectKey, tuple[str, ...]]
    )
    base: str = "city-lax"
    may_create: bool = True
    with_data: frozenset[str] | None = None

    def seen(self) -> ObservedPolicies:
        return ObservedPolicies(
            key=ObjectKey(KEY.plane, KEY.kind, KEY.namespace, self.base),
            may_create=self.may_create,
            routed=self.routed,
            asked=self.asked,
            policies=tuple(one.policy for one in self.policies),
            clusters=self.clusters,
            reported=self.reported,
            with_data=self.with_data,
        )


LAX = frozenset({"LAX"})
BOTH = frozenset({"LAX", "lax"})


def planned(moment: Moment) -> Plan:
    return plan(moment.seen())


def changes(moment: Moment) -> list[str]:
    """The writes of a plan that differ from the stored policies."""
    specs = {one.policy.key: one.spec for one in moment.policies}
    sent: list[str] = []
    for intent in planned(moment).writes:
        spec = specs.get(intent.key)
        if isinstance(intent, Delete):
            sent.append(f"delete {intent.key.name}")
        elif isinstance(intent, Ensure) and spec is None:
            sent.append(f"create {intent.key.name}")
        elif isinstance(intent, Ensure) and spec is not None:
            body: JsonObject = {"metadata": {}, "spec": spec}
            if compare(body, intent.desired):
                sent.append(f"patch {intent.key.name}")
    return sent


# --- needed ---------------------------------------------------------------------------------------


@pytest.mark.spec("M-27")
@pytest.mark.parametrize("moment", [Moment(routed=LAX), Moment(asked=LAX)])
def test_policy_that_is_needed_is_made_exactly_as_specified(moment: Moment) -> None:
    (made,) = planned(moment)
    assert isinstance(made, Ensure)
    assert made.key == KEY
    matched = {"matchLabels": {labels.TOPOLOGY_CITY_CODE: "LAX"}}
    assert made.desired == OwnedFields(
        merge={
            "spec": {
                "resourceSelectors": [
                    {
                        "apiVersion": "compute.datumapis.com/v1alpha",
                        "kind": "WorkloadDeployment",
                        "labelSelector": matched,
                    }
                ],
                "placement": {
                    "clusterAffinity": {"labelSelector": matched},
                    "clusterTolerations": TOLERATED,
                },
                "conflictResolution": "Overwrite",
            }
        }
    )


def test_policy_is_not_created_in_a_namespace_that_is_absent_or_not_ours() -> None:
    assert planned(Moment(asked=LAX, may_create=False)) == Plan()


@pytest.mark.spec("M-46")
def test_policy_that_is_going_is_waited_for_and_not_patched() -> None:
    moment = Moment(routed=LAX, policies=(a_policy(is_deleting=True, spec={}),))
    assert planned(moment) == Plan.of(RequeueAfter(KEY, reasons.STILL_TERMINATING, STEP))


@pytest.mark.spec("M-50")
def test_what_the_server_fills_in_is_no_difference() -> None:
    assert changes(Moment(routed=LAX, policies=(a_policy(),))) == []


@pytest.mark.spec("DS-14")
@pytest.mark.parametrize("kept", [[], TOLERATED[:1], [{"key": "another", "operator": "Exists"}]])
def test_a_policy_gets_the_tolerations_of_an_unreachable_city_in_one_patch(
    kept: list[Json],
) -> None:
    selector: JsonObject = {"matchLabels": {labels.TOPOLOGY_CITY_CODE: "LAX"}}
    placement: JsonObject = {"clusterAffinity": {"labelSelector": selector}}
    if kept:
        placement["clusterTolerations"] = kept
    moment = Moment(routed=LAX, policies=(a_policy(spec=a_spec("LAX", placement=placement)),))
    assert changes(moment) == ["patch city-lax"]
    assert changes(Moment(routed=LAX, policies=(a_policy(),))) == []


@pytest.mark.spec("M-50")
@pytest.mark.parametrize(
    "spec",
    [
        a_spec("LAX", resourceSelectors=[]),
        a_spec("LAX", resourceSelectors=["odd"]),
        a_spec("LAX", resourceSelectors=[{"apiVersion": "v1", "kind": "ConfigMap"}]),
        a_spec("LAX", placement={"clusterAffinity": {"labelSelector": {}}}),
        a_spec(
            "LAX",
            placement={
                "clusterAffinity": {
                    "labelSelector": {
                        "matchLabels": {labels.TOPOLOGY_CITY_CODE: "LAX", "tier": "gold"}
                    }
                }
            },
        ),
        a_spec("LAX", conflictResolution="Abort"),
        a_spec("SEA"),
        {},
    ],
)
def test_what_another_client_changed_is_repaired_in_one_patch(spec: JsonObject) -> None:
    moment = Moment(routed=LAX, policies=(a_policy(spec=spec),))
    assert changes(moment) == ["patch city-lax"]
    repaired, event = planned(moment)
    assert isinstance(event, RecordEvent)
    assert (event.reason, event.after) == (reasons.POLICY_REPAIRED, repaired)


@pytest.mark.spec("M-50")
def test_second_selector_is_taken_away() -> None:
    extra: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap"}
    selectors = a_spec("LAX")["resourceSelectors"]
    assert isinstance(selectors, list)
    scope = read_scope({"resourceSelectors": [*selectors, extra]}, HUB_NAMESPACE)
    kept = decode_json_object(encode(derive_spec(scope, "LAX")))["resourceSelectors"]
    assert isinstance(kept, list)
    assert len(kept) == 1


def test_selector_of_another_namespace_is_not_ours() -> None:
    selectors = a_spec("LAX")["resourceSelectors"]
    assert isinstance(selectors, list)
    assert isinstance(selectors[0], dict)
    moved: JsonObject = {**selectors[0], "namespace": "elsewhere"}
    spec = a_spec("LAX", resourceSelectors=[moved])
    assert changes(Moment(routed=LAX, policies=(a_policy(spec=spec),))) == ["patch city-lax"]


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.spec("M-48")
def test_two_spellings_of_a_city_get_two_names_ascending() -> None:
    assert choose_names(Moment(routed=BOTH).seen()) == {"LAX": "city-lax", "lax": SECOND_OF_LOWER}


@pytest.mark.spec("M-48")
def test_spelling_keeps_the_name_it_has() -> None:
    held = a_policy("lax")
    chosen = choose_names(Moment(routed=BOTH, policies=(held,)).seen())
    assert chosen == {"LAX": names.derive_policy_names("LAX")[1], "lax": "city-lax"}


@pytest.mark.spec("M-48")
def test_removing_the_first_leaves_the_second_alone() -> None:
    moment = Moment(
        routed=frozenset({"lax"}), policies=(a_policy(), a_policy("lax", SECOND_OF_LOWER))
    )
    assert changes(moment) == ["delete city-lax"]


def test_base_name_that_is_not_needed_is_taken_over() -> None:
    moment = Moment(routed=frozenset({"lax"}), policies=(a_policy("LAX"),))
    assert changes(moment) == ["patch city-lax"]


def test_base_name_that_is_another_citys_second_name_is_not_taken() -> None:
    crafted = SECOND_OF_LOWER.removeprefix("city-")
    held = a_policy("lax", SECOND_OF_LOWER)
    moment = Moment(base=SECOND_OF_LOWER, asked=frozenset({crafted}), policies=(held,))
    assert choose_names(moment.seen()) == {crafted: names.derive_policy_names(crafted)[1]}
    assert changes(moment) == [f"create {names.derive_policy_names(crafted)[1]}"]


# --- not needed -----------------------------------------------------------------------------------


@pytest.mark.spec("M-44")
@pytest.mark.spec("M-47")
def test_policy_that_is_not_needed_is_deleted_unless_the_hub_has_a_copy() -> None:
    (removed,) = planned(Moment(policies=(a_policy(),)))
    no_copy = RequireNone(
        HUB,
        DEPLOYMENT,
        {labels.TOPOLOGY_CITY_CODE: "LAX"},
        namespace=HUB_NAMESPACE,
        lock=KEY,
    )
    assert removed == Delete(
        KEY, Uid("uid-of-city-lax"), reasons.NOT_WANTED, resource_version="7", require_none=no_copy
    )


def test_policy_that_names_no_city_is_deleted_only_where_no_copy_exists() -> None:
    (removed,) = planned(Moment(policies=(a_policy("", spec={}),)))
    assert isinstance(removed, Delete)
    assert removed.require_none is not None
    assert removed.require_none.labels == {}


def test_policy_that_is_going_is_not_deleted_again() -> None:
    assert planned(Moment(policies=(a_policy(is_deleting=True),))) == Plan()


def test_policy_of_another_key_is_left_to_that_key() -> None:
    held = a_policy("lax", SECOND_OF_LOWER)
    assert planned(Moment(base=SECOND_OF_LOWER, policies=(held,))) == Plan()


def test_project_that_cannot_be_asked_loses_no_policy() -> None:
    moment = Moment(asked=Unreadable("Timeout"), policies=(a_policy(),))
    assert planned(moment) == Plan.of(RequeueAfter(KEY, reasons.PLANE_UNREADABLE, STEP))


def test_copies_alone_decide_while_the_project_cannot_be_asked() -> None:
    assert changes(Moment(routed=LAX, asked=Unreadable("Timeout"))) == ["create city-lax"]


# --- one city, one cell ---------------------------------------------------------------------------


def events(plan: Plan) -> list[str]:
    return [
        one.message
        for one in plan
        if isinstance(one, RecordEvent) and one.reason == reasons.AMBIGUOUS_CITY
    ]


@pytest.mark.spec("M-91")
def test_city_of_two_clusters_is_an_event_when_their_names_change() -> None:
    moment = Moment(
        routed=LAX, policies=(a_policy(),), clusters={"LAX": ("lax-1", "lax-2"), "SEA": ("s",)}
    )
    message = 'City code "LAX" is carried by 2 clusters: lax-1, lax-2; each runs every replica'
    assert events(planned(moment)) == [message]
    assert events(planned(replace(moment, reported={KEY: ("lax-1", "lax-2")}))) == []
    assert events(planned(replace(moment, reported={KEY: ("lax-1", "lax-3")}))) == [message]
    assert changes(moment) == []


@pytest.mark.spec("M-91")
def test_unreadable_clusters_and_deleted_policies_record_no_event() -> None:
    two = {"LAX": ("lax-1", "lax-2")}
    unreadable = Moment(routed=LAX, policies=(a_policy(),), clusters=Unreadable("NotSynced"))
    assert events(planned(unreadable)) == []
    leaving = Moment(routed=LAX, policies=(a_policy(is_deleting=True),), clusters=two)
    assert events(planned(leaving)) == []
    assert find_ambiguous({"LAX": ("a",), "SEA": ("b", "c")}) == {"SEA": ("b", "c")}


# --- referenced data ------------------------------------------------------------------------------


def dependencies_in(moment: Moment) -> list[Json]:
    """What each write states about dependencies; "unsaid" where nothing is."""
    found: list[Json] = []
    for intent in planned(moment).writes:
        assert isinstance(intent, Ensure)
        spec = decode_json_object(encode(intent.desired.merge))["spec"]
        assert isinstance(spec, dict)
        found.append(spec.get("propagateDeps", "unsaid"))
    return found


@pytest.mark.spec("RD-02")
@pytest.mark.parametrize(
    ("with_data", "created", "kept"),
    [
        (None, ["unsaid"], ["unsaid"]),
        (frozenset[str](), [None], [None, "unsaid"]),
        (LAX, [True], [True, "unsaid"]),
    ],
)
def test_dependencies_are_propagated_exactly_where_a_deployment_has_data(
    with_data: frozenset[str] | None, created: list[Json], kept: list[Json]
) -> None:
    assert dependencies_in(Moment(routed=LAX, with_data=with_data)) == created
    there = Moment(routed=LAX, policies=(a_policy(),), with_data=with_data)
    assert dependencies_in(there) == kept
