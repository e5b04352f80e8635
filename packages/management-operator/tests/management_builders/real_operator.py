"""The operator as a process on real planes, with the rights, the webhook and the interpreter that
ship.

Its home is the Milo root's own cluster, as where both run in one place; projects are reached
through the gateway, the hub by its own credential.
"""

from __future__ import annotations

import base64
import socket
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from compute_management_operator.admission.webhook import PATH
from compute_operator_kit.config.settings import API_VERSION
from compute_operator_kit.core.json import JsonObject
from compute_operator_kit.testing.certificates import Authority
from e2e.harness.access.kubeconfig import Context, render_kubeconfig
from e2e.harness.deploy.shipped import manifests
from e2e.harness.planes.identities import MANAGEMENT
from e2e.harness.stack.stack import RealPlanes
from e2e.harness.testing.installation import Installation
from e2e.harness.testing.operator_process import OperatorProcess, running_process
from management_builders.rights import shipped_roles

LOCAL: Final = "127.0.0.1"
LEASE: Final = (
    "/apis/coordination.k8s.io/v1/namespaces/compute-system/leases/compute-management-operator"
)


@dataclass(frozen=True, slots=True)
class RealOperator:
    """A running process, and where it is asked for admission."""

    running: OperatorProcess
    health: int
    webhook: int
    authority: bytes

    @property
    def planes(self) -> RealPlanes:
        return self.running.planes

    def check(self) -> None:
        """Raises when the planes or the operator are gone."""
        self.running.check()

    def webhook_configuration(self) -> JsonObject:
        """As shipped, with the two patches that an installation makes."""
        (shipped,) = _of_kinds("milo", "ValidatingWebhookConfiguration")
        client: JsonObject = {
            "url": f"https://{LOCAL}:{self.webhook}/{PATH}",
            "caBundle": base64.b64encode(self.authority).decode(),
        }
        webhooks = shipped["webhooks"]
        assert isinstance(webhooks, list)
        (only,) = webhooks
        assert isinstance(only, dict)
        return {**shipped, "webhooks": [{**only, "clientConfig": client}]}


def _of_kinds(overlay: str, *kinds: str) -> list[JsonObject]:
    return [one for one in manifests(overlay) if one["kind"] in kinds]


async def install(installation: Installation) -> None:
    """What an administrator applies before the operator starts."""
    installation.adopt("root", LEASE)
    await installation.apply("hub", manifests("hub"))
    await installation.apply("root", _of_kinds("milo", "ClusterRole", "ClusterRoleBinding"))
    await installation.apply("root", shipped_roles("home"))


@contextmanager
def running_operator(planes: RealPlanes, folder: Path) -> Generator[RealOperator]:
    certificates = folder / "certificates"
    certificates.mkdir()
    authority = Authority()
    authority.issue().write(certificates)
    health, webhook = _free_port(), _free_port()
    settings = _settings(planes, folder, health, webhook)
    with running_process(
        "compute_management_operator",
        settings,
        kubeconfig=planes.write_kubeconfig("root", user=MANAGEMENT.user),
        planes=planes,
        folder=folder,
    ) as running:
        yield RealOperator(running, health, webhook, authority.certificate)


def _settings(planes: RealPlanes, folder: Path, health: int, webhook: int) -> JsonObject:
    milo = planes.milo
    token = milo.root.runtime.tokens.of(milo.root.name, MANAGEMENT.user)
    context = Context("milo", milo.server(), milo.root.runtime.pki.authority, token)
    gateway = folder / "milo.yaml"
    gateway.write_text(render_kubeconfig([context]), "utf-8")
    hub = planes.write_kubeconfig("hub", user=MANAGEMENT.user)
    return {
        "apiVersion": API_VERSION,
        "kind": "ManagementOperator",
        "discovery": {"mode": "milo", "discoveryKubeconfigPath": str(gateway)},
        "federation": {"mode": "karmada", "kubeconfigPath": str(hub)},
        "webhookServer": {
            "host": LOCAL,
            "port": webhook,
            "tls": {"certDir": str(folder / "certificates")},
        },
        "metricsServer": {"bindAddress": "0"},
        "health": {"bindAddress": f"{LOCAL}:{health}"},
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOCAL, 0))
        return int(probe.getsockname()[1])
