from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from compute_sim_planes.json_types import JsonObject
from e2e.harness.node.node import is_ready_since

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def a_node(status: str, heard: datetime) -> JsonObject:
    heartbeat = heard.isoformat().replace("+00:00", "Z")
    condition: JsonObject = {"type": "Ready", "status": status, "lastHeartbeatTime": heartbeat}
    return {"status": {"conditions": [condition]}}


def test_a_node_with_a_current_heartbeat_is_ready() -> None:
    assert is_ready_since(a_node("True", NOW), NOW)


@pytest.mark.parametrize(
    "node",
    [None, {}, a_node("False", NOW), a_node("True", NOW - timedelta(seconds=1))],
    ids=["absent", "silent", "not ready", "of a former life"],
)
def test_a_node_without_a_current_heartbeat_is_not_ready(node: JsonObject | None) -> None:
    assert not is_ready_since(node, NOW)
