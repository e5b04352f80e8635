from __future__ import annotations

import json
from copy import deepcopy
from typing import Final

import pytest
from provider_builders.documents import (
    NAMESPACE,
    OPTIONS,
    TYPE,
    a_container,
    a_spec,
    an_instance,
    observed,
)

from compute_api_types import labels
from compute_api_types.wire import JsonObject, JsonValue
from compute_pod_provider.options import PodOptions
from compute_pod_provider.render import render
from compute_pod_provider.render.refusal import Refusal

BASELINE: Final = PodOptions(
    is_restricted=False,
    has_ephemeral_disks=True,
    node_selector={"pool": "edge"},
    tolerations=({"key": "edge", "operator": "Exists"},),
    priority_class="instances",
    runtime_class="kata",
)


def a_pod_of(
    spec: JsonObject, options: PodOptions = OPTIONS, name: str = "web-dfw-0"
) -> JsonObject:
    rendered = render(observed(an_instance(name, spec=spec)), options)
    assert not isinstance(rendered, Refusal), rendered
    return rendered


def a_refusal_of(spec: JsonObject, options: PodOptions = OPTIONS) -> str:
    rendered = render(observed(an_instance(spec=spec)), options)
    assert isinstance(rendered, Refusal)
    return rendered.message


def pod_spec(pod: JsonObject) -> JsonObject:
    spec = pod["spec"]
    assert isinstance(spec, dict)
    return spec


def containers_of(pod: JsonObject) -> list[JsonObject]:
    listed = pod_spec(pod)["containers"]
    assert isinstance(listed, list)
    return [one for one in listed if isinstance(one, dict)]


GOLDEN: Final[JsonObject] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web-dfw-0",
        "namespace": NAMESPACE,
        "labels": {
            "app.kubernetes.io/managed-by": "compute-pod-provider",
            **{key: f"{place}" for place, key in enumerate(labels.LINKING_LABELS)},
        },
        "annotations": {
            "compute.datumapis.com/instance-uid": "uid-of-web-dfw-0",
            "compute.datumapis.com/template-hash": "hash-1",
        },
        "ownerReferences": [
            {
                "apiVersion": "compute.datumapis.com/v1alpha",
                "kind": "Instance",
                "name": "web-dfw-0",
                "uid": "uid-of-web-dfw-0",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    },
    "spec": {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "hostname": "web-dfw-0",
        "containers": [
            {
                "name": "main",
                "image": "registry.example.com/main:ok",
                "resources": {
                    "limits": {"cpu": "1000m", "memory": "2048Mi"},
                    "requests": {"cpu": "1000m", "memory": "2048Mi"},
                },
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "privileged": False,
                    "capabilities": {"drop": ["ALL"]},
                },
            }
        ],
    },
}


@pytest.mark.spec("PP-01")
def test_the_plain_instance_becomes_the_golden_pod_with_equal_bytes_each_time() -> None:
    first, second = a_pod_of(a_spec()), a_pod_of(a_spec())
    assert first == GOLDEN
    assert json.dumps(first) == json.dumps(second)


@pytest.mark.spec("PP-01")
def test_every_optional_part_of_an_instance_has_its_place_in_the_pod() -> None:
    env: list[JsonValue] = [
        {"name": "A", "value": "1"},
        {"name": "EMPTY"},
        {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    ]
    env_from: list[JsonValue] = [
        {"prefix": "APP_", "configMapRef": {"name": "c"}},
        {"secretRef": {"name": "s", "optional": True}},
    ]
    container = a_container(
        command=["serve"],
        args=["--port", "80"],
        env=env,
        envFrom=env_from,
        ports=[{"name": "http", "port": 80}, {"name": "dns", "port": 53, "protocol": "udp"}],
        volumeAttachments=[
            {"name": "conf", "mountPath": "/conf"},
            {"name": "keys", "mountPath": "/keys"},
            {"name": "data", "mountPath": "/data"},
            {"name": "raw"},
        ],
    )
    disk: JsonObject = {
        "template": {
            "spec": {
                "resources": {"requests": {"storage": "1Gi"}},
                "populator": {"filesystem": {"type": "ext4"}},
            }
        }
    }
    spec = a_spec(
        container,
        volumes=[
            {"name": "conf", "configMap": {"name": "c", "items": [{"key": "a", "path": "b"}]}},
            {"name": "keys", "secret": {"secretName": "s"}},
            {"name": "data", "disk": disk},
        ],
    )
    runtime = spec["runtime"]
    assert isinstance(runtime, dict)
    sandbox = runtime["sandbox"]
    assert isinstance(sandbox, dict)
    sandbox["imagePullSecrets"] = [{"name": "pull"}]
    pod = a_pod_of(spec, BASELINE)
    rendered = pod_spec(pod)
    assert rendered["hostUsers"] is False
    assert rendered["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    assert rendered["imagePullSecrets"] == [{"name": "pull"}]
    assert rendered["nodeSelector"] == {"pool": "edge"}
    assert rendered["tolerations"] == [{"key": "edge", "operator": "Exists"}]
    assert rendered["priorityClassName"] == "instances"
    assert rendered["runtimeClassName"] == "kata"
    assert rendered["volumes"] == [
        {"name": "conf", "configMap": {"name": "c", "items": [{"key": "a", "path": "b"}]}},
        {"name": "keys", "secret": {"secretName": "s"}},
        {"name": "data", "emptyDir": {"sizeLimit": "1Gi"}},
    ]
    main = containers_of(pod)[0]
    assert main["command"] == ["serve"]
    assert main["args"] == ["--port", "80"]
    assert main["env"] == env
    assert main["envFrom"] == env_from
    assert main["ports"] == [
        {"name": "http", "containerPort": 80, "protocol": "TCP"},
        {"name": "dns", "containerPort": 53, "protocol": "UDP"},
    ]
    assert main["volumeMounts"] == [
        {"name": "conf", "mountPath": "/conf", "readOnly": True},
        {"name": "keys", "mountPath": "/keys", "readOnly": True},
        {"name": "data", "mountPath": "/data"},
    ]


@pytest.mark.spec("PP-01")
def test_a_long_name_has_no_hostname_and_a_missing_controller_no_hash() -> None:
    spec = a_spec()
    del spec["controller"]
    pod = a_pod_of(spec, name="a" * 64)
    assert "hostname" not in pod_spec(pod)
    metadata = pod["metadata"]
    assert isinstance(metadata, dict)
    assert metadata["annotations"] == {"compute.datumapis.com/instance-uid": f"uid-of-{'a' * 64}"}


def test_an_ephemeral_disk_without_a_size_has_no_limit() -> None:
    disk: JsonObject = {"template": {"spec": {"populator": {"filesystem": {"type": "ext4"}}}}}
    pod = a_pod_of(a_spec(volumes=[{"name": "data", "disk": disk}]), BASELINE)
    assert pod_spec(pod)["volumes"] == [{"name": "data", "emptyDir": {}}]


@pytest.mark.spec("PP-15")
def test_equal_ports_of_one_container_are_kept_as_they_are() -> None:
    ports: list[JsonValue] = [
        {"name": "a", "port": 80, "protocol": "tCp"},
        {"name": "b", "port": 80, "protocol": "SCTP"},
        {"name": "c", "port": 80},
    ]
    rendered = containers_of(a_pod_of(a_spec(a_container(ports=ports))))[0]["ports"]
    assert rendered == [
        {"name": "a", "containerPort": 80, "protocol": "TCP"},
        {"name": "b", "containerPort": 80, "protocol": "SCTP"},
        {"name": "c", "containerPort": 80, "protocol": "TCP"},
    ]


# --- refusals -------------------------------------------------------------------------------------


def with_field(path: str) -> JsonObject:
    return a_spec(a_container(env=[{"name": "X", "valueFrom": {"fieldRef": {"fieldPath": path}}}]))


def a_machine() -> JsonObject:
    spec = a_spec()
    spec["runtime"] = {
        "resources": {"instanceType": TYPE},
        "virtualMachine": {"volumeAttachments": [{"name": "boot"}]},
    }
    return spec


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (a_machine(), "This cell runs containers only; a virtual machine cannot run here"),
        (
            a_spec(volumes=[{"name": "v", "disk": {"template": {"spec": {}}}}]),
            'Volume "v" is a disk; this cell has no disks',
        ),
        (
            a_spec(volumes=[{"name": "v"}]),
            'The field "spec.volumes[0]" is missing or cannot be read',
        ),
        (
            with_field("spec.nodeName"),
            (
                'Variable "X" of container "main" refers to "spec.nodeName", which instances may'
                " not read"
            ),
        ),
        (
            a_spec(a_container(resources={"limits": {"cpu": "2"}})),
            f'Containers ask for more than instance type "{TYPE}" has',
        ),
        ({}, 'The field "spec.runtime" is missing or cannot be read'),
    ],
)
def test_what_a_cell_cannot_run_is_refused_with_its_cause(spec: JsonObject, message: str) -> None:
    assert a_refusal_of(spec) == message


def test_an_instance_without_a_spec_is_refused() -> None:
    document = an_instance()
    del document["spec"]
    refused = render(observed(document), OPTIONS)
    assert isinstance(refused, Refusal)
    assert refused.message == 'The field "spec" is missing or cannot be read'


def test_an_unknown_type_is_refused_and_one_that_the_cell_gives_a_size_is_not() -> None:
    spec = deepcopy(a_spec())
    runtime = spec["runtime"]
    assert isinstance(runtime, dict)
    runtime["resources"] = {"instanceType": "example/huge"}
    assert a_refusal_of(spec) == 'Instance type "example/huge" is unknown here'


def test_a_disk_of_an_image_is_refused_also_where_disks_are_ephemeral() -> None:
    disk: JsonObject = {"template": {"spec": {"populator": {"image": {"name": "ubuntu"}}}}}
    spec = a_spec(volumes=[{"name": "v", "disk": disk}])
    assert a_refusal_of(spec, BASELINE) == 'Volume "v" is a disk; this cell has no disks'


@pytest.mark.spec("PP-15")
@pytest.mark.parametrize(
    "path",
    [
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "metadata.labels['a']",
        "metadata.annotations['b.example.com/c']",
        "status.podIP",
        "status.podIPs",
    ],
)
def test_fields_of_the_instance_itself_may_be_read(path: str) -> None:
    a_pod_of(with_field(path))


@pytest.mark.spec("PP-15")
@pytest.mark.parametrize(
    "path",
    ["spec.nodeName", "status.hostIP", "status.hostIPs", "spec.serviceAccountName", "metadata", ""],
)
def test_fields_of_node_and_host_may_not_be_read(path: str) -> None:
    assert "which instances may not read" in a_refusal_of(with_field(path))
