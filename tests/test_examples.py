"""The examples are what they claim to be: Workloads that are admitted, health checks that judge."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
import yaml
from cel_expr_python import cel

from compute_api_types import reasons
from compute_api_types.catalogue import WORKLOAD_CONDITIONS
from compute_api_types.v1alpha import Workload
from compute_api_types.validation import NETWORKING_OFF, Facts, review_workload, warnings
from compute_api_types.wire import JsonObject, JsonValue
from compute_cell_operator.settings import CellSettings
from compute_operator_kit.config.loader import Command, load_settings
from compute_sim_planes.api_server.manifests import ManifestError, apply_manifests, read_manifests
from compute_sim_planes.api_server.plane import Plane
from compute_sim_planes.karmada.interpreter.lua_sandbox import LuaSandbox
from e2e.harness.deploy.manifests import load_overlay
from e2e.harness.stack.kubectl import find_kubectl, kustomize
from e2e.world.objects import name_of, object_at, objects_at, text_at, texts_at
from tools.workspace import ROOT

EXAMPLES: Final = ROOT / "examples"
WORKLOADS: Final = sorted((EXAMPLES / "workloads").glob("*.yaml"))
NAMES: Final = {
    *("autoscaled", "one-city", "private-image"),
    *("two-cities", "two-placements", "web-server", "with-configuration"),
}
NOW: Final = datetime(2026, 11, 18, tzinfo=UTC)


def workload_in(path: Path) -> JsonObject:
    (found,) = [one for one in read_manifests(path) if text_at(one, "kind") == "Workload"]
    return found


def test_there_is_an_example_of_each_way_to_use_a_workload() -> None:
    assert {path.stem for path in WORKLOADS} == NAMES
    assert {name_of(workload_in(path)) for path in WORKLOADS} == NAMES
    page = (EXAMPLES / "README.md").read_text("utf-8")
    assert [path.name for path in WORKLOADS if f"(workloads/{path.name})" not in page] == []


@pytest.mark.parametrize("path", WORKLOADS, ids=lambda path: path.stem)
def test_a_workload_of_an_example_passes_the_admission_rules(path: Path) -> None:
    document = workload_in(path)
    namespaced: JsonObject = {
        **document,
        "metadata": {**object_at(document, "metadata"), "namespace": "default"},
    }
    facts = Facts("shop", cities=NETWORKING_OFF, reviews=NETWORKING_OFF)
    assert review_workload(namespaced, None, facts) == ()
    is_stored_only = path.stem in {"private-image", "with-configuration"}
    assert bool(warnings(namespaced)) == is_stored_only
    assert Workload.read(namespaced).to_document()["spec"] == document["spec"]


@pytest.mark.parametrize("path", WORKLOADS, ids=lambda path: path.stem)
async def test_a_server_takes_an_example_strictly(path: Path) -> None:
    plane = Plane("plane")
    try:
        await apply_manifests(plane.connect(), load_overlay("crds"))
        await apply_manifests(plane.connect(), read_manifests(path))
        misspelt = workload_in(path)
        object_at(misspelt, "spec")["placement"] = []
        with pytest.raises(ManifestError, match="placement"):
            await apply_manifests(plane.connect(), [misspelt])
    finally:
        await plane.close()


# --- health ---------------------------------------------------------------------------------------


def waiting_for_a_person() -> set[str]:
    """Reasons of `Ready=False` that do not pass by themselves."""
    wait = reasons.MEANINGS[reasons.PENDING].act
    shown = {
        reason
        for condition in WORKLOAD_CONDITIONS
        if (condition.type, condition.status) == ("Ready", "False")
        for reason in condition.reasons
    }
    return {reason for reason in shown if reasons.MEANINGS[reason].act != wait}


def a_workload(status: str, reason: str, observed: int = 2) -> JsonObject:
    return {
        "apiVersion": "compute.datumapis.com/v1alpha",
        "kind": "Workload",
        "metadata": {"name": "web", "generation": 2},
        "status": {
            "observedGeneration": observed,
            "conditions": [
                {"type": "Available", "status": "Unknown", "reason": "Pending"},
                {"type": "Ready", "status": status, "reason": reason, "message": "as it is"},
            ],
        },
    }


def condition_reasons(workload: JsonObject) -> set[str]:
    listed = objects_at(object_at(workload, "status"), "conditions")
    return {text_at(condition, "reason") for condition in listed}


CASES: Final = [
    (a_workload("True", "PlacementsReady"), "Healthy"),
    (a_workload("True", "PlacementsReady", observed=1), "Progressing"),
    (a_workload("False", "InstancesProvisioning"), "Progressing"),
    (a_workload("Unknown", "Pending"), "Progressing"),
    *((a_workload("False", reason), "Degraded") for reason in sorted(waiting_for_a_person())),
]
IDS: Final = [f"{wanted}-{at}" for at, (_, wanted) in enumerate(CASES)]


def test_some_reasons_wait_for_a_person() -> None:
    assert {"QuotaNotGranted", "ImageUnavailable"} <= waiting_for_a_person()
    assert "InstancesProvisioning" not in waiting_for_a_person()


@pytest.mark.parametrize(("document", "wanted"), CASES, ids=IDS)
def test_argo_cd_judges_a_workload(document: JsonObject, wanted: str) -> None:
    script = (EXAMPLES / "argo-cd" / "workload.lua").read_text("utf-8")
    # Argo CD runs the file with the object as a global; here it is the body of a function.
    sandbox = LuaSandbox(lambda: NOW)
    found = sandbox.call(f"function health(obj)\n{script}\nend", "health", document)
    assert isinstance(found, dict)
    # Argo CD has a state of its own for what an order holds; to Flux it has failed for now.
    is_suspended = condition_reasons(document) >= {"Suspended"}
    assert found["status"] == ("Suspended" if is_suspended else wanted)
    assert found["message"]


def test_argo_cd_judges_a_workload_that_no_operator_has_seen() -> None:
    script = (EXAMPLES / "argo-cd" / "workload.lua").read_text("utf-8")
    found = LuaSandbox(lambda: NOW).call(
        f"function health(obj)\n{script}\nend", "health", {"metadata": {"generation": 1}}
    )
    assert isinstance(found, dict)
    assert found["status"] == "Progressing"


def expressions() -> dict[str, str]:
    (_, kustomization) = read_manifests(EXAMPLES / "flux" / "workloads.yaml")
    (checks,) = objects_at(kustomization, "spec", "healthCheckExprs")
    assert text_at(checks, "kind") == "Workload"
    return {name: text_at(checks, name) for name in ("current", "failed", "inProgress")}


@pytest.mark.parametrize(("document", "wanted"), CASES, ids=IDS)
def test_flux_judges_a_workload(document: JsonObject, wanted: str) -> None:
    environment = cel.NewEnv(variables={"status": cel.Type.DYN, "metadata": cel.Type.DYN})
    values = {name: object_at(document, name) for name in ("metadata", "status")}

    def holds(name: str) -> bool:
        program = environment.compile(expressions()[name])
        return bool(program.eval(environment.Activation(values)).plain_value())

    # The order in which Flux asks.
    if holds("inProgress"):
        judged = "Progressing"
    elif holds("failed"):
        judged = "Degraded"
    else:
        judged = "Healthy" if holds("current") else "Progressing"
    assert judged == wanted


# --- installing -----------------------------------------------------------------------------------


def flux_cell() -> tuple[JsonObject, JsonObject]:
    source, kustomization = read_manifests(EXAMPLES / "flux" / "cell.yaml")
    return source, object_at(kustomization, "spec")


def test_flux_installs_from_folders_that_are_there() -> None:
    source, spec = flux_cell()
    folder = ROOT / text_at(spec, "path")
    parts = [folder, *(folder / part for part in texts_at(spec, "components"))]
    assert [part for part in parts if not (part / "kustomization.yaml").is_file()] == []
    assert text_at(source, "spec", "ref", "tag").startswith("deploy/v")


def test_flux_gives_a_configuration_that_the_operator_takes(tmp_path: Path) -> None:
    (patch,) = objects_at(flux_cell()[1], "patches")
    config_map = yaml.safe_load(text_at(patch, "patch"))
    path = tmp_path / "config.yaml"
    path.write_text(config_map["data"]["config.yaml"], "utf-8")
    settings = load_settings(CellSettings, Command(server_config=str(path)))
    assert settings.cell.name == "dfw-1"


@pytest.mark.skipif(find_kubectl() is None, reason="no kubectl is to be had")
def test_the_component_merges_the_script_into_the_settings_of_argo_cd(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "argo-cd", tmp_path / "argo-cd")
    settings: JsonObject = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "argocd-cm", "namespace": "argocd"},
        "data": {"url": "https://argo.example.net"},
    }
    overlay: dict[str, JsonValue] = {"resources": ["cm.yaml"], "components": ["argo-cd"]}
    (tmp_path / "cm.yaml").write_text(yaml.safe_dump(settings), "utf-8")
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay), "utf-8")
    data = yaml.safe_load(kustomize(tmp_path))["data"]
    key = "resource.customizations.health.compute.datumapis.com_Workload"
    assert data["url"] == "https://argo.example.net"
    assert data[key] == (EXAMPLES / "argo-cd" / "workload.lua").read_text("utf-8")
