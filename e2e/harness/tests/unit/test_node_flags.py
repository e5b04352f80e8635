from __future__ import annotations

from pathlib import Path

import pytest

from e2e.harness.planes import flags
from e2e.harness.planes.node_slot import NodeSlot
from e2e.harness.processes.run_folder import RunFolder

SLOT = NodeSlot(2)
GROUND = flags.StackSettings(RunFolder(Path("/run-folder")), SLOT.stack_address, 2379)
HOSTING = flags.kube_apiserver(GROUND, "home", 6443, rights_from_root=False, slot=SLOT)
PLAIN = flags.kube_apiserver(GROUND, "root", 6443, rights_from_root=False)
HUB = flags.kube_apiserver(GROUND, "hub", 6443, rights_from_root=False, audience="compute-hub")


def test_an_api_server_with_a_node_gives_pods_their_accounts() -> None:
    assert not any("disable-admission-plugins" in flag for flag in HOSTING)
    assert any("ServiceAccount" in flag for flag in PLAIN)
    assert "--enable-admission-plugins=NodeRestriction" in HOSTING


def test_services_of_a_cluster_are_its_slots() -> None:
    assert "--service-cluster-ip-range=10.192.0.0/24" in HOSTING
    assert "--service-cluster-ip-range=10.0.0.0/24" in PLAIN


def test_only_a_plane_that_believes_another_asks_it() -> None:
    asked = "--authentication-token-webhook-config-file=/run-folder/planes/hub/issuer.kubeconfig"
    assert asked in HUB
    assert "--api-audiences=https://hub.local,compute-hub" in HUB
    assert not any("token-webhook" in flag or "audiences" in flag for flag in (*PLAIN, *HOSTING))


def test_all_controllers_run_where_pods_do() -> None:
    hosting = flags.kube_controller_manager(GROUND, "home", 7000, slot=SLOT)
    plain = flags.kube_controller_manager(GROUND, "root", 7000)
    assert not any(flag.startswith("--controllers=") for flag in hosting)
    assert any(flag.startswith("--controllers=") for flag in plain)
    assert "--flex-volume-plugin-dir=/run-folder/tmp" in hosting


@pytest.mark.parametrize(
    "arguments",
    [HOSTING, HUB, flags.kube_scheduler(GROUND, "home", 7000)],
    ids=["hosting", "hub", "scheduler"],
)
def test_everything_listens_where_pods_find_it(arguments: tuple[str, ...]) -> None:
    assert "--bind-address=10.89.2.1" in arguments
