"""The configuration of the cell operator, and its command line."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from compute_cell_operator.__main__ import main
from compute_cell_operator.settings import CellSettings
from compute_kubeconfig.problems import ConfigurationError
from compute_operator_kit.config.loader import validate_settings
from compute_operator_kit.config.settings import API_VERSION
from compute_operator_kit.core.json import Json, JsonObject

CELL: JsonObject = {"name": "dfw-1", "cityCode": "DFW"}
KARMADA: JsonObject = {"mode": "karmada", "kubeconfigPath": "/hub"}
ENFORCE: JsonObject = {"mode": "enforce", "kubeconfigPath": "/quota"}


def settings(**sections: Json) -> CellSettings:
    given: JsonObject = {"cell": CELL, "federation": KARMADA, "quota": ENFORCE, **sections}
    head: JsonObject = {"apiVersion": API_VERSION, "kind": "CellOperator"}
    return validate_settings(CellSettings, {**head, **given})


def refusal(**sections: Json) -> str:
    with pytest.raises(ConfigurationError) as refused:
        settings(**sections)
    return str(refused.value)


def test_a_federated_cell_acts_in_namespaces_of_projects_only() -> None:
    parsed = settings()
    assert parsed.is_federated
    assert parsed.is_quota_enforced
    assert parsed.is_in_scope("ns-6a1f1c1e-3f6c-4a44-9a52-0c2f9f3b7a10")
    assert not parsed.is_in_scope("default")
    files = dict(parsed.configured_files())
    assert files["quota.kubeconfigPath"] == Path("/quota")


@pytest.mark.parametrize(("text", "seconds"), [("0s", 0), ("5s", 5), ("1m", 60)])
def test_the_heartbeat_has_bounds_and_zero_is_none(text: str, seconds: int) -> None:
    parsed = settings(federation={**KARMADA, "heartbeat": text})
    assert parsed.federation.heartbeat == timedelta(seconds=seconds)
    assert settings().federation.heartbeat == timedelta(seconds=15)


def test_a_single_cluster_acts_everywhere() -> None:
    parsed = settings(federation={"mode": "none"}, quota={"mode": "disabled"})
    assert parsed.is_in_scope("default")
    assert "quota.kubeconfigPath" not in dict(parsed.configured_files())


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ({"cell": {}}, "cell.name: is required"),
        ({"cell": {"name": "DFW_1"}}, "cell.name: expected a DNS label"),
        ({"cell": {"name": "single"}}, "cell.name: must not be single"),
        ({"cell": {"name": "a", "cityCode": "no good"}}, "cell.cityCode: expected"),
        ({"federation": {"mode": "none"}}, "federation.mode: none is refused"),
        ({"federation": {"mode": "karmada"}}, "federation.kubeconfigPath: is required"),
        ({"quota": {"mode": "enforce"}}, "quota.kubeconfigPath: is required"),
        ({"discovery": {"mode": "milo"}}, "discovery"),
        ({"workers": {"total": 4, "perProject": 2}}, "workers.perProject"),
        ({"federation": {**KARMADA, "sweepInterval": "1s"}}, "federation.sweepInterval"),
        ({"federation": {**KARMADA, "heartbeat": "4s"}}, "expected 0s, or between 5s and 1m"),
        ({"federation": {**KARMADA, "heartbeat": "61s"}}, "federation.heartbeat"),
    ],
)
def test_a_wrong_file_is_refused_naming_the_field(sections: JsonObject, expected: str) -> None:
    assert expected in refusal(**sections)


def test_a_cell_called_single_is_one_without_federation() -> None:
    cell: JsonObject = {"name": "single"}
    parsed = settings(cell=cell, federation={"mode": "none"}, quota={"mode": "disabled"})
    assert parsed.cell.name == "single"


def test_version_and_check_config(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"], {})
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("compute-cell-operator ")
    file = tmp_path / "config.yaml"
    good = (
        f"apiVersion: {API_VERSION}\nkind: CellOperator\ncell: {{name: dfw-1}}\n"
        "federation: {mode: none}\nquota: {mode: disabled}\n"
    )
    file.write_text(good)
    assert main(["check-config", "--server-config", str(file)], {}) == 0
    stated = capsys.readouterr().out.splitlines()
    assert stated[:2] == [f"{file}: valid, kind CellOperator", "  cell: dfw-1"]
    assert stated[-1] == "  quota: disabled, nothing is claimed"
    file.write_text(good.replace("CellOperator", "ManagementOperator") + "wrong: 1\n")
    assert main(["check-config", "--server-config", str(file)], {}) == 2
    assert "wrong" in capsys.readouterr().err


def test_help_lists_decommission(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"], {})
    assert "decommission" in capsys.readouterr().out
