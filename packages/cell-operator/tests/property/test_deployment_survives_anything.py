"""Objects that bypassed admission: whatever they hold, a reconcile ends with a status.

Generated bodies go through the real caches, indexes and steps; nothing may raise, and what comes
out must be what an API server can store.
"""

from __future__ import annotations

from datetime import UTC, datetime

import hypothesis.strategies as st
import pytest
from cell_builders.candidates import UID
from hypothesis import given

from compute_cell_operator.deployment import watches
from compute_cell_operator.deployment.observe import DeploymentContext, observe
from compute_cell_operator.deployment.plan import decide
from compute_cell_operator.deployment.status import report
from compute_cell_operator.network.state import NetworkingState
from compute_cell_operator.network.watches import CACHED_KINDS
from compute_cell_operator.planes import CELL, DEPLOYMENT, INSTANCE, NAMESPACE
from compute_operator_kit.core.json import JsonObject, JsonValue, decode_json_object, encode
from compute_operator_kit.core.keys import Kind, ObjectKey, Role
from compute_operator_kit.core.objects import Snapshot, parse_object
from compute_operator_kit.intents.intents import SetStatus
from compute_operator_kit.intents.outcomes import Applied
from compute_operator_kit.testing.fakes import FakeCaches, a_snapshot, a_store

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
    """An object with any spec and status."""
    valid = a_snapshot(key, metadata).decode()
    body = decode_json_object(encode({**valid, "spec": spec, "status": status}))
    return parse_object(key.plane, key.kind, body, None).snapshot


@pytest.mark.spec("C-88")
@given(
    spec=anything,
    status=anything,
    instances=st.lists(st.tuples(anything, anything), max_size=3),
    networking=st.sampled_from(NetworkingState),
)
def test_whatever_is_stored_a_reconcile_ends_with_a_status(
    spec: JsonValue,
    status: JsonValue,
    instances: list[tuple[JsonValue, JsonValue]],
    networking: NetworkingState,
) -> None:
    deployment = stored(key_of(DEPLOYMENT, "web"), {"uid": str(UID)}, spec, status)
    present = [
        stored(key_of(INSTANCE, f"web-{n}"), OWNED, one, other)
        for n, (one, other) in enumerate(instances)
    ]
    stores = [
        a_store(CELL, DEPLOYMENT, [deployment], indexes=watches.DEPLOYMENT_INDEXES),
        a_store(CELL, INSTANCE, present, indexes=watches.INSTANCE_INDEXES),
        a_store(CELL, NAMESPACE),
        *(a_store(CELL, item.kind, indexes=item.indexes) for item in CACHED_KINDS),
    ]
    caches = FakeCaches(stores, {CELL: Role.HOME})
    seen = observe(deployment.key, caches, DeploymentContext(networking, "DFW"))
    assert seen is not None
    reported = report(seen, decide(seen), Applied(), NOW)
    (written,) = [intent for intent in reported if isinstance(intent, SetStatus)]
    assert encode(written.status)
    assert written.status["observedGeneration"] == 1
