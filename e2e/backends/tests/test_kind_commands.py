"""The commands of the kind backend, run against fake executables that record their arguments."""

from __future__ import annotations

import asyncio
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from e2e.backends.kind import __main__ as command
from e2e.backends.kind import addresses, karmada
from e2e.backends.kind.addresses import Ranges
from e2e.backends.kind.clusters import KindCluster, create_network, delete_left
from e2e.backends.kind.commands import NEEDED, NETWORK, WATCHERS, MachineFacts
from e2e.backends.kind.configuration import NODE_IMAGE, ClusterSpec
from e2e.backends.kind.environment import KindBackend, KindEnvironment
from e2e.backends.kind.kind_clusters import KindClusters
from e2e.backends.kind.machine_lock import lock_machine
from e2e.backends.pods.environment import PodEnvironment
from e2e.harness.errors import PlanesError
from e2e.harness.planes.topology import Rates
from e2e.harness.processes.run_folder import RunFolder
from e2e.harness.programs.binaries import KARMADA, KUBERNETES
from e2e.harness.programs.store import ModuleFiles
from e2e.world.port import HasPods

FIT = MachineFacts(is_root=True, watchers=WATCHERS)
RECORDER = """#!/usr/bin/env python3
import json, os, sys
with open(os.environ["RECORD"], "a", encoding="utf-8") as record:
    record.write(json.dumps([os.path.basename(sys.argv[0]), *sys.argv[1:]]) + "\\n")
with open(os.environ["RECORD"] + ".networks", "a", encoding="utf-8") as record:
    record.write(os.environ.get("KIND_EXPERIMENTAL_DOCKER_NETWORK", "") + "\\n")
answers = json.loads(os.environ["ANSWERS"])
for words, answer in answers.items():
    if words in " ".join(sys.argv):
        print(answer)
sys.exit(int(os.environ.get("CODE", "0")))
"""


class Recorder:
    """Stands for every program, records calls, and prints what the test sets."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._record = folder / "record"
        self._monkeypatch = monkeypatch
        programs = folder / "bin"
        programs.mkdir()
        for name in NEEDED:
            program = programs / name
            program.write_text(RECORDER)
            program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv("RECORD", str(self._record))
        self.answer({})

    def answer(self, answers: dict[str, str], code: int = 0) -> None:
        self._monkeypatch.setenv("ANSWERS", json.dumps(answers))
        self._monkeypatch.setenv("CODE", str(code))

    @property
    def ran(self) -> list[str]:
        lines = self._record.read_text("utf-8").splitlines() if self._record.exists() else []
        return [" ".join(json.loads(line)) for line in lines]

    @property
    def networks(self) -> set[str]:
        """The docker networks that kind was called with."""
        return set(Path(f"{self._record}.networks").read_text("utf-8").split())


@pytest.fixture
def recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    return Recorder(tmp_path, monkeypatch)


@pytest.fixture
def cluster(tmp_path: Path) -> KindCluster:
    run = RunFolder.create(tmp_path / "run")
    run.write_for_plane("dfw-1", "tokens.csv", "")
    return KindCluster(ClusterSpec("dfw-1", run, addresses.ADDRESS, 40001, Ranges(2)))


NODE = "compute-dfw-1-control-plane"


def test_a_cluster_is_made_waited_for_routed_to_and_given_our_images(
    recorder: Recorder, cluster: KindCluster, tmp_path: Path
) -> None:
    recorder.answer({"NetworkSettings": "10.89.250.3"})
    cluster.create()
    cluster.load([tmp_path / "image.tar"])
    cluster.delete()
    own = tmp_path / "run" / "planes" / "dfw-1"
    asked = f"--config {own}/kind.json --kubeconfig {own}/kind.kubeconfig --wait 180s"
    created, inspected, *routed, loaded, deleted = recorder.ran
    assert created == f"kind create cluster --name compute-dfw-1 {asked}"
    assert inspected.endswith(NODE)
    assert routed == [
        "ip route replace 10.222.0.0/16 via 10.89.250.3",
        "ip route replace 10.232.0.0/16 via 10.89.250.3",
    ]
    assert loaded == f"kind load image-archive {tmp_path}/image.tar --name compute-dfw-1"
    assert deleted == "kind delete cluster --name compute-dfw-1"
    written = json.loads((own / "kind.json").read_text("utf-8"))
    assert written["networking"]["apiServerPort"] == 40001
    assert written["nodes"][0]["image"] == NODE_IMAGE


def test_a_node_that_gets_its_power_back_may_have_another_address(
    recorder: Recorder, cluster: KindCluster
) -> None:
    recorder.answer({"NetworkSettings": "10.89.250.9"})
    cluster.switch_off()
    cluster.switch_on()
    assert recorder.ran[:2] == [f"docker kill {NODE}", f"docker start {NODE}"]
    assert recorder.ran[-1] == "ip route replace 10.232.0.0/16 via 10.89.250.9"


def test_routes_go_with_the_cluster_unless_they_are_gone(
    recorder: Recorder, cluster: KindCluster
) -> None:
    recorder.answer({"route show 10.222.0.0/16": "10.222.0.0/16 via 10.89.250.3"})
    cluster.unroute()
    assert [line for line in recorder.ran if "del" in line] == ["ip route del 10.222.0.0/16"]


def test_everything_is_on_a_network_of_ours(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KIND_EXPERIMENTAL_DOCKER_NETWORK", raising=False)
    create_network()
    subnet = f"--subnet {addresses.SUBNET} --gateway {addresses.ADDRESS}"
    assert recorder.ran == [f"docker network create {subnet} {NETWORK}"]
    assert recorder.networks == {NETWORK}


def test_karmada_is_installed_with_the_stacks_authority(
    recorder: Recorder, cluster: KindCluster, tmp_path: Path
) -> None:
    recorder.answer({"NetworkSettings": "10.89.250.2"})
    karmada.install(cluster, Rates.QUICK)
    inspected, installed = recorder.ran
    assert inspected.endswith(NODE)
    pki = tmp_path / "run" / "pki"
    assert f"--ca-cert-file {pki}/ca.crt --ca-key-file {pki}/ca.key" in installed
    assert "--karmada-apiserver-advertise-address 10.89.250.2" in installed
    assert f"--cert-external-ip {addresses.ADDRESS} --port 32443" in installed
    image = f"--karmada-webhook-image=docker.io/karmada/karmada-webhook:{karmada.VERSION}"
    assert image in installed
    quick = "--karmada-controller-manager-extra-args=--cluster-status-update-frequency=2s"
    assert quick in installed


def test_at_default_rates_karmada_gets_no_flags(recorder: Recorder, cluster: KindCluster) -> None:
    karmada.install(cluster, Rates.DEFAULT)
    assert "extra-args" not in recorder.ran[-1]


def test_what_a_crashed_run_left_is_deleted_and_nothing_else(recorder: Recorder) -> None:
    recorder.answer({"get clusters": "compute-hub-host\nsomebody-elses", "network ls": "abc"})
    assert delete_left() == ["compute-hub-host"]
    assert [line for line in recorder.ran if " ls " not in line and " get " not in line] == [
        "kind delete cluster --name compute-hub-host",
        f"docker network rm {NETWORK}",
    ]


def test_a_failure_quotes_the_program(recorder: Recorder, cluster: KindCluster) -> None:
    recorder.answer({"create": "node image not found"}, code=1)
    with pytest.raises(PlanesError, match=r"create cluster.*node image not found"):
        cluster.create()


def test_without_docker_one_line_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert command.main(["prepare"], lambda: FIT) == command.IMPOSSIBLE
    output = capsys.readouterr().out
    assert output == (
        "kind: not run: looking for docker: it is not there; install docker and start it\n"
    )


@pytest.mark.usefixtures("recorder")
def test_with_everything_installed_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["prepare"], lambda: FIT) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.usefixtures("recorder")
def test_a_user_without_root_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["prepare"], lambda: replace(FIT, is_root=False)) == command.IMPOSSIBLE
    assert "this user is not root" in capsys.readouterr().out


@pytest.mark.usefixtures("recorder")
def test_too_few_inotify_instances_are_an_error_with_a_remedy(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command.main(["prepare"], lambda: replace(FIT, watchers=90)) == command.IMPOSSIBLE
    assert "fs.inotify.max_user_instances=512" in capsys.readouterr().out


def test_a_daemon_that_does_not_answer_is_an_error(
    recorder: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    recorder.answer({}, code=1)
    assert command.main(["prepare"], lambda: FIT) == command.IMPOSSIBLE
    assert "its daemon does not answer" in capsys.readouterr().out


def test_images_that_are_not_there_are_named_before_anything_is_made(
    recorder: Recorder, tmp_path: Path
) -> None:
    clusters = KindClusters({"home": (tmp_path / "image.tar",)})
    with pytest.raises(PlanesError, match=r"image\.tar is not there; run `nox -s images`"):
        clusters.reserve(RunFolder(tmp_path))
    assert recorder.ran == []


def test_room_is_taken_once_what_a_crashed_run_left_is_gone(
    recorder: Recorder, tmp_path: Path
) -> None:
    recorder.answer({"get clusters": "compute-home"})
    lock = tmp_path / "lock"
    clusters = KindClusters({}, lock=lock)
    assert clusters.reserve(RunFolder(tmp_path)) == addresses.ADDRESS
    with pytest.raises(PlanesError, match="another run has its own"):
        lock_machine(lock)
    asyncio.run(clusters.release())
    lock_machine(lock).close()
    words = [" ".join(line.split()[:3]) for line in recorder.ran]
    assert words == [
        "kind get clusters",
        "kind delete cluster",
        "docker network ls",
        "docker network create",
        "kind get clusters",  # and again at the end
        "kind delete cluster",
        "docker network ls",
    ]


def test_kind_differs_from_in_cluster_only_in_its_nodes() -> None:
    assert issubclass(KindBackend, HasPods)
    assert KindBackend.name == "kind"
    for part in (KindEnvironment.management_part, KindEnvironment.cell_part):
        assert part.components == ()  # kind would enforce NetworkPolicies against our links
    assert PodEnvironment.management_part.components


def test_versions_are_those_the_real_planes_are_built_from() -> None:
    assert ModuleFiles.read(KARMADA).version == karmada.VERSION
    assert karmada.VERSION in NEEDED["karmadactl"]
    minor = re.compile(r"v1\.\d+")
    built, used = minor.match(ModuleFiles.read(KUBERNETES).version), minor.search(NODE_IMAGE)
    assert built is not None
    assert used is not None
    assert built.group() == used.group()
