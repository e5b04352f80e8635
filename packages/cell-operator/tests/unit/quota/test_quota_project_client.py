"""The client of the quota server is opened at start, or the start is refused (quota.md B1).

A claim is made only in a namespace whose UID was read; that proof ends after ten minutes.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from typing_extensions import override

from compute_cell_operator.quota.project_client import ProjectClient, open_client
from compute_cell_operator.quota.project_ref import BillingProject, ProjectUnresolvable
from compute_cell_operator.quota.result import NamespaceNotFound
from compute_cell_operator.settings import CellSettings
from compute_kubeconfig.problems import ConfigurationError
from compute_operator_kit.config.loader import validate_settings
from compute_operator_kit.config.settings import API_VERSION
from compute_operator_kit.core.json import JsonObject
from compute_operator_kit.testing.fakes import FakeClock, FixedRandom
from compute_quota_client import QuotaClient

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


# --- the proof of a namespace ---------------------------------------------------------------------

BILLING = BillingProject("acme", "shop", "uid-1")


class Namespaces(httpx.AsyncBaseTransport):
    """Answers every request with a namespace of this UID; without one, with 404."""

    def __init__(self) -> None:
        self.uid = BILLING.namespace_uid
        self.reads = 0

    @override
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.reads += 1
        if not self.uid:
            return httpx.Response(404, json={"kind": "Status", "code": 404}, request=request)
        metadata = {"name": BILLING.namespace, "uid": self.uid}
        document = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        return httpx.Response(200, json=document, request=request)


@pytest.mark.spec("Q-24")
async def test_the_proof_of_a_namespace_lasts_ten_minutes_and_not_longer() -> None:
    served, clock = Namespaces(), FakeClock()
    async with QuotaClient("https://milo.example.net", transport=served) as client:
        project = ProjectClient(client.project("acme"), "dfw-1", lambda _: None)
        for _ in range(3):
            assert await project.prove(BILLING, clock) is None
            clock.pass_time(timedelta(minutes=3))
        assert served.reads == 1
        served.uid = "another"
        clock.pass_time(timedelta(minutes=1))
        assert isinstance(await project.prove(BILLING, clock), ProjectUnresolvable)
        assert served.reads == 2
        served.uid = ""
        assert isinstance(await project.prove(BILLING, clock), NamespaceNotFound)
        assert served.reads == 3  # what is not proven is read each time
