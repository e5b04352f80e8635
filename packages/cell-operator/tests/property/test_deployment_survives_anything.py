"""Objects that bypassed admission: whatever they hold, a pass reads, decides and reports.

Generated bodies go through the real caches, indexes and steps; nothing may raise, and what comes
out must be what an API server can store.
"""

from __future__ import annotations

from datetime import UTC, datetime

import hypothesis.strategies as st
import pytest
from cell_builders.candidates import UID
from hypothesis import given

from compute_cell_operator.deployment import mapping
from compute_cell_operator.deployment.observe import Surroundings, observe
from compute_cell_operator.deployment.plan.decision import decide
from compute_cell_operator.deployment.status import report
from compute_cell_operator.kinds import DEPLOYMENT, INSTANCE, NAMESPACE
from compute_cell_operator.network.caches import WATCHED
from compute_cell_operator.network.state import State
from compute_cell_operator.plane_names import CELL
from compute_operator_kit.intents import SetStatus
from compute_operator_kit.keys import Kind, ObjectKey, Role
from compute_operator_kit.objects import Snapshot, parse_object
from compute_operator_kit.outcomes import Applied
from compute_operator_kit.testing import FakeCaches, a_snapshot, a_store
from compute_operator_kit.wire import JsonObject, JsonValue, decode_object, encode

NOW = datetime(2026, 6, 20, tzinfo=UTC)
NAMES = ("spec", "status", "template", "controller", "conditions", "scaleSettings", "minReplicas")
MORE = ("networkInterfaces", "network", "name", "location", "cityCode", "schedulingGates", "type")

scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "DFW", "Ready"])
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES + MORE), inner, max_size=5)
    ),
    max_leaves=12,
)
OWNED: JsonObject = {
    "ownerReferences": [
        {"apiVersion": "v1", "kind": "X", "name": "web", "uid": str(UID), "controller": True}
    ]
}


def key_of(kind: Kind, name: str) -> ObjectKey:
    return ObjectKey(CELL, kind, "ns-1", name)


def stored(key: ObjectKey, metadata: JsonObject, spec: JsonValue, status: JsonValue) -> Snapshot:
    """An object whose spec and status may be anything."""
    valid = a_snapshot(key, metadata).decode()
    body = decode_object(encode({**valid, "spec": spec, "status": status}))
    return parse_object(key.plane, key.kind, body, None).snapshot


@pytest.mark.spec("C-88")
@given(
    spec=anything,
    status=anything,
    instances=st.lists(st.tuples(anything, anything), max_size=3),
    networking=st.sampled_from(State),
)
def test_whatever_is_stored_a_pass_ends_with_a_status(
    spec: JsonValue,
    status: JsonValue,
    instances: list[tuple[JsonValue, JsonValue]],
    networking: State,
) -> None:
    deployment = stored(key_of(DEPLOYMENT, "web"), {"uid": str(UID)}, spec, status)
    present = [
        stored(key_of(INSTANCE, f"web-{n}"), OWNED, one, other)
        for n, (one, other) in enumerate(instances)
    ]
    stores = [
        a_store(CELL, DEPLOYMENT, [deployment], indexes=mapping.DEPLOYMENT_INDEXES),
        a_store(CELL, INSTANCE, present, indexes=mapping.INSTANCE_INDEXES),
        a_store(CELL, NAMESPACE),
        *(a_store(CELL, item.kind, indexes=item.indexes) for item in WATCHED),
    ]
    caches = FakeCaches(stores, {CELL: Role.HOME})
    seen = observe(deployment.key, caches, Surroundings(networking, "DFW"))
    assert seen is not None
    told = report(seen, decide(seen), Applied(), NOW)
    (written,) = [intent for intent in told if isinstance(intent, SetStatus)]
    assert encode(written.status)
    assert written.status["observedGeneration"] == 1
