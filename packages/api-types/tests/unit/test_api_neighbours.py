import pytest

from compute_api_types.model import Model
from compute_api_types.neighbours.karmada import (
    RESOURCE_BINDING,
    Cluster,
    PropagationPolicy,
    PropagationPolicySpec,
)
from compute_api_types.neighbours.milo import Project
from compute_api_types.neighbours.networking import (
    Location,
    NamedRef,
    NamespacedRef,
    Network,
    NetworkBinding,
    NetworkBindingSpec,
    NetworkContext,
    Subnet,
    SubnetClaim,
    SubnetClaimSpec,
)
from compute_api_types.testing import a_cluster, a_location, a_network, a_project


def test_a_policy_is_exactly_the_one_of_the_specification() -> None:
    selector = {"matchLabels": {"topology.datum.net/city-code": "DFW"}}
    assert PropagationPolicySpec.for_city("DFW").to_document() == {
        "resourceSelectors": [
            {
                "apiVersion": "compute.datumapis.com/v1alpha",
                "kind": "WorkloadDeployment",
                "labelSelector": selector,
            }
        ],
        "placement": {
            "clusterAffinity": {"labelSelector": selector},
            "clusterTolerations": [
                {"key": "cluster.karmada.io/not-ready", "operator": "Exists"},
                {"key": "cluster.karmada.io/unreachable", "operator": "Exists"},
            ],
        },
        "conflictResolution": "Overwrite",
    }


def test_what_the_server_fills_into_a_policy_is_no_difference() -> None:
    wanted = PropagationPolicySpec.for_city("DFW")
    served = wanted.to_document()
    selectors = served["resourceSelectors"]
    assert isinstance(selectors, list)
    assert isinstance(selectors[0], dict)
    selectors[0]["namespace"] = "ns-1"
    served |= {"priority": 0, "preemption": "Never", "schedulerName": "default-scheduler"}
    policy = PropagationPolicy.read({"metadata": {"name": "city-dfw"}, "spec": served})
    assert policy.spec == wanted


def test_a_cluster_and_a_location_say_which_city_they_serve() -> None:
    assert a_cluster().city_code == "DFW"
    assert a_cluster(city_code=None).city_code is None
    assert a_location().city_code == "DFW"
    assert Location.read({"metadata": {"name": "a"}}).city_code is None
    assert Location.read({"metadata": {"name": "a"}, "spec": {"topology": {}}}).city_code is None


@pytest.mark.parametrize(
    ("status", "ready"),
    [
        (None, False),
        ({}, False),
        ({"conditions": []}, False),
        ({"conditions": [{"type": "Ready", "status": "Unknown", "reason": "Unknown"}]}, False),
        ({"conditions": [{"type": "Ready", "status": "True"}]}, True),
    ],
)
def test_a_project_is_ready_by_its_condition(status: object, ready: bool) -> None:
    assert Project.read({"metadata": {"name": "p"}, "status": status}).is_ready is ready


def test_projects_of_tests_are_ready_unless_asked() -> None:
    assert a_project().is_ready
    assert not a_project(ready=False).is_ready


@pytest.mark.parametrize("location", [{"name": "a"}, {"name": "a", "namespace": ""}])
def test_references_of_both_generations_are_read(location: object) -> None:
    binding = NetworkBinding.read(
        {
            "metadata": {"name": "wd-net-0"},
            "spec": {"network": {"name": "default"}, "location": location},
            "status": {
                "networkContextRef": {"namespace": "ns-1", "name": "default-a"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
    )
    assert binding.spec is not None
    assert binding.spec.location.name == "a"
    assert binding.status is not None
    assert binding.status.network_context_ref == NamespacedRef(name="default-a", namespace="ns-1")


def test_what_we_write_of_networking_has_exactly_these_fields() -> None:
    binding = NetworkBindingSpec(network=NamespacedRef(name="default"), location=NamedRef(name="a"))
    assert binding.to_document() == {
        "network": {"name": "default"},
        "location": {"name": "a"},
    }
    claim = SubnetClaimSpec(
        subnet_class="private",
        network_context=NamedRef(name="default-a"),
        location=NamedRef(name="a"),
        ip_family="IPv4",
    )
    assert claim.to_document() == {
        "subnetClass": "private",
        "networkContext": {"name": "default-a"},
        "location": {"name": "a"},
        "ipFamily": "IPv4",
    }


@pytest.mark.parametrize("kind", [Network, NetworkContext, Subnet, SubnetClaim, Cluster])
def test_kinds_that_only_have_to_be_there_need_nothing_but_a_name(kind: type[Model]) -> None:
    assert kind.read({"metadata": {"name": "a"}}).to_document()["metadata"] == {"name": "a"}


def test_kinds_are_addressed_as_their_owners_serve_them() -> None:
    assert [
        (each.api_version, each.plural, each.namespaced)
        for each in (
            PropagationPolicy.RESOURCE,
            Cluster.RESOURCE,
            RESOURCE_BINDING,
            Project.RESOURCE,
            Location.RESOURCE,
            Network.RESOURCE,
            NetworkBinding.RESOURCE,
            NetworkContext.RESOURCE,
            SubnetClaim.RESOURCE,
            Subnet.RESOURCE,
        )
    ] == [
        ("policy.karmada.io/v1alpha1", "propagationpolicies", True),
        ("cluster.karmada.io/v1alpha1", "clusters", False),
        ("work.karmada.io/v1alpha2", "resourcebindings", True),
        ("resourcemanager.miloapis.com/v1alpha1", "projects", False),
        ("networking.datumapis.com/v1alpha", "locations", False),
        ("networking.datumapis.com/v1alpha", "networks", True),
        ("networking.datumapis.com/v1alpha", "networkbindings", True),
        ("networking.datumapis.com/v1alpha", "networkcontexts", True),
        ("networking.datumapis.com/v1alpha", "subnetclaims", True),
        ("networking.datumapis.com/v1alpha", "subnets", True),
    ]
    assert a_network().metadata.namespace == "default"
