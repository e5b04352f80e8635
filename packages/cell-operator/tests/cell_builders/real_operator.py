"""The operator as a process on real planes, with the rights and policies that ship.

Its home is a cell that Karmada has joined, with a provider and an NSO of sim-planes beside it over
HTTP; the hub is reached by the cell's own credential, projects through the gateway.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cell_builders.documents import CELL_NAME, a_location_document
from compute_operator_kit.settings import API_VERSION
from compute_operator_kit.wire import JsonObject
from e2e.backends.sim.rights import cell_bindings, manifests
from e2e.manifests import DEPLOY, render
from e2e.planes.identities import CELL_AT_HOME, a_cell_operator
from e2e.planes.installation import Installation
from e2e.planes.kubeconfig import Context, render_kubeconfig
from e2e.planes.stack import RealPlanes

ABROAD: Final = a_cell_operator(CELL_NAME)
LEASE: Final = "/apis/coordination.k8s.io/v1/namespaces/compute-system/leases/compute-cell-operator"
# What every project is granted by the policy that ships.
DEFAULT_GRANT: Final = (
    "/apis/quota.miloapis.com/v1alpha1/namespaces/milo-system/resourcegrants"
    "/compute.datumapis.com-default"
)


@dataclass(frozen=True, slots=True)
class RealOperator:
    """A running process."""

    process: subprocess.Popen[bytes]
    planes: RealPlanes
    log: Path

    def check(self) -> None:
        """Raises when the planes or the operator are gone."""
        self.planes.check()
        if self.process.poll() is not None:
            raise AssertionError(f"the operator ended:\n{self.log.read_text()[-4000:]}")


async def install(installation: Installation) -> None:
    """What an administrator applies before the operator starts."""
    installation.adopt(CELL_NAME, LEASE)
    for project in ("p1", "p2"):
        # First, to go last: while the policy for it is there, Milo would make it again.
        installation.adopt(project, DEFAULT_GRANT)
    for folder in ("roles", "admission", "quota"):
        await installation.apply("root", render(DEPLOY / "milo" / folder))
    for folder in ("rbac", "admission"):
        await installation.apply("hub", render(DEPLOY / "hub" / folder))
    await installation.apply("root", cell_bindings("milo", CELL_NAME))
    await installation.apply("hub", cell_bindings("hub", CELL_NAME))
    # What a Deployment would run is started here.
    shipped = [one for one in manifests("cell") if one["kind"] != "Deployment"]
    await installation.apply(CELL_NAME, [*shipped, a_location_document()])


@contextmanager
def running_operator(planes: RealPlanes, folder: Path) -> Generator[RealOperator]:
    file = folder / "operator.json"
    file.write_text(json.dumps(_settings(planes, folder)), "utf-8")
    environ = {
        "PATH": os.environ["PATH"],
        "KUBECONFIG": str(planes.write_kubeconfig(CELL_NAME, user=CELL_AT_HOME.user)),
        "POD_NAMESPACE": "compute-system",
        "POD_NAME": "operator",
    }
    command = [sys.executable, "-m", "compute_cell_operator", "--server-config", str(file)]
    log = folder / "operator.log"
    with log.open("wb") as written:
        process = subprocess.Popen(command, env=environ, stderr=written)
    try:
        yield RealOperator(process, planes, log)
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _settings(planes: RealPlanes, folder: Path) -> JsonObject:
    milo = planes.milo
    token = milo.root.site.tokens.of(milo.root.name, ABROAD.user)
    gateway = folder / "milo.yaml"
    context = Context("milo", milo.server(), milo.root.site.pki.authority, token)
    gateway.write_text(render_kubeconfig([context]), "utf-8")
    hub = planes.write_kubeconfig("hub", user=ABROAD.user)
    return {
        "apiVersion": API_VERSION,
        "kind": "CellOperator",
        "cell": {"name": CELL_NAME},
        "federation": {"mode": "karmada", "kubeconfigPath": str(hub)},
        "quota": {"mode": "enforce", "kubeconfigPath": str(gateway)},
        "metricsServer": {"bindAddress": "0"},
        "health": {"bindAddress": "0"},
    }
