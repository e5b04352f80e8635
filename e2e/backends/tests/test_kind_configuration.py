from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from compute_sim_planes.json_types import JsonObject
from e2e.backends.kind import addresses, configuration
from e2e.backends.kind.addresses import Ranges
from e2e.backends.kind.configuration import ClusterSpec
from e2e.backends.kind.fake_programs import Paths
from e2e.harness.node import process_lookup
from e2e.harness.processes.run_folder import RunFolder
from e2e.harness.testing.helpers import wait_for
from e2e.world.objects import number_at, object_at, objects_at, text_at


def asked(tmp_path: Path, **other: str | int) -> ClusterSpec:
    run = RunFolder(tmp_path)
    plain = ClusterSpec("dfw-1", run, addresses.ADDRESS, 40001, Ranges(1))
    if not other:
        return plain
    return ClusterSpec("hub-host", run, addresses.ADDRESS, 40001, Ranges(1), "hub", 40002)


def kubeadm_of(config: JsonObject) -> JsonObject:
    patches = config["kubeadmConfigPatches"]
    assert isinstance(patches, list)
    kubeadm: JsonObject = yaml.safe_load(str(patches[0]))
    return kubeadm


def test_every_file_of_an_api_server_is_mounted_from_the_run_folder(
    tmp_path: Path,
) -> None:
    config = configuration.cluster(asked(tmp_path))
    kubeadm, (node,) = kubeadm_of(config), objects_at(config, "nodes")
    extra_arguments = object_at(kubeadm, "apiServer", "extraArgs")
    followed = {
        name: Paths(node, kubeadm).follow(str(value))
        for name, value in extra_arguments.items()
        if str(value).startswith("/")
    }
    assert followed == {
        "token-auth-file": f"{tmp_path}/planes/dfw-1/tokens.csv",
        "audit-policy-file": f"{tmp_path}/planes/dfw-1/audit-policy.yaml",
        "audit-log-path": f"{tmp_path}/audit/dfw-1.log",
    }


def test_kubeadm_finds_the_stacks_authorities_and_key(tmp_path: Path) -> None:
    (node,) = objects_at(configuration.cluster(asked(tmp_path)), "nodes")
    mounts = {text_at(one, "containerPath"): one for one in objects_at(node, "extraMounts")}
    wanted = {
        "ca.crt": "ca.crt",
        "ca.key": "ca.key",
        "front-proxy-ca.crt": "front-proxy-ca.crt",
        "front-proxy-ca.key": "front-proxy-ca.key",
        "sa.pub": "service-accounts.crt",
        "sa.key": "service-accounts.key",
    }
    for name, ours in wanted.items():
        mount = mounts[f"/etc/kubernetes/pki/{name}"]
        assert text_at(mount, "hostPath") == f"{tmp_path}/pki/{ours}"
        assert mount["readOnly"] is True


def test_only_logs_are_written_by_a_node(tmp_path: Path) -> None:
    (node,) = objects_at(configuration.cluster(asked(tmp_path)), "nodes")
    written = {
        text_at(one, "containerPath"): text_at(one, "hostPath")
        for one in objects_at(node, "extraMounts")
        if not one["readOnly"]
    }
    assert written == {
        "/var/log/compute-audit": f"{tmp_path}/audit",
        "/var/log/pods": f"{tmp_path}/logs/nodes/dfw-1/pods",
    }


def test_a_cluster_with_karmada_opens_its_port_and_mounts_what_it_reads(tmp_path: Path) -> None:
    (node,) = objects_at(configuration.cluster(asked(tmp_path, guest="hub")), "nodes")
    (opened,) = objects_at(node, "extraPortMappings")
    assert number_at(opened, "containerPort") == addresses.KARMADA_PORT
    assert number_at(opened, "hostPort") == 40002
    assert text_at(opened, "listenAddress") == addresses.ADDRESS
    mounts = {
        text_at(one, "containerPath"): text_at(one, "hostPath")
        for one in objects_at(node, "extraMounts")
    }
    assert mounts[addresses.access_of("hub")] == f"{tmp_path}/planes/hub"
    assert mounts[addresses.access_of("hub-host")] == f"{tmp_path}/planes/hub-host"


def test_a_cluster_without_a_guest_opens_nothing(tmp_path: Path) -> None:
    (node,) = objects_at(configuration.cluster(asked(tmp_path)), "nodes")
    assert node["extraPortMappings"] == []


def test_no_two_clusters_share_addresses() -> None:
    ranges = [
        reached
        for number in range(10)
        for one in [Ranges(number)]
        for reached in (one.pods, one.services)
    ]
    assert len(set(ranges)) == 20
    with pytest.raises(ValueError, match="there are ten"):
        Ranges(10)


# --- processes of nodes, seen from this machine ---------------------------------------------------


def test_a_program_is_found_in_its_namespace_by_its_first_word(tmp_path: Path) -> None:
    sleep = shutil.which("sleep")
    assert sleep is not None
    program = tmp_path / "kubelet"
    program.symlink_to(sleep)
    begun = subprocess.Popen([str(program), "60"])
    try:
        here = process_lookup.namespace_of(os.getpid())
        wait_for(lambda: process_lookup.command_of(begun.pid)[0] == str(program))
        assert begun.pid in process_lookup.members_of(here)
        assert process_lookup.root_of(begun.pid) == Path(f"/proc/{begun.pid}/root")
    finally:
        begun.kill()
        begun.wait()
    assert process_lookup.namespace_of(begun.pid) == ""
    assert process_lookup.command_of(begun.pid) == [""]
