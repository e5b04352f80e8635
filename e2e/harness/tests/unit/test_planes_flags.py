from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from e2e.harness.errors import PlanesError
from e2e.harness.planes import flags
from e2e.harness.planes.flags import StackSettings
from e2e.harness.planes.topology import Rates
from e2e.harness.processes.run_folder import RunFolder, find_memory

GROUND = StackSettings(RunFolder(Path("/run-folder")), "127.0.0.1", 2379)
COMMAND_LINES = {
    "etcd": flags.etcd(GROUND, 2380),
    "kube-apiserver": flags.kube_apiserver(GROUND, "hub", 6443, rights_from_root=False),
    "project": flags.kube_apiserver(GROUND, "p1", 6444, rights_from_root=True),
    "kube-controller-manager": flags.kube_controller_manager(GROUND, "hub", 7000),
    "aggregated": flags.karmada_aggregated_apiserver(GROUND, "hub", 7001),
    "webhook": flags.karmada_webhook(GROUND, "hub", 7002),
    "manager": flags.karmada_controller_manager(GROUND, "hub", 7003, rates=Rates.QUICK),
    "scheduler": flags.karmada_scheduler(GROUND, "hub", 7004, rates=Rates.QUICK),
}


@pytest.mark.parametrize("name", sorted(COMMAND_LINES))
def test_process_writes_and_reads_in_the_run_folder_only(name: str) -> None:
    for flag in COMMAND_LINES[name]:
        if re.match(r"--\S+=/(?!hub|p1)", flag):
            assert "=/run-folder/" in flag, flag


@pytest.mark.parametrize("name", sorted(COMMAND_LINES))
def test_process_listens_on_loopback_only(name: str) -> None:
    listening = [
        flag for flag in COMMAND_LINES[name] if "bind-address=" in flag or "listen" in flag
    ]
    assert listening
    assert all("127.0.0.1" in flag or flag.endswith("=0") for flag in listening)


@pytest.mark.parametrize("name", ["kube-controller-manager", "manager", "scheduler"])
def test_no_controller_can_lose_a_lease(name: str) -> None:
    assert "--leader-elect=false" in COMMAND_LINES[name]


def test_autoscalers_are_evaluated_where_a_cell_may_have_them_and_nowhere_else() -> None:
    of_cell = flags.kube_controller_manager(GROUND, "dfw-1", 7000, has_autoscalers=True)
    (controllers,) = (flag for flag in of_cell if flag.startswith("--controllers="))
    assert controllers.endswith(",horizontal-pod-autoscaler-controller")
    assert "--horizontal-pod-autoscaler-sync-period=2s" in of_cell
    assert not any("autoscaler" in flag for flag in COMMAND_LINES["kube-controller-manager"])


def test_plane_keeps_its_objects_under_its_own_prefix() -> None:
    assert "--etcd-prefix=/hub" in COMMAND_LINES["kube-apiserver"]
    assert "--etcd-prefix=/hub-clusters" in COMMAND_LINES["aggregated"]


def test_project_asks_the_root_for_rights_and_has_none_of_its_own() -> None:
    assert "--authorization-mode=Webhook" in COMMAND_LINES["project"]
    assert not any("RBAC" in flag for flag in COMMAND_LINES["project"])
    assert "--authorization-mode=Node,RBAC" in COMMAND_LINES["kube-apiserver"]


def test_every_api_server_writes_an_audit_log_of_its_own() -> None:
    assert "--audit-log-path=/run-folder/audit/p1.log" in COMMAND_LINES["project"]


@pytest.mark.parametrize("flag", ["--rate-limiter-max-delay", "--cluster-status-update-frequency"])
def test_rates_are_karmadas_own_unless_asked_for(flag: str) -> None:
    own = flags.karmada_controller_manager(GROUND, "hub", 1, rates=Rates.DEFAULT)
    assert not any(argument.startswith(flag) for argument in own)
    assert any(argument.startswith(flag) for argument in COMMAND_LINES["manager"])


def test_run_folder_that_cannot_be_made_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    with pytest.raises(PlanesError, match="choose another place with --folder"):
        RunFolder.create(in_the_way / "run")


def test_folder_with_something_in_it_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "somebodys").touch()
    with pytest.raises(PlanesError, match="it is not empty"):
        RunFolder.create(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["somebodys"]


@pytest.mark.parametrize(("keep_logs", "left"), [(True, ["audit", "logs"]), (False, [])])
def test_removed_folder_keeps_logs_only_after_a_failure(
    tmp_path: Path, *, keep_logs: bool, left: list[str]
) -> None:
    run = RunFolder.create(tmp_path / "run")
    run.remove(keep_logs=keep_logs)
    assert sorted(path.name for path in tmp_path.glob("run/*")) == left
    assert run.path.exists() is keep_logs


@pytest.mark.parametrize(
    ("available", "is_taken"), [("20000000", True), ("4000000", False), ("", False)]
)
def test_files_are_kept_in_memory_only_where_there_is_plenty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, available: str, is_taken: bool
) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)

    def usage(_: Path) -> SimpleNamespace:
        return SimpleNamespace(free=1 << 40)

    monkeypatch.setattr("shutil.disk_usage", usage)
    meminfo = tmp_path / "meminfo"
    line = f"MemAvailable:   {available} kB\n" if available else ""
    meminfo.write_text(f"MemTotal:       32000000 kB\n{line}", "ascii")
    assert (find_memory(tmp_path, meminfo) == tmp_path) is is_taken
    assert find_memory(tmp_path / "none", meminfo) is None
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert find_memory(tmp_path, meminfo) is None, "TMPDIR is set"


def test_etcd_has_room_for_all_planes() -> None:
    assert f"--quota-backend-bytes={8 * 1024**3}" in COMMAND_LINES["etcd"]
