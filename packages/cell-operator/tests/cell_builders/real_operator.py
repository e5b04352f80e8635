"""The operator as a process on real planes, with the rights and policies that ship.

Its home is a cell that Karmada has joined, with a provider and an NSO of sim-planes beside it over
HTTP; the hub is reached by the cell's own credential, projects through the gateway.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from cell_builders.documents import CELL_NAME, CITY, a_location_document
from compute_api_types import names
from compute_operator_kit.config.settings import API_VERSION
from compute_operator_kit.core.json import JsonObject
from e2e.harness.access.kubeconfig import Context, render_kubeconfig
from e2e.harness.deploy.shipped import cell_bindings, manifests
from e2e.harness.planes.identities import CELL_AT_HOME, a_cell_operator
from e2e.harness.stack.stack import RealPlanes
from e2e.harness.testing.installation import Installation
from e2e.harness.testing.operator_process import OperatorProcess, running_process
from e2e.world.objects import text_at

ABROAD: Final = a_cell_operator(CELL_NAME)
# What the cell operator needs of the overlays of Milo and the hub: roles, admission and quota. The
# webhook would refuse every Workload, and no test here is about IAM or the interpreter.
NEEDED: Final = frozenset(
    {
        "ClusterRole",
        "ClusterRoleBinding",
        "GrantCreationPolicy",
        "ResourceRegistration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    }
)
LEASE: Final = "/apis/coordination.k8s.io/v1/namespaces/compute-system/leases/compute-cell-operator"
# What every project is granted by the policy that ships.
DEFAULT_GRANT: Final = (
    "/apis/quota.miloapis.com/v1alpha1/namespaces/milo-system/resourcegrants"
    "/compute.datumapis.com-default"
)


async def install(installation: Installation) -> None:
    """What an administrator applies before the operator starts."""
    installation.adopt(CELL_NAME, LEASE)
    for project in ("p1", "p2"):
        # First, to go last: while the policy for it is there, Milo would make it again.
        installation.adopt(project, DEFAULT_GRANT)
    for plane, overlay in (("root", "milo"), ("hub", "hub")):
        await installation.apply(plane, filter(_is_needed, manifests(overlay)))
    await installation.apply("root", cell_bindings("milo", CELL_NAME, CITY))
    await installation.apply("hub", cell_bindings("hub", CELL_NAME, CITY))
    # What a Deployment would run is started here.
    shipped = [one for one in manifests("cell") if one["kind"] != "Deployment"]
    await installation.apply(CELL_NAME, [*shipped, a_location_document()])


def _is_needed(document: JsonObject) -> bool:
    """Roles and policies, and the namespace with the Leases of the cells."""
    is_for_leases = text_at(document, "metadata", "name") == names.CELL_LEASES
    return document["kind"] in NEEDED or (document["kind"] == "Namespace" and is_for_leases)


def running_operator(planes: RealPlanes, folder: Path) -> AbstractContextManager[OperatorProcess]:
    return running_process(
        "compute_cell_operator",
        _settings(planes, folder),
        kubeconfig=planes.write_kubeconfig(CELL_NAME, user=CELL_AT_HOME.user),
        planes=planes,
        folder=folder,
    )


def _settings(planes: RealPlanes, folder: Path) -> JsonObject:
    milo = planes.milo
    token = milo.root.runtime.tokens.of(milo.root.name, ABROAD.user)
    gateway = folder / "milo.yaml"
    context = Context("milo", milo.server(), milo.root.runtime.pki.authority, token)
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
