"""Pods of `deploy/` are *restricted*, bounded and spread as operations.md 4.3 says (S4)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from compute_api_types.wire import JsonObject
from e2e.deploy_checks.pod_faults import CONTAINER_FAULTS, INHERITED_FAULTS, POD_FAULTS, PodFault
from e2e.deploy_checks.pod_security import find_problems
from e2e.harness.deploy.manifests import DEPLOY, load_overlay
from e2e.harness.deploy.overlay_targets import OPERATORS
from e2e.harness.stack.kubectl import NO_KUBECTL, find_kubectl, kustomize
from e2e.world.components import parse_manifests
from e2e.world.objects import name_of, object_at, objects_at, text_at

HOMES = ("management", "cell", "pod-provider", "single-cluster")
needs_kubectl = pytest.mark.skipif(find_kubectl() is None, reason=NO_KUBECTL)
COMPONENTS = ("webhook-certs", "network-policy", "high-availability", "owner-refs", "monitoring")


@cache
def deployments(folder: str) -> dict[str, JsonObject]:
    found = load_overlay(folder)
    return {name_of(each): each for each in found if text_at(each, "kind") == "Deployment"}


def pods(folder: str) -> Iterator[JsonObject]:
    for deployment in deployments(folder).values():
        yield object_at(deployment, "spec", "template", "spec")


def render_with(components: tuple[str, ...], folder: str, into: Path) -> list[JsonObject]:
    """What a team's own overlay over ours gives."""
    if not (into / "deploy").exists():
        (into / "deploy").symlink_to(DEPLOY)
    listed = "".join(f"- deploy/components/{name}\n" for name in components)
    (into / "kustomization.yaml").write_text(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
        f"resources:\n- deploy/{folder}\ncomponents:\n{listed}"
        "images:\n"
        + "".join(f"- name: {name}\n  digest: sha256:{'0' * 64}\n" for name in OPERATORS.values()),
        "utf-8",
    )
    return parse_manifests(kustomize(into))


@pytest.mark.spec("S4")
@pytest.mark.parametrize("folder", HOMES)
def test_pods_are_restricted_and_bounded(folder: str) -> None:
    found = [find_problems(pod) for pod in pods(folder)]
    assert found
    assert not any(found)


@needs_kubectl
@pytest.mark.spec("S4")
@pytest.mark.parametrize("folder", HOMES)
def test_pods_of_a_released_bundle_with_all_components_are_restricted_too(
    folder: str, tmp_path: Path
) -> None:
    bundle = render_with(COMPONENTS, folder, tmp_path)
    shown = [each for each in bundle if text_at(each, "kind") == "Deployment"]
    templates = [object_at(each, "spec", "template", "spec") for each in shown]
    assert len(templates) == len(deployments(folder))
    assert not any(find_problems(pod, is_released=True) for pod in templates)


def test_what_is_not_released_names_images_by_tag() -> None:
    (pod,) = pods("cell")
    problems = find_problems(pod, is_released=True)
    assert problems == ["container 'operator' names its image by a tag"]


def a_pod() -> JsonObject:
    (pod,) = pods("cell")
    return pod


@pytest.mark.parametrize("fault", POD_FAULTS, ids=str)
def test_fault_of_a_pod_is_found(fault: PodFault) -> None:
    assert find_problems(fault.in_pod(a_pod())) == [fault.problem]


@pytest.mark.parametrize("fault", INHERITED_FAULTS, ids=str)
def test_fault_that_containers_inherit_is_found(fault: PodFault) -> None:
    assert find_problems(fault.in_pod(a_pod())) == [f"container 'operator' {fault.problem}"]


@pytest.mark.parametrize("where", ["containers", "initContainers", "ephemeralContainers"])
@pytest.mark.parametrize("fault", CONTAINER_FAULTS, ids=str)
def test_fault_of_any_container_is_found(fault: PodFault, where: str) -> None:
    problems = find_problems(fault.in_container(a_pod(), where))
    assert problems == [f"container 'second' {fault.problem}"]


@pytest.mark.parametrize(
    ("operator", "cpu", "memory"),
    [
        ("management", "50m", "256Mi"),
        ("cell", "25m", "192Mi"),
        ("pod-provider", "25m", "192Mi"),
    ],
)
@pytest.mark.parametrize("is_single", [False, True])
def test_deployment_is_as_the_page_has_it(
    operator: str, cpu: str, memory: str, *, is_single: bool
) -> None:
    folder = "single-cluster" if is_single else operator
    spec = object_at(deployments(folder)[OPERATORS[operator]], "spec")
    pod = object_at(spec, "template", "spec")
    (container,) = objects_at(pod, "containers")
    assert container["resources"] == {
        "requests": {"cpu": cpu, "memory": memory},
        "limits": {"memory": memory},
    }
    context = object_at(pod, "securityContext")
    assert (context["runAsUser"], context["runAsGroup"]) == (65532, 65532)
    assert object_at(spec, "strategy") == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1},
    }
    assert pod["terminationGracePeriodSeconds"] == 15
    assert pod["automountServiceAccountToken"] is True
    assert "priorityClassName" not in pod
    scratch = [each for each in objects_at(pod, "volumes") if "emptyDir" in each]
    assert [each["emptyDir"] for each in scratch] == [{"medium": "Memory", "sizeLimit": "16Mi"}]


@needs_kubectl
def test_high_availability_keeps_one_replica_up_on_another_node(tmp_path: Path) -> None:
    rendered = render_with(("high-availability",), "single-cluster", tmp_path)
    shown = {f"{text_at(each, 'kind')}/{name_of(each)}": each for each in rendered}
    for name in OPERATORS.values():
        labels: JsonObject = {"matchLabels": {"app.kubernetes.io/name": name}}
        spec = object_at(shown[f"Deployment/{name}"], "spec")
        assert spec["replicas"] == 2
        (spread,) = objects_at(spec, "template", "spec", "topologySpreadConstraints")
        assert (spread["maxSkew"], spread["whenUnsatisfiable"]) == (1, "DoNotSchedule")
        assert (spread["topologyKey"], spread["labelSelector"]) == (
            "kubernetes.io/hostname",
            labels,
        )
        budget = object_at(shown[f"PodDisruptionBudget/{name}"], "spec")
        assert budget == {"minAvailable": 1, "selector": labels}


@needs_kubectl
def test_webhook_certificate_comes_from_cert_manager_where_that_is_chosen(tmp_path: Path) -> None:
    for components, wanted in (((), "secret"), (("webhook-certs",), "csi")):
        rendered = render_with(components, "management", tmp_path) if components else None
        found = rendered or list(deployments("management").values())
        (deployment,) = [each for each in found if text_at(each, "kind") == "Deployment"]
        volumes = objects_at(deployment, "spec", "template", "spec", "volumes")
        (volume,) = [each for each in volumes if text_at(each, "name") == "webhook-certs"]
        assert set(volume) == {"name", wanted}
        if wanted == "secret":
            assert volume["secret"] == {"secretName": "compute-webhook-cert"}
            continue
        assert text_at(volume, "csi", "driver") == "csi.cert-manager.io"
        attributes = object_at(volume, "csi", "volumeAttributes")
        host = "compute-webhook.compute-system.svc"
        names = text_at(attributes, "csi.cert-manager.io/dns-names")
        assert names == f"{host},{host}.cluster.local"
        files = {
            text_at(attributes, f"csi.cert-manager.io/{name}-file")
            for name in ("certificate", "privatekey")
        }
        assert files == {"tls.crt", "tls.key"}
        assert not [key for key in attributes if "issuer" in key]
