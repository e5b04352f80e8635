"""From any content of a namespace, the plan leads to the specified state, and stays there.

The end is derived here from the words of management.md 3, not by the planner: a wrong planner would
settle too, in the wrong place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st
from management_builders.workload import PLANE, UID, Builders

from compute_management_operator.planes import DEPLOYMENT
from compute_management_operator.workload.observe import (
    DeploymentIdentity,
    ObservedWorkload,
    WorkloadChild,
    WorkloadPlacement,
    possible_names,
)
from compute_management_operator.workload.plan import plan
from compute_operator_kit.core.json import (
    JsonObject,
    decode_json_object,
    encode,
    member_object,
    member_text,
)
from compute_operator_kit.core.keys import ObjectKey, Uid
from compute_operator_kit.core.objects import Metadata
from compute_operator_kit.intents.intents import Delete, Ensure, Plan, RecordEvent

BUILD = Builders()
CITIES = ("DFW", "dfw", "LHR", "ORD", "b-c", "c", "New York")
PLACEMENTS = ("a", "a-b", "us")
ROUNDS = 6

placements = st.dictionaries(
    st.sampled_from(PLACEMENTS), st.lists(st.sampled_from(CITIES), max_size=4).map(tuple)
)
identities = st.tuples(st.sampled_from(PLACEMENTS), st.sampled_from(CITIES))
NAMES = ("web-a-b-c", "web-us-dfw", "web-us-lhr", "elsewhere", "web-a-dfw")
existing = st.dictionaries(
    st.sampled_from(NAMES), st.tuples(identities, st.sampled_from((UID, "another")))
)
served = st.frozensets(st.sampled_from(CITIES))


@dataclass(frozen=True, slots=True)
class Namespace:
    """What a namespace holds: deployments by name."""

    deployments: dict[str, WorkloadChild]


def a_deployment(name: str, identity: DeploymentIdentity, uid: str) -> WorkloadChild:
    metadata = Metadata(name, "default", Uid(f"uid-of-{name}-{identity}"), "1", generation=1)
    key = ObjectKey(PLANE, DEPLOYMENT, "default", name)
    return WorkloadChild(key, metadata, uid, identity)


def collapsed(deployments: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Of codes equal ignoring case the first counts."""
    return {
        name: tuple({code.lower(): code for code in reversed(codes)}[low] for low in _lowers(codes))
        for name, codes in deployments.items()
    }


def _lowers(codes: tuple[str, ...]) -> list[str]:
    return list(dict.fromkeys(code.lower() for code in codes))


def see(
    desired: dict[str, tuple[str, ...]], cities: frozenset[str], now: Namespace
) -> ObservedWorkload:
    """The moment as `observe` would give it."""
    empty = BUILD.a_moment(served=cities - {"New York"})
    listed = tuple(
        WorkloadPlacement(name, codes, {"minReplicas": 1})
        for name, codes in collapsed(desired).items()
    )
    names = set(possible_names(empty.metadata, listed))
    return replace(
        empty,
        placements=listed,
        deployments=tuple(
            one for _, one in sorted(now.deployments.items()) if one.workload_uid == UID
        ),
        holders={name: one.workload_uid for name, one in now.deployments.items() if name in names},
    )


def follow(decided: Plan, now: Namespace) -> Namespace:
    """The namespace after the plan was carried out; what a server would refuse fails here."""
    held = dict(now.deployments)
    for intent in decided:
        match intent:
            case Ensure(key=key, uid=None):
                assert key.name not in held, "created what exists"
                held[key.name] = a_deployment(key.name, _identity(intent), UID)
            case Ensure(key=key, uid=uid):
                assert held[key.name].metadata.uid == uid
                assert held[key.name].workload_uid == UID, "touched somebody else's"
            case Delete(key=key, uid=uid):
                assert held[key.name].metadata.uid == uid
                assert held[key.name].workload_uid == UID, "deleted somebody else's"
                del held[key.name]
            case RecordEvent():
                pass
            case _:
                raise AssertionError(f"unexpected: {intent}")
    return Namespace(held)


def _identity(intent: Ensure) -> DeploymentIdentity:
    whole: JsonObject = decode_json_object(encode(intent.desired.replace))
    spec = member_object(whole, "spec")
    return DeploymentIdentity(member_text(spec, "placementName"), member_text(spec, "cityCode"))


def is_writing(decided: Plan) -> bool:
    return any(
        isinstance(one, Delete) or (isinstance(one, Ensure) and one.uid is None) for one in decided
    )


@given(desired=placements, cities=served, deployments=existing)
def test_any_namespace_converges_to_what_the_spec_and_the_locations_say(
    desired: dict[str, tuple[str, ...]],
    cities: frozenset[str],
    deployments: dict[str, tuple[tuple[str, str], str]],
) -> None:
    # Two deployments of one identity are a double that a person made: another test's matter.
    taken: set[tuple[str, DeploymentIdentity]] = set()
    held: dict[str, WorkloadChild] = {}
    for name, ((placement, city), uid) in deployments.items():
        identity = DeploymentIdentity(placement, city)
        if (uid, identity) not in taken:
            taken.add((uid, identity))
            held[name] = a_deployment(name, identity, uid)
    start = now = Namespace(held)
    for _ in range(ROUNDS):
        decided = plan(see(desired, cities, now))
        now = follow(decided, now)
    assert not is_writing(plan(see(desired, cities, now))), "it does not settle"

    named = {
        DeploymentIdentity(name, code)
        for name, codes in collapsed(desired).items()
        for code in codes
    }
    before = {one.identity for one in start.deployments.values() if one.workload_uid == UID}
    placeable = {one for one in named if one.city_code in cities - {"New York"}}
    after = [one for one in now.deployments.values() if one.workload_uid == UID]
    others = {name: one for name, one in start.deployments.items() if one.workload_uid != UID}
    # Everything that is named and was there, or can be placed; one each; nothing else; but what
    # finds both of its names taken by others, which the small world here cannot arrange.
    assert {one.identity for one in after} == (named & before) | placeable
    assert len(after) == len({one.identity for one in after})
    assert {name: now.deployments[name] for name in others} == others
