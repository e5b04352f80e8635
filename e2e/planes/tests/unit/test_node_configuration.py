from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
import yaml

from compute_sim_planes.json_types import JsonObject, value_at
from e2e.planes.node import configuration, pause
from e2e.planes.node.slot import Slot

SPEC = Path(__file__).parents[4] / "docs" / "spec" / "in-cluster.md"


@pytest.fixture
def ground(tmp_path: Path) -> configuration.Ground:
    pki = [tmp_path / name for name in ("ca.crt", "server.crt", "server.key")]
    return configuration.Ground("dfw-1", Slot(3), tmp_path, *pki)


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
def test_kubelet_is_told_what_the_page_says(
    ground: configuration.Ground, setting: str, wanted: object
) -> None:
    told = yaml.safe_load(configuration.kubelet(ground))
    assert told[setting] == wanted
    assert setting in SPEC.read_text("utf-8")


def test_containerd_starts_pods_from_an_image_that_is_there(ground: configuration.Ground) -> None:
    told = tomllib.loads(configuration.containerd(ground))["plugins"]["io.containerd.grpc.v1.cri"]
    assert told["sandbox_image"] == pause.NAME
    # Without the right to lower scores no sandbox starts otherwise.
    assert told["restrict_oom_score_adj"] is True
    assert told["cni"]["conf_dir"] == str(ground.networks)


def test_pods_get_addresses_of_their_node(ground: configuration.Ground) -> None:
    told: JsonObject = json.loads(configuration.network(ground))
    plugins = value_at(told, "plugins")
    assert isinstance(plugins, list)
    assert value_at(plugins[0], "ipam", "ranges") == [[{"subnet": "10.93.0.0/24"}]]
    assert value_at(plugins[0], "hairpinMode") is True
    assert value_at(plugins[0], "ipMasq") is None


def test_kube_proxy_leaves_the_machines_limits_alone(ground: configuration.Ground) -> None:
    told = yaml.safe_load(configuration.kube_proxy(ground, Path("/kubeconfig")))
    assert told["clusterCIDR"] == "10.93.0.0/24"
    assert set(told["conntrack"].values()) == {0, "0s"}


def test_every_kernel_value_of_the_page_is_shadowed() -> None:
    page = SPEC.read_text("utf-8")
    for name in configuration.KERNEL_VALUES:
        assert name.rpartition("/")[2] in page
