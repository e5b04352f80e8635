"""Objects, requests and keys as a test looks at them."""

from __future__ import annotations

from collections.abc import Iterable

from simulated_operators.people import address, destination

from compute_operator_kit.keys import Kind, ObjectKey
from compute_operator_kit.wire import JsonMapping, JsonObject, member_object, member_text
from compute_sim_planes.history import Request
from management_builders.definitions import KNOWN_KINDS


def key_to(plane: str, kind: Kind, name: str, namespace: str = "default") -> ObjectKey:
    return address(plane, kind, name, namespace)


def key_of(plane: str, document: JsonMapping) -> ObjectKey:
    """Where a document goes; its kind must be one of ours."""
    return destination(plane, document, KNOWN_KINDS, "default")


def name_of(found: JsonObject) -> str:
    return member_text(member_object(found, "metadata"), "name")


def member_of(found: JsonObject, name: str) -> str:
    """A text of an object's metadata."""
    return member_text(member_object(found, "metadata"), name)


def uid_of(found: JsonObject) -> str:
    return member_text(member_object(found, "metadata"), "uid")


def spec_of(found: JsonObject) -> JsonObject:
    return member_object(found, "spec")


def status_of(found: JsonObject) -> JsonObject:
    return member_object(found, "status")


def placement_of(found: JsonObject, name: str) -> JsonObject:
    """What a Workload's status says of one placement."""
    placements = status_of(found).get("placements")
    for one in placements if isinstance(placements, list) else []:
        if isinstance(one, dict) and one.get("name") == name:
            return one
    return {}


def shown(requests: Iterable[Request]) -> list[str]:
    """Requests as a test compares them: `create WorkloadDeployment web-us-dfw`."""
    return [
        " ".join(
            part
            for part in (
                one.address.verb,
                one.address.kind or one.address.resource,
                one.address.subresource,
                one.address.name,
            )
            if part
        )
        for one in requests
    ]


def condition_of(found: JsonObject, kind: str) -> tuple[str, str, str]:
    """Status, reason and message of a condition of a status or an object."""
    status = member_object(found, "status") or found
    conditions = status.get("conditions")
    for one in conditions if isinstance(conditions, list) else []:
        if isinstance(one, dict) and one.get("type") == kind:
            return (
                member_text(one, "status"),
                member_text(one, "reason"),
                member_text(one, "message"),
            )
    return "", "", ""
