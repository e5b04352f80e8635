"""`metadata.managedFields`: who owns which fields, read and written.

Two managers of one name are two owners when one applied and the other updated, or when they wrote
different subresources; a real server tells them apart the same way, and a removed gate that "stays"
is the classic result of forgetting it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeAlias

from compute_sim_planes.api_server.field_sets import (
    FieldSet,
    decode_fields,
    encode_fields,
)
from compute_sim_planes.json_types import JsonArray, JsonObject, JsonValue, object_at, string_at


class Operation(StrEnum):
    """How a manager came by its fields."""

    APPLY = "Apply"
    UPDATE = "Update"


@dataclass(frozen=True, slots=True)
class Manager:
    """One owner of fields."""

    name: str
    operation: Operation
    subresource: str = ""
    # Of appliers the version says nothing about identity: they keep their fields across versions.
    api_version: str = ""


@dataclass(frozen=True, slots=True)
class Ownership:
    """What one manager owns, since when, and in which version it said so."""

    fields: FieldSet
    api_version: str
    time: str


Owners: TypeAlias = dict[Manager, Ownership]


def parse_owners(managed_fields: JsonValue) -> Owners:
    """The owners of an object; entries nobody can read are left out."""
    owners: Owners = {}
    for entry in managed_fields if isinstance(managed_fields, list) else []:
        operation = string_at(entry, "operation")
        if operation not in {"Apply", "Update"}:
            continue
        manager = make_manager(
            string_at(entry, "manager"),
            Operation(operation),
            api_version=string_at(entry, "apiVersion"),
            subresource=string_at(entry, "subresource"),
        )
        fields = decode_fields(object_at(entry, "fieldsV1"))
        if manager in owners:
            fields |= owners[manager].fields
        version, time = string_at(entry, "apiVersion"), string_at(entry, "time")
        owners[manager] = Ownership(fields, version, time)
    return owners


def make_manager(name: str, operation: Operation, *, api_version: str, subresource: str) -> Manager:
    version = "" if operation is Operation.APPLY else api_version
    return Manager(name, operation, subresource, version)


def print_owners(owners: Owners) -> JsonArray:
    """`managedFields`, in the server's order: appliers first, then by time, then by name."""
    entries = [_print_entry(manager, owned) for manager, owned in owners.items() if owned.fields]
    entries.sort(key=_order)
    return list(entries)


def _order(entry: JsonObject) -> tuple[str, ...]:
    fields = ("operation", "time", "manager", "apiVersion", "subresource")
    return tuple(string_at(entry, name) for name in fields)


def _print_entry(manager: Manager, owned: Ownership) -> JsonObject:
    entry: JsonObject = {
        "manager": manager.name,
        "operation": manager.operation.value,
        "apiVersion": owned.api_version,
        "time": owned.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": encode_fields(owned.fields),
    }
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return entry


def render_manager(manager: Manager) -> str:
    """The manager as conflict messages name it."""
    text = f'"{manager.name}"'
    if manager.subresource:
        text = f'{text} with subresource "{manager.subresource}"'
    return f"{text} using {manager.api_version}" if manager.api_version else text


def render_time(now: datetime) -> str:
    """RFC 3339 in UTC with whole seconds, as every time in these APIs."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
