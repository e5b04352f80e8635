"""Readers of objects, requests and keys for tests."""

from __future__ import annotations

from collections.abc import Iterable

from simulated_operators.people import address, destination

from compute_operator_kit.core.json import JsonMapping, JsonObject, member_object, member_text
from compute_operator_kit.core.keys import Kind, ObjectKey
from compute_sim_planes.history import Request
from management_builders.definitions import KNOWN_KINDS


def key_to(plane: str, kind: Kind, name: str, namespace: str = "default") -> ObjectKey:
    return address(plane, kind, name, namespace)


def key_of(plane: str, document: JsonMapping) -> ObjectKey:
    """The key of a document; its kind must be one of ours."""
    return destination(plane, document, KNOWN_KINDS, "default")


def name_of(document: JsonObject) -> str:
    return member_text(member_object(document, "metadata"), "name")


def member_of(document: JsonObject, name: str) -> str:
    """A text of an object's metadata."""
    return member_text(member_object(document, "metadata"), name)


def uid_of(document: JsonObject) -> str:
    return member_text(member_object(document, "metadata"), "uid")


def spec_of(document: JsonObject) -> JsonObject:
    return member_object(document, "spec")


def status_of(document: JsonObject) -> JsonObject:
    return member_object(document, "status")


def placement_of(document: JsonObject, name: str) -> JsonObject:
    """The entry of one placement in a Workload's status."""
    placements = status_of(document).get("placements")
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


def condition_of(document: JsonObject, kind: str) -> tuple[str, str, str]:
    """Status, reason and message of a condition of a status or an object."""
    status = member_object(document, "status") or document
    conditions = status.get("conditions")
    for one in conditions if isinstance(conditions, list) else []:
        if isinstance(one, dict) and one.get("type") == kind:
            return (
                member_text(one, "status"),
                member_text(one, "reason"),
                member_text(one, "message"),
            )
    return "", "", ""
