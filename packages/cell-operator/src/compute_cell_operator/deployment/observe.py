"""Reads caches: one WorkloadDeployment and everything around it in the cell, at one moment.

Objects may have bypassed admission, so every field is read as if it could be anything. What cannot
be read is a value of its own (`Unreadable`), never an empty list. Only Instances that belong to the
deployment, or stand in its slots, are decoded: a pass must not grow with its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from compute_api_types import conditions, names
from compute_api_types.template_hash import HashVerdict
from compute_cell_operator.deployment.adoption import judge_instance
from compute_cell_operator.deployment.revisions import Revisions
from compute_cell_operator.deployment.slots import Candidate, Slots, derive_slots
from compute_cell_operator.deployment.standing import (
    read_echo,
    read_gates,
    read_standing_conditions,
)
from compute_cell_operator.kinds import DEPLOYMENT, INSTANCE, LOCATION, NAMESPACE
from compute_cell_operator.network.observe import CITY as LOCATIONS_BY_CITY
from compute_cell_operator.network.observe import NetworkSeen, observe_network
from compute_cell_operator.network.state import State
from compute_cell_operator.told import Told
from compute_operator_kit.cache import Caches
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.objects import Absent, Metadata, Snapshot, Unreadable
from compute_operator_kit.wire import (
    JsonObject,
    member_int,
    member_list,
    member_object,
    member_text,
)

OWNER: Final = "owner"
"""Index of Instances: uid of their controller."""
SLOT_OF: Final = "slot-of"
"""Index of Instances: `namespace/name` of the deployment whose slot their name is."""


@dataclass(frozen=True, slots=True)
class FoundInstance:
    """An Instance, as far as its deployment is concerned."""

    key: ObjectKey
    metadata: Metadata
    revision: HashVerdict  # of the template it was made from
    echo: HashVerdict | None  # of the template the provider says it runs; None: it says nothing
    gates: tuple[str, ...] = ()
    location: str = ""
    interfaces: int = 0
    conditions: tuple[Told, ...] = ()  # those in `standing.LOOKED_AT`
    is_unmarked: bool = False  # another operator made it as asked; our hash is not beside it yet

    def told(self, condition_type: str) -> Told | None:
        return conditions.find(self.conditions, condition_type)

    @property
    def is_ready(self) -> bool:
        return conditions.is_true(self.conditions, conditions.READY)


@dataclass(frozen=True, slots=True)
class LocationsSeen:
    """Locations of the deployment's city that are not going, sorted by name."""

    matching: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """One deployment at one moment."""

    key: ObjectKey
    metadata: Metadata
    spec: JsonObject
    status: JsonObject
    slots: Slots
    instances: Mapping[str, FoundInstance]  # by name: ours, and foreign ones in our slots
    template_hash: str
    networking: State
    locations: LocationsSeen | Unreadable  # nothing in it while networking is off
    network: NetworkSeen | Unreadable  # the same
    is_namespace_deleting: bool = False
    cell_city: str = ""  # "" where the cell does not know its city
    owned: tuple[FoundInstance, ...] = field(default=())

    @property
    def template(self) -> JsonObject:
        return member_object(self.spec, "template")

    @property
    def city_code(self) -> str:
        return member_text(self.spec, "cityCode")

    @property
    def is_deleting(self) -> bool:
        return self.metadata.is_deleting or self.is_namespace_deleting

    @property
    def desired(self) -> int:
        """How many Instances are to exist (cell.md 3)."""
        if self.is_deleting:
            return 0
        return max(0, member_int(member_object(self.spec, "scaleSettings"), "minReplicas"))

    @property
    def last_location(self) -> str:
        return member_text(member_object(self.status, "location"), "name")

    def in_slot(self, ordinal: int) -> FoundInstance | None:
        """The Instance of ours in a slot."""
        candidate = self.slots.by_ordinal.get(ordinal)
        return self.instances[candidate.name] if candidate is not None else None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is not in a cache: how this cell is configured, whether networking is on, and which
    Instances are known to be of which template.
    """

    networking: State
    cell_city: str = ""
    revisions: Revisions = field(default_factory=Revisions)


def observe(key: ObjectKey, caches: Caches, around: Surroundings) -> Seen | None:
    """None where the deployment is absent, or a cache cannot be believed."""
    deployment = caches.view(key.plane, DEPLOYMENT).get(key.namespace, key.name)
    found = _find_instances(key, deployment, caches)
    if not isinstance(deployment, Snapshot) or found is None:
        return None
    body = deployment.read()  # shared: nothing below, nor the plan, changes it
    spec = member_object(body, "spec")
    template = member_object(spec, "template")
    revision = around.revisions.read(template)
    instances = {one.key.name: _read_instance(one, template, revision.judge) for one in found}
    slots = derive_slots(key.name, deployment.metadata.uid, map(_candidate, instances.values()))
    is_on = around.networking is State.ON
    return Seen(
        key=key,
        metadata=deployment.metadata,
        spec=spec,
        status=member_object(body, "status"),
        slots=slots,
        instances=instances,
        networking=around.networking,
        locations=_observe_locations(key, spec, caches) if is_on else LocationsSeen(()),
        network=observe_network(key, deployment.metadata.uid, template, caches)
        if is_on
        else NetworkSeen(()),
        is_namespace_deleting=_is_namespace_deleting(key, caches),
        cell_city=around.cell_city,
        template_hash=revision.hash,
        owned=tuple(instances[one.name] for one in slots.owned),
    )


def _find_instances(
    key: ObjectKey, deployment: Snapshot | Absent | Unreadable, caches: Caches
) -> tuple[Snapshot, ...] | None:
    """Those it controls and those in its slots, each once."""
    if not isinstance(deployment, Snapshot):
        return None
    view = caches.view(key.plane, INSTANCE)
    owned = view.by_index(OWNER, deployment.metadata.uid)
    placed = view.by_index(SLOT_OF, f"{key.namespace}/{key.name}")
    if isinstance(owned, Unreadable) or isinstance(placed, Unreadable):
        return None
    # A uid that was copied into another namespace makes nothing there ours.
    found = (one for one in (*owned, *placed) if one.key.namespace == key.namespace)
    return tuple({one.key: one for one in found}.values())


def _read_instance(
    snapshot: Snapshot, template: JsonObject, judge: Callable[[str], HashVerdict]
) -> FoundInstance:
    body = snapshot.read()
    spec, status = member_object(body, "spec"), member_object(body, "status")
    controller = member_object(spec, "controller")
    judged = judge_instance(snapshot.metadata, spec, template, judge)
    return FoundInstance(
        key=snapshot.key,
        metadata=snapshot.metadata,
        revision=judged.verdict,
        echo=_judge_echo(read_echo(status), controller, judged.verdict, judge),
        is_unmarked=judged.is_unmarked,
        gates=read_gates(controller),
        location=member_text(member_object(spec, "location"), "name"),
        interfaces=len(member_list(spec, "networkInterfaces")),
        conditions=read_standing_conditions(status),
    )


def _judge_echo(
    echo: str, controller: JsonObject, own: HashVerdict, judge: Callable[[str], HashVerdict]
) -> HashVerdict | None:
    """A provider that echoes the Instance's own hash runs what the Instance is."""
    if not echo:
        return None
    return own if echo == member_text(controller, "templateHash") else judge(echo)


def _candidate(found: FoundInstance) -> Candidate:
    return Candidate(found.metadata, found.revision, is_ready=found.is_ready)


def _observe_locations(
    key: ObjectKey, spec: JsonObject, caches: Caches
) -> LocationsSeen | Unreadable:
    city = member_text(spec, "cityCode")
    found = caches.view(key.plane, LOCATION).by_index(LOCATIONS_BY_CITY, city)
    if isinstance(found, Unreadable):
        return found
    present = (one.metadata.name for one in found if not one.metadata.is_deleting)
    return LocationsSeen(tuple(sorted(present)))


def _is_namespace_deleting(key: ObjectKey, caches: Caches) -> bool:
    """A Namespace that the cache does not have yet is no sign: kinds are not seen in one order."""
    found = caches.view(key.plane, NAMESPACE).get("", key.namespace)
    return isinstance(found, Snapshot) and found.metadata.is_deleting


# --- indexes --------------------------------------------------------------------------------------


def index_by_owner(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    controller = metadata.controller
    return (controller.uid,) if controller is not None else ()


def index_by_slot(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    parsed = names.parse_instance_name(metadata.name)
    return (f"{metadata.namespace}/{parsed[0]}",) if parsed is not None else ()
