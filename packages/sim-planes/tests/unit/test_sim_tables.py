from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from compute_sim_planes.api_server.http.json_paths import (
    JsonPathError,
    find_values,
    parse_json_path,
)
from compute_sim_planes.api_server.http.tables import render_duration, render_table
from compute_sim_planes.api_server.kinds.kind import Kind, PrinterColumn
from compute_sim_planes.json_types import JsonObject, JsonValue, array_at, objects_at, string_at

NOW = datetime(2026, 6, 20, 9, 0, 0, tzinfo=UTC)
ITEM: JsonObject = {
    "metadata": {
        "name": "a",
        "creationTimestamp": "2026-06-20T08:55:00Z",
        "labels": {"compute.datumapis.com/city-code": "DFW"},
    },
    "spec": {"replicas": 3, "ratio": 0.5, "on": True, "ports": [{"port": 80}, {"port": 81}]},
    "status": {
        "conditions": [
            {"type": "Available", "status": "False", "reason": "Pending"},
            {"type": "Ready", "status": "True"},
        ]
    },
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".metadata.name", ["a"]),
        ("$.metadata.name", ["a"]),
        ("{.metadata.name}", ["a"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type=='Ready')].status", ["True"]),
        ('.status.conditions[?(@.type != "Ready")].reason', ["Pending"]),
        ('.status.conditions[?(@.type=="Gone")].status', []),
        (r".metadata.labels['compute\.datumapis\.com/city-code']", ["DFW"]),
        (r".metadata.labels.compute\.datumapis\.com/city-code", ["DFW"]),
        (".spec.ports[0].port", [80]),
        (".spec.ports[-1].port", [81]),
        (".spec.ports[9].port", []),
        (".spec.ports[*].port", [80, 81]),
        (".spec.absent.deeper", []),
        (".spec.replicas.deeper", []),
    ],
)
def test_a_path_finds_what_lies_there(path: str, expected: list[JsonValue]) -> None:
    assert list(find_values(ITEM, parse_json_path(path))) == expected


@pytest.mark.parametrize("path", ["", "metadata.name", ".a[", ".a[?(@.b>1)]", ".a[x]", "$"])
def test_an_unsupported_path_is_an_error(path: str) -> None:
    with pytest.raises(JsonPathError):
        parse_json_path(path)


def a_kind(kind: str = "Thing", group: str = "example.com", **columns: tuple[str, str]) -> Kind:
    printer_columns = tuple(
        PrinterColumn(name, type_, path) for name, (type_, path) in columns.items()
    )
    return Kind(group, "v1", kind, "things", "thing", "ThingList", True, columns=printer_columns)


def cells_of(table: JsonObject) -> list[JsonValue]:
    (row,) = objects_at(table, "rows")
    return array_at(row, "cells")


def test_custom_columns_follow_the_name_in_their_order() -> None:
    kind = a_kind(
        Ready=("string", '.status.conditions[?(@.type=="Ready")].status'),
        Replicas=("integer", ".spec.replicas"),
        Ratio=("number", ".spec.ratio"),
        On=("boolean", ".spec.on"),
        Ports=("string", ".spec.ports[*].port"),
        Age=("date", ".metadata.creationTimestamp"),
        Gone=("string", ".spec.gone"),
        Wrong=("integer", ".metadata.name"),
    )

    table = render_table(kind, [ITEM], {"resourceVersion": "7"}, now=NOW)

    assert cells_of(table) == ["a", "True", 3, 0.5, True, "80 81", "5m", None, None]
    names = [string_at(column, "name") for column in objects_at(table, "columnDefinitions")]
    assert names[:3] == ["Name", "Ready", "Replicas"]
    assert table["metadata"] == {"resourceVersion": "7"}


def test_a_kind_without_columns_shows_names_and_ages() -> None:
    assert cells_of(render_table(a_kind(), [ITEM], {}, now=NOW)) == ["a", "5m"]


@pytest.mark.parametrize(
    ("include", "kind"), [("Metadata", "PartialObjectMetadata"), ("Object", ""), ("None", None)]
)
def test_rows_carry_as_much_of_their_object_as_was_asked_for(
    include: str, kind: str | None
) -> None:
    table = render_table(a_kind(), [ITEM], {}, now=NOW, include_object=include)

    (row,) = objects_at(table, "rows")
    assert ("object" in row) is (kind is not None)
    assert string_at(row, "object", "kind") == (kind or "")


@pytest.mark.parametrize(
    ("kind", "item", "expected"),
    [
        (("", "Namespace"), {"status": {"phase": "Active"}}, ["", "Active", None]),
        (("", "ConfigMap"), {"data": {"a": "1", "b": "2"}}, ["", 2, None]),
        (("", "Secret"), {"type": "Opaque", "data": {"a": "1"}}, ["", "Opaque", 1, None]),
        (
            ("rbac.authorization.k8s.io", "RoleBinding"),
            {"roleRef": {"kind": "Role", "name": "r"}},
            ["", "Role/r", None],
        ),
        (
            ("apps", "Deployment"),
            {"spec": {"replicas": 2}, "status": {"readyReplicas": 1, "availableReplicas": 1}},
            ["", "1/2", None, 1, None],
        ),
        (
            ("", "Event"),
            {
                "lastTimestamp": "2026-06-20T08:59:00Z",
                "type": "Normal",
                "reason": "Made",
                "involvedObject": {"kind": "Thing", "name": "a"},
                "message": "m",
            },
            ["", "60s", "Normal", "Made", "thing/a", "m"],
        ),
        (
            ("", "Service"),
            {"spec": {"type": "ClusterIP", "clusterIP": "10.0.0.1", "ports": [{"port": 443}]}},
            ["", "ClusterIP", "10.0.0.1", "443/TCP", None],
        ),
    ],
)
def test_built_in_kinds_have_their_own_columns(
    kind: tuple[str, str], item: JsonObject, expected: list[JsonValue]
) -> None:
    group, name = kind

    assert cells_of(render_table(a_kind(name, group), [item], {}, now=NOW)) == expected


@pytest.mark.parametrize(
    ("duration", "expected"),
    [
        (timedelta(seconds=-5), "<invalid>"),
        (timedelta(seconds=-1), "0s"),
        (timedelta(seconds=119), "119s"),
        (timedelta(minutes=2), "2m"),
        (timedelta(minutes=9, seconds=5), "9m5s"),
        (timedelta(minutes=179, seconds=5), "179m"),
        (timedelta(hours=3, minutes=1), "3h1m"),
        (timedelta(hours=8, minutes=1), "8h"),
        (timedelta(hours=47), "47h"),
        (timedelta(days=2, hours=3), "2d3h"),
        (timedelta(days=8, hours=3), "8d"),
        (timedelta(days=365 * 2), "2y"),
        (timedelta(days=365 * 3 + 2), "3y2d"),
        (timedelta(days=365 * 9), "9y"),
    ],
)
def test_ages_grow_coarser_as_they_grow(duration: timedelta, expected: str) -> None:
    assert render_duration(duration) == expected


def test_an_unparsable_time_is_shown_as_invalid() -> None:
    kind = a_kind(When=("date", ".metadata.name"))

    assert cells_of(render_table(kind, [ITEM], {}, now=NOW))[1] == "<invalid>"
