from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
import yaml

from compute_sim_planes.json_types import JsonObject, value_at
from e2e.harness.node import configuration, pause
from e2e.harness.planes.node_slot import NodeSlot

SPEC = Path(__file__).parents[4] / "docs" / "spec" / "in-cluster.md"


@pytest.fixture
def settings(tmp_path: Path) -> configuration.NodeSettings:
    pki = [tmp_path / name for name in ("ca.crt", "server.crt", "server.key")]
    return configuration.NodeSettings("dfw-1", NodeSlot(3), tmp_path, *pki)


@pytest.mark.parametrize(
    ("setting", "wanted"),
    [
        ("failCgroupV1", False),
        ("cgroupDriver", "cgroupfs"),
        ("cgroupRoot", "/ic3"),
        ("cgroupsPerQOS", True),
        ("enforceNodeAllocatable", []),
        ("makeIPTablesUtilChains", False),
        ("localStorageCapacityIsolation", False),
        ("volumePluginDir", "/var/lib/kubelet/volumeplugins"),
        ("imageGCHighThresholdPercent", 100),
    ],
)
def test_kubelet_has_the_settings_of_the_page(
    settings: configuration.NodeSettings, setting: str, wanted: object
) -> None:
    configured = yaml.safe_load(configuration.kubelet(settings))
    assert configured[setting] == wanted
    assert setting in SPEC.read_text("utf-8")


def test_containerd_starts_pods_from_an_image_that_is_there(
    settings: configuration.NodeSettings,
) -> None:
    configured = tomllib.loads(configuration.containerd(settings))["plugins"][
        "io.containerd.grpc.v1.cri"
    ]
    assert configured["sandbox_image"] == pause.NAME
    # Without the right to lower scores, no sandbox would start otherwise.
    assert configured["restrict_oom_score_adj"] is True
    assert configured["cni"]["conf_dir"] == str(settings.networks)


def test_pods_get_addresses_of_their_node(settings: configuration.NodeSettings) -> None:
    configured: JsonObject = json.loads(configuration.network(settings))
    plugins = value_at(configured, "plugins")
    assert isinstance(plugins, list)
    assert value_at(plugins[0], "ipam", "ranges") == [[{"subnet": "10.93.0.0/24"}]]
    assert value_at(plugins[0], "hairpinMode") is True
    assert value_at(plugins[0], "ipMasq") is None


def test_kube_proxy_leaves_the_machines_limits_alone(settings: configuration.NodeSettings) -> None:
    configured = yaml.safe_load(configuration.kube_proxy(settings, Path("/kubeconfig")))
    assert configured["clusterCIDR"] == "10.93.0.0/24"
    assert set(configured["conntrack"].values()) == {0, "0s"}


def test_every_kernel_value_of_the_page_is_shadowed() -> None:
    page = SPEC.read_text("utf-8")
    for name in configuration.KERNEL_VALUES:
        assert name.rpartition("/")[2] in page
