"""The operator as a process on real planes, with the rights, the webhook and the interpreter that
ship.

Its home is the Milo root's own cluster, as where both run in one place; projects are reached
through the gateway, the hub by its own credential.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from compute_management_operator.front_door import PATH
from compute_operator_kit.settings import API_VERSION
from compute_operator_kit.testing_certificates import Authority
from compute_operator_kit.wire import JsonObject
from e2e.manifests import DEPLOY, render
from e2e.planes.identities import MANAGEMENT
from e2e.planes.installation import Installation
from e2e.planes.kubeconfig import Context, render_kubeconfig
from e2e.planes.stack import RealPlanes
from management_builders.rights import shipped_roles

LOCAL: Final = "127.0.0.1"
LEASE: Final = (
    "/apis/coordination.k8s.io/v1/namespaces/compute-system/leases/compute-management-operator"
)


@dataclass(slots=True)
class RealOperator:
    """A running process, and where it is asked for admission."""

    process: subprocess.Popen[bytes]
    planes: RealPlanes
    health: int
    webhook: int
    authority: bytes
    log: Path

    def check(self) -> None:
        """Raises when the planes or the operator are gone."""
        self.planes.check()
        if self.process.poll() is not None:
            raise AssertionError(f"the operator ended:\n{self.log.read_text()[-4000:]}")

    def webhook_configuration(self) -> JsonObject:
        """As shipped, with the two patches that an installation makes."""
        (shipped,) = render(DEPLOY / "milo" / "webhook")
        client: JsonObject = {
            "url": f"https://{LOCAL}:{self.webhook}/{PATH}",
            "caBundle": base64.b64encode(self.authority).decode(),
        }
        webhooks = shipped["webhooks"]
        assert isinstance(webhooks, list)
        (only,) = webhooks
        assert isinstance(only, dict)
        return {**shipped, "webhooks": [{**only, "clientConfig": client}]}


async def install(installation: Installation) -> None:
    """What an administrator applies before the operator starts."""
    installation.adopt("root", LEASE)
    await installation.apply("hub", render(DEPLOY / "hub"))
    await installation.apply("root", render(DEPLOY / "milo" / "roles"))
    await installation.apply("root", shipped_roles("home"))


@contextmanager
def running_operator(planes: RealPlanes, folder: Path) -> Generator[RealOperator]:
    certificates = folder / "certificates"
    certificates.mkdir()
    authority = Authority()
    authority.issue().write(certificates)
    health, webhook = _free_port(), _free_port()
    settings = _settings(planes, folder, health, webhook)
    file = folder / "operator.json"
    file.write_text(json.dumps(settings), "utf-8")
    environ = {
        "PATH": os.environ["PATH"],
        "KUBECONFIG": str(planes.write_kubeconfig("root", user=MANAGEMENT.user)),
        "POD_NAMESPACE": "compute-system",
        "POD_NAME": "operator",
    }
    command = [sys.executable, "-m", "compute_management_operator", "--server-config", str(file)]
    log = folder / "operator.log"
    with log.open("wb") as written:
        process = subprocess.Popen(command, env=environ, stderr=written)
    try:
        yield RealOperator(process, planes, health, webhook, authority.certificate, log)
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _settings(planes: RealPlanes, folder: Path, health: int, webhook: int) -> JsonObject:
    milo = planes.milo
    token = milo.root.site.tokens.of(milo.root.name, MANAGEMENT.user)
    context = Context("milo", milo.server(), milo.root.site.pki.authority, token)
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
