from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from compute_api_types.wire import JsonObject
from e2e.backends.pods.environment import CELL_PART, MANAGEMENT_PART
from e2e.backends.pods.overlay import STAMP, SYSTEM, Overlay, find_document
from e2e.harness.deploy.shipped import manifests
from e2e.harness.stack.kubectl import NO_KUBECTL, find_kubectl
from e2e.world.objects import number_at, object_at, objects_at, text_at

pytestmark = pytest.mark.skipif(find_kubectl() is None, reason=NO_KUBECTL)

CELL = CELL_PART.deployment


@pytest.fixture
def overlay(tmp_path: Path) -> Overlay:
    return Overlay(tmp_path / "cell", "cell", (CELL_PART,))


def deployment_of(overlay: Overlay) -> JsonObject:
    return find_document(overlay.render(), "Deployment", CELL)


def stamp_of(overlay: Overlay) -> str:
    deployment = deployment_of(overlay)
    return text_at(deployment, "spec", "template", "metadata", "annotations", STAMP)


def test_only_image_replicas_and_stamp_differ_from_what_ships(overlay: Overlay) -> None:
    overlay.of(CELL).replicas = 1
    made, shipped = deployment_of(overlay), find_document(manifests("cell"), "Deployment", CELL)
    template = object_at(made, "spec", "template", "metadata", "annotations")
    assert template.pop(STAMP)
    (container,) = objects_at(made, "spec", "template", "spec", "containers")
    assert container["image"] == f"localhost/{CELL}:dev"
    (same,) = objects_at(shipped, "spec", "template", "spec", "containers")
    container["image"] = same["image"]
    assert made == shipped


def test_everything_that_ships_for_the_plane_is_in_it(overlay: Overlay) -> None:
    rendered = {
        (text_at(one, "kind"), text_at(one, "metadata", "name")) for one in overlay.render()
    }
    for one in manifests("cell"):
        assert (text_at(one, "kind"), text_at(one, "metadata", "name")) in rendered
    assert any(kind == "NetworkPolicy" for kind, _ in rendered)


def test_a_configuration_as_shipped_is_left_as_shipped(overlay: Overlay) -> None:
    made = find_document(overlay.render(), "ConfigMap", "compute-cell-config")
    assert made == find_document(manifests("cell"), "ConfigMap", "compute-cell-config")


def test_another_configuration_replaces_it_and_rolls_the_pods(overlay: Overlay) -> None:
    before = stamp_of(overlay)
    overlay.of(CELL).configuration = {"cell": {"name": "ord-1"}}
    made = find_document(overlay.render(), "ConfigMap", "compute-cell-config")
    assert yaml.safe_load(text_at(made, "data", "config.yaml")) == {"cell": {"name": "ord-1"}}
    assert stamp_of(overlay) != before


def test_another_number_of_replicas_rolls_nothing(overlay: Overlay) -> None:
    before = stamp_of(overlay)
    overlay.of(CELL).replicas = 1
    assert stamp_of(overlay) == before
    assert number_at(deployment_of(overlay), "spec", "replicas") == 1


def test_a_second_replica_comes_with_its_disruption_budget(overlay: Overlay) -> None:
    def kinds() -> set[str]:
        return {text_at(one, "kind") for one in overlay.render()}

    assert "PodDisruptionBudget" not in kinds()
    overlay.of(CELL).replicas = 2
    assert "PodDisruptionBudget" in kinds()


def test_where_planes_are_lies_over_what_ships(tmp_path: Path) -> None:
    overlay = Overlay(tmp_path / "home", "management", (MANAGEMENT_PART,))
    overlay.merged = {"compute-hub-kubeconfig": {"kubeconfig": "here", "ca.crt": "this"}}
    made = find_document(overlay.render(), "ConfigMap", "compute-hub-kubeconfig")
    assert made["data"] == {"kubeconfig": "here", "ca.crt": "this"}
    assert text_at(made, "metadata", "namespace") == SYSTEM


def test_a_single_cluster_has_the_address_of_its_webhook(tmp_path: Path) -> None:
    overlay = Overlay(tmp_path / "single", "single-cluster", (MANAGEMENT_PART, CELL_PART))
    overlay.webhook = {"url": "https://10.89.0.1:1/x", "caBundle": "AA=="}
    made = find_document(overlay.render(), "ValidatingWebhookConfiguration", "compute-validating")
    (webhook,) = objects_at(made, "webhooks")
    assert webhook["clientConfig"] == overlay.webhook
    assert webhook["failurePolicy"] == "Fail"


def test_what_is_not_rendered_is_named() -> None:
    with pytest.raises(LookupError, match="no Secret 'x'"):
        find_document([], "Secret", "x")
