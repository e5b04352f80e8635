"""The overlays that the installation page shows render, and change what they say they change."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compute_api_types.wire import JsonObject
from e2e.deploy_checks.network_flows import ANY_PEER, NetworkFlow, derive_flows
from e2e.harness.deploy.manifests import DEPLOY
from e2e.harness.stack.kubectl import NO_KUBECTL, find_kubectl, kustomize
from e2e.world.components import parse_manifests
from e2e.world.objects import name_of, object_at, objects_at, text_at
from tools.workspace import ROOT

PAGE = (ROOT / "docs/howto/install.md").read_text("utf-8")
SHOWN = re.compile(r"^```yaml\n# (my/\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
OVERLAYS: dict[str, str] = dict(SHOWN.findall(PAGE))
ENDS = (".kubeconfig", "-ca.crt")
needs_kubectl = pytest.mark.skipif(find_kubectl() is None, reason=NO_KUBECTL)
DIGEST = "sha256:" + "0" * 64


def pinned(module: str, requirement: str) -> str:
    """The version that real planes are built from."""
    text = (ROOT / "e2e/harness/programs" / module / "go.mod").read_text("utf-8")
    (found,) = re.findall(rf"^\t{re.escape(requirement)} (v\S+)", text, re.MULTILINE)
    return str(found)


def test_the_versions_of_the_table_are_those_of_the_real_planes() -> None:
    rows = re.findall(r"^\| (\S+) \| [^|]+ \| (\S+) \|", PAGE, re.MULTILINE)
    shown: dict[str, str] = dict(rows)
    assert shown["Karmada"] == pinned("karmada", "github.com/karmada-io/karmada")
    assert shown["Kubernetes"] == pinned("kubernetes", "k8s.io/kubernetes")


@pytest.fixture
def installation(tmp_path: Path) -> Path:
    """A repository of a platform team beside ours."""
    (tmp_path / "deploy").symlink_to(DEPLOY)
    for path, text in OVERLAYS.items():
        written = tmp_path / path
        written.parent.mkdir(parents=True)
        written.write_text(text.replace("sha256:…", DIGEST), "utf-8")
    return tmp_path / "my"


def objects_of(folder: Path) -> dict[str, JsonObject]:
    documents = parse_manifests(kustomize(folder))
    return {f"{text_at(one, 'kind')}/{name_of(one)}": one for one in documents}


def image_of(deployment: JsonObject) -> str:
    (container,) = objects_at(deployment, "spec", "template", "spec", "containers")
    return text_at(container, "image")


def test_page_shows_an_overlay_for_each_operator() -> None:
    assert sorted(OVERLAYS) == [
        "my/cells/dfw-1/kustomization.yaml",
        "my/management/kustomization.yaml",
    ]


@needs_kubectl
def test_overlay_of_a_cell_renders_with_its_own_configuration(installation: Path) -> None:
    folder = installation / "cells/dfw-1"
    (folder / "config.yaml").write_text("cell: mine\n", "utf-8")
    found = objects_of(folder)
    assert object_at(found["ConfigMap/compute-cell-config"], "data") == {
        "config.yaml": "cell: mine\n"
    }
    deployment = found["Deployment/compute-cell-operator"]
    assert deployment["spec"] != object_at(
        objects_of(DEPLOY / "cell")["Deployment/compute-cell-operator"], "spec"
    )
    assert image_of(deployment) == f"registry.example.net/compute-cell-operator@{DIGEST}"
    assert "PodDisruptionBudget/compute-cell-operator" in found
    assert "NetworkPolicy/compute-cell-operator" in found


@needs_kubectl
@pytest.mark.spec("AT-26")
@pytest.mark.parametrize(
    ("folder", "operator"), [("cells/dfw-1", "cell"), ("management", "management")]
)
def test_overlays_leave_no_address_open_that_they_do_not_name(
    installation: Path, folder: str, operator: str
) -> None:
    for name in ("config.yaml", *(f"{plane}{end}" for plane in ("hub", "milo") for end in ENDS)):
        (installation / folder / name).write_text("x\n", "utf-8")
    found = objects_of(installation / folder)
    deployment = found[f"Deployment/compute-{operator}-operator"]
    labels = object_at(deployment, "spec", "template", "metadata", "labels")
    policies = [one for one in found.values() if text_at(one, "kind") == "NetworkPolicy"]
    flows = {flow for flow in derive_flows(policies, labels) if flow.direction == "out"}
    assert [flow for flow in flows if flow.peer == ANY_PEER] == []
    assert NetworkFlow("out", "192.0.2.0/24", "TCP", 6443) in flows
    narrowed = found[f"NetworkPolicy/compute-{operator}-operator-api-servers"]
    assert not object_at(narrowed, "metadata", "annotations")


@needs_kubectl
def test_overlay_of_management_says_where_hub_and_milo_are(installation: Path) -> None:
    folder = installation / "management"
    for plane in ("hub", "milo"):
        (folder / f"{plane}.kubeconfig").write_text(f"{plane} is here\n", "utf-8")
        (folder / f"{plane}-ca.crt").write_text(f"authority of {plane}\n", "utf-8")
    found = objects_of(folder)
    for plane in ("hub", "milo"):
        assert object_at(found[f"ConfigMap/compute-{plane}-kubeconfig"], "data") == {
            "kubeconfig": f"{plane} is here\n",
            "ca.crt": f"authority of {plane}\n",
        }
    image = image_of(found["Deployment/compute-management-operator"])
    assert image == f"registry.example.net/compute-management-operator@{DIGEST}"
