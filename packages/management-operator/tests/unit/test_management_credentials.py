"""The kubeconfig of each plane, by the settings."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
import yaml

from compute_kubeconfig.problems import ConfigurationError
from compute_management_operator.process import load_credentials
from compute_management_operator.settings import ManagementSettings
from compute_operator_kit.config.loader import validate_settings
from compute_operator_kit.config.settings import API_VERSION
from compute_operator_kit.core.json import JsonObject
from compute_operator_kit.core.keys import Role
from compute_operator_kit.testing.certificates import Authority
from compute_operator_kit.testing.fakes import FakeClock


def settings_of(**members: JsonObject) -> ManagementSettings:
    head: JsonObject = {"apiVersion": API_VERSION, "kind": "ManagementOperator"}
    return validate_settings(ManagementSettings, {**head, **members})


def write_kubeconfig(folder: Path, name: str) -> str:
    ca = base64.b64encode(Authority(name).certificate).decode()
    content = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [
            {
                "name": "c",
                "cluster": {
                    "server": f"https://{name}.example:6443",
                    "certificate-authority-data": ca,
                },
            }
        ],
        "users": [{"name": "u", "user": {"token": f"token-of-{name}"}}],
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(content))
    return str(path)


def test_each_plane_has_the_credentials_its_setting_names(tmp_path: Path) -> None:
    home, root, projects, hub = (
        write_kubeconfig(tmp_path, name) for name in ("home", "root", "projects", "hub")
    )
    settings = settings_of(
        discovery={"discoveryKubeconfigPath": root, "projectKubeconfigPath": projects},
        federation={"kubeconfigPath": hub},
    )
    credentials = load_credentials(settings, {"KUBECONFIG": home}, FakeClock())
    servers = {
        role: credentials.to(role).server for role in (Role.HOME, Role.ROOT, Role.PROJECT, Role.HUB)
    }
    assert servers == {
        Role.HOME: "https://home.example:6443",
        Role.ROOT: "https://root.example:6443",
        Role.PROJECT: "https://projects.example:6443",
        Role.HUB: "https://hub.example:6443",
    }
    endpoints = credentials.endpoints()
    assert {role: endpoints.find(role).url for role in servers} == servers


def test_projects_are_reached_as_the_root_is_and_the_root_as_home_is(tmp_path: Path) -> None:
    home, root, hub = (write_kubeconfig(tmp_path, name) for name in ("home", "root", "hub"))
    clock, environ = FakeClock(), {"KUBECONFIG": home}
    with_root = load_credentials(
        settings_of(
            discovery={"discoveryKubeconfigPath": root}, federation={"kubeconfigPath": hub}
        ),
        environ,
        clock,
    )
    assert with_root.to(Role.PROJECT) is with_root.to(Role.ROOT)
    alone = load_credentials(settings_of(federation={"kubeconfigPath": hub}), environ, clock)
    assert alone.to(Role.PROJECT) is alone.home
    assert alone.to(Role.ROOT) is alone.home


def test_without_a_pod_and_without_the_variable_there_is_no_home(tmp_path: Path) -> None:
    settings = settings_of(federation={"kubeconfigPath": write_kubeconfig(tmp_path, "hub")})
    with pytest.raises(ConfigurationError, match="KUBECONFIG: is not set"):
        load_credentials(settings, {}, FakeClock())
