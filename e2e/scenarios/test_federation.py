"""A deployment of a project reaches the hub, with the policy that routes it to its city."""

from __future__ import annotations

import pytest

from compute_api_types import labels
from e2e.world.scenario import (
    DEPLOYMENT,
    NAMESPACE,
    POLICY,
    Needs,
    World,
    a_bare_deployment,
    annotations_of,
    finalizers_of,
    labels_of,
    object_at,
    objects_at,
    scenario,
    text_at,
    value_at,
)

WD = "test-federation-wd"
CITY = {labels.TOPOLOGY_CITY_CODE: "DFW"}


@pytest.mark.spec("E-01")
@scenario(Needs(runs_cells=False))
async def test_a_deployment_reaches_the_hub_with_its_policy(world: World) -> None:
    project = world.project
    await project.create(a_bare_deployment(WD))
    hub = await world.hub_of(project)

    async def is_marked() -> None:
        root = await project.get(DEPLOYMENT, WD)
        assert labels.FEDERATION_FINALIZER in finalizers_of(root)
        assert annotations_of(root)[labels.FEDERATION_NAMESPACE] == hub.namespace

    async def is_on_the_hub() -> None:
        copy = await hub.get(DEPLOYMENT, WD)
        assert labels_of(copy)[labels.TOPOLOGY_CITY_CODE] == "DFW"
        assert annotations_of(copy)[labels.PROJECT_GENERATION] == "1"
        assert copy["spec"] == (await project.get(DEPLOYMENT, WD))["spec"]

    async def has_its_namespace() -> None:
        namespace_labels = labels_of(await hub.get(NAMESPACE, hub.namespace))
        assert namespace_labels[labels.UPSTREAM_CLUSTER_NAME] == f"cluster-{project.name}"
        assert namespace_labels[labels.UPSTREAM_NAMESPACE] == project.namespace

    async def has_its_policy() -> None:
        policy = await hub.get(POLICY, "city-dfw")
        (selector,) = objects_at(policy, "spec", "resourceSelectors")
        assert text_at(selector, "apiVersion") == "compute.datumapis.com/v1alpha"
        assert text_at(selector, "kind") == "WorkloadDeployment"
        assert object_at(selector, "labelSelector", "matchLabels") == CITY
        affinity = object_at(policy, "spec", "placement", "clusterAffinity")
        assert object_at(affinity, "labelSelector", "matchLabels") == CITY
        assert value_at(policy, "spec", "conflictResolution") == "Overwrite"

    for check in (is_marked, has_its_namespace, is_on_the_hub, has_its_policy):
        await world.eventually(check)
