"""`Table` responses, which `kubectl get` prints: one row per object.

Columns of custom kinds come from their CRD, those of built-in kinds from a table here. A cell
without a value is null; ages are computed from the plane's clock, never from the host's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from compute_sim_planes.api_server.http.json_paths import find_values, parse_json_path
from compute_sim_planes.api_server.kinds.kind import Kind, PrinterColumn
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    array_at,
    object_at,
    objects_at,
    string_at,
)

_NAME_DESCRIPTION: Final = (
    "Name must be unique within a namespace. Is required when creating resources, although some "
    "resources may allow a client to request the generation of an appropriate name automatically."
)
_AGE: Final = PrinterColumn("Age", "date", ".metadata.creationTimestamp")
_CREATED: Final = PrinterColumn("Created At", "date", ".metadata.creationTimestamp")
_parse = lru_cache(maxsize=512)(parse_json_path)


@dataclass(frozen=True, slots=True)
class Column:
    """A column and the function that derives its cell from an object."""

    name: str
    type: str
    cell: Callable[[JsonObject, datetime], JsonValue]
    priority: int = 0
    description: str = ""
    format: str = ""

    def definition(self) -> JsonObject:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


def render_table(
    kind: Kind,
    items: Iterable[JsonObject],
    metadata: JsonObject,
    *,
    now: datetime,
    include_object: str = "Metadata",
) -> JsonObject:
    """The table of objects of one kind; `include_object` is None, Metadata or Object."""
    columns = columns_of(kind)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [column.definition() for column in columns],
        "rows": [_render_row(item, columns, now, include_object) for item in items],
    }


def _render_row(
    item: JsonObject, columns: tuple[Column, ...], now: datetime, include_object: str
) -> JsonObject:
    row: JsonObject = {"cells": [column.cell(item, now) for column in columns]}
    if include_object == "Object":
        row["object"] = item
    elif include_object != "None":
        row["object"] = {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": object_at(item, "metadata"),
        }
    return row


def columns_of(kind: Kind) -> tuple[Column, ...]:
    """The columns of a kind; a kind without printer columns shows name and age."""
    built_in = _BUILT_IN.get((kind.group, kind.kind))
    if built_in is not None:
        return (_NAME, *built_in)
    return (_NAME, *(_from_printer_column(column) for column in kind.columns or (_AGE,)))


def _from_printer_column(column: PrinterColumn) -> Column:
    steps = _parse(column.json_path)

    def cell(item: JsonObject, now: datetime) -> JsonValue:
        parsed = list(find_values(item, steps))
        return _cell_value(column.type, parsed, now) if parsed else None

    return Column(
        column.name,
        column.type,
        cell,
        priority=column.priority,
        description=column.description
        or f"Custom resource definition column (in JSONPath format): {column.json_path}",
        format=column.format,
    )


def _cell_value(kind_of_cell: str, document: list[JsonValue], now: datetime) -> JsonValue:
    first = document[0]
    match kind_of_cell:
        case "string":
            return " ".join(_text(value) for value in document)
        case "date":
            return render_age(first, now) if isinstance(first, str) else "<unknown>"
        case "integer":
            return int(first) if isinstance(first, int | float) else None
        case "number":
            return first if _is_number(first) else None
        case "boolean":
            return first if isinstance(first, bool) else None
        case _:
            return None


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def render_age(timestamp: str, now: datetime) -> str:
    """The age as `kubectl` prints it: seconds, then coarser units."""
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        return "<invalid>"
    return render_duration(now.astimezone(UTC) - moment.astimezone(UTC))


# Seconds per unit of an age.
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400


def render_duration(duration: timedelta) -> str:
    seconds = int(duration.total_seconds())
    if seconds < -1:
        # Clocks differ by a second or two; a larger difference is an error.
        return "<invalid>"
    seconds = max(seconds, 0)
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    for limit, unit, letter, part, part_letter in (
        (10 * _MINUTE, _MINUTE, "m", 1, "s"),
        (3 * _HOUR, _MINUTE, "m", 0, ""),
        (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
        (2 * _DAY, _HOUR, "h", 0, ""),
        (8 * _DAY, _DAY, "d", _HOUR, "h"),
        (2 * _YEAR, _DAY, "d", 0, ""),
        (8 * _YEAR, _YEAR, "y", _DAY, "d"),
    ):
        if seconds < limit:
            rest = seconds % unit // part if part else 0
            return f"{seconds // unit}{letter}" + (f"{rest}{part_letter}" if rest else "")
    return f"{seconds // _YEAR}y"


def _name_cell(item: JsonObject, _now: datetime) -> JsonValue:
    return string_at(item, "metadata", "name")


_NAME: Final = Column("Name", "string", _name_cell, format="name", description=_NAME_DESCRIPTION)


def _path(name: str, path: str, *, type_: str = "string") -> Column:
    return _from_printer_column(PrinterColumn(name, type_, path, description=name))


def _count(name: str, field: str) -> Column:
    def cell(item: JsonObject, _now: datetime) -> JsonValue:
        return len(object_at(item, field)) + len(array_at(item, field))

    return Column(name, "string", cell)


def _role_reference(item: JsonObject, _now: datetime) -> JsonValue:
    return f"{string_at(item, 'roleRef', 'kind')}/{string_at(item, 'roleRef', 'name')}"


def _event_age(item: JsonObject, now: datetime) -> JsonValue:
    seen = string_at(item, "lastTimestamp") or string_at(item, "eventTime")
    return render_age(seen or string_at(item, "firstTimestamp"), now)


def _event_object(item: JsonObject, _now: datetime) -> JsonValue:
    involved = object_at(item, "involvedObject") or object_at(item, "regarding")
    return f"{string_at(involved, 'kind').lower()}/{string_at(involved, 'name')}"


def _ready_replicas(item: JsonObject, _now: datetime) -> JsonValue:
    status, spec = object_at(item, "status"), object_at(item, "spec")
    return f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 1)}"


def _ports(item: JsonObject, _now: datetime) -> JsonValue:
    ports = objects_at(item, "spec", "ports")
    return ",".join(f"{p.get('port')}/{string_at(p, 'protocol') or 'TCP'}" for p in ports)


_RBAC: Final = "rbac.authorization.k8s.io"
_AGE_COLUMN: Final = _from_printer_column(_AGE)
_CREATED_COLUMN: Final = _from_printer_column(_CREATED)
_BINDING: Final = (Column("Role", "string", _role_reference), _AGE_COLUMN)
_BUILT_IN: Final[dict[tuple[str, str], tuple[Column, ...]]] = {
    ("", "Namespace"): (_path("Status", ".status.phase"), _AGE_COLUMN),
    ("", "ConfigMap"): (_count("Data", "data"), _AGE_COLUMN),
    ("", "Secret"): (_path("Type", ".type"), _count("Data", "data"), _AGE_COLUMN),
    ("", "ServiceAccount"): (_count("Secrets", "secrets"), _AGE_COLUMN),
    ("", "Service"): (
        _path("Type", ".spec.type"),
        _path("Cluster-IP", ".spec.clusterIP"),
        Column("Port(s)", "string", _ports),
        _AGE_COLUMN,
    ),
    ("", "Event"): (
        Column("Last Seen", "string", _event_age),
        _path("Type", ".type"),
        _path("Reason", ".reason"),
        Column("Object", "string", _event_object),
        _path("Message", ".message"),
    ),
    ("apps", "Deployment"): (
        Column("Ready", "string", _ready_replicas),
        _path("Up-to-date", ".status.updatedReplicas", type_="integer"),
        _path("Available", ".status.availableReplicas", type_="integer"),
        _AGE_COLUMN,
    ),
    ("coordination.k8s.io", "Lease"): (_path("Holder", ".spec.holderIdentity"), _AGE_COLUMN),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): (_CREATED_COLUMN,),
    (_RBAC, "ClusterRole"): (_CREATED_COLUMN,),
    (_RBAC, "Role"): (_CREATED_COLUMN,),
    (_RBAC, "ClusterRoleBinding"): _BINDING,
    (_RBAC, "RoleBinding"): _BINDING,
}
