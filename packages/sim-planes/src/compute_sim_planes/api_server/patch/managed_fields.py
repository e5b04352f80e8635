"""`metadata.managedFields`: owners of fields, parsed and rendered.

Two managers of one name are different owners when one applied and the other updated, or when they
wrote different subresources, as on a real server. Confusing them leaves a field behind that its
owner removed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from compute_sim_planes.api_server.patch.field_sets import (
    FieldSet,
    decode_fields,
    encode_fields,
)
from compute_sim_planes.json_types import JsonArray, JsonObject, JsonValue, object_at, string_at


class ManagedFieldsOperation(StrEnum):
    """The operation by which a manager owns its fields."""

    APPLY = "Apply"
    UPDATE = "Update"


@dataclass(frozen=True, slots=True)
class Manager:
    """One owner of fields."""

    name: str
    operation: ManagedFieldsOperation
    subresource: str = ""
    # Empty for appliers: they keep their fields across versions.
    api_version: str = ""


@dataclass(frozen=True, slots=True)
class VersionedFieldSet:
    """The fields of one manager, with the time and API version of its last write."""

    fields: FieldSet
    api_version: str
    time: str


Owners: TypeAlias = dict[Manager, VersionedFieldSet]


def parse_owners(managed_fields: JsonValue) -> Owners:
    """The owners of an object; invalid entries are skipped."""
    owners: Owners = {}
    for entry in managed_fields if isinstance(managed_fields, list) else []:
        operation = string_at(entry, "operation")
        if operation not in {"Apply", "Update"}:
            continue
        manager = make_manager(
            string_at(entry, "manager"),
            ManagedFieldsOperation(operation),
            api_version=string_at(entry, "apiVersion"),
            subresource=string_at(entry, "subresource"),
        )
        fields = decode_fields(object_at(entry, "fieldsV1"))
        if manager in owners:
            fields |= owners[manager].fields
        version, time = string_at(entry, "apiVersion"), string_at(entry, "time")
        owners[manager] = VersionedFieldSet(fields, version, time)
    return owners


def make_manager(
    name: str, operation: ManagedFieldsOperation, *, api_version: str, subresource: str
) -> Manager:
    version = "" if operation is ManagedFieldsOperation.APPLY else api_version
    return Manager(name, operation, subresource, version)


def print_owners(owners: Owners) -> JsonArray:
    """`managedFields` in the server's order: appliers first, then by time, then by name."""
    entries = [_print_entry(manager, owned) for manager, owned in owners.items() if owned.fields]
    entries.sort(key=_order)
    return list(entries)


def _order(entry: JsonObject) -> tuple[str, ...]:
    fields = ("operation", "time", "manager", "apiVersion", "subresource")
    return tuple(string_at(entry, name) for name in fields)


def _print_entry(manager: Manager, owned: VersionedFieldSet) -> JsonObject:
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
