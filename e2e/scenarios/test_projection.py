"""An Instance that a cell wrote to the hub is shown in its project and deleted with its source."""

from __future__ import annotations

import pytest

from compute_api_types import labels
from e2e.world.scenario import (
    DEPLOYMENT,
    INSTANCE,
    NAMESPACE,
    JsonObject,
    Needs,
    World,
    a_bare_deployment,
    a_hub_instance,
    labels_of,
    object_at,
    objects_at,
    owners_of,
    scenario,
    uid_of,
    value_at,
    within,
    without_generations,
)

WD = "test-projection-wd"
NAME = f"{WD}-0"


def _a_condition(condition_type: str, reason: str) -> JsonObject:
    return {
        "type": condition_type,
        "status": "True",
        "reason": reason,
        "message": "",
        "lastTransitionTime": "2026-03-01T00:00:00Z",
        "observedGeneration": 1,
    }


@pytest.mark.spec("E-04")
@scenario(Needs(runs_cells=False))
async def test_a_hub_instance_is_shown_in_its_project_until_it_goes(world: World) -> None:
    project = world.project
    await project.create(a_bare_deployment(WD))
    hub = await world.hub_of(project)
    root = await world.eventually(lambda: hub.get(DEPLOYMENT, WD))
    namespace = labels_of(await hub.get(NAMESPACE, hub.namespace))
    identity = {key: namespace[key] for key in labels.IDENTITY_LABELS}
    await hub.create(a_hub_instance(root, identity))
    status: JsonObject = {
        "conditions": [
            _a_condition("Programmed", "Programmed"),
            _a_condition("Available", "Available"),
            _a_condition("QuotaGranted", "QuotaAvailable"),
            _a_condition("Ready", "Available"),
        ],
        "networkInterfaces": [{"assignments": {"networkIP": "10.128.0.2"}}],
    }
    await hub.set_status(INSTANCE, NAME, status)

    async def is_shown() -> None:
        shown, source = await project.get(INSTANCE, NAME), await hub.get(INSTANCE, NAME)
        assert labels_of(shown)[labels.UPSTREAM_CLUSTER_NAME] == f"cluster-{project.name}"
        (owner,) = owners_of(shown)
        wanted = await project.get(DEPLOYMENT, WD)
        assert (owner["kind"], owner["name"]) == ("WorkloadDeployment", WD)
        assert owner["uid"] == uid_of(wanted) != uid_of(root)
        assert not value_at(owner, "controller")
        assert shown["spec"] == source["spec"]
        conditions = objects_at(shown, "status", "conditions")
        assert all("observedGeneration" not in one for one in conditions)
        projected, meant = object_at(shown, "status"), object_at(source, "status")
        assert projected == without_generations(meant)

    await world.eventually(is_shown)
    await hub.delete(INSTANCE, NAME)
    await world.eventually(lambda: project.expect_gone(INSTANCE, NAME), within(30))
