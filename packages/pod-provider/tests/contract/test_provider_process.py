"""The provider as a process, with its command line, its Lease and a stop by SIGTERM."""

from __future__ import annotations

import base64
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import yaml

REPOSITORY = Path(__file__).parents[4]
PATIENCE = 60.0
FAILOVER = 20.0
CONFIGURATION = """\
apiVersion: apiserver.config.datumapis.com/v1alpha1
kind: PodProvider
scope: all
leaderElection: {enabled: true, namespace: compute-system}
metricsServer: {bindAddress: "0"}
health: {bindAddress: "127.0.0.1:0"}
"""
INSTANCES = "/apis/compute.datumapis.com/v1alpha/namespaces/default/instances"
PODS = "/api/v1/namespaces/default/pods"
INSTANCE = {
    "apiVersion": "compute.datumapis.com/v1alpha",
    "kind": "Instance",
    "metadata": {"name": "web-0"},
    "spec": {
        "runtime": {
            "resources": {"instanceType": "datumcloud/d1-standard-2"},
            "sandbox": {"containers": [{"name": "web", "image": "web"}]},
        },
        "networkInterfaces": [{"network": {"name": "default"}}],
    },
}


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    """The kubeconfig of a simulated cluster that serves Instances."""
    path = tmp_path / "kubeconfig"
    crds = REPOSITORY / "deploy" / "crds"
    command = [sys.executable, "-m", "compute_sim_planes", "--plane", "cell"]
    command += ["--kubeconfig", str(path), "--apply", str(crds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline(), "the simulated server did not start"
            yield path
        finally:
            process.terminate()


def connect(kubeconfig: Path) -> httpx.Client:
    document = yaml.safe_load(kubeconfig.read_text("utf-8"))
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    ca = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return httpx.Client(
        base_url=cluster["server"],
        verify=ssl.create_default_context(cadata=ca),
        headers={"Authorization": f"Bearer {user['token']}"},
    )


def wait_until(is_reached: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not is_reached():
        assert time.monotonic() < end, what
        time.sleep(0.2)


@contextmanager
def a_provider(kubeconfig: Path, folder: Path, name: str) -> Generator[subprocess.Popen[bytes]]:
    """One process with its log `<name>.log`; killed at the end."""
    configuration = folder / "provider.yaml"
    configuration.write_text(CONFIGURATION, "utf-8")
    command = [sys.executable, "-m", "compute_pod_provider", "--server-config", str(configuration)]
    environ = {"KUBECONFIG": str(kubeconfig), "HOME": str(folder), "PATH": "", "POD_NAME": name}
    if "PYTHONPATH" in os.environ:
        environ["PYTHONPATH"] = os.environ["PYTHONPATH"]
    with (folder / f"{name}.log").open("wb") as output:
        provider = subprocess.Popen(command, env=environ, stdout=output, stderr=output)
        try:
            yield provider
        finally:
            provider.kill()
            provider.wait()


def named(name: str) -> dict[str, object]:
    return {**INSTANCE, "metadata": {"name": name}}


def versions(api: httpx.Client) -> dict[str, str]:
    """Versions of all Instances and Pods."""
    listed = [one for path in (INSTANCES, PODS) for one in api.get(path).json()["items"]]
    return {one["metadata"]["uid"]: one["metadata"]["resourceVersion"] for one in listed}


def test_the_process_runs_an_instance_and_ends_cleanly(kubeconfig: Path, tmp_path: Path) -> None:
    with connect(kubeconfig) as api, a_provider(kubeconfig, tmp_path, "a") as provider:
        api.post("/api/v1/namespaces", json={"metadata": {"name": "compute-system"}})
        assert api.post(INSTANCES, json=INSTANCE).status_code == 201
        wait_until(lambda: len(api.get(PODS).json()["items"]) == 1, "no Pod was created")
        api.delete(f"{INSTANCES}/web-0")
        wait_until(lambda: api.get(f"{INSTANCES}/web-0").status_code == 404, "the Instance stays")
        assert api.get(PODS).json()["items"] == []
        provider.send_signal(signal.SIGTERM)
        assert provider.wait(PATIENCE) == 0, (tmp_path / "a.log").read_text("utf-8")
    assert '"level":"error"' not in (tmp_path / "a.log").read_text("utf-8")


@pytest.mark.spec("PP-28")
def test_the_second_replica_takes_over_and_a_thawed_leader_writes_nothing(
    kubeconfig: Path, tmp_path: Path
) -> None:
    def has_pods(count: int) -> bool:
        return len(api.get(PODS).json()["items"]) == count

    with connect(kubeconfig) as api, a_provider(kubeconfig, tmp_path, "first") as first:
        api.post("/api/v1/namespaces", json={"metadata": {"name": "compute-system"}})
        assert api.post(INSTANCES, json=named("web-0")).status_code == 201
        wait_until(lambda: has_pods(1), "no Pod was created")
        with a_provider(kubeconfig, tmp_path, "second") as second:
            time.sleep(5)  # it waits for the Lease
            first.send_signal(signal.SIGSTOP)
            began = time.monotonic()
            assert api.post(INSTANCES, json=named("web-1")).status_code == 201
            wait_until(lambda: has_pods(2), "nothing took over")
            assert time.monotonic() - began < FAILOVER
            time.sleep(6)  # `Provisioning` is written after four seconds
            before = versions(api)
            first.send_signal(signal.SIGCONT)
            assert first.wait(PATIENCE) == 1, "a leader without its Lease goes on"
            time.sleep(2)
            assert versions(api) == before
            second.send_signal(signal.SIGTERM)
            assert second.wait(PATIENCE) == 0, (tmp_path / "second.log").read_text("utf-8")
    assert '"level":"error"' not in (tmp_path / "second.log").read_text("utf-8")
