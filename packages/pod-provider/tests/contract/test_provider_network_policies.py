"""NetworkPolicies of Instances on a simulated API server, with the right of their component."""

from __future__ import annotations

from dataclasses import replace

import pytest
import pytest_asyncio
import yaml
from provider_builders.cluster import INSTANCES, PODS, QUICK, Cluster
from provider_builders.documents import NAMESPACE
from provider_builders.instances import NAME, a_new_instance, gone, metadata_of

from compute_api_types.wire import JsonObject
from compute_pod_provider.instance_facts import object_at, objects_at
from e2e.harness.deploy.manifests import DEPLOY

POLICIES = f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/networkpolicies"
ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/compute-pod-provider"
RIGHT = DEPLOY / "components" / "instance-network-policies" / "right.yaml"
ON = replace(QUICK, has_network_policies=True)


@pytest_asyncio.fixture
async def allowed(cluster: Cluster) -> Cluster:
    """The cluster with the component applied."""
    patch = yaml.safe_load(RIGHT.read_text("utf-8"))
    (await cluster.api.json_patch(ROLE, patch)).expect(200)
    return cluster


@pytest.mark.spec("PP-05", "PP-07")
async def test_the_policy_is_made_before_the_pod_and_goes_after_it(allowed: Cluster) -> None:
    async with allowed.provider(ON):
        made = await allowed.create(a_new_instance())
        await allowed.until_reason("Available")
        policy = (await allowed.api.get(f"{POLICIES}/{NAME}")).expect(200)
        selected = object_at(object_at(policy, "spec"), "podSelector")
        assert selected["matchLabels"] == {
            "compute.datumapis.com/instance-uid": metadata_of(made)["uid"]
        }
        # Made again, the Pod finds the policy as it has to be.
        await allowed.api.delete(f"{PODS}/{NAME}")
        await allowed.until_started(2)
        await allowed.until_reason("Available")
        await allowed.api.delete(f"{INSTANCES}/{NAME}")
        await gone(allowed)
        assert (await allowed.api.get(f"{POLICIES}/{NAME}")).status == 404
    writes = [one for one in allowed.audit.writes if "instances" not in one]
    assert writes[:2] == ["POST networkpolicies", "POST pods"]
    assert writes[-2:] == [f"DELETE pods/{NAME}", f"DELETE networkpolicies/{NAME}"]
    assert writes.count("POST networkpolicies") == 1


@pytest.mark.spec("PP-13")
async def test_a_foreign_policy_of_the_name_is_told_and_nothing_runs_without_its_own(
    allowed: Cluster,
) -> None:
    foreign: JsonObject = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": NAME},
        "spec": {"podSelector": {}},
    }
    (await allowed.api.post(POLICIES, foreign)).expect(201)
    async with allowed.provider(ON):
        await allowed.create(a_new_instance())
        await allowed.until_reason("Provisioning")
        message = (await allowed.condition("Available"))[2]
        assert message == (
            f'A NetworkPolicy named "{NAME}" belongs to somebody else; waiting for it to go'
        )
        assert await allowed.pod() is None
        assert (await allowed.api.get(f"{POLICIES}/{NAME}")).status == 200


async def test_a_policy_of_an_older_spec_is_made_again_with_the_next_pod(allowed: Cluster) -> None:
    async with allowed.provider(ON):
        await allowed.create(a_new_instance())
        await allowed.until_reason("Available")
        interface: JsonObject = {
            "network": {"name": "default"},
            "networkPolicy": {"ingress": [{"ports": [{"port": 8080}]}]},
        }
        await allowed.api.merge(f"{INSTANCES}/{NAME}", {"spec": {"networkInterfaces": [interface]}})
        await allowed.api.delete(f"{PODS}/{NAME}")
        await allowed.until_started(2)
        policy = (await allowed.api.get(f"{POLICIES}/{NAME}")).expect(200)
        rules = objects_at(object_at(policy, "spec"), "ingress")
        assert {"ports": [{"protocol": "TCP", "port": 8080}]} in rules
