"""What `deploy/` renders: complete, valid, each file for one kind of plane, and a configuration
that the operators take.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from copy import deepcopy
from functools import cache
from pathlib import Path

import pytest
import yaml

from compute_api_types.wire import JsonObject
from compute_cell_operator.__main__ import main as run_cell
from compute_cell_operator.settings import CellSettings
from compute_kubeconfig.kubeconfig import load_kubeconfig
from compute_management_operator.__main__ import main as run_management
from compute_management_operator.settings import ManagementSettings
from compute_operator_kit.config.loader import Command, load_settings
from compute_operator_kit.config.settings import Root
from compute_pod_provider.__main__ import main as run_provider
from compute_pod_provider.settings import PodProviderSettings
from compute_sim_planes.api_server.http.transport import Transport
from compute_sim_planes.api_server.manifests import ManifestError, apply_manifests
from compute_sim_planes.api_server.plane import Plane
from compute_sim_planes.crds import load_crds
from compute_sim_planes.milo.planes import MiloParts
from compute_sim_planes.milo.simulation import Milo
from compute_sim_planes.time.sources import SeededIdentities, SystemClock
from e2e.deploy_checks.schemas import find_schema_problems
from e2e.harness.deploy.kustomization_inputs import FILE, is_component
from e2e.harness.deploy.manifests import DEPLOY, load_overlay
from e2e.harness.deploy.overlay_targets import (
    COMPONENTS,
    OPERATORS,
    OVERLAYS,
    OverlayTarget,
    targets_of_files,
)
from e2e.world.components import load_component
from e2e.world.objects import name_of, namespace_of, object_at, objects_at, text_at, texts_at
from tools.workspace import Package

BUILT_IN = ("v1", "apps/v1", "policy/v1")
HOMES = ("management", "cell", "pod-provider", "single-cluster")


@cache
def rendered(folder: str) -> list[JsonObject]:
    return load_overlay(folder)


def one(folder: str, kind: str, name: str) -> JsonObject:
    found = [each for each in rendered(folder) if text_at(each, "kind") == kind]
    (named,) = [each for each in found if name_of(each) == name]
    return named


def is_built_in(document: JsonObject) -> bool:
    group = text_at(document, "apiVersion").rpartition("/")[0]
    return text_at(document, "apiVersion") in BUILT_IN or group.endswith(".k8s.io")


def test_every_folder_that_can_be_rendered_belongs_to_an_overlay_that_is_applied() -> None:
    roots = [DEPLOY / name for name in OVERLAYS]
    folders = [path.parent for path in DEPLOY.rglob(FILE)]
    inner = [path for path in folders if path not in roots and not is_component(path)]
    reached = {DEPLOY / path.parent for path in targets_of_files()}
    assert set(inner) <= reached


def test_nothing_of_deploy_is_left_outside_an_overlay() -> None:
    # Sources of the interpreter's manifest, and the page for people.
    others = {
        "README.md",
        "hub/interpreter/aggregate_status.lua",
        "hub/interpreter/dependencies.lua",
        "hub/interpreter/interpret_health.lua",
        "hub/interpreter/retain.lua",
    }
    files = {path.relative_to(DEPLOY) for path in DEPLOY.rglob("*") if path.is_file()}
    left = files - set(targets_of_files())
    assert {str(path) for path in left if path.parts[0] != "rendered"} == others


def test_every_file_is_for_one_of_hub_milo_and_home() -> None:
    for path, places in targets_of_files().items():
        if path.parts[0] == "crds" or "owner-refs" in path.parts:
            continue  # for every plane, by what they are
        assert len(places - {OverlayTarget.SINGLE}) <= 1, path
        if places == {OverlayTarget.SINGLE}:
            assert path.parts[0] == "single-cluster"


def test_objects_of_two_kinds_of_plane_are_never_the_same() -> None:
    """The same name may stand for different roles (C on the hub, D on a cell), never for one."""
    seen: dict[str, OverlayTarget] = {}
    for name, place in OVERLAYS.items():
        if place in {OverlayTarget.EVERY, OverlayTarget.SINGLE}:
            continue
        for document in rendered(name):
            text = yaml.safe_dump(document)
            assert seen.setdefault(text, place) is place, name_of(document)


@pytest.mark.parametrize(
    ("load", "name"),
    [*((rendered, name) for name in OVERLAYS), *((load_component, name) for name in COMPONENTS)],
)
def test_documents_of_built_in_kinds_fit_their_schemas(
    load: Callable[[str], list[JsonObject]], name: str
) -> None:
    for document in load(name):
        if is_built_in(document):
            assert find_schema_problems(document) == [], name_of(document)


def test_unknown_missing_and_mistyped_fields_are_found() -> None:
    wrong: JsonObject = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "x", "labels": {"a": 1}},
        "spec": {"ports": [{"prot": 443}], "selector": []},
    }
    assert find_schema_problems(wrong) == [
        "Service.metadata.labels[a]: expected str, found int",
        "Service.spec.ports[0].port: missing",
        "Service.spec.ports[0].prot: unknown field",
        "Service.spec.selector: expected a dict, found list",
    ]
    assert find_schema_problems({"apiVersion": "v1", "kind": "Servise"}) == [
        "v1 Servise: no such kind"
    ]


@pytest.mark.parametrize(
    ("neighbour", "overlays"),
    [
        ("karmada", ("crds", "hub", "hub/cells/example")),
        ("milo", ("crds", "milo", "milo/cells/example")),
        ("", ("crds", "management")),
        ("", ("crds", "cell", "pod-provider")),
        ("", ("single-cluster",)),
    ],
    ids=["hub", "milo", "management", "cell", "single-cluster"],
)
async def test_plane_takes_everything_that_is_applied_to_it(
    neighbour: str, overlays: tuple[str, ...]
) -> None:
    plane = Plane("plane")
    admin = plane.connect()
    try:
        if neighbour:
            crds = load_crds("milo" if neighbour == "milo" else "karmada")
            await apply_manifests(admin, crds)
        if neighbour == "milo":
            system: JsonObject = {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": "milo-system"},
            }
            await apply_manifests(admin, [system])
        for overlay in overlays:
            await apply_manifests(admin, rendered(overlay))
    finally:
        await plane.close()


@asynccontextmanager
async def a_milo() -> AsyncGenerator[Transport]:
    """The root of a simulated Milo with the kinds of the real one, and ours."""
    milo = Milo(MiloParts(SystemClock(), SeededIdentities(1)))
    try:
        await milo.start()
        await apply_manifests(milo.connect(), rendered("crds"))
        yield milo.connect()
    finally:
        await milo.close()


def milos_own() -> list[JsonObject]:
    """What of `deploy/milo` is of Milo's kinds."""
    groups = {text_at(crd, "spec", "group") for crd in load_crds("milo")}
    return [
        document
        for document in rendered("milo")
        if text_at(document, "apiVersion").partition("/")[0] in groups
    ]


@pytest.mark.spec("OU-01")
async def test_milo_takes_everything_that_is_applied_to_it_strictly() -> None:
    kinds = {text_at(document, "kind") for document in milos_own()}
    assert kinds == {"GrantCreationPolicy", "ProtectedResource", "ResourceRegistration", "Role"}
    async with a_milo() as milo:
        for overlay in ("milo", "milo/cells/example"):
            await apply_manifests(milo, rendered(overlay))


@pytest.mark.spec("OU-01")
async def test_milo_refuses_a_field_that_its_kinds_do_not_have() -> None:
    async with a_milo() as milo:
        for document in milos_own():
            wrong = deepcopy(document)
            object_at(wrong, "spec")["subresources"] = [{"name": "status"}]
            with pytest.raises(ManifestError, match=r"\.spec\.subresources: field not declared"):
                await apply_manifests(milo, [wrong])


@pytest.mark.parametrize("overlay", sorted(OVERLAYS))
def test_objects_say_what_they_are_part_of(overlay: str) -> None:
    for document in rendered(overlay):
        if text_at(document, "kind") == "CustomResourceDefinition":
            continue  # generated; they outlive any release
        labels = object_at(document, "metadata", "labels")
        assert labels["app.kubernetes.io/part-of"] == "compute", name_of(document)
        assert labels["app.kubernetes.io/managed-by"] == "kustomize", name_of(document)


@pytest.mark.parametrize("overlay", HOMES)
def test_everything_namespaced_is_in_the_one_namespace(overlay: str) -> None:
    spaces = {namespace_of(document) for document in rendered(overlay)} - {""}
    assert spaces == {"compute-system"}
    enforced = object_at(one(overlay, "Namespace", "compute-system"), "metadata", "labels")
    assert enforced["pod-security.kubernetes.io/enforce"] == "restricted"


@pytest.mark.parametrize("operator", sorted(OPERATORS))
@pytest.mark.parametrize("is_single", [False, True])
def test_pods_carry_the_version_of_the_package(operator: str, is_single: bool) -> None:
    folder = "single-cluster" if is_single else operator
    name = OPERATORS[operator]
    package = Package(name.removeprefix("compute-"))
    text = (package.path / "pyproject.toml").read_text("utf-8")
    version = next(line for line in text.splitlines() if line.startswith("version")).split('"')[1]
    deployment = one(folder, "Deployment", name)
    template = object_at(deployment, "spec", "template")
    for labelled in (deployment, template):
        labels = object_at(labelled, "metadata", "labels")
        assert labels["app.kubernetes.io/version"] == version
        assert labels["app.kubernetes.io/component"] == package.folder
        assert labels["app.kubernetes.io/name"] == name
    (container,) = objects_at(template, "spec", "containers")
    assert text_at(container, "image") == f"{name}:{version}"


# --- configuration --------------------------------------------------------------------------------

CONFIGS = [(folder, operator) for operator in OPERATORS for folder in (operator, "single-cluster")]
PROGRAMS = {"management": run_management, "cell": run_cell, "pod-provider": run_provider}
SETTINGS: dict[str, type[Root]] = {
    "management": ManagementSettings,
    "cell": CellSettings,
    "pod-provider": PodProviderSettings,
}


def config_file(folder: str, operator: str, into: Path) -> Path:
    shown = object_at(one(folder, "ConfigMap", f"compute-{operator}-config"), "data")
    assert list(shown) == ["config.yaml"]
    path = into / "config.yaml"
    path.write_text(text_at(shown, "config.yaml"), "utf-8")
    return path


def settings_of(folder: str, operator: str, into: Path) -> Root:
    path = config_file(folder, operator, into)
    return load_settings(SETTINGS[operator], Command(server_config=str(path)))


@pytest.mark.parametrize(("folder", "operator"), CONFIGS)
def test_check_config_takes_the_shipped_configuration(
    folder: str, operator: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = config_file(folder, operator, tmp_path)
    found = PROGRAMS[operator](["check-config", "--server-config", str(path)], {})
    assert (found, capsys.readouterr().err) == (0, "")


@pytest.mark.parametrize("operator", sorted(OPERATORS))
def test_check_config_refuses_it_with_one_key_misspelt(operator: str, tmp_path: Path) -> None:
    path = config_file(operator, operator, tmp_path)
    path.write_text(path.read_text("utf-8").replace("telemetry:", "telemetri:"), "utf-8")
    assert PROGRAMS[operator](["check-config", "--server-config", str(path)], {}) == 2


@pytest.mark.parametrize(("folder", "operator"), CONFIGS)
def test_every_file_the_configuration_names_lies_in_a_volume(
    folder: str, operator: str, tmp_path: Path
) -> None:
    deployment = one(folder, "Deployment", OPERATORS[operator])
    pod = object_at(deployment, "spec", "template", "spec")
    (container,) = objects_at(pod, "containers")
    mounts = {
        text_at(mount, "mountPath"): text_at(mount, "name")
        for mount in objects_at(container, "volumeMounts")
    }
    assert sorted(mounts.values()) == sorted(
        text_at(volume, "name") for volume in objects_at(pod, "volumes")
    )
    needed = {
        str(path.parent) for _, path in settings_of(folder, operator, tmp_path).configured_files()
    }
    environment = {
        text_at(each, "name"): text_at(each, "value") for each in objects_at(container, "env")
    }
    assert needed | {"/etc/compute/config", environment["TMPDIR"]} == set(mounts)
    assert texts_at(container, "args") == ["--server-config=/etc/compute/config/config.yaml"]


@pytest.mark.parametrize(("folder", "operator"), CONFIGS)
def test_ports_and_probes_are_those_of_the_configuration(
    folder: str, operator: str, tmp_path: Path
) -> None:
    settings = settings_of(folder, operator, tmp_path)
    deployment = one(folder, "Deployment", OPERATORS[operator])
    (container,) = objects_at(deployment, "spec", "template", "spec", "containers")
    ports = {
        text_at(port, "name"): port["containerPort"] for port in objects_at(container, "ports")
    }
    assert settings.health.bind is not None
    assert settings.metrics_server.bind is not None
    wanted = {"health": settings.health.bind.port, "metrics": settings.metrics_server.bind.port}
    if isinstance(settings, ManagementSettings):
        assert settings.webhook_server is not None
        wanted["webhook"] = settings.webhook_server.port
    assert ports == wanted
    for probe, path, period, failures in (
        ("startupProbe", "/healthz", 2, 30),
        ("livenessProbe", "/healthz", 20, 3),
        ("readinessProbe", "/readyz", 5, 2),
    ):
        assert object_at(container, probe) == {
            "httpGet": {"path": path, "port": "health"},
            "periodSeconds": period,
            "failureThreshold": failures,
        }


def test_single_cluster_has_no_hub_no_quota_and_no_milo(tmp_path: Path) -> None:
    management = settings_of("single-cluster", "management", tmp_path)
    cell = settings_of("single-cluster", "cell", tmp_path)
    assert isinstance(management, ManagementSettings)
    assert isinstance(cell, CellSettings)
    assert (management.discovery.mode, management.federation.mode) == ("single", "none")
    assert (cell.federation.mode, cell.quota.mode) == ("none", "disabled")
    assert (management.networking, cell.networking) == ("auto", "auto")
    provider = settings_of("single-cluster", "pod-provider", tmp_path)
    assert isinstance(provider, PodProviderSettings)
    assert provider.scope == "all"
    groups = {text_at(document, "apiVersion") for document in rendered("single-cluster")}
    assert not [group for group in groups if "karmada" in group or "miloapis" in group]


@pytest.mark.parametrize("plane", ["hub", "milo"])
def test_kubeconfig_of_a_far_plane_is_one_that_the_operator_takes(
    plane: str, tmp_path: Path
) -> None:
    data = object_at(one("management", "ConfigMap", f"compute-{plane}-kubeconfig"), "data")
    path = tmp_path / "kubeconfig"
    path.write_text(text_at(data, "kubeconfig"), "utf-8")
    # What an installation adds, and what the kubelet puts beside it.
    for name in ("ca.crt", "token"):
        (tmp_path / name).write_text("x", "utf-8")
    access = load_kubeconfig(path)
    assert access.server.startswith("https://")
    assert access.ca is not None
    assert access.token is not None
    pod = object_at(
        one("management", "Deployment", "compute-management-operator"), "spec", "template", "spec"
    )
    (volume,) = [each for each in objects_at(pod, "volumes") if text_at(each, "name") == plane]
    tokens = [
        object_at(each, "serviceAccountToken")
        for each in objects_at(volume, "projected", "sources")
    ]
    audiences = [(text_at(each, "path"), text_at(each, "audience")) for each in tokens if each]
    assert audiences == [("token", f"compute-{plane}")]


# --- admission, quota -----------------------------------------------------------------------------


@pytest.mark.parametrize("overlay", ["milo", "single-cluster"])
def test_webhook_is_that_of_the_page_and_leads_to_the_service(overlay: str) -> None:
    (webhook,) = objects_at(
        one(overlay, "ValidatingWebhookConfiguration", "compute-validating"), "webhooks"
    )
    assert webhook == {
        "name": "vworkload.kb.io",
        "clientConfig": {
            "service": {
                "namespace": "compute-system",
                "name": "compute-webhook",
                "port": 443,
                "path": "/validate-compute-datumapis-com-v1alpha-workload",
            }
        },
        "rules": [
            {
                "apiGroups": ["compute.datumapis.com"],
                "apiVersions": ["v1alpha"],
                "resources": ["workloads"],
                "operations": ["CREATE", "UPDATE"],
                "scope": "Namespaced",
            }
        ],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 5,
    }
    home = "management" if overlay == "milo" else overlay
    service = one(home, "Service", "compute-webhook")
    (port,) = objects_at(service, "spec", "ports")
    assert (port["port"], port["targetPort"]) == (443, "webhook")
    deployment = one(home, "Deployment", "compute-management-operator")
    labels = object_at(deployment, "spec", "template", "metadata", "labels")
    assert object_at(service, "spec", "selector").items() <= labels.items()


def test_no_overlay_changes_what_users_send() -> None:
    for overlay in OVERLAYS:
        kinds = {text_at(document, "kind") for document in rendered(overlay)}
        assert not [kind for kind in kinds if kind.startswith("Mutating")]


def test_registrations_and_the_default_grant_are_those_of_the_page() -> None:
    kinds = {
        name_of(each): object_at(each, "spec")
        for each in rendered("milo")
        if text_at(each, "kind") == "ResourceRegistration"
    }
    shown = {
        text_at(spec, "resourceType"): (
            text_at(spec, "type"),
            text_at(spec, "baseUnit"),
            text_at(spec, "displayUnit"),
            spec["unitConversionFactor"],
        )
        for spec in kinds.values()
    }
    assert shown == {
        "compute.datumapis.com/instances": ("Entity", "instance", "instance", 1),
        "compute.datumapis.com/vcpus": ("Allocation", "millicore", "vCPU", 1000),
        "compute.datumapis.com/memory": ("Allocation", "MiB", "MiB", 1),
    }
    for spec in kinds.values():
        claiming = [
            (text_at(each, "apiGroup"), text_at(each, "kind"))
            for each in objects_at(spec, "claimingResources")
        ]
        assert claiming == [
            ("compute.datumapis.com", "Instance"),
            ("resourcemanager.miloapis.com", "Project"),
        ]
    policy = one("milo", "GrantCreationPolicy", "compute.datumapis.com-default")
    template = object_at(policy, "spec", "target", "resourceGrantTemplate")
    allowed = {
        text_at(each, "resourceType"): [bucket["amount"] for bucket in objects_at(each, "buckets")]
        for each in objects_at(template, "spec", "allowances")
    }
    assert allowed == {
        "compute.datumapis.com/instances": [10],
        "compute.datumapis.com/vcpus": [40000],
        "compute.datumapis.com/memory": [81920],
    }
    assert text_at(template, "metadata", "namespace") == "milo-system"
    assert text_at(policy, "spec", "target", "parentContext", "kind") == "Project"


def test_viewers_look_and_admins_write_workloads_alone() -> None:
    roles = {
        name_of(each): object_at(each, "spec")
        for each in rendered("milo")
        if text_at(each, "apiVersion").startswith("iam.") and text_at(each, "kind") == "Role"
    }
    assert sorted(roles) == ["compute.datumapis.com-admin", "compute.datumapis.com-viewer"]
    group = "compute.datumapis.com"
    plurals = ("workloads", "workloaddeployments", "instances")
    looks = {f"{group}/{plural}.{verb}" for plural in plurals for verb in ("list", "get", "watch")}
    writes = {f"{group}/workloads.{verb}" for verb in ("create", "update", "patch", "delete")}
    assert set(texts_at(roles[f"{group}-viewer"], "includedPermissions")) == looks
    assert set(texts_at(roles[f"{group}-admin"], "includedPermissions")) == writes
    inherited = [
        text_at(each, "name") for each in objects_at(roles[f"{group}-admin"], "inheritedRoles")
    ]
    assert inherited == [f"{group}-viewer"]
    protected = {
        name_of(each): each
        for each in rendered("milo")
        if text_at(each, "kind") == "ProtectedResource"
    }
    assert set(protected) == {f"{group}-{plural[:-1]}" for plural in plurals}
