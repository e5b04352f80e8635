from collections.abc import Mapping

import pytest

from compute_api_types import labels

# Wire strings of docs/spec/api.md 10, management.md 1.1 and cell.md 1, letter by letter.
WIRE_STRINGS = {
    "WORKLOAD_UID": "compute.datumapis.com/workload-uid",
    "WORKLOAD_NAME": "compute.datumapis.com/workload-name",
    "PLACEMENT_NAME": "compute.datumapis.com/placement-name",
    "CITY_CODE": "compute.datumapis.com/city-code",
    "WORKLOAD_DEPLOYMENT_NAME": "compute.datumapis.com/workload-deployment-name",
    "WORKLOAD_DEPLOYMENT_UID": "compute.datumapis.com/workload-deployment-uid",
    "INSTANCE_INDEX": "compute.datumapis.com/instance-index",
    "CELL": "compute.datumapis.com/cell",
    "TOPOLOGY_CITY_CODE": "topology.datum.net/city-code",
    "UPSTREAM_CLUSTER_NAME": "meta.datumapis.com/upstream-cluster-name",
    "UPSTREAM_NAMESPACE": "meta.datumapis.com/upstream-namespace",
    "SOURCE_CLUSTER": "compute.datumapis.com/source-cluster",
    "INSTANCE_NAMESPACE": "compute.datumapis.com/instance-namespace",
    "SSH_KEYS": "compute.datumapis.com/ssh-keys",
    "RESTARTED_AT": "compute.datumapis.com/restartedAt",
    "FEDERATION_NAMESPACE": "compute.datumapis.com/federation-namespace",
    "PROJECT_GENERATION": "compute.datumapis.com/project-generation",
    "ADOPTED_TEMPLATE_HASH": "compute.datumapis.com/adopted-template-hash",
    "INSTANCE_UID": "compute.datumapis.com/instance-uid",
    "IDENTITY_REPAIRED": "compute.datumapis.com/identity-repaired",
    "QUARANTINE_REASON": "compute.datumapis.com/quarantine-reason",
    "QUARANTINE_MESSAGE": "compute.datumapis.com/quarantine-message",
    "QUARANTINED_AT": "compute.datumapis.com/quarantined-at",
    "QUARANTINE_FINGERPRINT": "compute.datumapis.com/quarantine-fingerprint",
    "PARENT_CONTEXTS": "discovery.miloapis.com/parent-contexts",
    "KARMADA_DEPENDENCIES": "resourcebinding.karmada.io/dependencies",
    "KARMADA_TEMPLATE_UID": "resourcetemplate.karmada.io/uid",
    "KARMADA_TEMPLATE_GENERATION": "resourcetemplate.karmada.io/generation",
    "EXPECTED_REFERENCED_DATA": "compute.datumapis.com/expected-referenced-data",
    "EXPECTED_REFERENCED_VERSIONS": "compute.datumapis.com/expected-referenced-versions",
    "REFERENCED_DATA_ERROR": "compute.datumapis.com/referenced-data-error",
    "REFERENCED_DATA": "compute.datumapis.com/referenced-data",
    "IS_REFERENCED_DATA": "true",
    "SOURCE_VERSION": "compute.datumapis.com/source-version",
    "SOURCE_BYTES": "compute.datumapis.com/source-bytes",
    "REFERENCED_BY": "compute.datumapis.com/referenced-by",
    "REFERENCED_DATA_GATE": "ReferencedData",
    "SUSPENDED": "compute.datumapis.com/suspended",
    "IS_SUSPENDED": "true",
    "UNREACHABLE": "compute.datumapis.com/unreachable",
    "WORKLOAD_FINALIZER": "compute.datumapis.com/workload-controller",
    "FEDERATION_FINALIZER": "compute.datumapis.com/federator",
    "REFERENCED_DATA_FINALIZER": "compute.datumapis.com/referenced-data-controller",
    "PROVIDER_FINALIZER": "unikraft.datumapis.com/finalizer",
    "POD_PROVIDER_FINALIZER": "pods.compute.datumapis.com/finalizer",
    "LOOK_AGAIN": "pods.compute.datumapis.com/look-again",
    "POD_PROVIDER_MANAGER": "compute-pod-provider",
    "NETWORK_GATE": "Network",
    "QUOTA_GATE": "Quota",
    "WORKLOAD_MANAGER": "compute-workload",
    "FEDERATION_MANAGER": "compute-federation",
    "POLICY_MANAGER": "compute-policy",
    "PROJECTION_MANAGER": "compute-projection",
    "REFERENCED_DATA_MANAGER": "compute-referenced-data",
    "CLAIMS_MANAGER": "compute-claims",
    "DEPLOYMENT_MANAGER": "compute-deployment",
    "INSTANCE_MANAGER": "compute-instance",
    "SERVICE_NAME": "services.miloapis.com/service-name",
    "OUR_SERVICE": "compute.datumapis.com",
    "AUTOSCALING_MANAGER": "compute-autoscaling",
    "HEARTBEAT_MANAGER": "compute-heartbeat",
    "WRITE_BACK_MANAGER": "compute-write-back",
    "QUOTA_MANAGER": "compute-quota",
    "INSTANCES_RESOURCE": "compute.datumapis.com/instances",
    "VCPUS_RESOURCE": "compute.datumapis.com/vcpus",
    "MEMORY_RESOURCE": "compute.datumapis.com/memory",
    "PARENT_NAME_EXTRA": "iam.miloapis.com/parent-name",
    "PARENT_TYPE_EXTRA": "iam.miloapis.com/parent-type",
    "COMPUTE_PREFIX": "compute.datumapis.com/",
    "META_PREFIX": "meta.datumapis.com/",
}


def constants(members: Mapping[str, object]) -> dict[str, str]:
    return {
        name: word for name, word in members.items() if name.isupper() and isinstance(word, str)
    }


def test_every_word_is_spelled_as_the_specification_has_it() -> None:
    assert constants(vars(labels)) == WIRE_STRINGS


def test_groups_hold_what_the_specification_groups() -> None:
    assert set(labels.LINKING_LABELS) == {
        f"compute.datumapis.com/{name}"
        for name in (
            "workload-uid",
            "workload-name",
            "workload-deployment-uid",
            "workload-deployment-name",
            "placement-name",
            "city-code",
            "instance-index",
        )
    }
    assert labels.RESERVED_PREFIXES == ("compute.datumapis.com/", "meta.datumapis.com/")
    assert labels.USER_ANNOTATIONS == (labels.SSH_KEYS, labels.RESTARTED_AT)
    assert len(labels.QUARANTINE_ANNOTATIONS) == 4
    assert labels.RETIRED_INSTANCE_FINALIZERS == (
        "compute.datumapis.com/instance-controller",
        "quota.compute.datumapis.com/claim-cleanup",
    )
    assert labels.RETIRED_DEPLOYMENT_FINALIZERS == (
        "compute.datumapis.com/workload-controller",
        "compute.datumapis.com/referenced-data-controller",
    )


@pytest.mark.parametrize(
    ("key", "reserved"),
    [
        ("compute.datumapis.com/cell", True),
        ("meta.datumapis.com/anything", True),
        ("compute.datumapis.com", False),
        ("quota.compute.datumapis.com/x", False),
        ("topology.datum.net/city-code", False),
        ("app", False),
    ],
)
def test_a_key_is_reserved_by_its_prefix_alone(key: str, reserved: bool) -> None:
    assert labels.is_reserved(key) is reserved
