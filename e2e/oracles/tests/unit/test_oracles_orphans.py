from __future__ import annotations

import pytest

from compute_api_types import labels
from compute_api_types.wire import JsonObject
from e2e.oracles.layout import Layout
from e2e.oracles.orphans import no_orphans
from e2e.oracles.testing import HistoryBuilder, an_object

UID = "3bea65ed-100f-4d8d-b0ef-c7cbf3074b4b"
NS = f"ns-{UID}"
LAYOUT = Layout(frozenset({"dfw-1"}))
CITY: JsonObject = {labels.TOPOLOGY_CITY_CODE: "DFW"}


def _owned_by(name: str, uid: str) -> JsonObject:
    return {"ownerReferences": [{"kind": "WorkloadDeployment", "name": name, "uid": uid}]}


def _write_all(script: HistoryBuilder) -> dict[str, tuple[str, JsonObject]]:
    """A history without orphans; its parts by name, for a test to remove."""
    spec: JsonObject = {"scaleSettings": {"minReplicas": 1}}
    selector: JsonObject = {"labelSelector": {"matchLabels": CITY}}
    wd = "WorkloadDeployment"
    claimed: JsonObject = {"labels": {labels.SOURCE_CLUSTER: "dfw-1"}}
    parts = {
        "namespace": ("acme", an_object("Namespace", "shop", UID)),
        "root": ("acme", an_object(wd, "shop/web", "uid-root", spec=spec)),
        "hub root": ("hub", an_object(wd, f"{NS}/web", "uid-hub", metadata={"labels": CITY})),
        "policy": (
            "hub",
            an_object("PropagationPolicy", f"{NS}/city", spec={"resourceSelectors": [selector]}),
        ),
        "copy": ("hub", an_object("Instance", f"{NS}/web-0", metadata=_owned_by("web", "uid-hub"))),
        "cell root": ("dfw-1", an_object(wd, f"{NS}/web", "uid-cell")),
        "instance": (
            "dfw-1",
            an_object("Instance", f"{NS}/web-0", metadata=_owned_by("web", "uid-cell")),
        ),
        "projection": (
            "acme",
            an_object("Instance", "shop/web-0", metadata=_owned_by("web", "uid-root")),
        ),
        "claim": ("acme", an_object("ResourceClaim", "shop/instance-web-0", metadata=claimed)),
    }
    for plane, document in parts.values():
        script.write("management", plane, document)
    return parts


def test_a_world_in_order_has_no_orphans(script: HistoryBuilder) -> None:
    _write_all(script)
    assert no_orphans(script.history, LAYOUT) == []


@pytest.mark.parametrize(
    ("gone", "orphan"),
    [
        ("namespace", f"hub WorkloadDeployment {NS}/web stands for a project namespace"),
        ("root", f"hub WorkloadDeployment {NS}/web has no root"),
        ("root", "acme ResourceClaim shop/instance-web-0 is of a deployment"),
        ("root", "acme Instance shop/web-0 has no deployment"),
        ("hub root", f"dfw-1 WorkloadDeployment {NS}/web has no deployment on the hub"),
        ("hub root", f"hub PropagationPolicy {NS}/city routes city 'DFW'"),
        ("hub root", f"hub Instance {NS}/web-0 has no controller"),
        ("cell root", f"dfw-1 Instance {NS}/web-0 has no controller"),
        ("copy", "acme Instance shop/web-0 shows an Instance that the hub does not have"),
    ],
)
def test_what_loses_its_root_is_an_orphan(script: HistoryBuilder, gone: str, orphan: str) -> None:
    parts = _write_all(script)
    script.remove("management", *parts[gone])
    messages = [one.message for one in no_orphans(script.history, LAYOUT)]
    assert any(message.startswith(orphan) for message in messages), messages


def test_a_copy_of_a_root_that_was_made_again_is_an_orphan(script: HistoryBuilder) -> None:
    _write_all(script)
    again = an_object("WorkloadDeployment", f"{NS}/web", "another", metadata={"labels": CITY})
    script.write("management", "hub", again)
    messages = [one.message for one in no_orphans(script.history, LAYOUT)]
    assert messages == [f"hub Instance {NS}/web-0 has no controller that lives"]


def test_a_claim_of_an_unwanted_slot_is_an_orphan(script: HistoryBuilder) -> None:
    _write_all(script)
    claimed: JsonObject = {"labels": {labels.SOURCE_CLUSTER: "dfw-1"}}
    spare = an_object("ResourceClaim", "shop/instance-web-1", metadata=claimed)
    script.write("dfw-1", "acme", spare)
    messages = [one.message for one in no_orphans(script.history, LAYOUT)]
    assert messages == [
        "acme ResourceClaim shop/instance-web-1 is of a slot that no deployment wants"
    ]


def test_manual_objects_and_lost_cells_are_exempt(script: HistoryBuilder) -> None:
    script.write("admin", "dfw-1", an_object("Instance", f"{NS}/hand-0"))
    assert len(no_orphans(script.history, LAYOUT)) == 1
    by_hand = Layout(LAYOUT.cells, frozenset({f"dfw-1 Instance {NS}/hand-0"}))
    assert no_orphans(script.history, by_hand) == []
    lost = Layout(LAYOUT.cells, lost=frozenset({"dfw-1"}))
    assert no_orphans(script.history, lost) == []
