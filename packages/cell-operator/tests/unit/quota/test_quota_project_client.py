"""The client of the quota server is opened at start, or the start is refused (quota.md B1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from compute_cell_operator.quota.project_client import open_client
from compute_cell_operator.settings import CellSettings
from compute_kubeconfig.problems import ConfigurationError
from compute_operator_kit.config.loader import validate_settings
from compute_operator_kit.config.settings import API_VERSION
from compute_operator_kit.core.json import JsonObject
from compute_operator_kit.testing.fakes import FakeClock, FixedRandom

SERVER = """
apiVersion: v1
kind: Config
current-context: quota
contexts: [{name: quota, context: {cluster: quota, user: quota}}]
clusters: [{name: quota, cluster: {server: "%s"}}]
users: [{name: quota, user: {token: abc}}]
"""


def settings_for(path: Path) -> CellSettings:
    document: JsonObject = {
        "apiVersion": API_VERSION,
        "kind": CellSettings.KIND,
        "cell": {"name": "dfw-1"},
        "federation": {"mode": "karmada", "kubeconfigPath": "/hub"},
        "quota": {"mode": "enforce", "kubeconfigPath": str(path)},
    }
    return validate_settings(CellSettings, document)


@pytest.mark.spec("Q-36")
@pytest.mark.parametrize(
    ("text", "expected"), [(None, "kubeconfig"), (SERVER % "http://milo.example.net", "server")]
)
def test_a_missing_or_refused_kubeconfig_is_a_configuration_that_is_refused(
    tmp_path: Path, text: str | None, expected: str
) -> None:
    path = tmp_path / "kubeconfig"
    if text is not None:
        path.write_text(text, "utf-8")
    with pytest.raises(ConfigurationError) as refused:
        open_client(settings_for(path), "compute-cell-operator/1", FakeClock(), FixedRandom())
    assert str(refused.value).startswith("quota.kubeconfigPath: ")
    assert expected in str(refused.value)


async def test_an_acceptable_kubeconfig_opens_a_client_and_sends_nothing(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(SERVER % "https://milo.example.net", "utf-8")
    settings = settings_for(path)
    client = open_client(settings, "compute-cell-operator/1", FakeClock(), FixedRandom())
    assert client.project("acme").name == "acme"
    await client.aclose()
