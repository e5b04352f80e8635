"""kind's command lines, run against executables that write down what they were told."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from e2e.backends.kind import __main__ as command
from e2e.backends.kind.clusters import NODE_IMAGE, KindCluster, delete_left
from e2e.backends.kind.commands import NEEDED
from e2e.backends.kind.karmada import VERSION, KindKarmada
from e2e.planes.binaries import KARMADA, KUBERNETES
from e2e.planes.errors import PlanesError
from e2e.planes.store import ModuleFiles

RECORDER = """#!/usr/bin/env python3
import json, os, sys
with open(os.environ["RECORD"], "a", encoding="utf-8") as record:
    record.write(json.dumps([os.path.basename(sys.argv[0]), *sys.argv[1:]]) + "\\n")
answers = json.loads(os.environ["ANSWERS"])
for words, answer in answers.items():
    if words in " ".join(sys.argv):
        print(answer)
sys.exit(int(os.environ.get("CODE", "0")))
"""


class Recorder:
    """Stands for every program, and answers what a test tells it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._record = folder / "record"
        self._monkeypatch = monkeypatch
        programs = folder / "bin"
        programs.mkdir()
        for name in (*NEEDED, "kubectl"):
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


@pytest.fixture
def recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    return Recorder(tmp_path, monkeypatch)


def test_a_cluster_is_made_waited_for_and_given_our_images(
    recorder: Recorder, tmp_path: Path
) -> None:
    cluster = KindCluster("dfw-1", tmp_path)
    cluster.create()
    cluster.load([tmp_path / "image.tar"])
    cluster.delete()
    kubeconfig = tmp_path / "dfw-1.kubeconfig"
    created = f"kind create cluster --name compute-dfw-1 --image {NODE_IMAGE}"
    assert recorder.ran == [
        f"{created} --kubeconfig {kubeconfig} --wait 120s",
        f"kind load image-archive {tmp_path}/image.tar --name compute-dfw-1",
        f"kind delete cluster --name compute-dfw-1 --kubeconfig {kubeconfig}",
    ]


def test_karmada_is_installed_and_a_cell_joined_under_its_own_name(
    recorder: Recorder, tmp_path: Path
) -> None:
    recorder.answer({"docker inspect": "172.18.0.2", "kind get kubeconfig": "kind: Config"})
    karmada = KindKarmada(KindCluster("hub", tmp_path))
    karmada.install()
    karmada.join(KindCluster("dfw-1", tmp_path), "DFW")
    inspected, installed, inner, joined, labelled = recorder.ran
    assert inspected.endswith("compute-hub-control-plane")
    assert "--karmada-apiserver-advertise-address 172.18.0.2" in installed
    assert f"--karmada-image-tag {VERSION}" in installed
    assert inner == "kind get kubeconfig --internal --name compute-dfw-1"
    written = tmp_path / "dfw-1.inner.kubeconfig"
    assert joined.endswith(f"join dfw-1 --cluster-kubeconfig {written}")
    assert written.read_text("utf-8") == "kind: Config"
    assert written.stat().st_mode & 0o777 == 0o600
    assert labelled.endswith("label cluster dfw-1 topology.datum.net/city-code=DFW --overwrite")


def test_clusters_that_a_crashed_run_left_are_deleted_and_no_others(
    recorder: Recorder, tmp_path: Path
) -> None:
    recorder.answer({"get clusters": "compute-hub\nsomebody-elses"})
    assert delete_left(["hub", "dfw-1"], tmp_path) == ["hub"]
    assert len(recorder.ran) == 2


def test_what_goes_wrong_is_told_with_the_programs_words(
    recorder: Recorder, tmp_path: Path
) -> None:
    recorder.answer({"create": "node image not found"}, code=1)
    with pytest.raises(PlanesError, match=r"create cluster.*node image not found"):
        KindCluster("hub", tmp_path).create()


def test_without_docker_one_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert command.main(["prepare"]) == command.IMPOSSIBLE
    said = capsys.readouterr().out
    assert said == (
        "kind: not run: looking for docker: it is not there; install docker and start it\n"
    )


@pytest.mark.usefixtures("recorder")
def test_where_everything_is_there_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["prepare"]) == 0
    assert capsys.readouterr().out == ""


def test_a_daemon_that_does_not_answer_is_told(
    recorder: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    recorder.answer({}, code=1)
    assert command.main(["prepare"]) == command.IMPOSSIBLE
    assert "its daemon does not answer" in capsys.readouterr().out


def test_versions_are_those_the_real_planes_are_built_from() -> None:
    assert ModuleFiles.read(KARMADA).version == VERSION
    assert VERSION in NEEDED["karmadactl"]
    minor = re.compile(r"v1\.\d+")
    built, used = minor.match(ModuleFiles.read(KUBERNETES).version), minor.search(NODE_IMAGE)
    assert built is not None
    assert used is not None
    assert built.group() == used.group()
